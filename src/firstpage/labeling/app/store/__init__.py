"""The store: people, projects, texts, tasks and the log of judgments, in SQLite or PostgreSQL."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
