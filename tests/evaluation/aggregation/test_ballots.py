"""Ballots from scores, runs and lists: base order, depth, ties, partial lists, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.core.kernels.voting.votes import ABSENT


def fused_scores(scores, offsets):
    """Return sums of 1 / (60 + mean rank), document by document."""
    points = []
    for lo, hi in itertools.pairwise(offsets):
        for i in range(lo, hi):
            ranks = [
                sum(row[lo:hi] > row[i]) + (sum(row[lo:hi] == row[i]) + 1) / 2 for row in scores
            ]
            points.append(round(sum(1 / (60 + rank) for rank in ranks), 12))
    return points


def plain_ballots(scores, offsets, base_scores, depth):
    """Return documents, positions and offsets by sorting lists, query by query."""
    documents: list[int] = []
    positions: list[list[int]] = [[] for _ in scores]
    heads = [0]
    for lo, hi in itertools.pairwise(offsets):
        rows = sorted(range(lo, hi), key=lambda r: (-base_scores[r], r))
        head = rows[:depth]
        documents += rows
        heads.append(heads[-1] + len(head))
        for a, row in enumerate(scores):
            ranked = np.lexsort((np.arange(len(head)), [-row[d] for d in head])).tolist()
            positions[a] += [ranked.index(i) for i in range(len(head))]
    return documents, positions, heads


@pytest.mark.parametrize("depth", [None, 1, 3, 50])
def test_from_scores_sorts_every_query(depth: int | None) -> None:
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 40))])
    n = int(offsets[-1])
    scores = rng.integers(0, 4, (3, n)).astype(float)  # many ties
    base_scores = rng.integers(0, 3, n).astype(float)
    for base in (base_scores, None):
        ballots = fp.aggregation.Ballots.from_scores(scores, offsets, base, depth=depth)
        order = fused_scores(scores, offsets.tolist()) if base is None else base
        documents, positions, heads = plain_ballots(scores, offsets.tolist(), order, depth)
        assert ballots.documents.tolist() == documents
        assert ballots.positions.tolist() == positions
        assert ballots.offsets.tolist() == heads
        assert ballots.ends.tolist() == offsets.tolist()


def test_same_depth_is_that_of_the_shortest_nonempty_query() -> None:
    scores = np.arange(9.0)[None]
    offsets = [0, 4, 4, 6, 9]
    ballots = fp.aggregation.Ballots.from_scores(scores, offsets, same_depth=True)
    assert ballots.lengths.tolist() == [2, 0, 2, 2]
    assert (
        fp.aggregation.Ballots.from_scores(scores, offsets, same_depth=True, depth=1).longest == 1
    )
    assert (
        fp.aggregation.Ballots.from_scores(scores, offsets, same_depth=True, depth=3).longest == 2
    )


def test_infinite_scores_are_ranked() -> None:
    ballots = fp.aggregation.Ballots.from_scores([[-np.inf, 0, np.inf]], [0, 3])
    assert ballots.documents[ballots.positions.argsort()].tolist() == [[2, 1, 0]]


@pytest.mark.parametrize(
    ("scores", "offsets", "message"),
    [
        ([[1, np.nan]], [0, 2], "the score of document 2 by ranker 1 is NaN"),
        ([[1, 2], [3]], [0, 2], "all of one length"),
        ([1, 2], [0, 2], r"shape \(rankers, documents\)"),
        (np.zeros((0, 2)), [0, 2], r"shape \(rankers, documents\)"),
        ([["a", "b"]], [0, 2], "numbers"),
        ([[1, 2]], [0, 3], "rise from 0 to the 2 documents"),
        ([[1, 2]], [1, 2], "rise from 0"),
        ([[1, 2]], [0, 2, 1, 2], "rise from 0"),
        ([[1, 2]], [], "offsets"),
    ],
)
def test_invalid_scores_are_refused(scores, offsets, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fp.aggregation.Ballots.from_scores(scores, offsets)


def test_invalid_options_are_refused() -> None:
    with pytest.raises(DataError, match="3 base_scores for 2"):
        fp.aggregation.Ballots.from_scores([[1, 2]], [0, 2], [1, 2, 3])
    depths: tuple[Any, ...] = (0, 1.5, "ten")
    for depth in depths:
        with pytest.raises(DataError, match="depth must be an integer"):
            fp.aggregation.Ballots.from_scores([[1, 2]], [0, 2], depth=depth)
    with pytest.raises(DataError, match="last or ignore"):
        fp.aggregation.Ballots.from_lists([{"q": ["a"]}], missing="drop")
    many = fp.aggregation.Ballots.from_scores(np.zeros((1, 10_001)), [0, 10_001])
    with pytest.raises(DataError, match="10001 candidates"):
        fp.aggregation.aggregate(many, "BestInsertion")


# --- runs

ONE = {"q1": ["a", "b", "c"], "q2": ["x", "y"]}
TWO = {"q2": ["y", "z"], "q1": ["d", "a", "e", "f"], "q3": ["w"]}


def named(ballots: fp.aggregation.Ballots) -> dict[str, list[str]]:
    """Return the documents of each query in base order."""
    assert ballots.docids is not None
    ids = list(ballots.docids[ballots.documents])
    ends = ballots.ends.tolist()
    return {q: ids[lo:hi] for q, lo, hi in zip(ballots.queries, ends, ends[1:], strict=False)}


def listed(ballots: fp.aggregation.Ballots, ranker: int) -> dict[str, list[str]]:
    """Return the candidates that a ranker lists, best first."""
    lists = {}
    for q, (query, docs) in enumerate(named(ballots).items()):
        positions = ballots.positions[ranker, ballots.offsets[q] : ballots.offsets[q + 1]]
        present = [i for i in np.argsort(positions, kind="stable") if positions[i] != ABSENT]
        assert sorted(positions[present].tolist()) == list(range(len(present)))
        lists[query] = [docs[i] for i in present]
    return lists


def test_runs_are_joined_by_query_and_document() -> None:
    ballots = fp.aggregation.Ballots.from_lists([ONE, TWO])
    # by reciprocal ranks: a is second and first; equal documents by id, descending
    assert named(ballots) == {
        "q1": ["a", "d", "b", "e", "c", "f"],
        "q2": ["y", "x", "z"],
        "q3": ["w"],
    }
    assert listed(ballots, 0) == {**ONE, "q3": []}
    assert listed(ballots, 1) == TWO


def test_base_is_any_run() -> None:
    second_run_first = fp.aggregation.Ballots.from_lists([ONE, TWO], base=1)
    assert named(second_run_first) == {
        "q2": ["y", "z", "x"],
        "q1": ["d", "a", "e", "f", "b", "c"],
        "q3": ["w"],
    }
    assert listed(second_run_first, 0) == {**ONE, "q3": []}
    base_run = fp.Run.from_dict({"q1": {"c": 2.0, "new": 1.0}, "q9": {"z": 1.0}})
    separate = fp.aggregation.Ballots.from_lists([ONE, TWO], base=base_run)
    assert separate.n_rankers == 2  # it does not vote
    assert named(separate)["q1"] == ["c", "new", "a", "d", "b", "e", "f"]
    assert named(separate)["q9"] == ["z"]
    assert listed(separate, 1) == {**TWO, "q9": []}


def test_documents_below_depth_keep_base_order() -> None:
    with pytest.warns(fp.FirstpageWarning, match="queries, and has no vote there"):
        result = fp.aggregation.aggregate([as_run(ONE), as_run(TWO)], "Borda", depth=2)
    assert result.ballots.lengths.tolist() == [2, 2, 1]
    assert listed(result.ballots, 1)["q1"] == ["d", "a"]
    order = ranked(result.run)
    assert order["q1"][2:] == ["b", "e", "c", "f"]
    assert set(order["q1"][:2]) == {"a", "d"}


def as_run(lists: dict[str, list[str]]) -> fp.Run:
    return fp.Run.from_dict(
        {q: {d: -float(i) for i, d in enumerate(ds)} for q, ds in lists.items()}
    )


def ranked(run: fp.Run) -> dict[str, list[str]]:
    return {
        q: sorted(docs, key=docs.__getitem__, reverse=True) for q, docs in run.to_dict().items()
    }


def test_equal_scores_keep_base_order() -> None:
    first = fp.Run.from_dict({"q": {"a": 1.0, "b": 1.0, "c": 2.0}})
    tied = fp.Run.from_dict({"q": {"b": 5.0, "c": 5.0, "a": 5.0, "d": 6.0}})
    ballots = fp.aggregation.Ballots.from_runs([first, tied])
    assert named(ballots) == {"q": ["c", "b", "a", "d"]}  # mean ranks; b and a by id, descending
    assert listed(ballots, 1) == {"q": ["d", "c", "b", "a"]}
    based = fp.aggregation.Ballots.from_runs([first, tied], base=0)
    assert named(based) == {"q": ["c", "a", "b", "d"]}  # ties of the base run in file order
    assert listed(based, 1) == {"q": ["d", "c", "a", "b"]}


def test_random_runs_are_joined_like_dictionaries() -> None:
    rng = np.random.default_rng(0)
    docs = [f"document-{i}" for i in range(30)]
    runs = []
    for _ in range(4):
        queries = rng.permutation(12)[: rng.integers(1, 12)]
        runs.append(
            {
                f"q{q}": [docs[i] for i in rng.permutation(30)[: rng.integers(1, 20)]]
                for q in queries
            }
        )
    ballots = fp.aggregation.Ballots.from_lists(runs, depth=None)
    for a, run in enumerate(runs):
        assert {q: ds for q, ds in listed(ballots, a).items() if ds} == run
    for query, documents in named(ballots).items():
        assert len(set(documents)) == len(documents)
        assert set(documents) == set().union(*(run.get(query, []) for run in runs))


def test_repeated_documents_are_refused_by_name() -> None:
    ids = ["a", "b", "a"]
    twice = fp.Run.from_arrays(["q"] * 3, ids, [3.0, 2.0, 1.0], "mine")
    once = as_run(ONE)
    for runs in ([twice], [twice, once], [once, twice]):
        with pytest.raises(DataError, match="document 'a' occurs twice in query 'q'"):
            fp.aggregation.Ballots.from_runs(runs)
    with pytest.raises(DataError, match="list 2: a document occurs twice"):
        fp.aggregation.Ballots.from_lists([ONE, {"q1": ["a", "a"]}])


@pytest.mark.parametrize("base", [2, -1, "round-robin", 0.5])
def test_invalid_bases_are_refused(base) -> None:
    with pytest.raises(DataError, match="base must be a run"):
        fp.aggregation.Ballots.from_lists([ONE, TWO], base=base)


def test_missing_runs_are_refused() -> None:
    with pytest.raises(DataError, match="at least one run"):
        fp.aggregation.Ballots.from_runs([])
    with pytest.raises(DataError, match="at least one run"):
        fp.aggregation.Ballots.from_runs([[1, 2]])  # type: ignore[list-item]


def test_ballots_are_immutable() -> None:
    ballots = fp.aggregation.Ballots.from_lists([ONE, TWO])
    with pytest.raises(ValueError, match="read-only"):
        ballots.positions[0, 0] = 7
    assert repr(ballots) == "Ballots(2 rankers, 3 queries, 10 candidates of 10 documents)"
    positions, offsets, rows = np.zeros((1, 1), np.int64), np.array([0, 1]), np.array([0])
    fp.aggregation.Ballots(positions, offsets, rows, offsets, ballots.queries[:1])
    offsets[1] = 1  # the caller's array stays writable
    with pytest.raises(DataError, match="rise from 0 to the 1 documents"):
        fp.aggregation.Ballots(positions, np.array([0, 2]), rows, offsets, ballots.queries[:1])
    with pytest.raises(DataError, match="rise from 0 to the 1 documents"):
        fp.aggregation.Ballots(positions, offsets, rows, np.array([0, 2]), ballots.queries[:1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offsets": [0, 1.5, 2]}, "array of integers"),
        ({"offsets": [0, 2], "docids": ["a"]}, "1 docids"),
        ({"offsets": [0, 2], "names": ["a", "b", "c"]}, "3 names"),
        ({"offsets": [0, 2], "depth": 0}, "depth must be"),
    ],
)
def test_invalid_ballots_are_refused(options, message) -> None:
    with pytest.raises(DataError, match=message):
        fp.aggregation.Ballots.from_scores(np.ones((1, 2)), **options)
    assert len(fp.aggregation.Ballots.from_scores(np.ones((1, 2)), [0, 2], depth=10**25)) == 1
