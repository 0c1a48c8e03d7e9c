"""Training data from clicks: estimates against their definitions, and against known truths."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import firstpage as fp

PROPENSITY = [1.0, 0.5, 0.2]


def documents(queries: int = 1, docs: int = 3) -> fp.Dataset:
    """Return documents a, b, c, .. of queries q0, q1, .. with one feature."""
    names = [chr(ord("a") + i) for i in range(docs)] * queries
    qid = np.repeat([f"q{n}" for n in range(queries)], docs)
    X = np.arange(queries * docs, dtype=float)[:, None] % docs
    return fp.Dataset.from_arrays(X, np.full(len(X), np.nan), qid, docid=names)


def pages(*lists: tuple[str, str], query: str = "q0", **columns: Any) -> fp.Sessions:
    """Return pages of one query: the documents and those that are clicked, such as ("ab", "b")."""
    rows = [(n, d, r, d in clicks) for n, (shown, clicks) in enumerate(lists)
            for r, d in enumerate(shown, 1)]  # fmt: skip
    page, document, rank, clicked = zip(*rows, strict=True)
    return fp.Sessions.from_arrays(
        query=[query] * len(rows), document=document, rank=rank, clicked=clicked, page=page,
        **columns,
    )  # fmt: skip


def estimates(training: fp.ClickTraining) -> dict[str, float]:
    """Return labels, multiplied so that they are estimates of relevance if there is one query."""
    docid = training.data.docid
    assert docid is not None
    return dict(zip(docid.tolist(), training.data.y.tolist(), strict=True))


def scaled(values: dict[str, float]) -> dict[str, Any]:
    largest = max(values.values())
    return {name: pytest.approx(value / largest) for name, value in values.items()}


SHOWN = pages(("abc", "a"), ("bac", "ac"), ("abc", ""), ("abc", "b"))


def test_each_correction_is_its_definition() -> None:
    data = documents(docs=4)
    ips = fp.from_clicks(SHOWN, data, PROPENSITY)
    assert estimates(ips) == scaled({"a": 1 + 1 / 0.5, "b": 1 / 0.5, "c": 1 / 0.2, "d": 0.0})
    naive = fp.from_clicks(SHOWN, data)
    assert estimates(naive) == scaled({"a": 2, "b": 1, "c": 1, "d": 0})
    clipped = fp.from_clicks(SHOWN, data, PROPENSITY, clip=0.4)
    assert estimates(clipped) == scaled({"a": 3, "b": 2, "c": 2.5, "d": 0})
    assert "takes 25.0% of the weight of clicks away" in str(clipped)  # (10 - 7.5) / 10
    assert "at 1 ranks from 3 is underestimated, at most by a factor of 2.00" in str(clipped)
    rotating = pages(("ab", "a"), ("ac", "c"), ("ba", "b"), ("ab", ""))
    with pytest.warns(fp.FirstpageWarning, match=r"4.0 pages per query are few for policy-aware"):
        aware = fp.from_clicks(rotating, data, PROPENSITY, correction="policy-aware")
    assert estimates(aware) == scaled({"a": 1 / 3.5, "b": 1 / 2, "c": 1 / 0.5})  # without d
    bias = fp.clicks.TrustBias._of(
        [[1, 2, 3], [1, 0.5, 0.2], *[[0.0] * 3] * 2, [0, 0.1, 0.1], *[[0.0] * 3] * 2],
        scale="", level=0.95, verdict=(),
    )  # fmt: skip
    affine = estimates(fp.from_clicks(SHOWN, data, bias))
    assert affine == scaled(
        {"a": 1 + 0.9 / 0.5, "b": -3 * 0.1 / 0.5 + 1 / 0.5, "c": (1 - 0.4) / 0.2, "d": 0}
    )


def test_corrections_are_unbiased_and_naive_clicks_are_not() -> None:
    """Enumerate every list that a random ranker shows and every pattern of clicks on it."""
    relevance = {"a": 0.3, "b": 0.8, "c": 0.5}
    shown = {"ab": 0.6, "ba": 0.1, "bc": 0.2, "ca": 0.1}
    lists, weight = [], []
    for order, probability in shown.items():
        p = [PROPENSITY[r] * relevance[d] for r, d in enumerate(order)]
        for bits in itertools.product([0, 1], repeat=2):
            lists.append((order, "".join(d for d, bit in zip(order, bits, strict=True) if bit)))
            each = [q if bit else 1 - q for q, bit in zip(p, bits, strict=True)]
            weight.append(round(probability * float(np.prod(each)) * 10_000))
    log = pages(*[one for one, count in zip(lists, weight, strict=True) for _ in range(count)])
    aware = fp.from_clicks(log, documents(), PROPENSITY, correction="policy-aware")
    assert estimates(aware) == {k: pytest.approx(v / 0.8, abs=2e-3) for k, v in relevance.items()}
    oblivious = estimates(fp.from_clicks(log, documents(), PROPENSITY, correction="ips"))
    displayed = {"a": 0.8, "b": 0.9, "c": 0.3}
    assert oblivious == {
        k: pytest.approx(relevance[k] * displayed[k] / 0.72, abs=2e-3) for k in relevance
    }
    naive = estimates(fp.from_clicks(log, documents()))
    assert naive["a"] > 0.43 > 0.3 / 0.8
    logged = np.array([sum(v for order, v in shown.items() if order[r : r + 1] == d)
                       for d, r in zip([log.documents[i] for i in log.document],
                                       log.rank - 1, strict=True)])  # fmt: skip
    by_log = fp.from_clicks(
        replace(log, propensity=logged), documents(), PROPENSITY,
        correction="policy-aware", display="logged",
    )  # fmt: skip
    assert estimates(by_log) == {k: pytest.approx(v / 0.8, abs=2e-3) for k, v in relevance.items()}


def test_empirical_bayes_shrinks_thin_estimates_and_leaves_thick_ones() -> None:
    often = [("ab", "a" * (n % 2) + "b" * (n % 4 == 0)) for n in range(2000)]
    log = pages(*often, ("ca", "c"), ("cb", ""))  # c: one click on two pages
    for other in range(1, 30):
        log = fp.clicks.concatenate(
            log, pages(*[("ab", "a" * (n % 3 == 0)) for n in range(50)], query=f"q{other}")
        )
    data, first = documents(30), slice(0, 3)
    plain = fp.from_clicks(log, data, PROPENSITY, correction="policy-aware").data.y[first]
    assert plain[0] == pytest.approx(plain[2], rel=0.01)  # .5 of both, of c by two pages
    shrunk = fp.from_clicks(log, data, PROPENSITY)
    a, b, c = shrunk.data.y[first]
    assert b / a == pytest.approx(plain[1] / plain[0], rel=0.02)
    assert 0.1 < c / a < 0.95
    assert "corrected by empirical-bayes" in str(shrunk)
    same = fp.from_clicks(pages(("ab", "b"), ("ba", "")), documents(docs=2), PROPENSITY)
    assert same.correction == "ips"  # first pages do not vary
    assert fp.from_clicks(log, data).correction == "naive"
    few = log.select(np.r_[0:5, 2000, 2002:3452:10])  # 5 or 6 pages per query
    assert fp.from_clicks(few, data, PROPENSITY).correction == "ips"


def test_query_weights_and_pairs_sum_over_the_pages_of_the_log() -> None:
    log = fp.clicks.concatenate(SHOWN, pages(("ab", "b"), query="q1"))
    training = fp.from_clicks(log, documents(2), PROPENSITY)
    by_query = np.array([5.0, 2.0])  # the largest sum of inverse propensities
    assert training.data.query_weights == pytest.approx(by_query / 2.5)  # pages per query
    assert training.effective_queries == pytest.approx(49 / 29)
    assert training.effective_clicks == pytest.approx(12**2 / (1 + 4 + 25 + 4 + 4))
    pairs = training.pairs
    assert len(pairs) == 3 * 2 + 1 * 2  # clicked documents by other ones
    weight = pairs.weight * by_query[pairs.query_of(pairs.preferred)]
    assert weight.sum() == pytest.approx(2 * 10 + 2 * 2)
    ranker = fp.RankSVM().fit(training.data, pairs=pairs)
    assert ranker.coef_[0] > 0


def test_log_and_features_that_do_not_match_are_counted() -> None:
    log = fp.clicks.concatenate(SHOWN, pages(("ab", "b"), query="new"))
    log = fp.clicks.concatenate(log, pages(("ab", ""), query="q1"), pages(("ax", "a"), query="q2"))
    training = fp.from_clicks(log, documents(4), [1.0, 0.5])
    assert list(training.data.queries) == ["q0", "q2"]
    assert training.decisions == {
        "of 18 impressions are below rank 2, the last one whose propensity is known, and are left "
        "out": 4,
        "queries with features have no page": 1,
        "queries with pages have no features": 1,
        "documents were never displayed at these ranks and are taken for irrelevant": 1 + 1 + 2,
        "displayed documents have no features": 1,
        "queries without clicks tell nothing": 1,
    }
    assert "Few queries decide" in str(training)


def test_the_correction_for_the_cut_off_is_refused_where_the_logger_was_deterministic() -> None:
    log = pages(("ab", "a"), ("ba", "b"))
    with pytest.raises(fp.DataError, match=r"deterministic .* about 1 others, .* impossible"):
        fp.from_clicks(log, documents(), PROPENSITY, correction="policy-aware")
    oblivious = fp.from_clicks(log, documents(), PROPENSITY)
    assert "1 documents were never displayed and are taken for irrelevant" in str(oblivious)
    often = pages(*[("ab", "a"), ("ba", "b")] * 5)
    full = fp.from_clicks(often, documents(docs=2), PROPENSITY, correction="policy-aware")
    assert estimates(full) == {"a": 1.0, "b": 1.0}  # nothing is below the cut-off


@pytest.mark.parametrize(
    ("propensities", "options", "message"),
    [
        ([1.0, 0.0, 0.2], {}, "the propensity of rank 2 is 0, and 4 impressions are at rank 2"),
        ({1: 1.0, 3: 0.2}, {}, "the propensity of rank 2 is not known, and 4 impressions"),
        ([np.nan], {}, "has no propensity of a rank from 1"),
        (0.5, {}, "a mapping from ranks, or one number per rank"),
        ([1, 1, 1], {"clip": 0}, "clip is above 0 and at most 1; got 0"),
        (
            [1, 1, 1],
            {"correction": "affine"},
            "correction is one of empirical-bayes, policy-aware, ips",
        ),
        ([1, 1, 1], {"display": "logged", "correction": "ips"}, "needs propensities by rank"),
        ([1, 1, 1], {"display": "logged", "correction": "policy-aware"}, "no logged propensities"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(propensities, options, message) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.from_clicks(SHOWN, documents(), propensities, **options)


def test_logs_that_tell_nothing_are_refused() -> None:
    with pytest.raises(fp.DataError, match="no click is on a document of"):
        fp.from_clicks(pages(("ab", "")), documents(), PROPENSITY)
    with pytest.raises(fp.DataError, match=r"has none of the 1 queries of .*, such as 'x'"):
        fp.from_clicks(pages(("ab", "a"), query="x"), documents(), PROPENSITY)
    zero = pages(("ab", "a"), ("ba", ""), ("ac", ""), propensity=[0.5, 0, 0.5, 0.5, 0.5, 0.5])
    options: Any = {"correction": "policy-aware", "display": "logged"}
    with pytest.raises(
        fp.DataError, match=r"1 impressions have a logged propensity of 0, .* rank 2"
    ):
        fp.from_clicks(zero, documents(), PROPENSITY, **options)
    with pytest.raises(fp.DataError, match="has no document ids"):
        fp.from_clicks(SHOWN, fp.Dataset.from_arrays([[1.0]], [0], ["q0"]), PROPENSITY)


def test_corrected_clicks_rank_better_than_naive_ones() -> None:
    """The logging ranking has the opposite order of a feature that decides."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    grades = np.clip(np.round(X @ [1.5, 1.0, 0.0] + 1), 0, 4)
    qid, docid = np.repeat(np.arange(100).astype(str), 15), [str(n) for n in range(1500)]
    data = fp.Dataset.from_arrays(X, grades, qid, docid=docid)
    run = fp.Run.from_arrays(qid, docid, -0.5 * X[:, 0] + 3 * X[:, 2])
    qrels = fp.Qrels.from_arrays(qid, docid, grades)
    log = fp.clicks.simulate(run, qrels, n_sessions=30_000, noise=2.0, seed=1)
    curve = fp.clicks.SimulatedUsers.named("pbm").propensities(10)
    values = {}
    variants: tuple[tuple[str, Any, Any], ...] = (
        ("naive", None, "ips"), ("ips", curve, "ips"), ("aware", curve, "policy-aware"),
    )  # fmt: skip
    for name, known, correction in variants:
        training = fp.from_clicks(log, data, known, correction=correction)
        ranker = fp.RankNet().fit(training.data, pairs=training.pairs)
        values[name] = fp.evaluate(ranker.predict(data), data, measures="NDCG@10")["NDCG@10"]
    assert values["naive"] + 0.03 < values["ips"]
    assert values["ips"] + 0.03 < values["aware"] > 0.93


