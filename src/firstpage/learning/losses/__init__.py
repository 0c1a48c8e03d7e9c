"""Losses: functions of scores and truth.  They never see features."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
