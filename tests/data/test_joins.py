"""Joins of features and judgments by document ids."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.joins import join_labels
from tests.narrow import dense, present

NAMES = ("bm25", "age")


def dataset(**changes: Any) -> fp.Dataset:
    X = np.arange(12, dtype=np.float32).reshape(6, 2)
    data = fp.Dataset.from_arrays(
        X, np.full(6, 9.0), ["1", "1", "1", "2", "2", "3"], list("abcabd"), NAMES, "data.txt"
    )
    return replace(data, **({"recipe": {"features": 2}} | changes))


QRELS: dict[str, dict[str, float]] = {
    "2": {"b": 3, "a": 1},
    "1": {"c": 2.5, "a": -1, "z": 1, "y": 1},
    "9": {"a": 1},
}


def test_unjudged_documents_get_label_0_and_features_are_shared() -> None:
    data = dataset()
    with pytest.warns(fp.FirstpageWarning) as caught:
        labeled = data.with_qrels(fp.Qrels.from_dict(QRELS, "q.qrels"))
    assert [str(each.message) for each in caught] == [
        "data.txt: 4 of 6 documents are judged in q.qrels; 2 unjudged documents get label 0 (1 of "
        "3 queries have no judgment); 3 judged pairs of 2 queries have no features, such as "
        "document 'z' of query '1'."
    ]
    assert labeled.y.tolist() == [-1, 0, 2.5, 1, 3, 0]
    assert np.shares_memory(labeled.X, data.X)
    assert (labeled.feature_names, labeled.recipe, labeled.source) == (
        NAMES,
        {"features": 2},
        "data.txt",
    )


def test_unjudged_documents_are_dropped() -> None:
    data = dataset(row_order=np.arange(6))
    with pytest.warns(fp.FirstpageWarning, match="2 unjudged documents are dropped .1 of 3 queri"):
        labeled = data.with_qrels(fp.Qrels.from_dict(QRELS), "drop")
    assert labeled.y.tolist() == [-1, 2.5, 1, 3]
    assert dense(labeled.X).tolist() == [[0, 1], [4, 5], [6, 7], [8, 9]]
    assert labeled.docid is not None
    assert labeled.docid.tolist() == list("acab")
    assert (list(labeled.queries), labeled.offsets.tolist()) == (["1", "2"], [0, 2, 4])
    assert (labeled.feature_names, labeled.recipe, labeled.row_order) == (
        NAMES,
        {"features": 2},
        None,
    )


@pytest.mark.parametrize("unjudged", ["zero", "drop"])
def test_complete_joins_are_silent_and_equal_labels_are_restored(unjudged: Any) -> None:
    data = fp.Synthetic(queries=20, docs="uniform(1, 9)", features=3, seed=4).dataset()
    data = replace(data, docids=fp.Run.from_arrays(data.qid, range(data.n_docs), data.y).docids)
    qrels = fp.Qrels.from_arrays(data.qid[::-1], present(data.docid)[::-1], data.y[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labeled = data.with_labels(np.zeros(data.n_docs)).with_qrels(qrels, unjudged)
    assert labeled.y.tolist() == data.y.tolist()
    assert labeled.offsets.tolist() == data.offsets.tolist()


def test_sparse_features_and_top_k_labels() -> None:
    from scipy.sparse import csr_array

    data = dataset()
    sparse = data.with_features(csr_array(data.X), NAMES)
    truth = fp.Qrels.from_dict({"1": {"b": 2, "c": 1, "a": 0}, "2": {"b": 2, "a": 1}})
    with pytest.warns(fp.FirstpageWarning):
        labeled = sparse.with_qrels(truth, "drop")
    assert labeled.is_sparse
    assert labeled.truth.top_k_depth == 2


def test_weights_of_queries_follow_the_queries() -> None:
    qrels = replace(fp.Qrels.from_dict(QRELS), query_weights=np.array([0.5, 0.25, 0.125]))
    for unjudged, expected in (("zero", [0.25, 0.5, 1.0]), ("drop", [0.25, 0.5])):
        (labeled,), _ = join_labels([dataset()], qrels, unjudged)
        assert labeled.query_weights is not None
        assert labeled.query_weights.tolist() == expected
        assert present(labeled[1].query_weights).tolist() == [0.5]
        assert present(labeled[[1, 0]].query_weights).tolist() == [0.5, 0.25]


def test_pairs_of_other_datasets_have_features() -> None:
    data = dataset()
    qrels = fp.Qrels.from_dict({"1": {"a": 1}, "2": {"a": 1}, "3": {"d": 1}})
    (first, second), report = join_labels([data[:1], data[1:]], qrels)
    assert (report.matched, report.without_features, report.documents) == (3, 0, 6)
    assert first.y.tolist() + second.y.tolist() == [1, 0, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("data", "qrels", "message"),
    [
        (
            dataset(), {"q1": {"x": 1}},
            "data.txt and q share no document: the data have document 'a' of query '1', the "
            "judgments document 'x' of query 'q1'",
        ),
        (
            dataset(), {"x": {"y": 1}, "2": {"doc-b": 1}},
            "the data have document 'a' of query '2', the judgments document 'doc-b' of query '2'",
        ),
        (dataset(docids=None), QRELS, "data.txt: has no document ids"),
        (
            dataset(docids=fp.Run.from_arrays([1] * 6, ["a", "", "", "d", "e", "f"], [0] * 6).docids),
            QRELS, "data.txt: 2 of 6 documents have no id",
        ),
        (
            dataset(docids=fp.Run.from_arrays([1] * 6, list("aabcde"), [0] * 6).docids),
            QRELS, "data.txt: document 'a' occurs twice in query '1'",
        ),
        (dataset(), {"1": {"a": np.inf}}, "q: the label of document 'a' in query '1' is infinite"),
        (dataset(), {"1": {}}, "data.txt or q has no documents"),
    ],
)  # fmt: skip
def test_joins_that_cannot_be_right_are_refused(
    data: fp.Dataset, qrels: dict[str, Any], message: str
) -> None:
    with pytest.raises(fp.DataError) as error:
        data.with_qrels(fp.Qrels.from_dict(qrels, "q"))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_repeated_judgments_and_unknown_rules_are_refused() -> None:
    twice = fp.Qrels.from_arrays(["1", "1"], ["a", "a"], [1, 2], "q")
    with pytest.raises(fp.DataError, match="document 'a' occurs twice in query '1'"):
        dataset().with_qrels(twice)
    with pytest.raises(fp.DataError, match="unjudged must be 'zero' or 'drop'; got 'skip'"):
        dataset().with_qrels(fp.Qrels.from_dict(QRELS), "skip")  # type: ignore[arg-type]


def test_data_without_labels_are_labeled() -> None:
    data = dataset(y=np.full(6, np.nan))
    (labeled,), _ = join_labels([data], fp.Qrels.from_dict(QRELS))
    assert np.isfinite(labeled.y).all()


def test_weights_reach_training() -> None:
    """A query of weight 0 is ignored, and equal weights change nothing."""
    data = fp.Synthetic(queries=8, docs=6, features=3, seed=1).dataset()
    plain = fp.ListNet().fit(data).coef_
    weights = np.array([1.0] * 5 + [0.0] * 3)
    weighted = fp.ListNet().fit(replace(data, query_weights=weights)).coef_
    assert weighted == pytest.approx(fp.ListNet().fit(data[:5]).coef_, rel=1e-4)
    assert weighted == pytest.approx(fp.ListNet().fit(data, sample_weight=weights).coef_)
    half = replace(data, query_weights=np.full(8, 0.5))
    assert fp.ListNet().fit(half).coef_ == pytest.approx(plain)
    both = fp.ListNet().fit(half, sample_weight=weights).coef_
    assert both == pytest.approx(weighted)
    with pytest.raises(fp.DataError, match="all weights are zero"):
        fp.ListNet().fit(replace(data, query_weights=np.zeros(8)))


def test_weights_are_counted_once_in_cascades() -> None:
    data = fp.Synthetic(queries=12, docs=8, features=3, seed=1).dataset()
    weights = np.linspace(0.1, 1, 12)
    ranker = fp.TopRank(k=3, seed=0)
    first = ranker.fit(data, sample_weight=weights).predict(data)
    second = fp.TopRank(k=3, seed=0).fit(replace(data, query_weights=weights)).predict(data)
    assert first.tolist() == second.tolist()


def test_files_and_shards_do_not_drop_weights_silently(tmp_path: Any) -> None:
    data = replace(dataset(recipe=None), query_weights=np.array([0.1, 0.2, 0.3]))
    with pytest.warns(fp.FirstpageWarning, match="npz files do not store the weights of queries"):
        fp.write(data, tmp_path / "d.npz")
    with pytest.raises(fp.DataError, match="shards do not store the weights of queries"):
        fp.write_shards(data, tmp_path / "shards")


def test_positions_belong_to_the_documents_that_remain() -> None:
    data = dataset(positions=np.array([1, 2, 3, 1, 2, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joined = data.with_qrels(fp.Qrels.from_dict(QRELS), unjudged="drop")
    assert present(joined.docid).tolist() == ["a", "c", "a", "b"]
    assert present(joined.positions).tolist() == [1, 3, 1, 2]
