"""Labeling: an ordered top k per query from few judgments, without web server or database."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
