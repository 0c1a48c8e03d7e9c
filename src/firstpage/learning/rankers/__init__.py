"""Estimators named as in the papers, and the files that hold what they learned."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
