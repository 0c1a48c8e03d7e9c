"""What every package needs: errors, types, tables, kernels, engines, HTTP; nothing of ranking."""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
