"""Labeling: few judgments, trustworthy truth.  Pure: no web, no database."""

from firstpage.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
