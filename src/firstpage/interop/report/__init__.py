"""Reports: tables in several formats, SVG drawings and self-contained HTML pages."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
