"""Scorers: functions from features to scores, and back-propagation of score gradients."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
