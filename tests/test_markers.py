"""Tests are marked by the fixtures that they use and by their durations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import MARKED_BY_FIXTURE
from tests.durations import SLOW, recorded, slow_tests


@pytest.mark.parametrize("fixture", MARKED_BY_FIXTURE)
def test_fixtures_that_mark_a_test_exist(fixture: str) -> None:
    """A fixture of another name would leave its tests in `make quick`."""
    definition = re.compile(rf"^@pytest\.fixture.*\ndef {fixture}\(", re.M)
    assert any(definition.search(file.read_text()) for file in Path(__file__).parent.rglob("*.py"))


def test_recorded_slow_tests_exist() -> None:
    """A line of a test that was renamed would leave it in `make quick`."""
    lines = SLOW.read_text().splitlines()
    assert lines == sorted(set(lines)), f"{SLOW.name} has repeated or unsorted lines"
    assert set(recorded().values()) == {("slow",), ("slow", "long")}
    missing = []
    for line in recorded():
        path, *names = line.split("::")
        file = SLOW.parents[1] / path
        text = file.read_text() if file.exists() else ""
        defined = (re.search(rf"^ *(def |class )?{name}\b", text, re.M) for name in names)
        if not all(found or name == "runTest" for name, found in zip(names, defined, strict=True)):
            missing.append(line)
    assert missing == [], f"change these lines of {SLOW.name}, or run `make durations`"


def test_slow_tests_are_those_whose_cases_take_long_on_average() -> None:
    log = """
[gw0] [  1%] PASSED tests/test_a.py::test_mixed[quick]
[gw1] [  2%] FAILED tests/test_a.py::test_mixed[not quick::[x]]
[gw1] [  3%] PASSED tests/test_a.py::test_cases[0]
[gw1] [  4%] PASSED tests/test_a.py::test_cases[1]
[gw0] [  5%] PASSED tests/test_a.py::TestSteps::runTest
1.00s call     tests/test_a.py::test_mixed[not quick::[x]]
0.15s call     tests/test_a.py::test_cases[0]
3.01s call     tests/test_a.py::TestSteps::runTest
0.06s setup    tests/test_a.py::TestSteps::runTest
0.06s teardown tests/test_a.py::TestSteps::runTest
FAILED tests/test_a.py::test_mixed[not quick::[x]] - assert 1.00s call
"""
    slow = ["tests/test_a.py::TestSteps::runTest long", "tests/test_a.py::test_mixed"]
    assert slow_tests(log.splitlines()) == slow
    assert slow_tests(log.splitlines(), limit=0.05) == [
        *slow[:1],
        "tests/test_a.py::test_cases",
        slow[1],
    ]
