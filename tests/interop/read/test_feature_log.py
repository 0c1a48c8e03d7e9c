"""Feature logs of search engines, valid and invalid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp
from tests.cli.conftest import run  # noqa: F401


def hit(name: str, **values: float | None) -> dict:
    features = [{"name": k} if v is None else {"name": k, "value": v} for k, v in values.items()]
    return {"_id": name, "_score": 1.0, "fields": {"_ltrlog": [{"log_entry1": features}]}}


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
def test_feature_logs_are_read_from_all_forms(tmp_path: Path, run) -> None:  # noqa: F811
    one = {"hits": {"hits": [hit("a", title=2.5, body=None), hit("b", title=0.5, body=7.0)]}}
    two = {"hits": {"hits": [hit("a", body=1.0, title=3.0, extra=1.0)]}}
    lines = [{"query": "red shoes", "response": one}, {"query": "hat", "response": two}]
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.warns(fp.FirstpageWarning, match="no judgments .*: all labels are 0"):
        data = fp.read_feature_log(file)
    assert data.feature_names == ("title", "body", "extra")
    assert data.X.tolist() == [[2.5, 0, 0], [0.5, 7, 0], [3, 1, 1]]
    assert list(data.queries) == ["red_shoes", "hat"]
    (tmp_path / "q.qrels").write_text("red_shoes 0 b 2\nhat 0 a 1\nhat 0 z 1\n")
    done = run(
        "import", "feature-log", file, "--qrels", tmp_path / "q.qrels", "-o", tmp_path / "d.txt"
    )
    assert done.returncode == 0, done.stderr
    assert "1 of 3 documents are not judged" in done.stderr
    again = fp.read_letor(tmp_path / "d.txt")
    assert again.y.tolist() == [2, 1]
    assert again.X.tolist() == [[0.5, 7, 0], [3, 1, 1]]
    file.write_text(json.dumps({"responses": [one, two]}, indent=1))
    assert list(fp.read_feature_log(file).queries) == ["1", "2"]
    file.write_text(json.dumps(one))
    assert len(fp.read_feature_log(file)) == 1


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"hits": {}}, "has no hits.hits"),
        ({"hits": {"hits": [{"_id": "a"}]}}, "no hit has logged features"),
        ({"hits": {"hits": [hit("a", t=1), hit("a", t=1)]}}, "occurs twice"),
        ({"hits": {"hits": [{"_id": "a", "fields": {"_ltrlog": [{"x": 3}]}}]}}, "named values"),
        ([3], "is not a response"),
        ({"hits": {"hits": [hit("", t=1)]}}, "a document id is empty"),
    ],
)
def test_invalid_feature_logs_are_rejected(tmp_path: Path, contents: object, message: str) -> None:
    (tmp_path / "log.json").write_text(json.dumps(contents))
    with pytest.raises(fp.DataError, match=message):
        fp.read_feature_log(tmp_path / "log.json")


def response(*hits: Any, **more: Any) -> dict[str, Any]:
    return {"hits": {"hits": list(hits)}, **more}


def logged(*lists: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "_id": "a",
        "fields": {"_ltrlog": [{f"l{i}": contents} for i, contents in enumerate(lists)]},
    }


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (
            {"responses": [response(hit("a", x=1)), {"error": {"reason": "no\nindex"}}]},
            r"l\.json:1: response 2 is an error \(no index\)",
        ),
        (response(hit("a", x=1), "b"), "is not a list of documents"),
        ({"hits": {"hits": {"a": 1}}}, "is not a list of documents"),
        (response(hit("a", x=1e39)), r"1e\+39 is not a float32 number"),
        (response(hit("a", x=10**400)), "is not a float32 number"),
        (response(hit("a", x=float("nan"))), "nan is not a float32 number"),
        (response(logged([{"name": "x", "value": "3"}])), "named values"),
        (response(logged([{"name": "x", "value": True}])), "named values"),
        (
            response(logged([{"name": "x", "value": 1}], [{"name": "x", "value": 2}])),
            "logged twice",
        ),
        (response({**hit("a", x=1), "_id": None}), "the _id None is not a string"),
        ({"query": {"match": 1}, "response": response(hit("a", x=1))}, "query of response 1 is no"),
        (response(hit("a", x=1), hit("a", x=1)), r"l\.json:1: document 'a' occurs twice"),
    ],
)
def test_invalid_values_and_responses_are_rejected(
    tmp_path: Path, contents: Any, message: str
) -> None:
    (tmp_path / "l.json").write_text(json.dumps(contents))
    with pytest.raises(fp.DataError, match=message) as error:
        fp.read_feature_log(tmp_path / "l.json")
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
@pytest.mark.parametrize("more", [{"timed_out": True}, {"_shards": {"total": 5, "failed": 1}}])
def test_partial_searches_cause_a_warning(tmp_path: Path, more: dict[str, Any]) -> None:
    (tmp_path / "l.json").write_text(json.dumps(response(hit("a", x=1), **more)))
    with pytest.warns(fp.FirstpageWarning, match="hits may be missing"):
        assert fp.read_feature_log(tmp_path / "l.json").n_docs == 1


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
def test_hits_without_a_log_are_dropped(tmp_path: Path) -> None:
    """All their features would be 0."""
    (tmp_path / "l.json").write_text(json.dumps(response(hit("a", x=1), {"_id": "b"})))
    with pytest.warns(fp.FirstpageWarning, match="1 hits have no logged features"):
        data = fp.read_feature_log(tmp_path / "l.json")
    assert data.X.tolist() == [[1.0]]
