"""Every web test has a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firstpage.web.store.connect import Store
from tests.web.site import Clock, Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    clock = Clock()
    store = Store(tmp_path / "project", clock).prepare()
    yield Site(store, clock)
    store.close()
