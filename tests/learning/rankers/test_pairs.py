"""Training on votes on pairs: what it minimizes, joins, validation, records, and refusals."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.preferences.pairs import PreferencePairs
from firstpage.learning.rankers.registry import RANKERS
from tests.narrow import present

SCORERS = ["linear", "mlp(hidden=4)", "trees(count=5)"]


def named(data: fp.Dataset) -> fp.Dataset:
    """Return data with document ids."""
    from firstpage.data.ids import Ids

    return replace(data, docids=Ids.from_values([f"d{i}" for i in range(data.n_docs)]))


@pytest.fixture(scope="module")
def data() -> fp.Dataset:
    return named(fp.Synthetic(queries=30, docs=8, features=4, noise=0.5, seed=1).dataset())


def all_pairs(data: fp.Dataset, copies: int = 1) -> PreferencePairs:
    """Return the preferences of all labels."""
    better, worse = data.truth.pairs()
    queries = list(data.queries)
    numbers = np.searchsorted(data.offsets, better, side="right") - 1
    docids = list(present(data.docids))
    return PreferencePairs.from_arrays(
        [queries[q] for q in numbers] * copies,
        [docids[row] for row in better] * copies,
        [docids[row] for row in worse] * copies,
    )


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("ranker", [fp.RankNet, fp.RankSVM])
def test_the_pairs_of_labels_give_the_ranker_of_the_labels(ranker, scorer, data) -> None:
    if "mlp" in scorer:
        pytest.importorskip("torch")
    if "trees" in scorer:
        pytest.importorskip("lightgbm")
    expected = ranker(scorer=scorer).fit(data).predict(data)
    actual = ranker(scorer=scorer).fit(data, pairs=all_pairs(data)).predict(data)
    relative, absolute = (1e-2, 2e-3) if ranker is fp.RankSVM else (1e-4, 1e-8)
    if scorer == "linear":
        assert np.allclose(actual, expected, relative, absolute)
    else:
        assert np.corrcoef(actual, expected)[0, 1] > 0.9


def test_convex_fits_have_a_certified_gap(data) -> None:
    for ranker in (fp.RankNet(), fp.RankSVM()):
        fitted = ranker.fit(data, pairs=all_pairs(data))
        assert 0 <= fitted.gap_ < 0.01


def test_rows_of_arrays_are_pairs_in_any_order_of_the_rows(data) -> None:
    better, worse = data.truth.pairs()
    expected = fp.RankNet().fit(data, pairs=all_pairs(data)).coef_
    assert np.allclose(fp.RankNet().fit(data, pairs=np.stack([better, worse], 1)).coef_, expected)
    order = np.random.default_rng(0).permutation(data.n_docs)
    place = np.argsort(order)
    shuffled = fp.RankNet().fit(
        data.X[order], qid=data.qid[order], pairs=np.stack([place[better], place[worse]], 1)
    )
    assert np.allclose(shuffled.coef_, expected, rtol=1e-3)


def test_weights_are_repeated_votes_and_a_tie_is_half_a_vote_for_each(data) -> None:
    pairs = all_pairs(data)
    doubled = replace(pairs, weight=np.full(len(pairs), 2.0))
    twice = fp.RankNet().fit(data, pairs=all_pairs(data, copies=2)).coef_
    assert np.array_equal(fp.RankNet().fit(data, pairs=doubled).coef_, twice)
    tied = replace(pairs, tied=np.arange(len(pairs)) % 3 == 0)
    halves = []
    for first, second, tie in zip(*pairs.rows_in(data), tied.tied, strict=True):
        halves += [(first, second, 0.5), (second, first, 0.5)] if tie else [(first, second, 1.0)]
    assert np.allclose(
        fp.RankNet().fit(data, pairs=tied).coef_, fp.RankNet().fit(data, pairs=halves).coef_
    )


def test_contradictory_votes_cancel() -> None:
    X = np.array([[1.0], [0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert fp.RankNet().fit(X, pairs=[(0, 1), (1, 0)]).coef_[0] == pytest.approx(0)
    assert fp.RankNet().fit(X, pairs=[(0, 1), (1, 0), (0, 1)]).coef_[0] > 0


def test_threads_give_the_same_bits() -> None:
    data = named(fp.Synthetic(queries=600, docs=20, features=60, seed=1).dataset())
    pairs = all_pairs(data)[::5]
    for ranker in (fp.RankNet, fp.RankSVM):
        one, two = (ranker(threads=n).fit(data, pairs=pairs).coef_ for n in (1, 2))
        assert np.array_equal(one, two)


def test_query_weights_and_document_weights_count(data) -> None:
    pairs = all_pairs(data)
    weights = np.where(np.arange(len(data)) < 20, 1.0, 0.0)
    few = fp.RankNet().fit(data, pairs=pairs, sample_weight=weights).coef_
    kept = pairs.of_queries(data.queries[:20])
    assert np.allclose(few, fp.RankNet().fit(data[:20], pairs=kept).coef_, rtol=1e-3)
    documents = np.ones(data.n_docs)
    documents[::8] = 0.0
    reference = data.X @ fp.RankNet().fit(data, sample_weight=documents).coef_
    actual = data.X @ fp.RankNet().fit(data, pairs=pairs, sample_weight=documents).coef_
    assert np.allclose(actual, reference, rtol=1e-3, atol=1e-3)


def test_queries_without_pairs_do_not_count(data) -> None:
    kept = all_pairs(data).of_queries(data.queries[5:])
    part = fp.RankNet().fit(data[5:], pairs=kept)
    # The solver starts elsewhere, and stops where float32 features leave only rounding errors.
    assert np.allclose(fp.RankNet().fit(data, pairs=kept).coef_, part.coef_, rtol=5e-3)


def test_labels_are_not_read(data) -> None:
    unlabeled = replace(data, y=np.full(data.n_docs, np.nan))
    pairs = all_pairs(data)
    expected = fp.RankNet().fit(data, pairs=pairs).coef_
    assert np.array_equal(fp.RankNet().fit(unlabeled, pairs=pairs).coef_, expected)


def test_focused_net_reads_labels_in_its_list_and_votes_in_its_pairs(data) -> None:
    pairs = all_pairs(data)
    both = fp.FocusedNet(k=3, beta=0.5).fit(data, pairs=pairs)
    assert not np.allclose(both.coef_, fp.FocusedNet(k=3, beta=0.5).fit(data).coef_)
    only = fp.FocusedNet(beta=0, l2=0.01).fit(data, pairs=pairs)
    scaled = fp.RankNet(average=True, l2=0.01 * np.log(2)).fit(data, pairs=pairs)
    assert np.allclose(only.coef_, scaled.coef_, rtol=1e-3)
    unlabeled = replace(data, y=np.full(data.n_docs, np.nan))
    assert np.allclose(
        fp.FocusedNet(beta=0).fit(unlabeled, pairs=pairs).coef_,
        fp.FocusedNet(beta=0).fit(data, pairs=pairs).coef_,
    )
    with pytest.raises(fp.DataError, match="documents without a label"):
        fp.FocusedNet(k=3).fit(unlabeled, pairs=pairs)
    with pytest.raises(fp.DataError, match="has no pair loss"):
        fp.FocusedNet(beta=1).fit(data, pairs=pairs)


@pytest.mark.parametrize("measure", ["NDCG@10", "PairAccuracy", "PairLogLoss"])
def test_validation_is_by_pairs(data, measure) -> None:
    train, valid = data[:20], data[20:]
    ranker = fp.RankNet(measure=measure, solver="adam(max_iter=5)").fit(
        train, pairs=all_pairs(data), valid=replace(valid, y=np.full(valid.n_docs, np.nan))
    )
    name = "PairAccuracy" if measure == "NDCG@10" else measure
    assert ranker.training_["measure"] == name
    votes = all_pairs(valid)
    score = ranker.score(valid, pairs=votes)
    assert abs(score) == pytest.approx(ranker.best_score_)
    assert (score < 0) == (name == "PairLogLoss")
    first, second = votes.rows_in(valid)
    margins = (scores := ranker.predict(valid))[first] - scores[second]
    plain = (margins > 0).mean() if name == "PairAccuracy" else np.log1p(np.exp(-margins)).mean()
    assert abs(score) == pytest.approx(plain)


def test_equal_scores_agree_with_half_of_the_votes(data) -> None:
    votes = all_pairs(data)
    constant = replace(data, X=np.zeros(data.X.shape))
    ranker = fp.RankNet().fit(data, pairs=votes)
    assert ranker.score(constant, pairs=votes) == 0.5


def test_the_model_file_records_the_pairs(data, tmp_path: Path) -> None:
    train, valid, pairs = data[:20], data[20:], all_pairs(data)
    ranker = fp.RankNet(measure="PairLogLoss").fit(train, pairs=pairs, valid=valid)
    ranker.save(tmp_path / "model.json")
    loaded = fp.load(tmp_path / "model.json")
    record = loaded.training_["pairs"]
    assert record["pairs"] == len(train.truth.pairs()[0]) == record["votes"]
    assert record["queries"] == sum(len(set(query.y)) > 1 for query in train)
    assert loaded.training_["validation_pairs"]["pairs"] == len(valid.truth.pairs()[0])
    assert np.array_equal(loaded.predict(data), ranker.predict(data))
    assert "pairs" not in fp.RankNet().fit(train).training_


def test_unmatched_pairs_are_counted_with_examples(data) -> None:
    pairs = all_pairs(data)
    with pytest.warns(fp.FirstpageWarning, match=r"pairs are left out, since .* no such documents"):
        fp.RankNet().fit(data[:20], pairs=pairs)
    strangers = PreferencePairs.from_arrays(["x"], ["a"], ["b"], source="votes.csv")
    with pytest.raises(fp.DataError, match=r"votes.csv: none of its 1 pairs .* such as 'a' and"):
        fp.RankNet().fit(data, pairs=strangers)
    with pytest.raises(fp.DataError, match="no pair of positive weight is of documents of"):
        fp.RankNet().fit(data[:20], pairs=pairs.of_queries(data[:20].queries), valid=data[20:])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "pairs is empty"),
        (np.empty((0, 2)), "pairs is empty"),
        ([(0, 0)], "pair 0 compares row 0 with itself"),
        ([(0, 9)], "rows 0 and 9; X has the rows 0 to 3"),
        ([(0, -1)], "rows 0 and -1"),
        ([(0, 0.5)], "rows 0 and 0.5"),
        ([(0, np.nan)], "rows 0 and nan"),
        ([(0, 2)], "of two queries"),
        ([(0, 1, -1)], "the weight of pair 0 is -1"),
        ([(0, 1, np.nan)], "the weight of pair 0 is nan"),
        ([(0, 1, 0)], "all pairs have weight 0"),
        ([0, 1], "an array with a row per vote"),
        ("votes.csv", "pairs must be PreferencePairs"),
    ],
)
def test_bad_pairs_of_rows_are_refused(pairs, message) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.RankNet().fit(np.arange(8.0).reshape(4, 2), qid=[1, 1, 2, 2], pairs=pairs)


def test_what_pairs_do_not_go_with_is_refused(data, tmp_path) -> None:
    pairs = all_pairs(data)
    for ranker, message in (
        (fp.RankNet(k=3), "pairs have no top k"),
        (fp.RankSVM(k=3), "pairs have no top k"),
        (fp.RankNet(measure="AP"), None),
    ):
        if message is None:
            ranker.fit(data, pairs=pairs)  # nothing is measured
            with pytest.raises(fp.DataError, match="AP is a measure of labels"):
                ranker.fit(data[:20], pairs=pairs, valid=data[20:])
            continue
        with pytest.raises(fp.DataError, match=message):
            ranker.fit(data, pairs=pairs)
    with pytest.raises(fp.DataError, match="PairAccuracy measures votes"):
        fp.RankNet(measure="PairAccuracy").fit(data[:20], valid=data[20:])
    with pytest.raises(fp.DataError, match="PairAccuracy measures votes"):
        fp.RankNet(measure="PairAccuracy").fit(data).score(data)
    with pytest.raises(fp.DataError, match="drop y"):
        fp.RankNet().fit(data.X, data.y, qid=data.qid, pairs=[(0, 1)])
    with pytest.raises(fp.DataError, match="has no document ids"):
        fp.RankNet().fit(replace(data, docids=None), pairs=pairs)
    fp.write_shards(data, tmp_path / "shards")
    with pytest.raises(fp.DataError, match="not to shards"):
        fp.RankNet().fit(fp.read_shards(tmp_path / "shards"), pairs=pairs)


def test_rankers_that_need_labels_say_so(data) -> None:
    trained = {"RankNet", "RankSVM", "FocusedNet"}
    for name in set(RANKERS) - trained:
        with pytest.raises(fp.DataError, match=r"^\w+ needs labels; RankNet, RankSVM"):
            fp.ranker(name).fit(data, pairs=all_pairs(data))


def test_an_interrupted_fit_continues_from_its_checkpoint(data, tmp_path) -> None:
    pairs, path = all_pairs(data), tmp_path / "fit.json"
    whole = fp.RankNet().fit(data, pairs=pairs)

    def interrupt(step: fp.extend.Step) -> None:
        if step.iteration == 2:
            raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stopped = fp.RankNet().fit(data, pairs=pairs, progress=interrupt, checkpoint=path)
        assert stopped.interrupted_
        assert path.exists()
        with pytest.raises(fp.DataError, match="checkpoint of another fit"):
            fp.RankNet().fit(data, pairs=pairs[1:], checkpoint=path)
        resumed = fp.RankNet().fit(data, pairs=pairs, checkpoint=path)
    assert not path.exists()
    assert np.allclose(resumed.coef_, whole.coef_, rtol=1e-3, atol=1e-4)


def test_tuning_and_cross_validation_use_pairs(data) -> None:
    pairs = all_pairs(data)
    unlabeled = replace(data, y=np.full(data.n_docs, np.nan))
    tuned = fp.tune(
        fp.RankNet(), unlabeled[:20], unlabeled[20:], grid={"l2": [0.01, 1.0]}, pairs=pairs
    )
    assert tuned.measure == "PairAccuracy"
    assert tuned.score == tuned.best.best_score_
    folds = fp.split_folds(unlabeled, 3)
    with pytest.warns(fp.FirstpageWarning, match="4 test queries have no vote"):
        results = fp.cross_validate([fp.RankNet(), fp.RankSVM()], folds, pairs=pairs)
    assert results.measures == ("PairAccuracy", "PairLogLoss")
    assert len(results.queries) == len(data) - 4
    assert results.mean(str(fp.RankNet()), "PairAccuracy") > 0.7
    with pytest.raises(fp.DataError, match="PairAccuracy measures votes"):
        fp.cross_validate(fp.RankNet(), folds, "PairAccuracy")


def test_validation_votes_without_a_preference_are_refused(data: fp.Dataset) -> None:
    train, valid = data[:20], data[20:]
    queries = [train.queries[0], valid.queries[0]]
    docids = [(present(part.docids)[0], present(part.docids)[1]) for part in (train, valid)]
    votes = PreferencePairs.from_arrays(
        queries,
        [first for first, _ in docids],
        [second for _, second in docids],
        tied=[False, True],
    )
    with pytest.raises(fp.DataError, match="PairAccuracy has no value on the validation data"):
        fp.RankNet().fit(train, valid=valid, pairs=votes)
