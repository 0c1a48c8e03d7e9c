"""Plan an evaluation: how many queries and which ones, the completeness of pools, release gates."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
