"""A browser for the pages of reports."""

from __future__ import annotations

from tests.labeling.app.browser.conftest import MISSING, browser

__all__ = ["browser"]
if MISSING is not None:
    collect_ignore_glob = ["test_*.py"]
