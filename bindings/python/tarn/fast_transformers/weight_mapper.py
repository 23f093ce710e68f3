# SPDX-License-Identifier: MIT
"""Parameters of other libraries under the names of these transformers."""
from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

Pairs = List[Tuple[str, Any]]


class MappingRule:
    def matches(self, key: str) -> bool:
        raise NotImplementedError

    def apply(self, key: str, value: Any) -> Pairs:
        """The names and values that take the place of one."""
        raise NotImplementedError


class IdentityRule(MappingRule):
    def matches(self, key: str) -> bool:
        return True

    def apply(self, key: str, value: Any) -> Pairs:
        return [(key, value)]


class NotRule(MappingRule):
    """Keeps what another rule does not match."""

    def __init__(self, rule: MappingRule) -> None:
        self.rule = rule

    def matches(self, key: str) -> bool:
        return not self.rule.matches(key)

    def apply(self, key: str, value: Any) -> Pairs:
        return [(key, value)]


class OrRule(MappingRule):
    """The first of several rules that matches."""

    def __init__(self, *rules: MappingRule) -> None:
        self.rules = rules

    def matches(self, key: str) -> bool:
        return any(rule.matches(key) for rule in self.rules)

    def apply(self, key: str, value: Any) -> Pairs:
        return next(rule for rule in self.rules if rule.matches(key)).apply(key, value)


class RegexRule(MappingRule):
    def __init__(self, search: str, replace: str) -> None:
        self.pattern, self.replace = re.compile(search), replace

    def matches(self, key: str) -> bool:
        return self.pattern.search(key) is not None

    def apply(self, key: str, value: Any) -> Pairs:
        return [(self.pattern.sub(self.replace, key), value)]


class PytorchAttentionWeightsRule(MappingRule):
    """The three projections that torch.nn.MultiheadAttention keeps in one tensor."""

    _pattern = re.compile(r"self_attn\.in_proj_(weight|bias)$")

    def matches(self, key: str) -> bool:
        return self._pattern.search(key) is not None

    def apply(self, key: str, value: Any) -> Pairs:
        return [(self._pattern.sub(rf"attention.{name}_projection.\1", key), part)
                for name, part in zip(("query", "key", "value"), value.chunk(3))]


class SimpleMapper:
    """The first rule that matches is applied; parameters without one are left out."""

    def __init__(self, rules: Sequence[MappingRule] = (), add_identity: bool = True) -> None:
        self._rules = list(rules) + ([IdentityRule()] if add_identity else [])

    def map(self, state_dict: Dict[str, Any]) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        for key, value in state_dict.items():
            rule = next((rule for rule in self._rules if rule.matches(key)), None)
            found.update(rule.apply(key, value) if rule else [])
        return found

    @classmethod
    def load_file(cls, filepath: Any, model_root: Optional[str] = None, map_location: Any = None,
                  **other_args: Any) -> Dict[str, Any]:
        """torch.load(), then map(). model_root: the key of the parameters in the file."""
        state = torch.load(filepath, map_location=map_location, **other_args)
        return cls().map(state if model_root is None else state[model_root])


class PytorchMapper(SimpleMapper):
    """Of torch.nn.TransformerEncoder."""

    def __init__(self) -> None:
        super().__init__([PytorchAttentionWeightsRule(),
                          RegexRule(r"layers\.(\d+)\.self_attn\.([a-z]+)_proj(ection)?\.",
                                    r"layers.\1.attention.\2_projection.")])


_BERT = (("attention.self.(query|key|value)", r"attention.\2_projection"),
         ("attention.output.dense", "attention.out_projection"),
         ("attention.output.LayerNorm", "norm1"), ("intermediate.dense", "linear1"),
         ("output.dense", "linear2"), ("output.LayerNorm", "norm2"))


def _bert_rules() -> List[MappingRule]:
    return [RegexRule(r"layer\.(\d+)\." + name.replace(".", r"\."), r"layers.\1." + ours)
            for name, ours in _BERT]


class HugginfaceBertEncoderMapper(SimpleMapper):
    """Of the encoder of Hugging Face's BERT."""

    def __init__(self) -> None:
        super().__init__(_bert_rules())


class _LeftOut(RegexRule):
    def apply(self, key: str, value: Any) -> Pairs:
        return []


class LongformerMapper(SimpleMapper):
    """Of Longformer, without its projections for global attention."""

    def __init__(self) -> None:
        super().__init__([_LeftOut(r"_global\.", ""), *_bert_rules()])
