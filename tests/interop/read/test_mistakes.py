"""Foreign files that are wrong: one line with the place, never half of them read."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp
from tests.cli.conftest import run  # noqa: F401
from tests.interop.read.test_import import ENSEMBLE, hit

RATED, CLICKED = "query,docid,rating\n", "query,docid,position,clicked\n"


def test_csv_as_spreadsheets_write_it(tmp_path: Path) -> None:
    text = '\ufeffQuery,DocID,Rating\r\n"red\r\nshoes",a,1\r\n"say ""hi""",b,2\r\n,,\r\n\r\n'
    (tmp_path / "q.csv").write_bytes(text.encode())
    assert fp.read_quepid(tmp_path / "q.csv").to_dict() == {
        "red_shoes": {"a": 1.0}, 'say_"hi"': {"b": 2.0},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RATED + "red,shoes,5,3\n", "q.csv:2: has more fields than the header"),
        (RATED + '"a,b,1\nc,d,2\n', "q.csv:2: cannot be read as a table"),
        (RATED + '"a\nb",c,1\n"x",y,zz\n', "q.csv:4: the rating 'zz'"),
        (RATED + '"a\nb",c,1\n"x\nz",y,zz\n', "q.csv:4: the rating 'zz'"),
        (RATED + "a,b,1_0\n", "q.csv:2: the rating '1_0' is no number"),
        (RATED + "a,,1\n", "q.csv:2: a document id is empty"),
        ("query,docid,rating,rating\na,b,1,2\n", "q.csv:1: the column rating is there twice"),
        ("query,docid,rating,Rating\na,b,1,2\n", "q.csv:1: the column rating is there twice"),
        (RATED.replace("\n", "\r") + "a,b,1\r", "q.csv:1: cannot be read as a table"),
    ],
)
def test_quepid(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "q.csv").write_bytes(text.encode())
    with pytest.raises(fp.DataError, match=said) as error:
        fp.read_quepid(tmp_path / "q.csv")
    assert "\n" not in str(error.value)


def test_a_mark_inside_is_no_part_of_a_name(tmp_path: Path, run) -> None:  # noqa: F811
    """Files put together have it in the middle; a file of ours would lose it at its beginning."""
    (tmp_path / "q.csv").write_text(RATED + "\ufeffa,b,1\n", "utf-8")
    run("import", "quepid", tmp_path / "q.csv", "-o", tmp_path / "q.qrels")
    assert fp.read_qrels(tmp_path / "q.qrels").to_dict() == {"a": {"b": 1.0}}


def test_other_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes((RATED + "ü,b,1\n").encode("latin-1"))
    with pytest.raises(fp.DataError, match="is not UTF-8 text"):
        fp.read_quepid(tmp_path / "a.csv")
    (tmp_path / "b.txt").write_bytes(ENSEMBLE.encode("utf-16"))
    with pytest.raises(fp.DataError, match="is UTF-16 text"):
        fp.read_ranklib(tmp_path / "b.txt")


def test_what_is_read_is_not_written_over(tmp_path: Path, run) -> None:  # noqa: F811
    held = RATED + "a,b,1\n"
    (tmp_path / "q.csv").write_text(held)
    done = run("import", "quepid", tmp_path / "q.csv", "-o", tmp_path / "q.csv")
    assert (done.returncode, "is a file that is read" in done.stderr) == (2, True)
    assert (tmp_path / "q.csv").read_text() == held


@pytest.mark.parametrize("first", [0, 1])
def test_positions_from_0_and_from_1(tmp_path: Path, first: int) -> None:
    rows = [("a", first, 0), ("b", first + 1, 1), ("a", first, 0), ("b", first + 3, 1)]
    text = "".join(f"q,{d},{p},{c}\n" for d, p, c in rows)
    (tmp_path / "c.csv").write_text(CLICKED + text)
    assert fp.read_clicks(tmp_path / "c.csv") == [("q", "b", "a")] * 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("q,a,1,0\nq,b,2,1\nq,c,2,1\n", "c.csv:4: the position 2 comes after 2"),
        ("q,a,1,0\nq,b,3,1\nq,c,2,1\n", "sort the rows of each list by position"),
        ("q,a,-1,0\n", "below 0"),
        ("q,a,1_0,0\n", "no whole number"),
        ("q,,1,0\n", "a query or a document is empty"),
        (",a,1,0\n", "a query or a document is empty"),
    ],
)
def test_clicks_in_tables(tmp_path: Path, rows: str, said: str) -> None:
    (tmp_path / "c.csv").write_text(CLICKED + rows)
    with pytest.raises(fp.DataError, match=said):
        fp.read_clicks(tmp_path / "c.csv")


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".TSV.xz"])
def test_tables_with_tabs(tmp_path: Path, suffix: str) -> None:
    text = (CLICKED + "q,a,1,0\nq,b,2,1\n").replace(",", "\t").encode()
    packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(suffix[4:], bytes)(text)
    (tmp_path / f"c{suffix}").write_bytes(packed)
    assert fp.read_clicks(tmp_path / f"c{suffix}") == [("q", "b", "a")]


def test_the_line_of_a_packed_table(tmp_path: Path) -> None:
    (tmp_path / "q.csv.gz").write_bytes(gzip.compress((RATED + "a,b,x\n").encode()))
    with pytest.raises(fp.DataError, match=r"q\.csv\.gz:2: the rating 'x'"):
        fp.read_quepid(tmp_path / "q.csv.gz")


