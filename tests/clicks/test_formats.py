"""Forms of logs: what is read, and what is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.clicks.formats import tables
from firstpage.clicks.formats.registry import form_of
from tests.narrow import present

YANDEX = "fox_1\t3,1,2 : 1 , 7 , 3 , 1;fox_1\t3,1,2 :; \ndog\t9,8:8;\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_yandex(tmp_path: Path) -> None:
    s = fp.read_sessions(write(tmp_path, "log", YANDEX))
    assert (s.n_pages, s.n_impressions) == (3, 8)
    assert [s.documents[d] for d in s.document[:3]] == ["3", "1", "2"]
    assert s.clicks.tolist() == [1, 2, 0, 0, 0, 0, 0, 1]
    assert s.first_click is not None
    assert s.first_click.tolist() == [2, 1, 0, 0, 0, 0, 0, 1]
    assert dict(s.decisions) == {
        "clicks on documents that were not on the page, left out": 1,
        "repeated clicks on a document": 1,
    }


def test_broken_lines_are_named_or_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "log", YANDEX + "no tab here : 1\n")
    with pytest.raises(fp.DataError, match=r"log:3: is not `query TAB"):
        fp.read_sessions(path)
    s = fp.read_sessions(path, skip_broken=True)
    assert s.n_pages == 3
    assert s.decisions["broken lines, which were skipped"] == 1


def test_tables(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    text = "sku,query,Position,click,page_id\na,fox,0,1,x\nb,fox,1,0,x\nb,fox,0,0,y\n,fox,1,0,y\n"
    path = write(tmp_path, "log.csv", text)
    s = fp.read_sessions(path, columns={"document": "sku"})
    assert (s.n_pages, s.rank.tolist(), s.clicks.tolist()) == (2, [1, 2, 1], [1, 0, 0])
    assert s.decisions == {
        "impressions without a document, which were left out": 1,
        "impressions with ranks from 0, which were made ranks from 1": 3,
    }
    with pytest.raises(fp.DataError, match="there is no column 'product'"):
        fp.read_sessions(path, columns={"document": "product"})
    with pytest.raises(fp.DataError, match="logs have no column for 'doc'"):
        fp.read_sessions(path, columns={"doc": "sku"})


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "log", "hello\n")
    with pytest.raises(fp.DataError, match="its form is not recognized"):
        form_of(path)
    with pytest.raises(fp.DataError, match="unknown form 'ubix'"):
        fp.read_sessions(path, "ubix")


def ubi_rows() -> list[dict]:
    """Return two queries of one application, whose ordinals begin at 0."""

    def event(action, document, ordinal, second, query="q1", **more):
        return {
            "application": "shop", "action_name": action, "query_id": query,
            "timestamp": f"2024-12-10T00:00:{second:02d}.000Z",
            "event_attributes": {
                "object": {"object_id": document}, "position": {"ordinal": ordinal},
            },
            **more,
        }  # fmt: skip

    queries = [
        {"application": "shop", "query_id": "q1", "client_id": "c", "user_query": " red  shoes ",
         "query_attributes": {}, "timestamp": 1733788800000},
        {"application": "shop", "query_id": "q2", "client_id": "c", "user_query": "hats",
         "timestamp": "2024-12-10T00:00:00.000+0000", "query_response_hit_ids": ["x", "y"]},
    ]  # fmt: skip
    return [
        *queries,
        *(event("impression", d, n, 1, session_id="s") for n, d in enumerate("abc")),
        event("click", "c", 2, 3, session_id="s"),
        event("click", "a", 0, 4),
        event("click", "a", 0, 5),
        event("click", "a", 0, 5),
        event("purchase", "a", 0, 9),
        event("click", "z", 0, 9),
        event("hover", "b", 1, 2),
        event("impression", "c", 0, 20),
        event("click", "c", 0, 21),
        event("click", "x", 0, 30, query="q2"),
    ]


def bulk(rows: list[dict]) -> str:
    lines = []
    for row in rows:
        index = "ubi_events" if "action_name" in row else "ubi_queries"
        lines += [json.dumps({"index": {"_index": index}}), json.dumps(row)]
    return "\n".join(lines) + "\n"


def exported(rows: list[dict]) -> str:
    hits = [{"_index": "ubi", "_id": str(n), "_source": row} for n, row in enumerate(rows)]
    return json.dumps({"took": 1, "hits": {"hits": hits}}, indent=1)


@pytest.mark.parametrize("text", [bulk, exported, lambda rows: "\n".join(map(json.dumps, rows))])
def test_ubi(tmp_path: Path, text) -> None:
    path = write(tmp_path, "ubi.ndjson", text(ubi_rows()))
    assert form_of(path) == "ubi"
    s = fp.read_sessions(path)
    assert [s.queries[q] for q in s.page_query] == ["red shoes", "red shoes"]
    assert [s.documents[d] for d in s.document] == ["a", "b", "c", "c"]
    assert s.rank.tolist() == [1, 2, 3, 1]
    assert s.clicks.tolist() == [2, 0, 1, 1]
    assert s.first_click is not None
    assert s.first_click.tolist() == [2, 0, 1, 1]
    assert s.value is not None
    assert s.value.tolist() == [3, 0, 1, 1]
    assert s.time is not None
    assert s.time.tolist() == [1733788801000, 1733788820000]
    assert s.session.tolist() == [0, 0]
    assert s.decisions == {
        "queries of UBI, read": 2,
        "events of UBI, read": 13,
        "events without a session, joined by the id of the query": 7,
        "events that repeat another one in all values, left out": 1,
        "events of other actions, not read (hover)": 1,
        "clicks on documents that were not on the page, left out": 1,
        "repeated clicks on a document": 1,
        "further pages of a query whose list changed": 1,
        "queries without impressions, left out": 1,
        "actions on results of these queries, left out": 1,
        "impressions with ordinals from 0 (shop), ranks from 1": 4,
    }


def test_ubi_pages_of_a_query_are_one_list(tmp_path: Path) -> None:
    """The longest list counts with the time of the first page, in whatever order they are opened."""
    hits = [f"d{n}" for n in range(30)]

    def query(second: int, shown: list[str], **more: Any) -> dict[str, Any]:
        time = f"2026-01-01T00:00:{second:02d}Z"
        row = {"query_id": "q1", "user_query": "fox", "timestamp": time, "client_id": "ann"}
        return {**row, "query_response_hit_ids": shown, **more}

    def click(second: int, document: str) -> dict[str, Any]:
        place = {"object": {"object_id": document}, "position": {"ordinal": 1 + int(document[1:])}}
        time = f"2026-01-01T00:00:{second:02d}Z"
        row = {"action_name": "click", "query_id": "q1", "timestamp": time}
        return {**row, "event_attributes": place}

    rows = [query(0, hits[:10]), click(1, "d3"), query(2, hits[:20]), click(3, "d15")]
    rows += [query(4, hits[:10]), query(5, hits[::-1])]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    s = fp.read_sessions(path)
    assert s.n_pages == 1
    assert s.rank.tolist() == list(range(1, 21))
    assert np.flatnonzero(s.clicks).tolist() == [3, 15]
    assert s.time is not None
    assert s.time.tolist() == [1767225600000]
    assert s.decisions["queries logged again with another list, of which the first counts"] == 1
    assert not any("before the impressions" in text for text in s.decisions)


def test_ubi_as_two_files_with_other_actions(tmp_path: Path) -> None:
    rows = ubi_rows()
    queries = write(tmp_path, "queries", bulk(rows[:2]))
    events = write(tmp_path, "events", bulk(rows[2:]))
    s = fp.read_sessions([events, queries], actions={"hover": 0.1, "click": 1})
    assert s.queries == ("red shoes",)
    assert s.value is not None
    assert s.value.tolist() == pytest.approx([1, 0.1, 1, 1])
    assert s.clicks.tolist() == [2, 0, 1, 1]


def test_hits_are_impressions_where_an_application_logs_none(tmp_path: Path) -> None:
    rows = [row for row in ubi_rows() if row["query_id"] == "q2"]
    rows[-1]["event_attributes"]["position"] = None
    s = fp.read_sessions(write(tmp_path, "ubi", bulk(rows)))
    assert [s.documents[d] for d in s.document] == ["x", "y"]
    assert s.rank.tolist() == [1, 2]
    assert s.clicks.tolist() == [1, 0]
    assert s.decisions["queries whose impressions are the documents that were returned"] == 1


def test_an_impression_without_a_position_has_that_of_the_engine(tmp_path: Path) -> None:
    rows = ubi_rows()
    rows[0]["query_response_hit_ids"] = ["a", "b", "c"]
    rows[4]["event_attributes"]["position"] = {}
    s = fp.read_sessions(write(tmp_path, "ubi", bulk(rows[:5])))
    assert s.decisions["impressions without a position, ranked by the engine's list"] == 1
    assert [s.documents[d] for d in s.document] == ["a", "b", "c"]


def test_clicks_before_impressions_are_counted_or_skipped(tmp_path: Path) -> None:
    rows = ubi_rows()[:5]
    click = {**rows[-1], "action_name": "click", "timestamp": "2024-12-09T23:59:59Z"}
    path = write(tmp_path, "ubi", bulk([*rows, click]))
    text = "actions with a time before the impressions of their page"
    s = fp.read_sessions(path)
    assert (s.clicks.sum(), s.decisions[text]) == (1, 1)
    s = fp.read_sessions(path, skip_broken=True)
    assert (s.clicks.sum(), s.decisions[text]) == (0, 1)


def test_tiangong(tmp_path: Path) -> None:
    text = "460\t798\t[5, 6, 7]\t[1, 1, 2]\t[0, 1, 0]\n460\t9\t[5, 6]\t[1, 1]\t[0, 0]\n"
    s = fp.read_sessions(write(tmp_path, "train.txt", text))
    assert s.session.tolist() == [0, 0]
    assert s.documents == ("5", "6", "7")
    assert s.clicks.tolist() == [0, 1, 0, 0, 0]
    assert s.first_click is None
    path = write(tmp_path, "train.txt", text + "1\t2\t[3]\t[1]\t[1, 0, 1]\n4\t5\n")
    with pytest.raises(fp.DataError, match=r"train.txt:4: has 2 columns instead of 5"):
        fp.read_sessions(path)


PAGE = {"query": "fox", "documents": ["a", "b", "c"], "session_id": "s", "timestamp": 1733788800}


@pytest.mark.parametrize(
    ("clicks", "first"),
    [(["b", "a", "b"], [2, 1, 0]), ([1, 2, 0], None), ([True, True, False], None)],
)
def test_pages_in_json_lines(tmp_path: Path, clicks: list, first: list[int] | None) -> None:
    path = write(tmp_path, "log.jsonl", json.dumps({**PAGE, "clicks": clicks}) + "\n")
    s = fp.read_sessions(path)
    assert s.rank.tolist() == [1, 2, 3]
    assert (s.clicks > 0).tolist() == [True, True, False]
    assert (s.first_click if first is None else present(s.first_click).tolist()) == first
    assert present(s.time).tolist() == [1733788800000]


def test_impressions_in_json_lines(tmp_path: Path) -> None:
    rows = [
        {"q": {"text": "fox"}, "docid": "a", "rank": 11, "clicked": True, "page": 1},
        {"q": {"text": "fox"}, "docid": "b", "rank": 12, "clicked": False, "page": 1},
    ]
    path = write(tmp_path, "log.jsonl", "\n".join(map(json.dumps, rows)))
    s = fp.read_sessions(path, columns={"query": "q.text"})
    assert (s.queries, s.rank.tolist(), s.clicks.tolist()) == (("fox",), [11, 12], [1, 0])
    with pytest.raises(fp.DataError, match=r"there is no column 'q\.name'"):
        fp.read_sessions(path, columns={"query": "q.name"})


def test_broken_json_lines(tmp_path: Path) -> None:
    good = json.dumps({**PAGE, "clicks": []})
    path = tmp_path / "log.jsonl"
    path.write_bytes(f"{good}\n{good[:-5]}\n[]\n".encode() + b"\xff\n" + good.encode())
    with pytest.raises(fp.DataError, match=r"log.jsonl:2: the line is not valid JSON"):
        fp.read_sessions(path)
    s = fp.read_sessions(path, skip_broken=True)
    assert s.n_pages == 2
    assert s.decisions["broken lines, which were skipped"] == 2


def test_solr_tells_which_model_a_document_comes_from(tmp_path: Path) -> None:
    documents = [{"id": "a", "[interleaving]": "A"}, {"id": "b", "[interleaving]": "B"}]
    row = {
        "responseHeader": {"params": {"q": "fox"}},
        "response": {"numFound": 9, "start": 10, "docs": documents},
        "clicks": ["b"],
    }
    s = fp.read_sessions(write(tmp_path, "solr.jsonl", json.dumps(row)))
    assert (s.queries, s.rank.tolist(), s.clicks.tolist()) == (("fox",), [11, 12], [0, 1])
    assert [s.arms[arm] for arm in present(s.arm)] == ["A", "B"]


def test_preferences_of_serve(tmp_path: Path) -> None:
    row = {
        "query": "fox-1", "text": "fox", "lists": "documents", "left": ["a", "b"],
        "right": ["b", "a"], "outcome": 1, "model_side": "right", "id": "fox-1-x",
        "time": "2025-01-01T00:00:00Z",
    }  # fmt: skip
    s = fp.read_sessions(write(tmp_path, "preferences.jsonl", json.dumps(row)))
    assert (s.n_pages, s.clicks.sum(), s.queries) == (2, 0, ("fox",))
    assert s.session.tolist() == [0, 0]
    assert [s.arms[arm] for arm in present(s.arm)] == ["compared", "compared", "model", "model"]
    assert list(s.decisions.values()) == [1]


def test_parquet_with_rows_and_with_pages(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    rows = {
        "query": ["fox", "fox", "dog"], "docid": ["a", "b", "a"], "position": [1, 2, 1],
        "clicked": [True, False, None], "page": [7, 7, 9], "user": ["u", "u", None],
    }  # fmt: skip
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    s = fp.read_sessions(tmp_path / "rows.parquet")
    assert (s.n_pages, s.clicks.tolist(), present(s.user).tolist()) == (2, [1, 0, 0], [0, -1])
    pages = {"query": ["fox", "dog"], "documents": [["a", "b"], ["a"]], "clicks": [["b", "b"], []]}
    pl.DataFrame(pages, schema_overrides={"clicks": pl.List(pl.String)}).write_parquet(
        tmp_path / "pages.parquet"
    )
    s = fp.read_sessions(tmp_path / "pages.parquet")
    assert (s.n_pages, s.rank.tolist(), s.clicks.tolist()) == (2, [1, 2, 1], [0, 2, 0])


def test_slices_of_a_parquet_file_are_joined(tmp_path: Path, monkeypatch) -> None:
    pl = pytest.importorskip("polars")
    rows = {
        "query": ["fox", "fox", "dog", "fox"], "docid": ["a", "b", "c", "a"],
        "rank": [1, 2, 1, 3], "clicked": [1, 0, 0, 0], "page": ["x", "x", "y", "y"],
    }  # fmt: skip
    rows["page"] = ["x", "x", "y", "z"]
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    whole = fp.read_sessions(tmp_path / "log.parquet")
    monkeypatch.setattr(tables, "SLICE_ROWS", 1)
    calls: list[tuple[int, int]] = []
    sliced = fp.read_sessions(tmp_path / "log.parquet", progress=lambda *done: calls.append(done))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    for name in ("queries", "documents"):
        assert getattr(sliced, name) == getattr(whole, name)
    for name in ("page_query", "offsets", "document", "rank", "clicks"):
        assert getattr(sliced, name).tolist() == getattr(whole, name).tolist()


def test_csv_with_broken_lines(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    text = "query,docid,rank,clicked\nfox,a,1,true\nfox,b,2,false,what\nfox,007,2,0\n"
    path = write(tmp_path, "log.csv", text)
    with pytest.raises(fp.DataError, match=r"log.csv:3: has 5 cells; the header has 4"):
        fp.read_sessions(path)
    s = fp.read_sessions(path, skip_broken=True)
    assert (s.documents, s.clicks.tolist()) == (("a", "007"), [1, 0])
    path = write(tmp_path, "log.csv", "query,docid,rank,clicked\nfox,a,first,1\nfox,b,2,0\n")
    with pytest.raises(fp.DataError, match=r"log.csv: row 1: 'first' is not a number .rank"):
        fp.read_sessions(path)
    s = fp.read_sessions(path, skip_broken=True)
    assert s.decisions["impressions without a rank, which were left out"] == 1


def test_open_bandit(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    text = (
        ",timestamp,item_id,position,click,propensity_score,user_feature_0\n"
        "0,2019-11-24 00:00:34.762830+00:00,14,3,0,0.0125,x\n"
        "1,2019-11-24 00:00:35+00:00,15,1,1,0.5,x\n"
    )
    s = fp.read_sessions(write(tmp_path, "men.csv", text))
    assert (s.queries, s.n_pages, s.rank.tolist(), s.clicks.tolist()) == (
        ("men",),
        2,
        [3, 1],
        [0, 1],
    )
    assert present(s.propensity).tolist() == [0.0125, 0.5]
    assert present(s.time).tolist() == [1574553634762, 1574553635000]


CSV = "query,docid,rank,clicked,page,user,time,layout\n"


@pytest.mark.parametrize(
    ("rows", "decision", "rest"),
    [
        (
            "fox,a,1,1,x,u,5,\nfox,b,,0,x,u,5,\n",
            "impressions without a rank, which were left out",
            1,
        ),
        (
            "fox,a,1,1,x,u,-5,\n",
            "impressions with a time before 1970 or after 9999, now unknown",
            1,
        ),
        (
            "fox,a,1,1,x,u,5,\nfox,a,1,1,x,u,5,\n",
            "impressions of a document that its page has already, left out",
            1,
        ),
        (
            "fox,a,1,1,x,u,5,\nfox,b,1,1,x,u,5,\n",
            "impressions at a rank that another document of the page has, left out",
            1,
        ),
        ("fox,a,-1,1,x,u,5,\nfox,b,1,1,x,u,5,\n", "impressions with a rank below 1, left out", 1),
        (
            "fox,a,1,1,x,u,5,\nfox,a,1,1,x,u,5,\n",
            "clicks on repeated impressions, left out",
            1,
        ),
        (
            "fox,a,1,1,x,u,5,list\nfox,b,1,1,y,u,5,grid\n",
            "layouts are mixed (list, grid): ranks of different layouts are not comparable",
            2,
        ),
    ],
)
def test_bad_rows_are_counted(tmp_path: Path, rows: str, decision: str, rest: int) -> None:
    pytest.importorskip("polars")
    s = fp.read_sessions(write(tmp_path, "log.csv", CSV + rows))
    assert s.decisions[decision] == (2 if rest == 2 else 1)
    assert s.n_impressions == rest


def test_a_page_has_one_query(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    rows = "fox,a,1,1,x,u,5,\ndog,b,2,1,x,u,5,\nfox,c,2,0,x,u,5,\n"
    s = fp.read_sessions(write(tmp_path, "log.csv", CSV + rows))
    assert [s.queries[q] for q in s.page_query] == ["fox", "dog"]
    assert np.diff(s.offsets).tolist() == [2, 1]
    assert s.decisions["further pages with the id of a page of another query"] == 1


def test_negative_clicks_are_refused_or_skipped(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    path = write(tmp_path, "log.csv", CSV + "fox,a,1,1,x,u,5,\nfox,b,2,-1,x,u,5,\n")
    with pytest.raises(fp.DataError, match="impression 2 has -1 as clicks"):
        fp.read_sessions(path)
    assert fp.read_sessions(path, skip_broken=True).n_impressions == 1


def test_users_are_hashed_and_bots_left_out(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    rows = [f"fox,a,1,1,{n},{'bot' if n else 'ann'},5,\n" for n in range(5)]
    path = write(tmp_path, "log.csv", CSV + "".join(rows))
    s = fp.read_sessions(path, hash_users="salt", bots=3)
    assert s.n_pages == 1
    assert s.decisions["users with more than 3 pages, left out"] == 1
    assert "ann" not in s.users
    assert len(set(s.users)) == 2
    assert s.users == fp.read_sessions(path, hash_users="salt").users
    assert s.users != fp.read_sessions(path, hash_users="pepper").users


def test_a_layout_can_be_named(tmp_path: Path) -> None:
    s = fp.read_sessions(write(tmp_path, "log", YANDEX), layout="grid")
    assert s.layouts == ("grid",)
    assert present(s.layout).tolist() == [0, 0, 0]


def test_a_layout_selects_where_the_log_tells_layouts(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    path = write(tmp_path, "log.csv", CSV + "q,a,1,1,1,u,0,list\nq,b,1,0,2,u,0,grid\n")
    s = fp.read_sessions(path, layout="grid")
    assert (s.layouts, s.n_pages, s.clicks.tolist()) == (("grid",), 1, [0])
    assert s.decisions == {"impressions of other layouts, left out": 1}
    with pytest.raises(fp.DataError, match="no page has the layout 'map'; there are list, grid"):
        fp.read_sessions(path, layout="map")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"document": "sku"}}, "of the form yandex is read without columns"),
        ({"actions": {"click": 2.0}}, "of the form yandex is read without actions"),
        ({"application": "shop"}, "of the form yandex is read without application"),
        ({"actions": {}}, "actions need at least one name"),
        ({"actions": {"click": float("nan")}}, "and finite values"),
        ({"bots": 0}, "bots must be a number of pages from 1; got 0"),
        ({"hash_users": ""}, "a secret text; it is empty"),
        ({"hash_users": "salt"}, "log: has no users to hash. Drop hash_users"),
    ],
)
def test_options_without_effect_or_sense_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.read_sessions(write(tmp_path, "log", YANDEX), **options)


def test_half_of_a_surrogate_pair_is_a_broken_line(tmp_path: Path) -> None:
    line = '{"query": "\\ud800", "documents": ["a"], "clicks": []}\n'
    with pytest.raises(fp.DataError, match=r"log.jsonl:1: the line is not valid JSON"):
        fp.read_sessions(write(tmp_path, "log.jsonl", line))


def test_numbered_pages_of_several_files_are_different_pages(tmp_path: Path) -> None:
    one, two = write(tmp_path, "one", YANDEX), write(tmp_path, "two", YANDEX)
    s = fp.read_sessions([one, two])
    assert s.n_pages == 6
    assert s.n_impressions == 16


@pytest.mark.data
def test_counts_of_real_logs(real_data: Path) -> None:
    folder = real_data / "clicks"
    off = "clicks on documents that were not on the page, left out"
    for name, pages, off_page in (("trainSample", 35_064, 417), ("testSample", 21_413, 276)):
        s = fp.read_sessions(folder / "yandex" / name)
        assert (s.n_pages, s.decisions[off]) == (pages, off_page)
    ubi = folder / "ubi" / "ubi_queries_events.ndjson"
    s = fp.read_sessions(ubi)
    assert s.decisions["queries of UBI, read"] == 473
    assert s.decisions["events of UBI, read"] == 3448
    s = fp.read_sessions(ubi, application="esci_ubi_sample")
    assert (s.n_impressions, s.clicks.sum()) == (1000, 60)
    assert (s.rank.min(), s.rank.max()) == (1, 5)
    s = fp.read_sessions(ubi, application="Chorus")
    assert (s.n_impressions, s.rank.min(), s.rank.max()) == (999, 1, 20)
    others = "actions on results of these queries, left out"  # a click, and a cart each
    assert s.clicks.sum() + s.decisions[off] + s.decisions[others] // 2 == 227
    s = fp.read_sessions([folder / "tiangong" / f"{n}.txt" for n in ("train", "valid", "test")])
    assert s.n_pages == 3596
    s = fp.read_sessions(folder / "openbandit" / "random" / "all" / "all.csv")
    assert (s.n_impressions, present(s.propensity).max()) == (10_000, 0.0125)


def test_written_sessions_are_read_again(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    path = write(tmp_path, "ubi", bulk(ubi_rows()))
    for s in (
        fp.read_sessions(path),
        fp.read_sessions(write(tmp_path, "log", YANDEX), layout="list"),
    ):
        fp.clicks.write_sessions(s, tmp_path / "s.parquet")
        again = fp.read_sessions(tmp_path / "s.parquet")
        assert (again.queries, again.documents) == (s.queries, s.documents)
        for name in (
            "page_query", "offsets", "document", "rank", "clicks", "session", "first_click", "value",
            "time", "layout", "user", "arm",
        ):  # fmt: skip
            before, after = getattr(s, name), getattr(again, name)
            assert (before is None) == (after is None), name
            assert before is None or before.tolist() == after.tolist(), name
        assert again.decisions == {n: c for n, c in s.decisions.items() if ", read" not in n}
    with pytest.raises(fp.DataError, match=r"written to a \.parquet file"):
        fp.clicks.write_sessions(s, tmp_path / "s.csv")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log", "", "log: is empty."),
        ("log", "nothing", "its form is not recognized"),
        ("log.csv", "", "cannot be read as a table"),
        ("log.csv", "query,docid,rank,clicked\n", "contains no impressions"),
        ("log.csv", "query,docid,rank\nfox,a,1\n", "has no column of the clicks. Name it with"),
        ("log.csv", "query,docid,clicked\nfox,a,1\n", "has neither ranks nor pages"),
        ("log.csv", "query,rank,clicked\nfox,1,1\n", "has no column of the document"),
        ("log.csv", "q,d,r,c\nfox,a,1,1\n", "no column of the document (there are q, d, r, c)"),
        ("a.jsonl", '{"query": "q", "documents": ["a"]}', "has no column of the clicks"),
        ("log.csv", "query,docid,rank,clicked,rank\nf,a,1,1,1\n", "the column 'rank' occurs twice"),
        ("log.csv", "query,docid,rank,clicked\nfox,a,inf,1\n", "impression 1 has inf as rank"),
        ("log.csv", "query,docid,rank,clicked\nfox,a,1.5,1\n", "impression 1 has 1.5 as rank"),
        ("log.csv", 'query,docid,rank,clicked\n"fox,a,1,1\n', "log.csv:2: cannot be read"),
        (
            "a.jsonl",
            '{"query": ["fox"], "document": "a", "rank": 1, "clicks": 1}',
            "jsonl:1: a value",
        ),
        ("a.jsonl", '{"query": "q", "documents": [], "clicks": []}', "the page has no documents"),
        ("a.jsonl", '{"query": "q", "documents": [[1]], "clicks": []}', "a document without an id"),
        (
            "a.jsonl",
            '{"query": "q", "documents": ["a"], "ranks": [1, 2], "clicks": []}',
            "but 2 rank",
        ),
        (
            "a.jsonl",
            '{"left": 5, "right": []}',
            "a.jsonl:1: a value of the line is not of the type",
        ),
        (
            "a.jsonl",
            '{"action_name": "click", "query_id": 1, "event_attributes": 5}',
            "jsonl:1: is not",
        ),
        ("a.jsonl", '{"action_name": "click", "query_id": 1}', "contains no impressions"),
        ("a.jsonl", "[" * 5000, "a.jsonl:1: the line is not valid JSON"),
    ],
)
def test_wrong_files_get_one_clear_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    if name.endswith(".csv"):
        pytest.importorskip("polars")
    with pytest.raises(fp.DataError) as error:
        fp.read_sessions(write(tmp_path, name, text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_files_of_different_forms_make_one_log(tmp_path: Path) -> None:
    """Pages of a table are known by hashes, those of other forms by numbers."""
    pytest.importorskip("polars")
    table = write(tmp_path, "log.csv", CSV + "fox,3,1,1,p,u,5,\ncat,b,1,0,q,u,6,\n")
    s = fp.read_sessions([write(tmp_path, "log", YANDEX), table, write(tmp_path, "two", YANDEX)])
    assert (s.n_pages, s.n_impressions, s.clicks.sum()) == (8, 18, 9)
    assert present(s.time).tolist() == [-1, -1, -1, 5000, 6000, -1, -1, -1]
    assert s.first_click is None
    assert s.decisions["clicks without their order: no order is known"] == 1


def experiment_rows(**attributes: object) -> list[dict]:
    """Return a query of an experiment, and a click on its second result."""
    told = {"experiment": "try", "digest": "ab12", "method": "team-draft", "arms": ["old", "new"]}
    query = {
        "application": "shop", "query_id": "q1", "client_id": "u1", "user_query": "fox",
        "query_response_hit_ids": ["d3", "d1", "d2"], "timestamp": "2026-01-01T00:00:00Z",
        "query_attributes": told | attributes,
    }  # fmt: skip
    position = {"object": {"object_id": "d1"}, "position": {"ordinal": 2}}
    event = {
        "application": "shop", "action_name": "click", "query_id": "q1", "client_id": "u1",
        "timestamp": "2026-01-01T00:00:05Z", "event_attributes": position,
    }  # fmt: skip
    return [query, event]


@pytest.mark.parametrize("nested", [False, True])
def test_ubi_of_an_experiment_tells_the_ranking_of_each_result(
    tmp_path: Path, nested: bool
) -> None:
    rows = experiment_rows(teams=[1, 0, -1])
    if nested:
        told = rows[0]["query_attributes"]
        rows[0]["query_attributes"] = {"experiment": {**told, "name": told["experiment"]}}
    s = fp.read_sessions(write(tmp_path, "ubi", bulk(rows)))
    assert s.arm is not None
    assert s.experiment is not None
    assert [s.arms[code] if code >= 0 else None for code in s.arm] == ["new", "old", None]
    told = json.loads(s.experiments[s.experiment[0]])
    assert told == {
        "experiment": "try", "digest": "ab12", "method": "team-draft", "arms": ["old", "new"],
        "teams": [1, 0, -1],
    }  # fmt: skip
    assert s.clicks.tolist() == [0, 1, 0]
    both = fp.clicks.concatenate(s, s)
    assert both.experiment is not None
    assert both.experiment.tolist() == [0, 0]
    assert both.experiments == s.experiments
    pytest.importorskip("polars")
    fp.clicks.write_sessions(both, tmp_path / "s.parquet")
    again = fp.read_sessions(tmp_path / "s.parquet")
    assert (again.experiments, again.arms) == (s.experiments, s.arms)


def test_ubi_of_an_experiment_by_user_and_of_none(tmp_path: Path) -> None:
    s = fp.read_sessions(write(tmp_path, "ubi", bulk(experiment_rows(method="ab", arm=1))))
    assert s.arm is not None
    assert [s.arms[code] for code in s.arm] == ["new"] * 3
    rows = experiment_rows()
    del rows[0]["query_attributes"]
    s = fp.read_sessions(write(tmp_path, "ubi", bulk(rows)))
    assert s.arm is None
    assert s.experiment is None


def test_ubi_of_an_experiment_with_other_documents_counts_the_page(tmp_path: Path) -> None:
    s = fp.read_sessions(write(tmp_path, "ubi", bulk(experiment_rows(teams=[1, 0]))))
    assert s.experiment is None
    assert s.decisions["pages whose documents are not those of their experiment"] == 1