def cascade(sessions: int = 20_000) -> fp.Sessions:
    """Return pages of users who go down three documents until a click satisfies them."""
    run, grades = {"q0": {"a": 3, "b": 2, "c": 1}}, {"q0": {"a": 4, "b": 2, "c": 1}}
    return fp.clicks.simulate(run, grades, "navigational", n_sessions=sessions, noise=2, seed=1)


def test_a_click_model_tells_what_was_examined_on_each_page() -> None:
    log = cascade()
    model: Any = fp.clicks.SimplifiedDBN(prior=(1, 1)).fit(log)
    examined = model.examination_probabilities(log, after_clicks=True)
    second = log.rank == 2
    above = log.clicked[np.flatnonzero(second) - 1]
    assert examined[log.rank == 1] == pytest.approx(1.0)
    assert examined[second][~above] == pytest.approx(1.0)  # users go on after every skip
    satisfaction = np.append(model.satisfaction_.value, 0.0)[model.satisfaction_.rows_of(log)]
    assert examined[second][above] == pytest.approx(
        1 - satisfaction[np.flatnonzero(second) - 1][above]
    )
    aware = fp.from_clicks(log, documents(), model, correction="policy-aware")
    pair, count = log.pairs.pair, len(log.pairs.query)
    names = [log.documents[d] for d in log.pairs.document]
    rates = np.bincount(pair, log.clicked, count) / np.bincount(pair, examined, count)
    assert estimates(aware) == scaled(dict(zip(names, rates, strict=True)))
    true = {"a": 1.0, "b": 0.5 / 0.95, "c": 0.3 / 0.95}
    assert estimates(aware) == {name: pytest.approx(x, abs=0.03) for name, x in true.items()}
    ips = fp.from_clicks(log, documents(), model, correction="ips", clip=0.05)
    assert estimates(ips) == {name: pytest.approx(x, abs=0.05) for name, x in true.items()}
    assert "Propensities below 0.05 are raised to it" in str(ips)
    ranks = fp.clicks.estimate_propensities(log)
    by_rank = estimates(fp.from_clicks(log, documents(), ranks, correction="policy-aware"))
    assert by_rank["c"] < true["c"] - 0.03  # examination depends on the documents above


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (fp.clicks.Cascade().fit(SHOWN), {}, "Cascade does not tell examination from attractive"),
        (fp.clicks.RankCTR().fit(SHOWN), {}, "RankCTR does not tell .*; take another click model"),
        (fp.clicks.PBM(), {}, r"PBM is not fitted; call fit\(sessions\) first"),
        (fp.clicks.PBM().fit(SHOWN), {"display": "logged"}, "needs propensities by rank"),
    ],
)
def test_click_models_that_tell_no_examination_are_refused(model, options, message) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.from_clicks(SHOWN, documents(), model, **options)


def test_shrinkage_on_thin_logs_is_warned_about() -> None:
    log = pages(*[("abc", "a"), ("bca", "b")] * 4)
    message = r"8.0 pages per query are few for empirical-bayes: .* take the correction ips"
    with pytest.warns(fp.FirstpageWarning, match=message):
        fp.from_clicks(log, documents(), PROPENSITY, correction="empirical-bayes")
    assert fp.from_clicks(log, documents(), PROPENSITY).correction == "ips"  # without a warning
    often = pages(*[("abc", "a"), ("bca", "b")] * 5)
    fp.from_clicks(often, documents(), PROPENSITY, correction="empirical-bayes")
