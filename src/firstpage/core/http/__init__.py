"""Sockets, connections and request bodies of all HTTP servers, with limits on number and time."""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
