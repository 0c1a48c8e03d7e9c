"""Decisions about systems: gates, plans, segments, groups and the completeness of judgments."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
