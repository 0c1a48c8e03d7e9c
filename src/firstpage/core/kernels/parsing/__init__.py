"""Parsers of text files to arrays: LETOR, TREC, decimal numbers, identifiers."""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
