"""Several rankings made into one: ballots, methods, Kemeny cost; `aggregate` joins them."""

from firstpage.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
