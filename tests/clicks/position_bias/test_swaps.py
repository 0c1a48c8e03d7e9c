"""The swap graph: components by enumeration, and what is said about them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import firstpage as fp


def one_query(*pages: str, clicks: str = "") -> fp.Sessions:
    """Return sessions of pages such as "abc"; all documents named in `clicks` are clicked."""
    rows = [
        (number, document, rank)
        for number, page in enumerate(pages)
        for rank, document in enumerate(page, 1)
        if document != "."
    ]
    return fp.Sessions.from_arrays(
        query=["q"] * len(rows), page=[row[0] for row in rows], document=[row[1] for row in rows],
        rank=[row[2] for row in rows], clicked=[row[1] in clicks for row in rows],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pages", "clicks", "component"),
    [
        (("abc", "bac"), "ab", (1, 1, 3)),
        (("abc", "bca"), "abc", (1, 1, 1)),
        (("abc", "abc"), "abc", (1, 2, 3)),
        (("abcd", "badc"), "abcd", (1, 1, 3, 3)),
        (("abcd", "badc"), "ab", (1, 1, 3, 4)),  # without a click a document tells nothing
        (("a.c", "b.a"), "ab", (1, 1)),  # a rank without impressions is not listed
    ],
)
def test_components(pages: tuple[str, ...], clicks: str, component: tuple[int, ...]) -> None:
    graph = fp.clicks.swap_graph(one_query(*pages, clicks=clicks))
    if "." in pages[0]:
        assert graph.rank == (1, 3)
    assert graph.component == component
    assert graph.connected == (len(set(component)) == 1)


def test_a_rank_that_always_loses_is_not_connected() -> None:
    """Seen at ranks 1 and 2, clicked at 1 only: the propensity of rank 2 could be anything low."""
    sessions = fp.Sessions.from_arrays(
        query=["q"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2], page=[1, 1, 2, 2],
        clicked=[1, 0, 1, 0],
    )  # fmt: skip
    assert fp.clicks.swap_graph(sessions).component == (1, 2)


def test_components_are_those_of_a_plain_search() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = 40
        query, document = rng.integers(3, size=n), rng.integers(6, size=n)
        rank, clicked = rng.integers(1, 6, size=n), rng.random(n) < 0.3
        if not clicked.any():
            continue
        sessions = fp.Sessions.from_arrays(
            query=query, document=document, rank=rank, clicked=clicked, page=np.arange(n)
        )
        ranks = sorted(set(rank.tolist()))
        beats = {
            (a, b)
            for i, j in itertools.permutations(range(n), 2)
            if (query[i], document[i]) == (query[j], document[j]) and clicked[i]
            for a, b in [(rank[i], rank[j])]
        } | {(r, r) for r in ranks}
        for c, a, b in itertools.product(ranks, ranks, ranks):
            if (a, c) in beats and (c, b) in beats:
                beats.add((a, b))
        expected = tuple(min(b for b in ranks if {(a, b), (b, a)} <= beats) for a in ranks)
        assert fp.clicks.swap_graph(sessions).component == expected


def test_the_verdict_names_components_and_the_weakest_link() -> None:
    graph = fp.clicks.swap_graph(one_query("abcde", "bacde", "abdce", clicks="abcd"))
    assert graph.verdict[0] == "Ranks fall into 3 components: 1-2; 3-4; 5."
    assert "4 of 5 documents (of a query) were seen at several ranks." in graph.verdict
    assert "The weakest link is that of ranks 1 and 2: 2 documents and " in graph.verdict[3]
    assert "Not identified relative to rank 1: ranks 3-5." in graph.verdict
    assert "Few queries decide: at some rank they are worth 1.0 equal ones." in graph.verdict
    assert graph.swapped == (2, 2, 2, 2, 0)


def test_comparing_clicks_are_the_information_of_the_estimate() -> None:
    """Document a: 2 clicks, shown once at rank 1 and once at 2, so 2 * 1/2 * 1/2; likewise b."""
    sessions = one_query("ab", "ba", clicks="ab")
    assert fp.clicks.swap_graph(sessions).comparing_clicks == pytest.approx((1.0, 1.0))


def test_positions_without_clicks() -> None:
    graph = fp.clicks.position_overlap(np.array([7, 8, 7, 9, 9]), np.array([0, 1, 1, 2, 3]))
    assert graph.rank == (0, 1, 2, 3)
    assert graph.component == (0, 0, 2, 2)
    assert graph.status == ("connected", "connected", "not identified", "not identified")
    assert "Connected with rank 0: ranks 1." in graph.verdict
    assert fp.clicks.position_overlap(np.arange(3), np.arange(1, 4)).component == (1, 2, 3)
