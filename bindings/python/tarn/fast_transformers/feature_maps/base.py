# SPDX-License-Identifier: MIT
"""Feature maps: an interface, and those of an activation function."""
from __future__ import annotations

from typing import Any, Callable, Type

import torch
from torch import Tensor, nn


class FeatureMap(nn.Module):
    def __init__(self, query_dims: int) -> None:
        super().__init__()
        self.query_dims = query_dims

    def new_feature_map(self, device: Any) -> None:
        """Called before each sequence; random maps are drawn here."""
        raise NotImplementedError

    def forward_queries(self, x: Tensor) -> Tensor:
        return self(x)  # type: ignore[no-any-return]

    def forward_keys(self, x: Tensor) -> Tensor:
        return self(x)  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    @classmethod
    def factory(cls: Type["FeatureMap"], *args: Any,
                **kwargs: Any) -> Callable[[int], "FeatureMap"]:
        """A function from the width of queries to a map with these arguments."""
        return lambda query_dims: cls(query_dims, *args, **kwargs)


class ActivationFunctionFeatureMap(FeatureMap):
    def __init__(self, query_dims: int,
                 activation_function: Callable[[Tensor], Tensor]) -> None:
        super().__init__(query_dims)
        self.activation_function = activation_function

    def new_feature_map(self, device: Any) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return self.activation_function(x)


def _elu_plus_one(x: Tensor) -> Tensor:
    return torch.nn.functional.elu(x) + 1


def elu_feature_map(query_dims: int) -> ActivationFunctionFeatureMap:
    """elu(x) + 1, (7)."""
    return ActivationFunctionFeatureMap(query_dims, _elu_plus_one)


def is_elu(feature_map: Any) -> bool:
    """Whether tarn's own elu + 1 can take its place."""
    return (type(feature_map) is ActivationFunctionFeatureMap
            and feature_map.activation_function is _elu_plus_one)
