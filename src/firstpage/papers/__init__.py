"""The papers: experiments, printed values and theorems of each, run again."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
