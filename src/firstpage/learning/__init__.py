"""Rankers, and what they are made of: losses, scorers and solvers; on CPUs, GPUs and clusters."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
