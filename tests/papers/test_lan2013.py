"""Lan et al. (2013): truths, curves and verdicts on small lists."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from fractions import Fraction
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.cli import main
from firstpage.evaluation.measures.evaluate_systems import evaluate
from firstpage.learning.rankers.selection.tuning import tune
from firstpage.papers.lan2013 import lists, study
from firstpage.papers.lan2013.study import (
    DEPTHS,
    GRADED_DEPTHS,
    GRIDS,
    LAN2013,
    TAIL_DEPTHS,
    TOP_DEPTHS,
)
from firstpage.papers.study.registry import list_entries
from firstpage.papers.study.study import Cell, Cells
from tests.narrow import dense

SMALL = (5, 3, 4)  # training, validation and test queries


def rng(seed: int = 0) -> np.random.Generator:
    """Return a random generator."""
    return np.random.default_rng(seed)


def test_study_has_all_entries() -> None:
    expected = [
        "figure1",
        "figure2",
        "synthetic-clean",
        "synthetic-random",
        "synthetic-misleading",
        "grades-mq2008",
        "grades-ohsumed",
    ]
    assert list(LAN2013.entries) == expected
    assert DEPTHS[-2:] == (1000, "full")
    for entry in LAN2013.entries.values():
        for experiment in entry.experiments:
            assert experiment.function.__module__ in LAN2013.modules


def test_list_names_missing_data(tmp_path: Path) -> None:
    rows = {name: missing for name, _, missing in list_entries(tmp_path)}
    assert rows["lan2013/figure1"].startswith("needs mq2007-list in ")
    assert rows["lan2013/figure2"].startswith("needs mq2008-list in ")
    assert rows["lan2013/synthetic-misleading"] == ""


def test_ndcg_of_a_full_order_of_1000_documents_is_exact() -> None:
    n = 1000
    labels = rng(1).permutation(n).astype(float)
    scores = labels + 3 * rng(2).normal(size=n)
    values = evaluate(scores, labels, qid=np.zeros(n, int), measures=["NDCG@5", "NDCG@10"]).values[
        :, 0
    ]
    for cutoff, value in zip((5, 10), values, strict=True):
        ranked = labels[np.argsort(-scores)][:cutoff]
        discounts = [Fraction(1 / log2(j + 2)) for j in range(cutoff)]
        dcg = sum((2 ** int(y) - 1) * d for y, d in zip(ranked, discounts, strict=True))
        ideal = sum((2 ** (n - 1 - j) - 1) * d for j, d in enumerate(discounts))
        assert value == pytest.approx(float(dcg / ideal), rel=1e-12)
        assert value > 0


# ---- truths


def test_training_with_k_depends_only_on_the_top_k() -> None:
    train, valid, test = lists.synthetic_lists(3, "clean", 30, SMALL)
    k = 4
    top = train.with_labels(train.truth.top_k(k))
    for model in ("RankSVM", "RankNet"):  # pairs of different labels are the top-k pairs
        ours = lists.fit_top_k(model, k, {}, train, valid).predict(test)
        other = lists.fit_top_k(model, "full", {}, top, valid).predict(test)
        assert ours == pytest.approx(other, abs=1e-3)
    # the order below rank k has no effect
    labels = train.truth.labels.copy()
    for low in train.offsets[:-1].tolist():
        tail = low + np.flatnonzero(labels[low : low + 30] < 30 - k)
        labels[tail] = labels[tail][::-1]
    changed = train.with_labels(labels)
    for model in study.MODELS:
        before, after = (
            lists.fit_top_k(model, k, {}, data, valid).predict(test) for data in (train, changed)
        )
        assert before == pytest.approx(after, abs=1e-9)


def test_lists_differ_only_in_their_tails() -> None:
    n, top = 60, 9
    datasets = {
        tail: lists.synthetic_lists(7, tail, n, SMALL)[0]
        for tail in ("clean", "random", "misleading")
    }
    clean = datasets["clean"].truth
    for tail, data in datasets.items():
        assert np.array_equal(dense(data.X), dense(datasets["clean"].X))
        for low, high in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            y, labels = clean.labels[low:high], data.truth.labels[low:high]
            assert sorted(labels) == list(range(n))
            assert np.array_equal(labels[y >= n - top], y[y >= n - top])
            correlation = np.corrcoef(labels[y < n - top], y[y < n - top])[0, 1]
            assert (correlation > 0.999) == (tail == "clean")
    assert (
        max(int(depth) for depth in TOP_DEPTHS)
        <= round(lists.TOP_FRACTION * 500)
        < int(TAIL_DEPTHS[0])
    )


def test_training_validation_and_test_queries_are_disjoint() -> None:
    splits = lists.synthetic_lists(7, "random", 20, SMALL)
    assert [len(split) for split in splits] == list(SMALL)
    assert len({q for split in splits for q in split.queries}) == sum(SMALL)


# ---- curves


def test_full_order_fails_with_a_misleading_tail_but_not_with_a_random_one(monkeypatch) -> None:
    monkeypatch.setattr(lists.synthetic_lists, "__defaults__", ((20, 10, 40),))
    values = {}
    for tail in ("clean", "random", "misleading"):
        for row in lists.evaluate_on_synthetic_lists(
            rng(1), tail, 120, [1, 10, "full"], {"ListMLE": {}}
        ):
            values[tail, row["k"], row["measure"]] = row["value"]
    for tail in ("random", "misleading"):  # the top is the same
        expected = pytest.approx(values["clean", 10, "NDCG@10"], abs=1e-4)
        assert values[tail, 10, "NDCG@10"] == expected
    assert values["misleading", "full", "NDCG@10"] < 0.5 * values["misleading", 1, "NDCG@10"]
    assert values["random", "full", "NDCG@10"] > values["random", 1, "NDCG@10"]
    assert values["clean", "full", "NDCG@10"] > values["clean", 1, "NDCG@10"]


def test_parameters_are_best_on_validation_data() -> None:
    train, valid, _ = lists.synthetic_lists(3, "clean", 30, SMALL)
    grid = [0.001, 30.0, 1000.0]
    best = lists.fit_top_k("RankNet", 3, {"l2": grid}, train, valid)
    scores = [lists.fit_top_k("RankNet", 3, {"l2": [v]}, train, valid).score(valid) for v in grid]
    assert best.score(valid) == max(scores)


def write_lists(folder: Path, queries: int = 15, n: int = 25) -> Path:
    """Write folds like those of MQ2007-list: labels decrease with the rank and have gaps."""
    generator = rng(4)
    X = generator.normal(size=(queries * n, 4)).astype(np.float32)
    y = np.empty(queries * n)
    for low in range(0, queries * n, n):
        utility = X[low : low + n] @ np.array([2.0, 1.0, 0.0, -1.0])
        utility = utility + 0.3 * generator.normal(size=n)
        y[low + np.argsort(utility)] = 3 * np.arange(n)
    data = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(queries), n))
    fp.write_folds(data, folder)
    return folder


def tune_first_value(ranker, train, valid, grid):
    """Tune over the first value of each parameter only."""
    return tune(ranker, train, valid, {name: values[:1] for name, values in grid.items()})


def test_figure_1_runs_as_soon_as_its_data_exist(tmp_path: Path, monkeypatch, capsys) -> None:
    """In two of five folds."""
    write_lists(tmp_path / "MQ2007-list")
    monkeypatch.setattr(lists, "EXTRA_PARAMETERS", {"RankBoost": {"rounds": 5}})
    monkeypatch.setattr(lists, "tune", tune_first_value)
    entry = LAN2013.entries["figure1"]
    experiments = [x for x in entry.experiments if x.params["fold"] < 3]
    monkeypatch.setitem(LAN2013.entries, "figure1", replace(entry, experiments=experiments))
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "firstpage",
            "reproduce",
            "lan2013/fig1",
            "--data",
            str(tmp_path),
            "--jobs",
            "1",
            "--json",
        ],
    )
    with pytest.raises(SystemExit) as caught:
        main()
    assert not caught.value.code
    record = json.loads(capsys.readouterr().out)
    cells = record["cells"]
    assert len(cells) == 4 * len(DEPTHS) * 2
    assert cells[0].keys() == {
        "entry",
        "data",
        "model",
        "k",
        "measure",
        "paper",
        "ours",
        "se",
        "runs",
        "queries",
    }
    assert {c["queries"] for c in cells} == {6}
    assert all(c["data"] == "MQ2007-list" for c in cells)
    values = {(c["model"], c["k"], c["measure"]): c["ours"] for c in cells}
    assert values["ListMLE", "full", "NDCG@10"] > 0.6  # larger labels are better
    # lists are shorter than 500
    assert values["ListMLE", "full", "NDCG@10"] == values["ListMLE", 500, "NDCG@10"]
    assert len(record["claims"]) == 5


def test_graded_lists_are_measured_by_order_and_by_grades(tmp_path: Path) -> None:
    fp.write_folds(fp.Synthetic(queries=15, docs=12, features=4, grades=3).dataset(), tmp_path)
    first, second = (
        lists.evaluate_on_graded_lists(
            rng(seed), "X", "ListMLE", [1, "full"], {}, "minmax", 1, str(tmp_path)
        )
        for seed in (1, 2)
    )
    assert [row["measure"] for row in first[:3]] == ["NDCG@5", "NDCG@10", "NDCG@10, grades"]
    assert [row["k"] for row in first] == [1, 1, 1, "full", "full", "full"]
    assert all(len(row["queries"]) == 3 for row in first)
    assert first[0]["value"] != second[0]["value"]  # another order of ties
    assert first == lists.evaluate_on_graded_lists(
        rng(1), "X", "ListMLE", [1, "full"], {}, "minmax", 1, str(tmp_path)
    )


@pytest.mark.data
def test_graded_lists_of_mq2008(real_data: Path) -> None:
    rows = lists.evaluate_on_graded_lists(
        rng(),
        "MQ2008",
        "ListMLE",
        [1, 10, "full"],
        GRIDS["ListMLE"],
        None,
        1,
        str(real_data / "mq2008"),
    )
    values = {(row["k"], row["measure"]): row["value"] for row in rows}
    assert values[10, "NDCG@10, grades"] > 0.45
    assert abs(values["full", "NDCG@10"] - values[10, "NDCG@10"]) < 0.03
    assert values[10, "NDCG@10"] > values[1, "NDCG@10"]


# ---- verdicts


def example_cells(means: dict[Any, float]) -> Cells:
    """Return cells with these means by k, the same for all rankers and measures."""
    noise = np.array([-0.001, 0.0, 0.001, 0.0])
    return Cells(
        Cell({"model": model, "measure": m, "k": k}, np.roll(noise, i) + value)
        for model in study.MODELS
        for m in (*lists.MEASURES, "NDCG@10, grades")
        for i, (k, value) in enumerate(means.items())
    )


def test_verdicts_on_curves() -> None:
    rising: dict[Any, float] = {1: 0.2, 10: 0.3, 20: 0.301}
    stable = example_cells({**rising, 50: 0.302, 100: 0.3, 1000: 0.299, "full": 0.3})
    falling = example_cells({**rising, 50: 0.302, 100: 0.3, 1000: 0.2, "full": 0.1})
    still_rising = example_cells({**rising, 50: 0.33, 100: 0.35, 1000: 0.36, "full": 0.4})
    claims = (
        study.rises, study.stable(100), study.stable("full"), study.sufficient,
        study.drops(100, 1000), study.full_order_below_top_1, study.rises_and_drops,
        study.sufficient_by("NDCG@10, grades"),
    )  # fmt: skip
    yes, no = "holds", "does not hold"
    verdicts = [
        [claim(cells).verdict for claim in claims] for cells in (stable, falling, still_rising)
    ]
    assert verdicts[0][:4] == [yes, yes, yes, yes]
    assert verdicts[0][5:] == [no, "inconclusive" if verdicts[0][6] != yes else yes, yes]
    assert verdicts[1] == [yes, yes, no, yes, yes, yes, yes, yes]
    assert verdicts[2] == [yes, no, no, no, no, no, no, no]
    assert "largest difference at k = full" in study.stable("full")(falling).evidence


def test_claims_of_all_entries_are_evaluated() -> None:
    for entry in LAN2013.entries.values():
        ks = DEPTHS if entry.name.startswith("figure") else (*TOP_DEPTHS, *TAIL_DEPTHS)
        ks = GRADED_DEPTHS if entry.name.startswith("grades") else ks
        claims = entry.evaluate_claims(example_cells(dict.fromkeys(ks, 0.3)))
        assert len(claims) >= 3
        assert {claim.held_equal for claim in claims} == {entry.held_equal}
        assert all(claim.evidence for claim in claims)
