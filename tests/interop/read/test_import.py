"""RankLib's models, Quepid's judgments, feature logs and clicks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.io.json_files import write_json
from firstpage.interop.read.clicks import write_pairs
from firstpage.labeling.simulation.votes import read_votes
from firstpage.rankers.model_files import read_model
from tests.cli.conftest import run  # noqa: F401
from tests.interop.export.conftest import CLOSE, RANKERS, dataset, predict, probe, ranker
from tests.interop.export.engines import ranklib

ENSEMBLE = """## LambdaMART
## No. of trees = 2
## Learning rate = 0.1

<ensemble>
\t<tree id="1" weight="0.1">
\t\t<split>
\t\t\t<feature> 3 </feature>
\t\t\t<threshold> 0.45867884 </threshold>
\t\t\t<split pos="left">
\t\t\t\t<feature> 1 </feature>
\t\t\t\t<threshold> 0.0 </threshold>
\t\t\t\t<split pos="left">
\t\t\t\t\t<output> -2.0 </output>
\t\t\t\t</split>
\t\t\t\t<split pos="right">
\t\t\t\t\t<output> 1.5 </output>
\t\t\t\t</split>
\t\t\t</split>
\t\t\t<split pos="right">
\t\t\t\t<output> 1.3413738 </output>
\t\t\t</split>
\t\t</split>
\t</tree>
\t<tree id="2" weight="0.1">
\t\t<split>
\t\t\t<output> 0.5 </output>
\t\t</split>
\t</tree>
</ensemble>
"""
X = np.array([[0, 9, 0.1], [1e-3, 0, 0.45867884], [5, 5, 0.4586789], [-1, 0, 2]], np.float32)


def data_of(X: np.ndarray) -> fp.Dataset:
    return fp.Dataset.from_arrays(X, np.zeros(len(X)), np.zeros(len(X), int))


def test_a_ranklib_ensemble_by_hand(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(ENSEMBLE)
    model = fp.read_ranklib(tmp_path / "m.txt")
    found = model.predict(data_of(X))
    assert found == pytest.approx([-0.15, 0.2, 0.18413738, 0.18413738], rel=1e-6)
    assert found == pytest.approx(ranklib(ENSEMBLE, X), rel=1e-6)
    write_json(model.to_dict(), tmp_path / "m.json")
    assert read_model(tmp_path / "m.json").predict(data_of(X)).tolist() == found.tolist()
    assert fp.load(tmp_path / "m.json").predict(X).tolist() == found.tolist()


def test_linear_ranklib_models_by_hand(tmp_path: Path) -> None:
    (tmp_path / "ca.txt").write_text("## Coordinate Ascent\n## Restart = 5\n1:0.5 3:-2.0\n")
    assert fp.read_ranklib(tmp_path / "ca.txt").predict(data_of(X[:2])) == pytest.approx(
        [-0.2, 0.0005 - 2 * 0.45867884], rel=1e-6
    )
    (tmp_path / "lr.txt").write_text("## Linear Regression\n## Lambda = 1E-10\n0:4.5 1:1.0 2:2.0")
    model = fp.read_ranklib(tmp_path / "lr.txt", n_features=3)
    assert model.predict(data_of(X)).tolist() == pytest.approx([22.5, 4.501, 19.5, 3.5])


@pytest.mark.parametrize("kind", RANKERS)
def test_what_is_exported_comes_back(kind: str, tmp_path: Path) -> None:
    fitted = ranker(kind)
    fp.export(fitted, "ranklib", tmp_path / "m.txt")
    model = fp.read_ranklib(tmp_path / "m.txt", n_features=6)
    given = probe(fitted)
    assert given.off(model.predict(data_of(given.X)), predict(fitted, given.X)) <= CLOSE
    assert np.isfinite(model.predict(dataset().with_features(dataset().X))).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no model of RankLib"),
        ("## RankNet\n1 2\n", "its first line is '## RankNet'"),
        ("## Coordinate Ascent\n1:a\n", "damaged"),
        ("## Coordinate Ascent\n1:1 1:2\n", "there twice"),
        ("## Coordinate Ascent\n", "damaged"),
        ("## Coordinate Ascent\n1:nan\n", "not finite"),
        ("## Coordinate Ascent\n99999999999:1\n", "too many"),
        ("## MART\n<ensemble>", "damaged"),
        ("## MART\n<ensemble></ensemble>", "no trees"),
        ("## MART\n<!DOCTYPE x><ensemble></ensemble>", "declarations"),
        (ENSEMBLE.replace("<feature> 3", "<feature> 0"), "has not one feature"),
        (ENSEMBLE.replace("<output> 0.5", "<output> inf"), "not finite"),
        (ENSEMBLE.replace("<feature> 3", "<feature> 4"), "n_features is 3"),
    ],
)
def test_damaged_ranklib_models(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(fp.DataError, match=said) as error:
        fp.read_ranklib(tmp_path / "m.txt", n_features=3 if "<feature> 4" in text else None)
    assert "\n" not in str(error.value)


def test_quepid(tmp_path: Path, run) -> None:  # noqa: F811
    file = tmp_path / "q.csv"
    file.write_text(
        'Query,DocID,Rating\n"red, shoes",d 1,3\n"red, shoes",d2,0\nhat,d1,1.5\nhat,d9,\n'
    )
    with pytest.warns(fp.FirstpageWarning, match="1 rows without a rating are left out"):
        found = fp.read_quepid(file)
    assert found.to_dict() == {"red,_shoes": {"d_1": 3.0, "d2": 0.0}, "hat": {"d1": 1.5}}
    done = run("import", "quepid", file, "-o", tmp_path / "q.qrels")
    assert done.returncode == 0, done.stderr
    assert fp.read_qrels(tmp_path / "q.qrels").to_dict() == found.to_dict()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("query,docid\na,b\n", "q.csv:1: has no column rating"),
        ("query,docid,rating\na,b,x\n", "q.csv:2: the rating 'x' is no number"),
        ("query,docid,rating\na,b,1\na,b,2\n", "q.csv:3: 'b' has another rating"),
        ("query,docid,rating\na b,b,1\na_b,c,2\n", "would both be called 'a_b'"),
        ("query,docid,rating\na,b\n", "fewer fields"),
        ("query,docid,rating\n", "holds no ratings"),
        ("query,docid,rating\n ,b,1\n", "a query is empty"),
    ],
)
def test_bad_quepid_files(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "q.csv").write_text(text)
    with pytest.raises(fp.DataError, match=said):
        fp.read_quepid(tmp_path / "q.csv")


def hit(name: str, **values: float | None) -> dict:
    features = [{"name": k} if v is None else {"name": k, "value": v} for k, v in values.items()]
    return {"_id": name, "_score": 1.0, "fields": {"_ltrlog": [{"log_entry1": features}]}}


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
def test_feature_logs(tmp_path: Path, run) -> None:  # noqa: F811
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
    ("held", "said"),
    [
        ({"hits": {}}, "has no hits.hits"),
        ({"hits": {"hits": [{"_id": "a"}]}}, "no hit has logged features"),
        ({"hits": {"hits": [hit("a", t=1), hit("a", t=1)]}}, "there twice"),
        ({"hits": {"hits": [{"_id": "a", "fields": {"_ltrlog": [{"x": 3}]}}]}}, "named values"),
        ([3], "no response"),
        ({"hits": {"hits": [hit("", t=1)]}}, "a document id is empty"),
    ],
)
def test_bad_feature_logs(tmp_path: Path, held: object, said: str) -> None:
    (tmp_path / "log.json").write_text(json.dumps(held))
    with pytest.raises(fp.DataError, match=said):
        fp.read_feature_log(tmp_path / "log.json")


def test_clicks_skip_above(tmp_path: Path, run) -> None:  # noqa: F811
    rows = [
        {"query": "q", "ranking": ["a", "b", "c", "d"], "clicks": ["c", "b"]},
        {"query": "q", "ranking": ["b", "a"], "clicks": ["b"]},
        {"query": "x, y", "ranking": ["a", "b"], "clicks": ["b"]},
    ]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = fp.read_clicks(tmp_path / "c.jsonl")
    assert found == [("q", "b", "a"), ("q", "c", "a"), ("x, y", "b", "a")]
    table = "query,docid,position,clicked\nq,a,1,0\nq,b,2,1\nq,c,3,1\nq,d,4,0\nq,b,1,1\nq,a,2,0\n"
    (tmp_path / "c.csv").write_text(table + '"x, y",a,1,0\n"x, y",b,2,true\n')
    assert fp.read_clicks(tmp_path / "c.csv") == found
    done = run("import", "clicks", tmp_path / "c.csv", "-o", tmp_path / "votes.csv")
    assert done.returncode == 0, done.stderr
    assert "note: clicks follow the order that was shown" in done.stderr
    votes = {v.query: v for v in read_votes(tmp_path / "votes.csv")}
    assert votes["q"].documents == ("a", "b", "c")
    assert votes["q"].outcomes == {(0, 1): (-1,), (0, 2): (-1,)}
    write_pairs(found, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "votes.csv").read_bytes()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.csv", "query,docid,position,clicked\nq,a,x,0\n", "no whole number"),
        ("c.csv", "query,docid,position,clicked\nq,a,1,maybe\n", "must be 0 or 1"),
        ("c.csv", "query,docid,position,clicked\nq,a,1,0\nq,a,2,1\n", "twice in one list"),
        ("c.csv", "query,docid,position,clicked\nq,a,1,1\n", "no click has a skipped"),
        ("c.jsonl", '{"query": "q"}\n', "must have query, ranking and clicks"),
        (
            "c.jsonl",
            '{"query": "q", "ranking": ["a"], "clicks": ["b"]}\n',
            "'b' is clicked, and was not",
        ),
        ("c.jsonl", "{\n{", "c.jsonl:1: this is no JSON"),
    ],
)
def test_bad_clicks(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(fp.DataError, match=said):
        fp.read_clicks(tmp_path / name)


def test_options_go_with_their_kind(tmp_path: Path, run) -> None:  # noqa: F811
    done = run("import", "quepid", "x.csv", "-o", "y", "--n-features", 3)
    assert (done.returncode, "--n-features goes with ranklib" in done.stderr) == (2, True)
    done = run("import", "clicks", "x.csv", "-o", "y", "--qrels", "z")
    assert (done.returncode, "--qrels goes with feature-log" in done.stderr) == (2, True)
    (tmp_path / "m.txt").write_text(ENSEMBLE)
    done = run("import", "ranklib", tmp_path / "m.txt", "-o", tmp_path / "m.json")
    assert done.stderr == f"wrote RankLib LambdaMART with 3 features to {tmp_path / 'm.json'}\n"
