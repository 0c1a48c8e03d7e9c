"""What extensions are made of: losses, measures, rankers and encoders of one's own."""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
