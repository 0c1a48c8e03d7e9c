"""Cheng et al. (2014): figures on tiny data, votes against plain loops, and MQ2008."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

import firstpage as fp
from firstpage.papers.cheng2014 import study, training
from firstpage.papers.cheng2014.study import CHENG2014
from firstpage.papers.study.letor_protocol import FOLDS
from firstpage.papers.study.run import run_study
from firstpage.papers.study.study import Cell, Cells, Claim, RunPlan
from tests.papers.folders import write_letor_folds

pytestmark = pytest.mark.filterwarnings("ignore::firstpage.core.errors.FirstpageWarning")
VERDICTS = {"holds", "does not hold", "inconclusive"}
MODELS = list(study.ALL_RANKERS)


@pytest.fixture
def one_parameter_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce every grid to one value instead of four."""
    for name, grid in training.GRIDS.items():
        one = {parameter: values[2:3] for parameter, values in grid.items()}
        monkeypatch.setitem(training.GRIDS, name, one)


def run_entries(
    names: list[str], data: Path, folds: tuple[int, ...] = FOLDS
) -> dict[str, tuple[Cells, list[Claim]]]:
    """Return cells and claims by entry, from some folds only."""
    selected = [CHENG2014.entries[name] for name in names]
    entries = [
        replace(e, experiments=[x for x in e.experiments if x.params["fold"] in folds])
        for e in selected
    ]
    reproduction = run_study(CHENG2014, entries, RunPlan(seeds=1, data=data))
    return {r.entry.name: (r.cells, list(r.claims)) for r in reproduction.results}


def test_study_has_all_figures() -> None:
    expected = {f"figure{n}{d}" for n in (2, 3, 4) for d in ("", "-td2003", "-td2004", "-mq2008")}
    assert expected | {"figure4-all"} <= set(CHENG2014.entries)
    assert CHENG2014.entries["figure3-td2004"].datasets == ["td2004"]
    assert CHENG2014.entries["figure4-all"].datasets == ["ohsumed", "td2003", "td2004"]
    assert set(training.COSTS) < set(fp.TopSlack._grid["C"])  # a subset of the grid of the paper


def test_all_rankers_of_figure_4_have_grids_of_the_same_size() -> None:
    sizes = {name: len(values) for name, grid in training.GRIDS.items() for values in grid.values()}
    assert set(sizes) == {*training.SCALINGS, *training.VOTERS, "ListMLE"}
    assert set(sizes.values()) == {4}


