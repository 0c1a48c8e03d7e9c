"""Readers and writers of file formats: LETOR, TREC, tables, rows and scores."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
