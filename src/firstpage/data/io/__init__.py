"""Plain and compressed files, and JSON files with a header and a checksum."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
