"""Lan et al. (2013): truths, curves and verdicts, on small lists."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from math import log2
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.cli import main
from firstpage.measures.evaluate import evaluate
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
from firstpage.rankers.selection.tuning import tune

SMALL = (5, 3, 4)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_both_figures_and_ours_are_there() -> None:
    wanted = ["figure1", "figure2", "synthetic-clean", "synthetic-random", "synthetic-other",
              "grades-mq2008", "grades-ohsumed"]  # fmt: skip
    assert list(LAN2013.entries) == wanted
    assert DEPTHS[-2:] == (1000, "full")
    for entry in LAN2013.entries.values():
        for work in entry.experiments:
            assert work.function.__module__ in LAN2013.modules


def test_the_list_names_what_is_missing(tmp_path: Path) -> None:
    rows = {name: lost for name, _, lost in list_entries(tmp_path)}
    assert rows["lan2013/figure1"].startswith("needs mq2007-list in ")
    assert rows["lan2013/figure2"].startswith("needs mq2008-list in ")
    assert rows["lan2013/synthetic-other"] == ""


def test_ndcg_of_full_orders_of_a_thousand_is_exact() -> None:
    n = 1000
    labels = rng(1).permutation(n).astype(float)
    scores = labels + 3 * rng(2).normal(size=n)
    found = evaluate(scores, labels, qid=np.zeros(n, int), measures=["NDCG@5", "NDCG@10"]).values[
        :, 0
    ]
    for cut, value in zip((5, 10), found, strict=True):
        shown = labels[np.argsort(-scores)][:cut]
        discount = [Fraction(1 / log2(j + 2)) for j in range(cut)]
        gain = sum((2 ** int(y) - 1) * d for y, d in zip(shown, discount, strict=True))
        best = sum((2 ** (n - 1 - j) - 1) * d for j, d in enumerate(discount))
        assert value == pytest.approx(float(gain / best), rel=1e-12)
        assert value > 0


# ---- truths


@pytest.mark.slow
def test_training_with_k_sees_the_top_k_truth_alone() -> None:
    train, valid, test = lists.synthetic_lists(3, "clean", 30, SMALL)
    k = 4
    top = train.with_labels(train.truth.top_k(k))
    for model in ("RankSVM", "RankNet"):  # pairs of different labels are the top-k pairs
        ours = lists.fit_top_k(model, k, {}, train, valid).predict(test)
        other = lists.fit_top_k(model, "full", {}, top, valid).predict(test)
        assert ours == pytest.approx(other, abs=1e-3)
    # nothing below place k is looked at
    labels = train.truth.labels.copy()
    for low in train.offsets[:-1].tolist():
        tail = low + np.flatnonzero(labels[low : low + 30] < 30 - k)
        labels[tail] = labels[tail][::-1]
    mixed = train.with_labels(labels)
    for model in study.MODELS:
        one, two = (lists.fit_top_k(model, k, {}, t, valid).predict(test) for t in (train, mixed))
        assert one == pytest.approx(two, abs=1e-9)


def test_tails_differ_and_tops_do_not() -> None:
    n, top = 60, 9
    every = {
        tail: lists.synthetic_lists(7, tail, n, SMALL)[0] for tail in ("clean", "random", "other")
    }
    clean = every["clean"].truth
    for tail, data in every.items():
        assert np.array_equal(data.X, every["clean"].X)
        for low, high in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            y, own = clean.labels[low:high], data.truth.labels[low:high]
            assert sorted(own) == list(range(n))
            assert np.array_equal(own[y >= n - top], y[y >= n - top])
            below = np.corrcoef(own[y < n - top], y[y < n - top])[0, 1]
            assert (below > 0.999) == (tail == "clean")
    assert max(TOP_DEPTHS) <= round(lists.TOP_FRACTION * 500) < TAIL_DEPTHS[0]  # type: ignore[type-var]


def test_parts_of_a_run_are_other_queries() -> None:
    parts = lists.synthetic_lists(7, "random", 20, SMALL)
    assert [len(part) for part in parts] == list(SMALL)
    assert len({q for part in parts for q in part.queries}) == sum(SMALL)


# ---- curves


@pytest.mark.slow
def test_a_misleading_tail_collapses_and_a_random_one_does_not(monkeypatch) -> None:
    monkeypatch.setattr(lists.synthetic_lists, "__defaults__", ((20, 10, 40),))
    at = {}
    for tail in ("clean", "random", "other"):
        for row in lists.evaluate_on_synthetic_lists(
            rng(1), tail, 120, [1, 10, "full"], {"ListMLE": {}}
        ):
            at[tail, row["k"], row["measure"]] = row["value"]
    for tail in ("random", "other"):  # what counts at the top is the same
        assert at[tail, 10, "NDCG@10"] == pytest.approx(at["clean", 10, "NDCG@10"], abs=1e-4)
    assert at["other", "full", "NDCG@10"] < 0.5 * at["other", 1, "NDCG@10"]
    assert at["random", "full", "NDCG@10"] > at["random", 1, "NDCG@10"]
    assert at["clean", "full", "NDCG@10"] > at["clean", 1, "NDCG@10"]


def test_parameters_are_those_that_are_best_on_validation_data() -> None:
    train, valid, _ = lists.synthetic_lists(3, "clean", 30, SMALL)
    every = [0.001, 30.0, 1000.0]
    best = lists.fit_top_k("RankNet", 3, {"l2": every}, train, valid)
    scores = [lists.fit_top_k("RankNet", 3, {"l2": [v]}, train, valid).score(valid) for v in every]
    assert best.score(valid) == max(scores)


def write_lists(folder: Path, queries: int = 15, n: int = 25) -> Path:
    """A folder as MQ2007-list has it: the label is larger nearer the top, and has gaps."""
    draw = rng(4)
    X = draw.normal(size=(queries * n, 4)).astype(np.float32)
    y = np.empty(queries * n)
    for low in range(0, queries * n, n):
        seen = X[low : low + n] @ np.array([2.0, 1.0, 0.0, -1.0]) + 0.3 * draw.normal(size=n)
        y[low + np.argsort(seen)] = 3 * np.arange(n)
    data = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(queries), n))
    fp.write_folds(data, folder)
    return folder


def first_of_the_grid(ranker, train, valid, grid):
    return tune(ranker, train, valid, {name: values[:1] for name, values in grid.items()})


@pytest.mark.slow
def test_figure1_runs_the_moment_its_folder_is_there(tmp_path: Path, monkeypatch, capsys) -> None:
    write_lists(tmp_path / "MQ2007-list")
    monkeypatch.setattr(lists, "EXTRA_PARAMETERS", {"RankBoost": {"rounds": 5}})
    monkeypatch.setattr(lists, "tune", first_of_the_grid)
    monkeypatch.setattr(
        sys, "argv",
        ["firstpage", "reproduce", "lan2013/fig1", "--data", str(tmp_path), "--jobs", "1", "--json"],
    )  # fmt: skip
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    found = json.loads(capsys.readouterr().out)
    cells = found["cells"]
    assert len(cells) == 4 * len(DEPTHS) * 2
    assert cells[0].keys() == {"entry", "data", "model", "k", "measure", "paper", "ours", "se",
                               "runs", "queries"}  # fmt: skip
    assert {c["queries"] for c in cells} == {15}
    assert all(c["data"] == "MQ2007-list" for c in cells)
    at = {(c["model"], c["k"], c["measure"]): c["ours"] for c in cells}
    assert at["ListMLE", "full", "NDCG@10"] > 0.6  # the label's direction is right
    assert at["ListMLE", "full", "NDCG@10"] == at["ListMLE", 500, "NDCG@10"]  # lists end before
    assert len(found["claims"]) == 5


def test_grades_are_tested_as_orders_and_as_grades(tmp_path: Path) -> None:
    fp.write_folds(fp.Synthetic(queries=15, docs=12, features=4, grades=3).dataset(), tmp_path)
    one, two = (
        lists.evaluate_on_graded_lists(
            rng(seed), "X", "ListMLE", [1, "full"], {}, "minmax", 1, str(tmp_path)
        )
        for seed in (1, 2)
    )
    assert [row["measure"] for row in one[:3]] == ["NDCG@5", "NDCG@10", "NDCG@10, grades"]
    assert [row["k"] for row in one] == [1, 1, 1, "full", "full", "full"]
    assert all(len(row["queries"]) == 3 for row in one)
    assert one[0]["value"] != two[0]["value"]  # another order of equals
    assert one == lists.evaluate_on_graded_lists(
        rng(1), "X", "ListMLE", [1, "full"], {}, "minmax", 1, str(tmp_path)
    )


@pytest.mark.data
def test_real_grades(real_data: Path) -> None:
    rows = lists.evaluate_on_graded_lists(
        rng(), "MQ2008", "ListMLE", [1, 10, "full"], GRIDS["ListMLE"], None, 1,
        str(real_data / "mq2008"),
    )  # fmt: skip
    at = {(row["k"], row["measure"]): row["value"] for row in rows}
    assert at[10, "NDCG@10, grades"] > 0.45
    assert abs(at["full", "NDCG@10"] - at[10, "NDCG@10"]) < 0.03
    assert at[10, "NDCG@10"] > at[1, "NDCG@10"]


# ---- verdicts


def made_up(heights: dict[object, float]) -> Cells:
    """All rankers alike, with a curve of these heights."""
    wobble = np.array([-0.001, 0.0, 0.001, 0.0])
    return Cells(
        Cell({"model": model, "measure": m, "k": k}, np.roll(wobble, i) + value)
        for model in study.MODELS
        for m in (*lists.MEASURES, "NDCG@10, grades")
        for i, (k, value) in enumerate(heights.items())
    )


def test_verdicts_on_shapes() -> None:
    up = {1: 0.2, 10: 0.3, 20: 0.301}
    flat = made_up({**up, 50: 0.302, 100: 0.3, 1000: 0.299, "full": 0.3})
    falls = made_up({**up, 50: 0.302, 100: 0.3, 1000: 0.2, "full": 0.1})
    climbs = made_up({**up, 50: 0.33, 100: 0.35, 1000: 0.36, "full": 0.4})
    judges = (
        study.rises, study.stable(100), study.stable("full"), study.sufficient,
        study.drops(100, 1000), study.full_order_below_top_1, study.rises_and_drops,
        study.sufficient_by("NDCG@10, grades"),
    )  # fmt: skip
    yes, no = "holds", "does not hold"
    told = [[judge(cells).verdict for judge in judges] for cells in (flat, falls, climbs)]
    assert told[0][:4] == [yes, yes, yes, yes]
    assert told[0][5:] == [no, "inconclusive" if told[0][6] != yes else yes, yes]
    assert told[1] == [yes, yes, no, yes, yes, yes, yes, yes]
    assert told[2] == [yes, no, no, no, no, no, no, no]
    assert "largest difference at k = full" in study.stable("full")(falls).evidence


@pytest.mark.slow
def test_all_claims_of_all_entries_can_be_judged() -> None:
    for entry in LAN2013.entries.values():
        ks = DEPTHS if entry.name.startswith("figure") else (*TOP_DEPTHS, *TAIL_DEPTHS)
        ks = GRADED_DEPTHS if entry.name.startswith("grades") else ks
        claims = entry.evaluate_claims(made_up(dict.fromkeys(ks, 0.3)))
        assert len(claims) >= 3
        assert {claim.held_equal for claim in claims} == {entry.held_equal}
        assert all(claim.evidence for claim in claims)
