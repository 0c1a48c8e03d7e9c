"""Feature logs of search engines, valid and invalid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp
from tests.cli.conftest import run  # noqa: F401
from tests.narrow import dense, instance


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
    with pytest.warns(
        fp.FirstpageWarning, match="no judgments: all labels are 0. Give them with qrels"
    ):
        data = fp.interop.read_feature_log(file)
    assert data.feature_names == ("title", "body", "extra")
    assert dense(data.X).tolist() == [[2.5, 0, 0], [0.5, 7, 0], [3, 1, 1]]
    assert list(data.queries) == ["red shoes", "hat"]
    (tmp_path / "q.qrels").write_text("red shoes\t0\tb\t2\nhat 0 a 1\nhat 0 z 1\n")
    target = tmp_path / "d.parquet"
    arguments = ["import", "feature-log", file, "--qrels", tmp_path / "q.qrels", "-o", target]
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert (
        f"{file}: 2 of 3 documents are judged in {tmp_path / 'q.qrels'}; 1 unjudged documents get "
        "label 0; 1 judged pairs of 1 queries have no features, such as document 'z' of query "
        "'hat'." in done.stderr
    )
    assert instance(fp.Dataset, fp.read(target)).y.tolist() == [0, 2, 1]
    assert run(*arguments, "--unjudged", "drop").returncode == 0
    again = instance(fp.Dataset, fp.read(target))
    assert again.y.tolist() == [2, 1]
    assert dense(again.X).tolist() == [[0.5, 7, 0], [3, 1, 1]]
    assert again.feature_names == ("title", "body", "extra")
    done = run(*arguments[:-1], tmp_path / "d.txt")
    assert (done.returncode, done.stderr.count("\n")) == (1, 2)
    assert "'red shoes' cannot be written to a LETOR file" in done.stderr
    assert "write .parquet" in done.stderr
    file.write_text(json.dumps({"responses": [one, two]}, indent=1))
    assert list(fp.interop.read_feature_log(file).queries) == ["1", "2"]
    file.write_text(json.dumps(one))
    assert len(fp.interop.read_feature_log(file)) == 1


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
        fp.interop.read_feature_log(tmp_path / "log.json")


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
        fp.interop.read_feature_log(tmp_path / "l.json")
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
@pytest.mark.parametrize("more", [{"timed_out": True}, {"_shards": {"total": 5, "failed": 1}}])
def test_partial_searches_cause_a_warning(tmp_path: Path, more: dict[str, Any]) -> None:
    (tmp_path / "l.json").write_text(json.dumps(response(hit("a", x=1), **more)))
    with pytest.warns(fp.FirstpageWarning, match="hits may be missing"):
        assert fp.interop.read_feature_log(tmp_path / "l.json").n_docs == 1


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
def test_hits_without_a_log_are_dropped(tmp_path: Path) -> None:
    """All their features would be 0."""
    (tmp_path / "l.json").write_text(json.dumps(response(hit("a", x=1), {"_id": "b"})))
    with pytest.warns(fp.FirstpageWarning, match="1 hits have no logged features"):
        data = fp.interop.read_feature_log(tmp_path / "l.json")
    assert dense(data.X).tolist() == [[1.0]]


# --- Solr, and the engine's own ranking


def solr(*documents: Any, **more: Any) -> dict[str, Any]:
    header = {"status": 0, "QTime": 3, "params": {"q": "red shoes", "fl": "id,score,[features]"}}
    found = {"numFound": 9, "start": 0, "maxScore": 2.0, "docs": list(documents)}
    return {"responseHeader": header, "response": found | more}


SOLR_DOCUMENTS = [
    {"id": "a", "score": 2.0, "[features]": "title=0.5,originalScore=2.0"},
    {"id": "b", "score": 1.5, "[features]": "age=3"},  # sparse: absent features are 0
    {"id": "c", "score": 1.0, "[features]": ""},
]


@pytest.mark.parametrize("form", ["response", "lines", "named", "documents"])
def test_feature_logs_of_solr_are_read(tmp_path: Path, form: str) -> None:
    raw = solr(*SOLR_DOCUMENTS)
    contents: Any = {
        "response": raw,
        "lines": raw,
        "named": {"query": "hat", "response": raw},
        "documents": {"query": "hat", "response": raw["response"]},
    }[form]
    file = tmp_path / "solr.json"
    file.write_text(json.dumps(contents, indent=None if form == "lines" else 1) + "\n")
    query = "red shoes" if form in ("response", "lines") else "hat"
    data = fp.interop.read_feature_log(file, fp.Qrels.from_dict({query: {"a": 2, "b": 1, "c": 0}}))
    assert data.feature_names == ("title", "originalScore", "age")
    assert dense(data.X).tolist() == [[0.5, 2, 0], [0, 0, 3], [0, 0, 0]]
    assert list(data.queries) == [query]
    assert data.y.tolist() == [2, 1, 0]
    assert fp.interop.read_logged_run(file).to_dict() == {query: {"a": 2.0, "b": 1.5, "c": 1.0}}


def test_pages_of_solr_are_ranked_by_their_start(tmp_path: Path) -> None:
    pages = [solr(*SOLR_DOCUMENTS[2:], start=2), solr(*SOLR_DOCUMENTS[:2])]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    ranking = fp.interop.read_logged_run(tmp_path / "s.jsonl")
    assert list(ranking.to_dict()["red shoes"]) == ["a", "b", "c"]


def test_a_response_without_parameters_is_numbered(tmp_path: Path) -> None:
    response = solr(*SOLR_DOCUMENTS)
    del response["responseHeader"]["params"]
    (tmp_path / "s.json").write_text(json.dumps([response, response]))
    assert list(fp.interop.read_logged_run(tmp_path / "s.json").queries) == ["1", "2"]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"response": {"docs": [3]}}, "response.docs is not a list"),
        (solr({"id": "a", "score": 1, "[features]": 3}), r"\[features\] is not a text"),
        (solr({"id": "a", "[features]": "t=x"}), "the value 'x' of .* is not a float32 number"),
        (solr({"id": "a", "[features]": "t=1e99"}), "not a float32 number"),
        (solr({"id": "a", "[features]": "t=nan"}), "not a float32 number"),
        (solr({"id": "a", "[features]": "=1"}), "has '=1' instead of name=value"),
        (solr({"id": "a", "[features]": "t=1,t=2"}), "logged twice"),
        (solr({"id": "a", "score": 1}), "no hit has logged features"),
        (solr({"[features]": "t=1"}), "a document id is empty"),
        (solr({"id": ["a"], "[features]": "t=1"}), "the id .* is not a string"),
        (solr({"id": "a", "score": "x", "[features]": "t=1"}), "the score 'x' of 'a'"),
        (
            {"responseHeader": {"status": 400}, "error": {"msg": "no\nfield", "code": 400}},
            r"s\.json:1: response 1 is an error \(no field\)",
        ),
    ],
)
def test_invalid_responses_of_solr_are_rejected(
    tmp_path: Path, contents: Any, message: str
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(contents))
    with pytest.raises(fp.DataError, match=message) as error:
        fp.interop.read_feature_log(tmp_path / "s.json")
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
def test_partial_results_of_solr_cause_a_warning(tmp_path: Path) -> None:
    response = solr(*SOLR_DOCUMENTS)
    response["responseHeader"]["partialResults"] = True
    (tmp_path / "s.json").write_text(json.dumps(response))
    with pytest.warns(fp.FirstpageWarning, match="hits may be missing"):
        fp.interop.read_feature_log(tmp_path / "s.json")


def test_ranking_of_the_engine_is_written(tmp_path: Path, run) -> None:  # noqa: F811
    """Hits without logged features count: it is what users saw."""
    scores = [3.0, 2.0, 1.0]
    hits = [{**hit(d, x=1.0), "_score": s} for d, s in zip("cab", scores, strict=True)]
    hits[1].pop("fields")
    equal = [hit(d, x=1.0) for d in "zya"]
    lines = [
        {"query": "q 1", "response": response(*hits)},
        {"query": "r", "response": response(*equal)},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run("import", "feature-log", log, "-o", tmp_path / "d.csv", "--run", tmp_path / "b.run")
    assert done.returncode == 0, done.stderr
    assert "in 1 of 2 queries the scores do not give the order of the hits" in done.stderr
    before = fp.read_run(tmp_path / "b.run")
    assert before.to_dict() == {
        "q 1": {"c": 3.0, "a": 2.0, "b": 1.0},
        "r": {"z": 3.0, "y": 2.0, "a": 1.0},
    }
    assert before.name == "engine"


def test_run_needs_a_feature_log_and_its_own_file(tmp_path: Path, run) -> None:  # noqa: F811
    done = run("import", "clicks", "c.csv", "-o", "v.csv", "--run", "b.run")
    assert (done.returncode, "--run requires feature-log" in done.stderr) == (2, True)
    log = tmp_path / "log.json"
    log.write_text(json.dumps(response(hit("a", x=1))))
    done = run("import", "feature-log", log, "-o", tmp_path / "d.csv", "--run", log)
    assert done.returncode == 2
    done = run("import", "feature-log", log, "-o", tmp_path / "d.txt", "--run", tmp_path / "d.txt")
    assert (done.returncode, "name the same file" in done.stderr) == (2, True)
    (tmp_path / "e.json").write_text(json.dumps(response()))
    with pytest.raises(fp.DataError, match="no response has any hits"):
        fp.interop.read_logged_run(tmp_path / "e.json")
