"""Pairwise votes of rankers, Kemeny cost, and searches for orders of low cost."""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
