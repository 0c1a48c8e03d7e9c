"""Agreement of rankings with votes on pairs: a plain reference, runs and data, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from tests.narrow import present

DOCUMENTS = "abcd"
VOTES = st.tuples(
    st.sampled_from(["q", "r", "s"]), st.permutations(DOCUMENTS), st.integers(0, 3), st.booleans()
)


def votes_of(rows: list) -> fp.PreferencePairs:
    return fp.PreferencePairs.from_arrays(
        [row[0] for row in rows],
        [row[1][0] for row in rows],
        [row[1][1] for row in rows],
        weight=[row[2] for row in rows],
        tied=[row[3] for row in rows],
    )


def reference(run: dict, rows: list) -> tuple[float, float]:
    """Return the weight of the votes that a run agrees with, and of all votes."""
    agreed = total = 0.0
    for query, (better, worse, *_), weight, tied in rows:
        scores = [run.get(query, {}).get(name, -np.inf) for name in (better, worse)]
        if not tied:
            total += weight
            agreed += weight * (1.0 if scores[0] > scores[1] else 0.5 * (scores[0] == scores[1]))
    return agreed, total


@given(
    st.lists(VOTES, min_size=1, max_size=12),
    st.dictionaries(
        st.sampled_from(["q", "r", "t"]),
        st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-2, 2), min_size=1),
        min_size=1,
    ),
)
@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")
def test_it_is_the_weighted_fraction_of_votes(rows: list, run: dict) -> None:
    agreed, total = reference(run, rows)
    ranked = any(name in run.get(query, {}) for query, pair, _, _ in rows for name in pair[:2])
    if total == 0 or not ranked:
        with pytest.raises(fp.DataError):
            fp.pair_accuracy(run, votes_of(rows))
        return
    accuracy = fp.pair_accuracy(run, votes_of(rows))
    assert float(accuracy) == pytest.approx(agreed / total)
    assert accuracy.weights.sum() == total
    for query, value, weight in zip(
        accuracy.queries, accuracy.values, accuracy.weights, strict=True
    ):
        own = reference(run, [row for row in rows if row[0] == query])
        assert (value * weight, weight) == pytest.approx(own)


@pytest.fixture(scope="module")
def data() -> fp.Dataset:
    made = fp.Synthetic(queries=30, docs=8, features=3, seed=1).dataset()
    names = [f"d{row}" for row in range(made.n_docs)]
    return fp.Dataset.from_arrays(made.X, made.y, np.repeat(np.arange(30), 8), names)


@pytest.fixture(scope="module")
def votes(data: fp.Dataset) -> fp.PreferencePairs:
    rng = np.random.default_rng(2)
    query = rng.integers(0, 30, 200)
    sides = np.array([rng.choice(8, 2, replace=False) for _ in query]) + 8 * query[:, None]
    utility = np.asarray(data.X)[:, 0]
    swap = utility[sides[:, 0]] + rng.normal(size=200) < utility[sides[:, 1]]
    sides[swap] = sides[swap][:, ::-1]
    names = np.array(list(present(data.docids)))[sides]
    return fp.PreferencePairs.from_arrays(query, names[:, 0], names[:, 1], weight=1 + query % 3)


def test_scores_of_data_and_their_run_agree_with_score(data, votes) -> None:
    ranker = fp.RankNet().fit(data, pairs=votes)
    scores = ranker.predict(data)
    accuracy = fp.pair_accuracy(scores, votes, data, ci=True, seed=3)
    assert accuracy.value == pytest.approx(ranker.score(data, pairs=votes))
    run: dict = {}
    for query, name, score in zip(np.repeat(np.arange(30), 8), data.docids, scores, strict=True):
        run.setdefault(str(query), {})[name] = score
    again = fp.pair_accuracy(run, votes, ci=True, seed=3)
    assert (again.value, again.interval) == (accuracy.value, accuracy.interval)
    low, high = present(accuracy.interval)
    assert low < accuracy.value < high
    # a plain bootstrap of the ratio
    rng, ratios = np.random.default_rng(0), []
    agreed = accuracy.values * accuracy.weights
    for _ in range(2000):
        drawn = rng.integers(0, len(agreed), len(agreed))
        ratios.append(agreed[drawn].sum() / accuracy.weights[drawn].sum())
    assert (low, high) == pytest.approx(np.percentile(ratios, [2.5, 97.5]), abs=0.01)
    frame = accuracy.to_pandas()
    assert frame.columns.tolist() == ["query", "PairAccuracy", "votes"]
    assert len(frame) == len(accuracy.queries)


def test_mistakes_and_missing_documents(data, votes) -> None:
    scores = np.zeros(data.n_docs)
    assert fp.pair_accuracy(scores, votes, data).value == 0.5
    other = fp.PreferencePairs.from_arrays(["0", "0"], ["d0", "x"], ["d1", "d1"])
    with pytest.warns(fp.FirstpageWarning, match="1 of 2 pairs are left out"):
        assert fp.pair_accuracy(-np.arange(data.n_docs), other, data).value == 1.0
    with pytest.warns(fp.FirstpageWarning, match="1 of 2 votes of the pairs are on documents"):
        assert fp.pair_accuracy({"0": {"d0": 2, "d1": -np.inf}}, other).value == 0.5
    cases: tuple[tuple[Any, Any, Any, str], ...] = (
        (scores[1:], votes, data, "239 scores for 240 documents"),
        (scores * np.nan, votes, data, "score of row 1 is NaN"),
        ("x", votes, data, "an array of scores; got str"),
        (scores, votes, None, "without data, pairs go with a run"),
        ({"z": {"a": 1.0}}, votes, None, "none of its documents is in the run"),
        (scores, [("a", "b")], data, "must be PreferencePairs"),
    )
    for system, pairs, documents, message in cases:
        with pytest.raises(fp.DataError, match=message):
            fp.pair_accuracy(system, pairs, documents)
