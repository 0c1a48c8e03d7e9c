"""judge(): counts by hand, grades, confidences, spellings, and what is undecided."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import firstpage as fp
from firstpage.clicks.judgments import counts
from firstpage.clicks.judgments.counts import count_clicks
from firstpage.clicks.judgments.spellings import group_queries
from tests.clicks.judgments.logs import EXAMINED, KnownModel, position_log

# Two pages of three documents, and one of two: clicks at ranks 1 and 2, none, 2.
SMALL = fp.Sessions.from_arrays(
    query=["x"] * 8,
    document=["a", "b", "c", "b", "a", "c", "a", "b"],
    rank=[1, 2, 3, 1, 2, 3, 1, 2],
    clicked=[1, 2, 0, 0, 0, 0, 0, 1],
    page=[1, 1, 1, 2, 2, 2, 3, 3],
)
CTR = {1: 1 / 3, 2: 2 / 3, 3: 0.0}  # by rank
HAND: dict[str, tuple[Any, Any]] = {  # successes and trials of a, b and c
    "ctr": ([1, 2, 0], [3, 3, 2]),
    "coec": ([1, 2, 0], [CTR[1] + CTR[2] + CTR[1], CTR[2] + CTR[1] + CTR[2], 2 * CTR[3]]),
    "sdbn": ([1, 2, 0], [3, 3, 1]),  # c is below the last click of the first page
    "sdbn-satisfaction": ([0, 2, 0], [1, 2, 0]),  # b is the last click of two pages
    "sdbn-relevance": ([0, 2, 0], [3, 3, 1]),
}


def counted(log: fp.Sessions, method) -> tuple[dict, dict]:
    pairs = log.pairs
    counted = count_clicks(log, method, pairs.pair, len(pairs.query))
    names = [log.documents[document] for document in pairs.document]
    published = counted.trials * counted.factor  # of coec
    successes, trials = (dict(zip(names, x, strict=True)) for x in (counted.successes, published))
    return successes, trials


@pytest.mark.parametrize("method", HAND)
def test_counts_by_hand(method: str) -> None:
    successes, trials = counted(SMALL, method)
    expected_successes, expected_trials = HAND[method]
    if method == "coec":  # as many clicks as vary like a Poisson count
        squares = [2 * CTR[1] ** 2 + CTR[2] ** 2, 2 * CTR[2] ** 2 + CTR[1] ** 2, 0]
        factors = [1 - q / max(n, 1e-9) for q, n in zip(squares, expected_trials, strict=True)]
        expected_trials = np.divide(expected_trials, factors)
        expected_successes = np.divide(expected_successes, factors)
    assert [successes[name] for name in "abc"] == pytest.approx(expected_successes)
    assert [trials[name] for name in "abc"] == pytest.approx(expected_trials)


def test_expected_clicks_are_those_of_the_layout() -> None:
    log = fp.Sessions.from_arrays(
        query=["x"] * 4, document=["a"] * 4, rank=[1] * 4, clicked=[1, 1, 0, 0],
        page=[1, 2, 3, 4], layout=["list", "list", "list", "grid"],
    )  # fmt: skip
    successes, trials = counted(log, "coec")  # 3 x 2/3, and 0 of the grid; divided by 1 - 2/3
    assert (successes["a"], trials["a"]) == pytest.approx((6, 6))
    successes, trials = counted(log.select([0, 1, 2, 3, 3]), "coec")
    assert (successes["a"], trials["a"]) == pytest.approx((6, 6))


def test_documents_without_clicks_keep_the_order_of_a_good_ranking(monkeypatch) -> None:
    """A skip at rank 1 is worth more than one at rank 10, but what is there is better too."""
    rng = np.random.default_rng(1)
    grades = np.sort(rng.integers(0, 5, (400, 10)), axis=1)[:, ::-1]
    table = {f"q{q}": {f"d{d}": int(g) for d, g in enumerate(row)} for q, row in enumerate(grades)}
    shown = {query: {name: -int(name[1:]) for name in row} for query, row in table.items()}
    log = fp.clicks.simulate(shown, table, "pbm", n_sessions=500, seed=2)  # a page or two per query
    assert fp.clicks.judge(log).agreement(table).tau[0] > 0.5
    monkeypatch.setattr(counts, "RANKING_SHARE", 0.0)
    assert fp.clicks.judge(log).agreement(table).tau[0] < 0


def test_a_model_that_examines_all_counts_impressions() -> None:
    log, rates = position_log(400)
    model = KnownModel(np.clip(rates, 0.05, 0.9), np.ones(5))
    for by_model, by_count in zip(counted(log, model), counted(log, "ctr"), strict=True):
        assert by_model == pytest.approx(by_count)


def test_a_model_recovers_the_rates_that_clicks_hide() -> None:
    log, rates = position_log(60_000)
    judged = fp.clicks.judge(log, KnownModel(rates))
    names = [
        (log.queries[q], log.documents[d])
        for q, d in zip(judged.query, judged.document, strict=True)
    ]
    true = np.array([rates[int(q[1:]), int(d[1:])] for q, d in names])
    assert judged.method == "knownmodel"
    assert 0.9 < ((judged.low <= true) & (true <= judged.high)).mean() <= 1
    by_clicks = fp.clicks.judge(log, "ctr")
    assert np.abs(judged.estimate - true).mean() < 0.25 * np.abs(by_clicks.estimate - true).mean()


@pytest.mark.parametrize("method", ["pbm", "ubm", "dbn", "dcm", "ccm", "simplifieddbn"])
def test_click_models_judge_and_fitted_ones_are_not_fitted_again(method: str) -> None:
    log, rates = position_log(8000)
    judged = fp.clicks.judge(log, method)
    model = fp.clicks.click_model(method).fit(log)
    steps = model.iterations_
    again = fp.clicks.judge(log, model)
    assert model.iterations_ == steps
    assert again.estimate == pytest.approx(judged.estimate)
    truth = {
        f"q{q}": {f"d{d}": round(100 * rate) for d, rate in enumerate(row)}
        for q, row in enumerate(rates)
    }
    assert judged.agreement(truth).tau[0] > 0.7
    if method == "simplifieddbn":  # that of the closed form, but for the prior of satisfaction
        by_counts = fp.clicks.judge(log, "sdbn")
        assert np.abs(judged.estimate - by_counts.estimate).mean() < 0.03


def test_propensities_judge_clicks_at_rank_one() -> None:
    log, rates = position_log(40_000)
    propensities = fp.clicks.estimate_propensities(log, "all-pairs")
    judged = fp.clicks.judge(log, propensities)
    true = np.array(
        [
            rates[int(log.queries[q][1:]), int(log.documents[d][1:])]
            for q, d in zip(judged.query, judged.document, strict=True)
        ]
    )
    assert judged.method == "propensities"
    assert np.abs(judged.estimate - EXAMINED[0] * true).mean() < 0.02
    deep = fp.clicks.estimate_propensities(log, "all-pairs", max_rank=3)
    with pytest.raises(fp.FirstpageError, match="propensity of rank 4 is not identified"):
        fp.clicks.judge(log, deep)


def test_estimates_rank_documents_as_their_rates_do() -> None:
    log, rates = position_log(20_000)
    truth = {
        f"q{q}": {f"d{d}": round(100 * rate) for d, rate in enumerate(row)}
        for q, row in enumerate(rates)
    }
    for method in ("coec", "ctr", "sdbn"):
        assert fp.clicks.judge(log, method).agreement(truth).tau[0] > 0.75


def test_grades_and_confidences_are_those_of_the_posterior() -> None:
    log, _ = position_log(3000)
    judged = fp.clicks.judge(log, "ctr", levels=[0.1, 0.2])
    assert judged.levels == (0.1, 0.2)
    rates = np.random.default_rng(0)
    for row in range(0, len(judged), 7):
        mean, sizes = judged.estimate[row], np.geomspace(1, 1e5, 2000)
        bounds = beta.ppf(0.975, mean * sizes, (1 - mean) * sizes)
        n = sizes[np.argmin(np.abs(bounds - judged.high[row]))]  # that of this interval
        drawn = rates.beta(mean * n, (1 - mean) * n, 20_000)
        grades = np.searchsorted([0.1, 0.2], drawn, side="right")
        assert judged.grade[row] == np.median(grades)
        in_grade = (grades == judged.grade[row]).mean()
        assert judged.confidence[row] == pytest.approx(in_grade, abs=0.03)


def test_levels_double_around_the_mean_and_caution_lowers_grades() -> None:
    log, _ = position_log(3000)
    ratio = fp.clicks.judge(log, "coec", grades=5)
    factors = [2**-1.5, 2**-0.5, 2**0.5, 2**1.5]
    assert ratio.levels == pytest.approx([ratio.mean * factor for factor in factors])
    odds = [level / (1 - level) for level in fp.clicks.judge(log, "ctr", grades=5).levels]
    assert [b / a for a, b in pairwise(odds)] == pytest.approx([2, 2, 2])
    cautious = fp.clicks.judge(log, "coec", quantile=0.05)
    usual = fp.clicks.judge(log, "coec")
    assert (cautious.grade <= usual.grade).all()
    assert (cautious.grade < usual.grade).any()


def test_the_pages_that_are_asked_for_decide() -> None:
    log, _ = position_log(2500, queries=3, documents=5)
    judged = fp.clicks.judge(log, "ctr", confidence=0.85)
    needed = judged.more_pages
    assert (judged.query_confidence < 0.85).tolist() == (needed > 0).tolist()
    assert (needed > 0).any()
    more = np.concatenate(
        [np.flatnonzero(log.page_query == q) for q in judged.query_rows for _ in range(1)]
    )
    times = int(np.ceil((1 + needed / judged.pages).max()))
    again = fp.clicks.judge(log.select(np.tile(more, times)), "ctr", confidence=0.85)
    assert again.query_confidence.mean() > judged.query_confidence.mean()
    assert (again.more_pages[needed > 0] == 0).mean() >= 0.5


def test_a_rate_at_a_level_is_never_decided() -> None:
    log = fp.Sessions.from_arrays(
        query=["x"] * 1000, document=["a"] * 1000, rank=[1] * 1000, clicked=[1, 0] * 500,
        page=np.arange(1000),
    )  # fmt: skip
    judged = fp.clicks.judge(log, "ctr", grades=2, levels=[0.5])
    assert "prior of a document without bound" in str(judged)
    assert "do not tell the documents of a query apart" in str(judged)
    assert judged.more_pages.tolist() == [np.inf]
    assert "not by clicks" in judged.undecided_table().text()
    assert judged.to_dict()["undecided"][0]["more_pages"] is None


def test_undecided_documents_of_first_pages_go_to_people() -> None:
    log, _ = position_log(300)
    judged = fp.clicks.judge(log, "coec", depth=2)
    run = judged.undecided()
    assert 0 < len(run.values) < len(judged)
    confidence = {
        (judged.queries[q], judged.documents[d]): (p, impressions)
        for q, d, p, impressions in zip(
            judged.query, judged.document, judged.confidence, judged.first_page, strict=True
        )
    }
    for query, scores in run.to_dict().items():
        for document, score in scores.items():
            p, impressions = confidence[query, document]
            assert p < 0.8
            assert impressions > 0
            assert score == pytest.approx(impressions * (1 - p))
    first = log.rank <= 2
    assert judged.first_page.sum() == first.sum() < judged.impressions.sum()


def test_spellings_share_their_clicks() -> None:
    log = fp.Sessions.from_arrays(
        query=["Red  Shoes", "red shoes", "red shoes", "boots"], document=["a", "a", "b", "a"],
        rank=[1, 1, 1, 1], clicked=[1, 0, 1, 0], page=[1, 2, 3, 4],
    )  # fmt: skip
    judged = fp.clicks.judge(log, "ctr", group="case")
    table = judged.qrels().to_dict()
    assert list(table) == ["Red  Shoes", "red shoes", "boots"]
    assert table["Red  Shoes"] == table["red shoes"]
    assert set(table["Red  Shoes"]) == {"a", "b"}
    rows = {(judged.queries[q], judged.documents[d]): row
            for row, (q, d) in enumerate(zip(judged.query, judged.document, strict=True))}  # fmt: skip
    assert judged.impressions[rows["red shoes", "a"]] == 2
    assert judged.pages.tolist() == [3, 3, 1]
    own = group_queries(log, lambda text: text[0].casefold(), 10)
    assert own.tolist() == [1, 1, 2]


def test_queries_with_shared_results_are_one() -> None:
    pages = {"tv": "abcd", "tvs": "abce", "television": "aefg", "radio": "xyzw"}
    log = fp.Sessions.from_arrays(
        query=[q for q, docs in pages.items() for _ in docs] + ["tv"],
        document=[d for docs in pages.values() for d in docs] + ["a"],
        rank=[1, 2, 3, 4] * 4 + [1],
        clicked=[1] * 17,
        page=np.repeat(np.arange(5), [4, 4, 4, 4, 1]),
    )
    groups = group_queries(log, "results", 10)
    leaders = {query: log.queries[groups[n]] for n, query in enumerate(log.queries)}
    # tvs shares 3 of 5 documents with tv; television shares 2 of 6 with tvs, which does not lead
    assert leaders == {"tv": "tv", "tvs": "tv", "television": "television", "radio": "radio"}


def test_other_readers_take_the_judgments(tmp_path: Path) -> None:
    log, _ = position_log(500)
    judged = fp.clicks.judge(log)
    (tmp_path / "clicks.jsonl").write_text(judged.truth_lines())
    truth, qrels = fp.read_truth(tmp_path / "clicks.jsonl"), judged.qrels()
    assert truth.to_dict() == qrels.to_dict()
    assert truth.query_weights == pytest.approx(qrels.query_weights, abs=1e-4)
    sure = judged.qrels(0.9)
    assert 0 < len(sure.values) == (judged.confidence >= 0.9).sum() < len(judged)
    assert len(judged.truth_lines(0.9).splitlines()) == len(sure)
    assert judged.to_csv().splitlines()[0].startswith("query,document,estimate,low,high")
    assert len(judged.to_csv().splitlines()) == len(judged) + 1
    json.dumps(judged.to_dict())
    with pytest.raises(fp.FirstpageError, match="no judgment has a confidence of 1 or more"):
        judged.qrels(1.0)


def test_wrong_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"method": "clics"}, "clics"),
        ({"method": "rankctr"}, "RankCTR has no attractiveness of documents"),
        ({"grades": 1}, "grades must be between 2 and 10"),
        ({"levels": [0.2, 0.1]}, "levels must be positive and ascending"),
        ({"quantile": 0.0}, "quantile must be between 0 and 1"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"group": "sounds"}, "grouped by case, results or a function; got 'sounds'"),
    ]
    for parameters, message in cases:
        with pytest.raises(fp.FirstpageError, match=message):
            fp.clicks.judge(SMALL, **parameters)
    unclicked = fp.Sessions.from_arrays(query=["x"], document=["a"], rank=[1], clicked=[0])
    with pytest.raises(fp.FirstpageError, match="no click on a displayed document"):
        fp.clicks.judge(unclicked)
