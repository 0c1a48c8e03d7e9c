"""Values and gradients of losses per query; most violated rankings of structural hinges."""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
