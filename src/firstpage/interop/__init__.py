"""Exchange with other programs: export of models, and readers of foreign files."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
