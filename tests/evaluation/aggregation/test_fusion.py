"""Fusion by rank and by score: ranx's values, plain references, normalizations, errors."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.core.registry import ParameterError
from firstpage.evaluation.aggregation.aggregation import aggregate
from firstpage.evaluation.aggregation.fusion import Fusion
from firstpage.evaluation.aggregation.methods import METHODS, method
from tests.narrow import present

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "ranx_fusion.json").read_text())
OUR_NAMES = {
    "min": "CombMIN", "med": "CombMED", "max": "CombMAX", "sum": "CombSUM", "anz": "CombANZ",
    "mnz": "CombMNZ", "wsum": "wsum", "rrf": "RRF", "rbc": "RBC", "isr": "ISR",
    "log_isr": "LogISR", "logn_isr": "LogNISR", "bordafuse": "Borda", "w_bordafuse": "Borda",
}  # fmt: skip


@pytest.mark.parametrize(
    "case", GOLDEN["cases"], ids=lambda case: f"{case['method']}-{case['norm']}"
)
def test_values_are_those_of_ranx(case) -> None:
    parameters = {key: value for key, value in case["params"].items() if key != "weights"}
    if "k" in parameters:
        parameters = {"c": parameters["k"]}
    result = fp.aggregation.aggregate(
        GOLDEN["runs"],
        method(OUR_NAMES[case["method"]], **parameters),
        normalize=case["norm"],
        weights=case["params"].get("weights"),
    )
    fused = result.run.to_dict()
    assert fused.keys() == case["scores"].keys()
    for query, scores in case["scores"].items():
        assert fused[query] == pytest.approx(scores, rel=1e-12, abs=1e-12)
        assert list(fused[query].values()) == sorted(fused[query].values(), reverse=True)


# --- plain references of one query: lists of (document, score), best first


def normalized(ranked, kind, documents):
    scores = [score for _, score in ranked]
    low, total, n = min(scores), sum(scores), len(scores)
    if kind == "min-max":
        return {d: (s - low) / max(max(scores) - low, 1e-9) for d, s in ranked}
    if kind == "max":
        return {d: s / max(scores) for d, s in ranked}
    if kind == "sum":
        return {d: (s - low) / max(total - n * low, 1e-9) for d, s in ranked}
    if kind == "z":
        deviation = max(statistics.pstdev(scores), 1e-9)
        return {d: (s - total / n) / deviation for d, s in ranked}
    size = len(documents) if kind == "borda" else n
    out = {d: 1 - i / size for i, (d, _) in enumerate(ranked)}
    if kind == "borda":
        out |= {d: 0.5 - (n - 1) / (2 * size) for d in documents if d not in out}
    return out


COMBINE: dict[str, Callable[[list[float]], float]] = {
    "CombSUM": sum, "CombMNZ": lambda v: sum(v) * len(v), "CombANZ": statistics.fmean,
    "CombMAX": max, "CombMIN": min, "CombMED": statistics.median,
}  # fmt: skip
TERMS: dict[str, Callable[[int], float]] = {
    "RRF": lambda r: 1 / (60 + r),
    "RBC": lambda r: 0.1 * 0.9 ** (r - 1),
    "ISR": lambda r: 1 / r**2,
    "LogISR": lambda r: 1 / r**2,
    "LogNISR": lambda r: 1 / r**2,
}
FACTORS: dict[str, Callable[[int], float]] = {
    "ISR": float,
    "LogISR": math.log,
    "LogNISR": lambda n: math.log(n + 0.01),
}

runs_of_one_query = st.lists(
    st.dictionaries(
        st.sampled_from("abcdef"), st.floats(0.25, 8).map(lambda x: round(x, 2)), min_size=1
    ),
    min_size=1,
    max_size=4,
)


@given(runs=runs_of_one_query, data=st.data())
def test_points_match_plain_references(runs, data) -> None:
    name = data.draw(st.sampled_from([*COMBINE, *TERMS]))
    kind = data.draw(st.sampled_from(["min-max", "max", "sum", "z", "rank", "borda"]))
    weights = data.draw(st.lists(st.integers(1, 3), min_size=len(runs), max_size=len(runs)))
    by_score = name in COMBINE
    result = fp.aggregation.aggregate(
        [{"q": run} for run in runs], name, weights=weights, normalize=kind if by_score else None
    )
    documents = {d for run in runs for d in run}
    base = {d: i for i, d in enumerate(present(result.ballots.docids))}
    ranked = [sorted(run.items(), key=lambda item: (-item[1], base[item[0]])) for run in runs]
    if by_score:
        lists = [normalized(ranking, kind, documents) for ranking in ranked]
    else:
        lists = [{d: TERMS[name](r) for r, (d, _) in enumerate(rank, 1)} for rank in ranked]
    expected = {}
    for d in documents:
        values = [w * scores[d] for w, scores in zip(weights, lists, strict=True) if d in scores]
        expected[d] = COMBINE.get(name, sum)(values) * FACTORS.get(name, lambda n: 1)(len(values))
    assert result.run.to_dict()["q"] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", [n for n, cls in METHODS.items() if issubclass(cls, Fusion)])
def test_every_fusion_is_named_and_takes_empty_ballots(name: str) -> None:
    assert method(name.lower()) == method(name) == method(str(method(name)))
    ballots = fp.aggregation.Ballots.from_scores(np.zeros((2, 0)), [0])
    assert method(name).order(ballots).tolist() == []
    for query in ({}, {"a": 1.0}):  # a query that only one run has
        runs = [{"q": {"a": 2.0, "b": 1.0}, "r": query}, {"q": {"b": 3.0}}]
        with pytest.warns(fp.FirstpageWarning, match="lacks 1 of 2 queries"):
            result = fp.aggregation.aggregate(runs, name)
        assert result.run.to_dict()["r"].keys() == query.keys()


def test_ties_stay_in_base_order_whatever_the_order_of_addition() -> None:
    scores = {"x": (0.1, 0.2, 0.3), "y": (0.3, 0.2, 0.1), "z": (0.2, 0.3, 0.1)}
    runs = [{"q": {d: values[a] for d, values in scores.items()}} for a in range(3)]
    result = fp.aggregation.aggregate(runs, "CombSUM", normalize="none")
    assert len(set(result.run.values.tolist())) == 1
    assert list(result.run.docids) == [
        "z",
        "y",
        "x",
    ]  # by their ranks 2, 1, 2.5; 1, 2.5, 2.5; 3, 2.5, 1


def test_depth_cuts_lists_of_pairwise_methods_alone() -> None:
    run = {"q": {f"d{i}": -float(i) for i in range(150)}}
    assert int(fp.aggregation.aggregate([run], "skr").ballots.offsets[-1]) == 100
    fused = fp.aggregation.aggregate([run], "RRF")
    assert int(fused.ballots.offsets[-1]) == 150
    assert fused.scores == pytest.approx(1 / (61 + np.arange(150)))
    cut = fp.aggregation.aggregate([run], "RRF", depth=20)
    assert cut.scores.tolist() == list(range(150, 0, -1))  # documents beyond have no fused score


def test_conditions_of_scores_are_checked() -> None:
    ranks = fp.aggregation.Ballots.from_lists([{"q": ["a", "b"]}, {"q": ["b"]}])
    with pytest.raises(DataError, match=r"^CombSUM adds up scores, and these ballots have ranks"):
        fp.aggregation.aggregate(ranks, "CombSUM")
    by_rank = fp.aggregation.aggregate(ranks, "CombSUM", normalize="rank")
    assert by_rank.run.to_dict() == {"q": {"b": 1.5, "a": 1.0}}
    negative = [{"q": {"a": -1.0, "b": -2.0}}]
    with pytest.raises(DataError, match=r"ranker 1: a query has no score above 0.*'min-max'"):
        fp.aggregation.aggregate(negative, "CombMAX", normalize="max")
    with pytest.raises(DataError, match="needs finite scores: a score of ranker 1 in query 'q'"):
        fp.aggregation.aggregate([{"q": {"a": np.inf, "b": 1.0}}], "CombMNZ")


@pytest.mark.parametrize(
    ("text", "normalize", "message"),
    [
        ("RRF", "z", "RRF does not use scores"),
        ("CombSUM", "minmix", "there is no normalization 'minmix'. Did you mean 'min-max'"),
        ("CombSUM(normalize=median)", None, "there is no normalization 'median'"),
        ("RBC(phi=1)", None, "phi of RBC must be below 1"),
        ("LogNISR(sigma=2)", None, "sigma of LogNISR must be at most 1"),
    ],
)
def test_invalid_parameters_are_refused(text: str, normalize: str | None, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fp.aggregation.aggregate([{"q": {"a": 1.0}}], text, normalize=normalize)


def test_condorcet_fusion_is_the_quick_sort_by_majorities() -> None:
    assert method("condorcet") == method("Kemeny")
    assert vars(method("comb-sum(normalize=ZMUV)"))["normalize"] == "z"


@pytest.mark.parametrize("normalize", ["min-max", "sum", "z"])
def test_equal_scores_are_0_whatever_their_size(normalize: str) -> None:
    for size, score in ((1000, 23456.7), (100, 9999.9), (3, 0.1), (1, 1e300)):
        run = {"q": {f"d{i}": score for i in range(size)}}
        values = aggregate([run], "CombSUM", normalize=normalize).run.values
        assert not values.any(), (size, score)


@pytest.mark.parametrize("method", ["RRF", "Borda", "CombSUM"])
def test_a_common_factor_of_weights_changes_no_order(method: str) -> None:
    runs = [{"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, *[{"q": {"c": 3.0, "b": 2.0, "a": 1.0}}] * 2]
    for factor in (1e-10, 1e-300, 1.0, 1e300, 1e308):
        run = aggregate(runs, method, weights=[factor] * 3).run
        assert list(run.docids) == ["c", "b", "a"], factor
        assert np.isfinite(run.values).all()
        assert (np.diff(run.values) < 0).all()
    with pytest.warns(fp.FirstpageWarning, match="all are weighted equally"):
        equal = aggregate(runs, method, weights=[0, 0, 0]).run
    assert equal.to_dict() == aggregate(runs, method).run.to_dict()
    assert list(aggregate(runs, method, weights=["1", "0", "0"]).run.docids) == ["a", "b", "c"]  # type: ignore[list-item]


def test_a_search_starts_from_fused_scores() -> None:
    runs = [{"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, *[{"q": {"c": 3.0, "b": 2.0, "a": 1.0}}] * 2]
    assert list(aggregate(runs, "LocalKemeny(start=CombSUM)").run.docids) == ["c", "b", "a"]


def test_weights_and_validation_runs_are_refused_together() -> None:
    with pytest.raises(fp.DataError, match="give weights, or judgments"):
        aggregate([{"q": {"a": 1.0}}], "RRF", weights=[1], valid=[{"q": {"a": 1.0}}])
    with pytest.raises(ParameterError, match="c is given twice"):
        aggregate([{"q": {"a": 1.0}}], "RRF(c=5, c=60)")
    with pytest.raises(ParameterError, match="c of RRF must be a number"):
        aggregate([{"q": {"a": 1.0}}], "RRF(c={[]})")
