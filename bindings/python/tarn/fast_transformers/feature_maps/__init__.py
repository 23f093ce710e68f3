# SPDX-License-Identifier: MIT
"""Feature maps of linear attention: factories, functions from the width of queries to a map."""
from .base import ActivationFunctionFeatureMap, FeatureMap, elu_feature_map
from .fourier_features import (Favor, GeneralizedRandomFeatures, RandomFourierFeatures,
                               SmoothedRandomFourierFeatures)

__all__ = ["ActivationFunctionFeatureMap", "Favor", "FeatureMap", "GeneralizedRandomFeatures",
           "RandomFourierFeatures", "SmoothedRandomFourierFeatures", "elu_feature_map"]
