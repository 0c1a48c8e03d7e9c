"""Engines: where work on shards runs.  Results do not depend on it."""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
