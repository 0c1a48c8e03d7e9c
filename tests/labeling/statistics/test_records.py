"""Records and results as files, and their errors."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.statistics.records import (
    Record,
    counted_records,
    read_records,
    read_results,
    write_records,
)

PAIR = Record(
    "q", "u", "pairs", "d2", "d1", 1, None, ("d1",), 4.5, 1.0, 60.0, 1700000000.25, "repeat", -1
)
GRADE = Record("q", "ü", "grades", "d1", grade=3, active=13.0)


def test_a_pair_is_sorted_by_name():
    assert PAIR.pair == ("d1", "d2", -1)
    assert replace(PAIR, left="d0").pair == ("d0", "d1", 1)
    assert GRADE.pair is None
    assert list(counted_records([PAIR, GRADE])) == [GRADE]


def test_records_round_trip_through_a_file(tmp_path):
    path = tmp_path / "records.jsonl"
    write_records(path, [PAIR, GRADE])
    assert read_records(path) == [PAIR, GRADE]
    packed = tmp_path / "records.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes() + b"\n"))
    assert read_records(packed) == [PAIR, GRADE]


def write_results(path, results):
    rows = (
        {"query": query, "assessor": assessor, "tool": tool, "labels": labels}
        for (query, assessor, tool), labels in results.items()
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_results_round_trip_through_a_file(tmp_path):
    path = tmp_path / "results.jsonl"
    results = {("q", "u", "pairs"): {"a": 2.0, "b": 0.0}, ("q", "v", "grades"): {"a": 1.0}}
    write_results(path, results)
    assert read_results(path) == results


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "one JSON object"),
        ('{"query": "q"}', "the field 'assessor' is missing"),
        ('{"query": "q", "color": 1}', "no field 'color'"),
        ('{"query": "q", "assessor": "u", "tool": "dice", "left": "a"}', "tool must be one of"),
        ('{"query": "q", "assessor": "u", "tool": "pairs", "left": "a", "active": "x"}', "active"),
        (
            '{"query": "q", "assessor": "u", "tool": "pairs", "left": "a", "bad": 3}',
            "bad must be a list",
        ),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(tmp_path, line, message):
    path = tmp_path / "records.jsonl"
    write_records(path, [GRADE])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DataError, match=message) as caught:
        read_records(path)
    assert f"{path}:2: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tool", "x", "tool must be"),
        ("kind", "x", "kind must be"),
        ("outcome", 2, "outcome must be"),
        ("right", None, "two documents"),
        ("right", "d2", "same document"),
        ("active", -1.0, "active must be a number of seconds"),
        ("away", float("nan"), "away must be a number of seconds"),
        ("query", 3, "query must be a string"),
        ("right", 3, "right must be a string or null"),
        ("grade", "3", "grade must be an integer"),
        ("answered_at", "noon", "answered_at must be a number of seconds"),
    ],
)
def test_an_invalid_record_raises_an_error(field, value, message):
    with pytest.raises(DataError, match=message):
        replace(PAIR, **{field: value})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": "q"}, "a result needs"),
        ({"query": "q", "assessor": "u", "tool": "pairs", "labels": [1]}, "a result needs"),
        ({"query": "q", "assessor": "u", "tool": "pairs", "labels": {"d": "x"}}, "a result needs"),
        ({"query": "q", "assessor": "u", "tool": "pairs", "labels": {"d": float("inf")}}, "finite"),
        ({"query": "p", "assessor": "u", "tool": "pairs", "labels": {}}, "a second result"),
    ],
)
def test_an_invalid_result_is_reported_with_its_number(tmp_path, row, message):
    path = tmp_path / "results.jsonl"
    write_results(path, {("p", "u", "pairs"): {"d": 1.0}})
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    with pytest.raises(DataError, match=message) as caught:
        read_results(path)
    assert f"{path}:2: " in str(caught.value)
