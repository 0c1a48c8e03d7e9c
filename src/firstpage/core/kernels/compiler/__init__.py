"""Compile kernels once per machine, store the object code, and call it without loading Numba."""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