def test_lists_that_begin_anywhere_are_worth_a_note(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(CLICKED + "q,c,3,1\nq,b,2,0\nq,a,1,0\nr,a,1,0\nr,b,2,1\n")
    with pytest.warns(fp.FirstpageWarning, match="lists begin at positions from 1 to 3"):
        assert fp.read_clicks(tmp_path / "c.csv") == [("r", "b", "a")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"query": None, "ranking": ["a", "b"], "clicks": ["b"]}, "must have query"),
        ({"query": "q", "ranking": ["a", None], "clicks": ["a"]}, "must have query"),
        ({"query": "q", "ranking": ["a", ""], "clicks": ["a"]}, "none of them empty"),
        ({"query": "q\ud800", "ranking": ["a", "b"], "clicks": ["b"]}, "must have query"),
        ({"query": "q", "ranking": [1, "1"], "clicks": [1]}, "'1' is twice in one list"),
        ({"query": "q", "ranking": ["a", "b"], "clicks": ["z"]}, "'z' is clicked, and was not"),
    ],
)
def test_clicks_in_lines(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    good = {"query": "q", "ranking": ["a", "b"], "clicks": ["b"]}
    (tmp_path / "c.jsonl").write_text(json.dumps(good) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(fp.DataError, match=rf"c\.jsonl:2: .*{said}"):
        fp.read_clicks(tmp_path / "c.jsonl")


def test_lines_end_where_json_says(tmp_path: Path) -> None:
    rows = [{"query": "q\u2028r", "ranking": ["a", "b"], "clicks": ["b"]}] * 2
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (tmp_path / "c.jsonl").write_text(text, "utf-8")
    assert fp.read_clicks(tmp_path / "c.jsonl") == [("q\u2028r", "b", "a")] * 2


def response(*hits: Any, **more: Any) -> dict[str, Any]:
    return {"hits": {"hits": list(hits)}, **more}


def logged(*lists: list[dict[str, Any]]) -> dict[str, Any]:
    return {"_id": "a", "fields": {"_ltrlog": [{f"l{i}": held} for i, held in enumerate(lists)]}}


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (
            {"responses": [response(hit("a", x=1)), {"error": {"reason": "no\nindex"}}]},
            r"l\.json:1: response 2 is an error \(no index\)",
        ),
        (response(hit("a", x=1), "b"), "is no list of documents"),
        ({"hits": {"hits": {"a": 1}}}, "is no list of documents"),
        (response(hit("a", x=1e39)), r"1e\+39 is no float32 number"),
        (response(hit("a", x=10**400)), "is no float32 number"),
        (response(hit("a", x=float("nan"))), "nan is no float32 number"),
        (response(logged([{"name": "x", "value": "3"}])), "named values"),
        (response(logged([{"name": "x", "value": True}])), "named values"),
        (
            response(logged([{"name": "x", "value": 1}], [{"name": "x", "value": 2}])),
            "logged twice",
        ),
        (response({**hit("a", x=1), "_id": None}), "the _id None is no text"),
        ({"query": {"match": 1}, "response": response(hit("a", x=1))}, "query of response 1 is no"),
        (response(hit("a", x=1), hit("a", x=1)), r"l\.json:1: document 'a' is there twice"),
    ],
)
def test_feature_logs(tmp_path: Path, held: Any, said: str) -> None:
    (tmp_path / "l.json").write_text(json.dumps(held))
    with pytest.raises(fp.DataError, match=said) as error:
        fp.read_feature_log(tmp_path / "l.json")
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
@pytest.mark.parametrize("more", [{"timed_out": True}, {"_shards": {"total": 5, "failed": 1}}])
def test_half_a_search_is_worth_a_note(tmp_path: Path, more: dict[str, Any]) -> None:
    (tmp_path / "l.json").write_text(json.dumps(response(hit("a", x=1), **more)))
    with pytest.warns(fp.FirstpageWarning, match="hits may be missing"):
        assert fp.read_feature_log(tmp_path / "l.json").n_docs == 1


@pytest.mark.filterwarnings("ignore:.*all labels are 0")
def test_hits_without_a_log_are_left_out(tmp_path: Path) -> None:
    """They would have had zeros for all features."""
    (tmp_path / "l.json").write_text(json.dumps(response(hit("a", x=1), {"_id": "b"})))
    with pytest.warns(fp.FirstpageWarning, match="1 hits have no logged features"):
        data = fp.read_feature_log(tmp_path / "l.json")
    assert data.X.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENSEMBLE[:200], r"m\.txt:\d+: damaged or cut short"),
        (ENSEMBLE[:-20], r"m\.txt:\d+: damaged or cut short"),
        (ENSEMBLE.replace(' weight="0.1"', ""), "'weight' is missing"),
        (ENSEMBLE.replace(' pos="left"', ""), "'pos' is missing"),
        (ENSEMBLE.replace("<feature> 3", "<feature> " + "9" * 30), "has not one feature"),
        (ENSEMBLE.replace("threshold>", "bound>"), "has not one feature"),
        ("## Coordinate Ascent\n1:0.5\n2:0.5\n", "2 lines of weights"),
        ("## Random Forests\n", "'## Random Forests'"),
        ("no header", "'no header'"),
    ],
)
def test_ranklib(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(fp.DataError, match=said) as error:
        fp.read_ranklib(tmp_path / "m.txt")
    assert "\n" not in str(error.value)


def test_the_line_of_the_damage_is_the_files(tmp_path: Path) -> None:
    at = ENSEMBLE[: ENSEMBLE.index("<feature>")].count("\n") + 1
    (tmp_path / "m.txt").write_text(ENSEMBLE.replace("<feature>", "<feature", 1))
    with pytest.raises(fp.DataError, match=rf"m\.txt:{at}: damaged"):
        fp.read_ranklib(tmp_path / "m.txt")
