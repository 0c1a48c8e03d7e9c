"""Sessions: arrays in, pages out; selections, splits, joins."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp

ARRAYS = {
    "query": ["fox", "fox", "dog", "fox", "fox"],
    "document": ["a", "b", "a", "c", "a"],
    "rank": [1, 2, 1, 2, 1],
    "clicked": [1, 0, 0, 2, 0],
    "page": ["p", "p", "q", "r", "r"],
}


def sessions(**more: object) -> fp.Sessions:
    return fp.Sessions.from_arrays(**{**ARRAYS, **more})


def rows(s: fp.Sessions) -> list[tuple[object, ...]]:
    return [
        (int(p), s.queries[s.page_query[p]], s.documents[d], int(r), int(c))
        for p, d, r, c in zip(s.page, s.document, s.rank, s.clicks, strict=True)
    ]


def test_impressions_are_grouped_by_page_and_ordered_by_rank() -> None:
    assert rows(sessions()) == [
        (0, "fox", "a", 1, 1), (0, "fox", "b", 2, 0), (1, "dog", "a", 1, 0), (2, "fox", "a", 1, 0),
        (2, "fox", "c", 2, 2),
    ]  # fmt: skip
    assert sessions().offsets.tolist() == [0, 2, 3, 5]


def test_rows_of_a_page_need_not_be_adjacent() -> None:
    order = [4, 0, 2, 1, 3]
    shuffled = {name: np.array(values)[order] for name, values in ARRAYS.items()}
    expected = {(q, d, r, c) for _, q, d, r, c in rows(sessions())}
    s = fp.Sessions.from_arrays(**shuffled)
    assert {(q, d, r, c) for _, q, d, r, c in rows(s)} == expected
    assert s.offsets.tolist() == [0, 2, 4, 5]
    assert all(
        np.all(np.diff(s.rank[a:b]) > 0) for a, b in zip(s.offsets, s.offsets[1:], strict=False)
    )


def test_without_pages_one_begins_where_ranks_do_not_increase() -> None:
    arrays = {name: values for name, values in ARRAYS.items() if name != "page"}
    arrays["rank"] = [1, 2, 1, 1, 2]
    assert fp.Sessions.from_arrays(**arrays).offsets.tolist() == [0, 2, 3, 5]


def test_pages_of_one_session_share_its_number() -> None:
    assert sessions(session=["x", "x", "y", "x", "x"]).session.tolist() == [0, 1, 0]
    assert sessions().session.tolist() == [0, 1, 2]


def test_pairs_are_distinct_queries_and_documents() -> None:
    s = sessions()
    pair, query, document = s.pairs
    named = {(s.queries[q], s.documents[d]) for q, d in zip(query, document, strict=True)}
    assert named == {("fox", "a"), ("fox", "b"), ("fox", "c"), ("dog", "a")}
    assert (query[pair] == s.page_query[s.page]).all()
    assert (document[pair] == s.document).all()


def test_a_selection_keeps_the_tables() -> None:
    s = sessions(time=[5, 5, 6, 7, 7])
    some = s.select([2, 0])
    assert some.queries == s.queries
    assert [row[1:] for row in rows(some)] == [
        ("fox", "a", 1, 0), ("fox", "c", 2, 2), ("fox", "a", 1, 1), ("fox", "b", 2, 0),
    ]  # fmt: skip
    assert some.time is not None
    assert some.time.tolist() == [7, 5]
    assert rows(s.select(np.array([True, False, True]))) == rows(s.select([0, 2]))
    assert s.select([]).n_pages == 0
    for wrong in ([3], [-4], [0.5], 0):
        with pytest.raises(fp.DataError, match="by a mask or by indices below 3"):
            s.select(wrong)


def many(pages: int = 100) -> fp.Sessions:
    return fp.Sessions.from_arrays(
        query=[i % 7 for i in range(pages)], document=range(pages), rank=[1] * pages,
        clicked=[0] * pages, page=range(pages), session=[i // 2 for i in range(pages)],
        time=[(i * 37) % pages for i in range(pages)],
    )  # fmt: skip


@pytest.mark.parametrize("by", ["session", "query", "time"])
def test_splits_have_nothing_in_common(by: str) -> None:
    s = many()
    train, test = s.split(0.2, by=by)  # type: ignore[arg-type]
    assert train.n_pages + test.n_pages == 100
    assert not set(train.document.tolist()) & set(test.document.tolist())
    if by == "session":
        assert test.n_pages == 20
        assert not set(train.session.tolist()) & set(test.session.tolist())
    elif by == "query":
        assert len(set(test.page_query.tolist())) == 1
        assert not set(train.page_query.tolist()) & set(test.page_query.tolist())
    else:
        assert train.time is not None
        assert test.time is not None
        assert train.time.max() < test.time.min()


def test_logs_are_joined_with_their_tables() -> None:
    other = fp.Sessions.from_arrays(
        query=["cat", "fox"], document=["z", "a"], rank=[1, 2], clicked=[1, 0], page=[0, 1],
        user=["u", "u"],
    )  # fmt: skip
    both = fp.clicks.concatenate(sessions(), other)
    assert rows(both) == [*rows(sessions()), (3, "cat", "z", 1, 1), (4, "fox", "a", 2, 0)]
    assert len(set(both.session.tolist())) == 5
    assert both.user is not None
    assert both.user.tolist() == [-1, -1, -1, 0, 0]


def test_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        sessions().clicks[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        sessions().select([0]).rank[0] = 7


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rank": [0, 1, 1, 2, 1]}, "rank must be at least 1; impression 0 has 0"),
        ({"rank": [1, 1, 1, 2, 1]}, "impression 1 has the rank of an earlier one"),
        ({"document": ["a", "a", "a", "c", "a"]}, "impression 1 has the document of an earlier"),
        ({"clicked": [1, 0, -1, 0, 0]}, "clicks must be at least 0; impression 2 has -1"),
        ({"clicked": [1, 0, np.nan, 0, 0]}, "clicks of sessions must be one number .* NaN"),
        ({"rank": [1.5, 2, 1, 2, 1]}, "rank of sessions must be integers"),
        ({"rank": [np.inf, 2, 1, 2, 1]}, "rank of sessions must be integers below"),
        ({"clicked": [2**32 + 1, 0, 0, 0, 0]}, "clicks of sessions must be integers below"),
        ({"propensity": [1.5, 1, 1, 1, 1]}, "propensity of sessions is a probability"),
        ({"first_click": [1, 0, 1, 0, 0]}, "first_click has a place .* there is no click"),
        ({"query": 5}, "one list or array per column"),
        ({"document": [["a"]] * 5}, "must be texts or numbers, not lists"),
        ({"query": ["fox"]}, "must have one length; got query 1"),
        ({"query": ["fox", None, "dog", "fox", "fox"]}, "impression 1 has no query"),
        ({"query": ["fox", "dog", "dog", "dog", "fox"]}, "a page has impressions of two queries"),
        ({"page": None, "rank": None}, "need the rank or the page"),
    ],
)
def test_impossible_values_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        sessions(**wrong)


def test_equal_ranks_in_a_row_are_two_pages() -> None:
    s = fp.Sessions.from_arrays(query=["q", "q"], document=["a", "a"], rank=[1, 1], clicked=[0, 1])
    assert s.offsets.tolist() == [0, 1, 2]
