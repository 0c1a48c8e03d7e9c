"""The browser for the built site."""

from __future__ import annotations

from tests.labeling.app.browser.conftest import browser

__all__ = ["browser"]
