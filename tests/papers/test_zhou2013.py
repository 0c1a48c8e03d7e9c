"""Zhou et al. (2013): small runs of the figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.data.preferences.utility import Utility
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.evaluation.dcglearn.simulation import zhou_simulator
from firstpage.papers.study.run import run_study
from firstpage.papers.study.study import Cell, Cells, EntryResult, RunPlan
from firstpage.papers.zhou2013 import known_measure, news, simulations, study
from firstpage.papers.zhou2013.study import ZHOU2013

pytestmark = pytest.mark.filterwarnings("ignore::firstpage.core.errors.FirstpageWarning")


def rng(seed: int = 0) -> np.random.Generator:
    """Return a random generator."""
    return np.random.default_rng(seed)


def reproduce(
    *names: str, seeds: int, data: Path | None = None, **params: Any
) -> dict[str, EntryResult]:
    """Return the results of entries; `params` are used instead of those of their experiments."""
    entries = [
        replace(e, experiments=[replace(x, params={**x.params, **params}) for x in e.experiments])
        for e in (ZHOU2013.entries[name] for name in names)
    ]
    reproduction = run_study(ZHOU2013, entries, RunPlan(seeds=seeds, data=data))
    return {result.entry.name: result for result in reproduction.results}


def verdicts(result: EntryResult) -> dict[str, str]:
    """Return the verdicts of an entry by the text of the claim."""
    return {claim.text: claim.verdict for claim in result.claims}


def test_trend_of_figure_1_holds_and_its_number_does_not() -> None:
    results = verdicts(reproduce("figure1", seeds=3)["figure1"])
    assert list(results.values()) == ["holds", "holds", "does not hold", "does not hold"]


def test_800_pairs_are_sufficient(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [20, 200, 800]
    monkeypatch.setattr(known_measure, "SIZES", sizes)
    figures = reproduce("figure2", "figure3", "figure6", seeds=5, sizes=sizes)
    for name in ("figure2", "figure3"):
        results = verdicts(figures[name])
        assert results.pop("Other agrees with less than 90 %") != "holds"
        assert set(results.values()) == {"holds"}
    limit = known_measure.SIMILARITY_LIMIT
    results = verdicts(figures["figure6"])
    assert results[f"similarity at 800 pairs is near cos(c - c_K, c) = {limit}"] == "holds"


@pytest.mark.parametrize(
    ("name", "seeds", "params"),
    [
        ("figure4", 3, {}),
        ("figure5", 3, {}),
        ("figure7", 5, {"counts": [5, 200]}),
        ("figure8", 5, {"fractions": [0.05, 0.4]}),
        ("figure10", 3, {"sizes": [20, 100, 800]}),
    ],
)
def test_claims_hold_with_few_runs(name: str, seeds: int, params: dict[str, Any]) -> None:
    results = verdicts(reproduce(name, seeds=seeds, **params)[name])
    assert set(results.values()) == {"holds"}


def test_optimal_rankings_are_not_informative() -> None:
    rows = simulations.learning_from_optimal_rankings(rng(), 1, [50, 800], False)
    assert all(0.5 < row["value"] < 0.8 for row in rows)
    results = verdicts(reproduce("figure9", seeds=3, sizes=[20, 800])["figure9"])
    assert "does not hold" not in results.values()


def test_limit_of_similarity() -> None:
    discounts = 1 / np.log(np.arange(2, 12))
    learnable = discounts - discounts[-1]
    norms = np.linalg.norm(learnable) * np.linalg.norm(discounts)
    limit = float(learnable @ discounts / norms)
    assert limit == pytest.approx(known_measure.SIMILARITY_LIMIT, abs=5e-4)


def test_bin_means_and_concordance() -> None:
    sizes, values = np.array([0.1, 0.2, 1.5, 9.0]), np.array([1.0, 0.0, 1.0, 0.0])
    assert simulations.bin_means(sizes, values, [0.0, 1.0, 2.0, 3.0]) == [(0.5, 0.5), (1.5, 1.0)]
    assert simulations.concordance(np.array([2.0, -1.0, 1e-12])).tolist() == [1.0, 0.0, 0.5]


def test_runs_are_reproducible() -> None:
    assert simulations.learning_curve(rng(3), 1, [20, 50]) == simulations.learning_curve(
        rng(3), 1, [20, 50]
    )
    assert news.method_accuracies(rng(3)) == news.method_accuracies(rng(3))


# ---- editors


def test_label_counts_are_about_those_of_table_1() -> None:
    counts = np.array([[row["value"] for row in news.label_counts(rng(i))] for i in range(20)])
    assert (counts.sum(axis=1) == news.QUERIES).all()
    printed = np.array(list(news.COUNTS.values()))
    assert (np.abs(counts.mean(axis=0) - printed) < np.sqrt(printed)).all()


def test_noise_free_editors_agree_with_the_true_measure() -> None:
    editors = news.Editors(judgment_noise=0.0)
    judged = editors.judged(rng(), 500)
    pairs = judged[~judged.tied]
    assert news.concordance(news._differences(editors.truth, pairs), pairs).min() == 1.0
    strong = np.abs(news._differences(editors.truth, pairs))[np.abs(pairs.outcome) == 2]
    assert strong.min() > editors.strong_threshold


def test_methods_are_measured_on_all_sets() -> None:
    rows = news.method_accuracies(rng())
    accuracies = {(r["method"], r["test"]): r["value"] for r in rows if "method" in r}
    assert accuracies["DCGLearn", "all"] > accuracies["Random", "all"]
    assert accuracies["DCGLearn", "Set1"] > accuracies["DCGLearn", "Set2"]
    assert len([r for r in rows if "label" in r]) == 5


def test_baseline_1_is_dcg_with_exponential_gains() -> None:
    pairs = news.Editors().judged(rng(), 50)
    ranks = np.arange(1.0, 6.0)
    gains = 2.0 ** np.array(news.GRADES) - 1
    expected = ((gains[pairs.left] - gains[pairs.right]) / np.log2(ranks + 1)).sum(axis=1)
    assert news.dcg_differences("exp", pairs) == pytest.approx(expected)


def assert_claims_are_evaluated(result: EntryResult) -> None:
    assert result.claims
    assert set(verdicts(result).values()) <= {"holds", "does not hold", "inconclusive"}


@pytest.mark.parametrize("names", [["table1"], ["figure16", "figure18"]])
def test_claims_about_editors_are_evaluated(names: list[str]) -> None:
    for result in reproduce(*names, seeds=2).values():
        assert_claims_are_evaluated(result)


def test_figure_17_has_each_number_of_pairs() -> None:
    figure = reproduce("figure17", seeds=2, sizes=[20, 230])["figure17"]
    assert_claims_are_evaluated(figure)
    assert figure.cells.label_values("pairs") == [20, 230]
    assert figure.cells.label_values("test") == list(study.TEST_SETS)


def test_figure_19_has_each_kind_of_training_pairs() -> None:
    figure = reproduce("figure19", seeds=2)["figure19"]
    assert_claims_are_evaluated(figure)
    kinds = {"all", "labels 1, 5", "labels 2, 4", news.EQUAL_NUMBER}
    assert set(figure.cells.label_values("trained on")) == kinds


def test_cost_of_ties_reduces_their_difference() -> None:
    figure = reproduce("figure20", seeds=2, costs=[0.0, 1.0])["figure20"]
    assert_claims_are_evaluated(figure)
    without_cost, with_cost = (
        figure.cells.samples(measure="tie difference", C_tie=cost) for cost in (0.0, 1.0)
    )
    assert (with_cost < without_cost).all()


# ---- lists of real queries


def write_sample(folder: Path, queries: int = 12) -> Path:
    """Write two files of lists with grades 0 to 4, like those of MSLR."""
    folder.mkdir(parents=True)
    generator = rng(5)
    for name in ("train.txt", "test.txt"):
        lines = [
            f"{grade} qid:{q} 1:{i}"
            for q in range(queries)
            for i, grade in enumerate(generator.choice(5, 30, p=[0.5, 0.25, 0.15, 0.06, 0.04]))
        ]
        (folder / name).write_text("\n".join([*lines, "1 qid:short 1:0", ""]))
    return folder


def test_grades_are_read_from_a_sample_and_from_folds(tmp_path: Path) -> None:
    sample = simulations.read_query_grades(str(write_sample(tmp_path / "sample")), "web30k")
    assert len(sample.grades) == 12  # the short query is left out
    assert {int(g) for grades in sample.grades for g in grades} <= {1, 2, 3, 4, 5}
    write_sample(tmp_path / "MSLR-WEB10K" / "Fold1")
    assert len(simulations.read_query_grades(str(tmp_path / "MSLR-WEB10K"), "web10k").grades) == 24
    few = write_sample(tmp_path / "few", 3)
    with pytest.raises(DataError, match="fewer than 5 queries"):
        simulations.read_query_grades(str(few), "web10k")


def test_preferences_follow_the_true_grades(tmp_path: Path) -> None:
    lists = simulations.read_query_grades(str(write_sample(tmp_path / "sample")), "web10k")
    pairs = lists.pairs(300, rng())
    assert len(pairs) == 300
    simulator = zhou_simulator(2)
    difference = simulator.values(pairs.left + 1) - simulator.values(pairs.right + 1)
    assert (np.sign(difference) == pairs.outcome).all()
    noisy = lists.with_random_grades(0.5, rng())
    noisy_pairs = noisy.pairs(300, rng())
    difference = simulator.values(noisy_pairs.left + 1) - simulator.values(noisy_pairs.right + 1)
    assert 0.5 < (np.sign(difference) == noisy_pairs.outcome).mean() < 0.95


def test_folds_have_disjoint_test_queries(tmp_path: Path) -> None:
    lists = simulations.read_query_grades(str(write_sample(tmp_path / "sample")), "web10k")
    sizes = [len(test.grades) for _, test in simulations.cross_validation_folds(lists, rng())]
    assert sum(sizes) == 12
    assert max(sizes) - min(sizes) <= 1


def test_figures_11_to_15_on_synthetic_lists(tmp_path: Path) -> None:
    folder = str(write_sample(tmp_path / "sample"))
    rows = simulations.web_learning_curve(rng(), "web10k", [20, 400], folder)
    values = {(r["method"], r["pairs"], r["measure"]): r["value"] for r in rows}
    assert values["DCGLearn, web10k", 400, "accuracy"] > values["DCGLearn, web10k", 20, "accuracy"]
    bins = simulations.web_accuracy_by_difference(rng(), "web10k", 400, [0.0, 2.0, 50.0], folder)
    assert [r["DCG difference"] for r in bins] == [1.0, 26.0, 1.0, 26.0]
    noisy = simulations.web_accuracy_with_noise(rng(), "web10k", [50, 200], [0.0, 0.4], folder)
    assert {r["method"] for r in noisy} == {"50 pairs", "200 pairs", "200 pairs, some reversed"}


@pytest.mark.data
def test_figure_11_on_real_lists(real_data: Path) -> None:
    figures = reproduce("figure11", seeds=2, data=real_data, sizes=[20, 800, 1000])
    results = verdicts(figures["figure11"])
    assert results["accuracy grows with the pairs (web10k)"] == "holds"
    assert results["DCGLearn is better than Other at 1000 pairs (web30k)"] == "holds"
    assert (
        len(simulations.read_query_grades(str(real_data / "mslr-web10k-5k"), "web10k").grades) == 43
    )


# ---- active learning


def test_active_learning_is_better_than_random_pairs() -> None:
    runs = {
        name: news.simulated_active_learning(rng(1), 1, name, [20, 100], 10)
        for name in ("random", "simple-margin", "diverse")
    }
    first = {rows[0]["value"] for rows in runs.values()}
    assert len(first) == 1  # the same 20 pairs
    assert runs["simple-margin"][1]["value"] > runs["random"][1]["value"]
    assert runs["diverse"][1]["value"] > runs["random"][1]["value"]


def test_committee_with_simulated_editors() -> None:
    rows = news.editor_active_learning(rng(), "committee", [20, 40], 20)
    assert [r["pairs"] for r in rows] == [20, 40]
    assert all(0.5 < r["value"] < 1 for r in rows)


def test_active_learning_on_lists(tmp_path: Path) -> None:
    folder = str(write_sample(tmp_path / "sample"))
    rows = news.web_active_learning(rng(), "web10k", "simple-margin", [20, 40], 10, folder)
    assert [r["pairs"] for r in rows] == [20, 40]


def example_cells(curves: dict[str, dict[int, float]]) -> Cells:
    """Return cells with these accuracies by strategy and number of pairs."""
    return Cells(
        Cell({"strategy": name, "pairs": m}, np.array([v, v + 0.001, v - 0.001]))
        for name, points in curves.items()
        for m, v in points.items()
    )


def test_claim_of_half_the_labels() -> None:
    cells = example_cells(
        {
            "random": {100: 0.9, 300: 0.95, 500: 0.99},
            "simple-margin": {100: 0.96, 200: 0.98},
            "diverse": {100: 0.9, 300: 0.97},
            "committee": {100: 0.9, 200: 0.95},
        }
    )
    assert study.labels_needed(cells, "random") == pytest.approx(400)
    assert study.labels_needed(cells, "simple-margin") == pytest.approx(150)
    assert study.half_the_labels("x", cells, "simple-margin").verdict == "holds"
    assert study.half_the_labels("x", cells, "diverse").verdict == "does not hold"
    assert study.half_the_labels("x", cells, "committee", source="ours").source == "ours"
    assert study.labels_needed(example_cells({"random": {20: 0.98, 50: 0.99}}), "random") == 20


def test_strategies_are_compared_on_the_runs_that_both_have() -> None:
    """The committee has fewer runs than random pairs; the additional runs do not count."""
    points = {
        "committee": {20: [0.9] * 2, 180: [0.98] * 2},
        "random": {20: [0.9] * 4, 100: [0.9, 0.9, 1.0, 1.0], 400: [0.98] * 4},
    }
    cells = Cells(
        Cell({"strategy": name, "pairs": m}, np.array(values))
        for name, curve in points.items()
        for m, values in curve.items()
    )
    claim = study.half_the_labels("x", cells, "committee")
    assert claim.verdict == "holds"  # at 160 labels; with all four random runs: 300 / 2
    assert "(2 runs)" in claim.evidence
    assert study.labels_needed(cells, "random", 2) == pytest.approx(362.5)
    assert study.labels_needed(cells, "random") == pytest.approx(300)


def test_training_sets_of_equal_size(monkeypatch) -> None:
    sizes: list[int] = []

    def fit(train):
        sizes.append(len(train))
        return DCGLearn(news.N_RANKS, C=0.1, grades=news.GRADES, threads=1).fit(train)

    monkeypatch.setattr(news, "fit_dcglearn", fit)
    news.accuracy_by_training_labels(rng())
    assert len(sizes) == 4 * news.FOLDS
    for i in range(0, len(sizes), 4):
        total, strong, weak, equal_number = sizes[i : i + 4]
        assert total == strong + weak
        assert equal_number == strong < weak


def test_experiment_functions_can_be_imported() -> None:
    for entry in ZHOU2013.entries.values():
        for experiment in entry.experiments:
            function = experiment.function
            assert function.__qualname__ == function.__name__
            assert function.__module__ in ZHOU2013.modules


def test_true_measure_of_data_1_has_linear_gains() -> None:
    assert zhou_simulator(1).truth.weights == pytest.approx(
        Utility.from_dcg("linear", range(1, 6), 10).weights
    )
