# SPDX-License-Identifier: MIT
"""Builders made from keywords, dictionaries and namespaces."""
from __future__ import annotations

from typing import Any, Mapping, Type, TypeVar

Builder = TypeVar("Builder", bound="BaseBuilder")


class BaseBuilder:
    """Its attributes are the parameters of what it builds; others are refused."""

    @classmethod
    def from_kwargs(cls: Type[Builder], **kwargs: Any) -> Builder:
        """strict=False: unknown names are ignored."""
        strict = kwargs.pop("strict", True)
        return cls.from_dictionary(kwargs, strict)

    @classmethod
    def from_namespace(cls: Type[Builder], args: Any, strict: bool = False) -> Builder:
        """args: of argparse, for example."""
        return cls.from_dictionary(vars(args), strict)

    @classmethod
    def from_dictionary(cls: Type[Builder], dictionary: Mapping[str, Any],
                        strict: bool = True) -> Builder:
        """strict: unknown names are an error, not ignored."""
        builder = cls()
        for name, value in dictionary.items():
            try:
                setattr(builder, name, value)
            except AttributeError as error:
                if strict:
                    raise ValueError(f"The builder has no parameter {name!r}") from error
        return builder
