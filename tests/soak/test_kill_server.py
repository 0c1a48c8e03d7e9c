"""A short form of the soak test that kills the server at random moments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labeling.app import postgres
from tests.labeling.app.load import Tally, prepare, verify_store
from tests.soak import kill_server


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_no_judgment_is_lost(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    location = str(tmp_path / "project")
    if kind == "postgresql":
        location = postgres.new_database(request.getfixturevalue("postgres_server"))
    report = kill_server.soak(location, kills=1, workers=4, minutes=5, between=30, max_wait=0.3)
    assert report["problems"] == []
    assert report["kept"] >= report["acknowledged"] >= 30


def test_a_lost_judgment_would_be_noticed(tmp_path: Path) -> None:
    """The check itself is tested: it reports an acknowledged answer that is not in the log."""
    location = str(tmp_path / "project")
    prepare(location, 1, queries=1, documents=3)
    tally = Tally(acknowledged=[(1, 0, "gone")])
    assert verify_store(location, tally)["problems"]
