"""Tests are marked by the fixtures that they use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import MARKED_BY_FIXTURE


@pytest.mark.parametrize("fixture", MARKED_BY_FIXTURE)
def test_fixtures_that_mark_a_test_exist(fixture: str) -> None:
    """A fixture of another name would leave its tests in `make quick`."""
    definition = re.compile(rf"^@pytest\.fixture.*\ndef {fixture}\(", re.M)
    assert any(definition.search(file.read_text()) for file in Path(__file__).parent.rglob("*.py"))
