"""A short form of the soak test that kills the server at random moments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak import kill_server
from tests.web import postgres


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_judgment_is_lost(kind: str) -> None:
    if kind == "postgres" and postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with kill_server.database(kind) as where:
        found = kill_server.soak(where, kills=2, workers=4, minutes=5, between=20)
    assert found["problems"] == []
    assert found["kept"] >= found["acknowledged"] > 50


def test_a_lost_judgment_would_be_noticed(tmp_path: Path) -> None:
    """The reckoning itself: an acknowledged answer that is not in the log is a problem."""
    where = str(tmp_path / "project")
    kill_server.prepare(where, 1, queries=1, documents=3)
    tally = kill_server.Tally(acknowledged=[(1, 0, "gone")])
    assert kill_server.reckon(where, tally)["problems"]