def test_all_rankers_of_figure_4_are_tuned_by_the_target_measure(
    tmp_path: Path, one_parameter_value: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = []

    def tune(ranker, train, valid, grid):
        tuned.append((type(ranker).__name__, ranker.measure))
        ranker.set_params(**{name: values[0] for name, values in grid.items()})
        return SimpleNamespace(best=ranker.fit(train))

    monkeypatch.setattr(training, "tune", tune)
    folder = str(write_letor_folds(tmp_path / "ohsumed"))
    for evaluate in (training.evaluate_rankers, training.evaluate_listmle):
        evaluate(np.random.default_rng(0), "OHSUMED", "precision", 1, folder)
    assert sorted(tuned) == [
        (name, "P@10")
        for name in ("ListMLE", "ListNet", "RankSVM", "Regression", "TopMargin", "TopSlack")
    ]


def test_experiment_functions_can_be_imported() -> None:
    for entry in CHENG2014.entries.values():
        for experiment in entry.experiments:
            function = experiment.function
            assert function.__qualname__ == function.__name__
            assert function.__module__ in CHENG2014.modules


def test_counts_in_the_text_of_the_paper_are_consistent() -> None:
    topslack_ahead = {
        data: len(study.MEASURES) - len(m) for data, m in study.TOPMARGIN_AHEAD.items()
    }
    assert topslack_ahead == {"OHSUMED": 5, "TD2003": 3, "TD2004": 4}
    assert len(study.PAPER_DATASETS) * len(study.MEASURES) == 11 + 7


# ---- runs on tiny data


def test_figures_of_one_data_set(tmp_path: Path, one_parameter_value: None) -> None:
    write_letor_folds(tmp_path / "ohsumed")
    results = run_entries(["figure2", "figure3", "figure4", "votes-ohsumed"], tmp_path, (1, 2))
    assert results["figure2"][0].label_values("model") == ["TopMargin", "TopSlack"]
    assert results["figure3"][0].label_values("model") == ["TopSlack", "TopRank"]
    assert set(results["figure4"][0].label_values("model")) == set(MODELS)
    assert results["figure4"][0].label_values("measure") == list(study.MEASURES)
    assert len(results["votes-ohsumed"][0]) == 6 * len(training.VARIANTS)
    for cells, claims in results.values():
        assert all(len(c.samples) == 10 for c in cells)
        assert claims
        assert {c.verdict for c in claims} <= VERDICTS
    texts = [c.text for c in results["figure2"][1]]
    assert texts[1:] == [
        "TopSlack is better at NDCG@1, NDCG@3, NDCG@10, P@1, P@3",
        "TopMargin is better at P@10",
    ]


def test_entries_run_as_soon_as_their_data_exist(tmp_path: Path, one_parameter_value: None) -> None:
    write_letor_folds(tmp_path / "ohsumed")
    write_letor_folds(tmp_path / "td2003", grades=2, old=True)
    without_data = run_study(CHENG2014, [CHENG2014.entries["figure4-all"]], RunPlan(data=tmp_path))
    assert without_data.results[0].missing == f"needs td2004 in {tmp_path}"
    write_letor_folds(tmp_path / "TD2004", grades=2, old=True)
    results = run_entries(["figure4-all", "figure3-td2004", "figure4-td2004"], tmp_path, (2,))
    assert len(results["figure4-all"][0]) == 3 * 6 * len(MODELS)
    assert results["figure4-all"][1][0].evidence.startswith("first at ")
    gains = [c.text for c in results["figure3-td2004"][1][2:]]
    assert gains[0] == "TopRank gains 17.2% over TopSlack at NDCG@1"
    assert results["figure4-td2004"][1][0].text.startswith("RankSVM is much better")


def test_slack_and_margin_scaling_with_all_else_equal(tmp_path: Path) -> None:
    folder = str(write_letor_folds(tmp_path / "mq2008"))
    rows = training.evaluate_scalings(
        np.random.default_rng(0), "MQ2008", "precision", 10.0, 1, folder
    )
    values = {(r["model"], r["measure"]): r["value"] for r in rows}
    assert set(values) == {
        (name, m)
        for name in training.SCALINGS
        for m in ("P@1", "P@3", "P@10", "folds at w = 0, precision")
    }
    assert values["TopMargin", "folds at w = 0, precision"] == 0.0


# ---- voting


def fitted_rankers() -> tuple[fp.Ranker, list[fp.Ranker], fp.Dataset, fp.Dataset]:
    """Return the base ranker, the voters, validation and test data."""
    data = fp.Synthetic(queries=30, docs="uniform(3, 30)", features=6, grades=3, seed=1).dataset()
    train, valid, test = data[:10], data[10:20], data[20:]
    base = fp.TopSlack(normalize="minmax").fit(train)
    voters = [fp.ranker(name, normalize="minmax").fit(train) for name in training.VOTERS]
    return base, voters, valid, test


@pytest.mark.parametrize("credit", ["paper", "extended"])
@pytest.mark.parametrize("depth", [5, 100])
def test_votes_match_the_ranker(credit: Any, depth: int) -> None:
    base, voters, valid, test = fitted_rankers()
    rule = training.VotingRule(credit=credit, depth=depth)
    ours = training.toprank_scores(base, voters, rule, valid, test, "NDCG@10")
    frozen = [FrozenEstimator(v) for v in voters]
    ranker = fp.TopRank(first=FrozenEstimator(base), voters=frozen, depth=depth, credit=credit)
    assert ours.tolist() == ranker.fit(valid, valid=valid).predict(test).tolist()


def order_by_loops(base: np.ndarray, votes: list[np.ndarray], weights: list[float]) -> list[int]:
    """Return the documents by Algorithm 2 as printed, best first; the first one is the pivot."""
    t = len(base)
    table = np.zeros((t, t))
    for vote, weight in zip(votes, weights, strict=True):
        order = np.argsort(-vote, kind="stable")[: (t + 1) // 2]
        for i, a in enumerate(order):
            for b in order[i + 1 :]:
                table[a, b] += weight

    def sort(items: list[int]) -> list[int]:
        if not items:
            return []
        pivot, rest = items[0], items[1:]
        left = [x for x in rest if table[x, pivot] - table[pivot, x] > 1e-12]
        return [*sort(left), pivot, *sort([x for x in rest if x not in left])]

    return sort(np.argsort(-base, kind="stable").tolist())


def test_votes_match_plain_loops() -> None:
    base, voters, valid, test = fitted_rankers()
    ours = training.toprank_scores(
        base, voters, training.VotingRule(equal_weights=True), valid, test, "NDCG@10"
    )
    for q in range(len(test)):
        lo, hi = test.offsets[q], test.offsets[q + 1]
        votes = [v.predict(test)[lo:hi] for v in voters]
        expected = order_by_loops(base.predict(test)[lo:hi], votes, [1.0, 1.0, 1.0])
        assert np.argsort(-ours[lo:hi]).tolist() == expected


def test_variants_change_the_scores() -> None:
    base, voters, valid, test = fitted_rankers()
    printed = training.toprank_scores(base, voters, training.VotingRule(), valid, test, "P@10")
    for name in (
        "extended credit",
        "credit for the whole list (k = t)",
        "t = length of the shortest list",
    ):
        variant = training.toprank_scores(
            base, voters, training.VARIANTS[name], valid, test, "P@10"
        )
        assert (variant != printed).any(), name
    depth_1 = training.toprank_scores(
        base, voters, training.VotingRule(depth=1), valid, test, "P@10"
    )
    assert fp.evaluate(depth_1, test)["NDCG@10"] == fp.evaluate(base.predict(test), test)["NDCG@10"]


# ---- verdicts


def example_cells(means: dict[str, float], sd: float = 0.01) -> Cells:
    """Return cells with these means and random values per query."""
    rng = np.random.default_rng(0)
    return Cells(
        Cell(
            {"data": "OHSUMED", "model": name, "measure": m},
            np.array([v]),
            None,
            v + sd * rng.normal(size=200),
        )
        for name, v in means.items()
        for m in study.MEASURES
    )


def test_verdicts_follow_the_numbers() -> None:
    means = dict.fromkeys(MODELS, 0.4) | {"TopRank": 0.5, training.LISTMLE: 0.45}
    claims = {c.text: c for c in study.comparison_claims("OHSUMED")(example_cells(means))}
    claim = claims[
        "TopRank is better than all rankers that are not top-k rankers, at every measure"
    ]
    assert claim.verdict == "holds"
    assert claim.evidence.startswith("of 30 comparisons 30 hold")
    assert claims["TopRank is the best or the second at every measure"].verdict == "holds"
    assert claims[f"TopRank is worse than {training.LISTMLE} at P@1"].verdict == "does not hold"
    means = means | {"TopRank": 0.3}
    claims = {c.text: c for c in study.comparison_claims("MQ2008")(example_cells(means))}
    assert claims["TopRank is the best or the second at every measure"].verdict == "does not hold"
    assert all(c.source == "ours" for c in claims.values())


def test_better_at_most_measures_needs_a_significant_mean() -> None:
    close = {"TopMargin": 0.4, "TopSlack": 0.4005}
    assert study.better_at_most(
        "x", example_cells(close, 0.2), "TopSlack", "TopMargin"
    ).verdict == ("inconclusive")
    clear = {"TopMargin": 0.4, "TopSlack": 0.45}
    assert (
        study.better_at_most("x", example_cells(clear), "TopSlack", "TopMargin").verdict == "holds"
    )
    assert (
        study.better_at_most("x", example_cells(clear), "TopMargin", "TopSlack").verdict
        == "does not hold"
    )


def test_gain_is_a_ratio() -> None:
    cells = example_cells({"TopSlack": 0.4, "TopRank": 0.4 * 1.172}, 0.0)
    assert study._gain(cells, "NDCG@1", 0.172).verdict == "holds"
    assert study._gain(cells, "NDCG@10", 0.436).verdict == "does not hold"


@pytest.mark.data
def test_toprank_is_about_as_good_as_its_voters(real_data: Path, one_parameter_value: None) -> None:
    """MQ2008, one fold, one value of each parameter."""
    rows = training.evaluate_rankers(
        np.random.default_rng(0), "MQ2008", "NDCG", 1, str(real_data / "mq2008")
    )
    values = {(r["model"], r["measure"]): r["value"] for r in rows if "variant" not in r}
    voters = [values[name, "NDCG@3"] for name in training.VOTERS]
    assert min(voters) - 0.01 < values["TopRank", "NDCG@3"] < max(voters) + 0.01
    assert all(0.2 < v < 0.7 for (_, m), v in values.items() if m == "NDCG@3")
