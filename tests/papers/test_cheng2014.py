"""Cheng et al. (2014): the figures on tiny data, TopRank by hand, and MQ2008."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

import firstpage as fp
from firstpage.papers.cheng2014 import study, training
from firstpage.papers.cheng2014.study import CHENG2014
from firstpage.papers.study.letor_protocol import FOLDS
from firstpage.papers.study.run import run_study
from firstpage.papers.study.study import Cell, Cells, Claim, RunPlan
from tests.papers.folders import letor

pytestmark = pytest.mark.filterwarnings("ignore::firstpage.errors.FirstpageWarning")
VERDICTS = {"holds", "does not hold", "inconclusive"}
MODELS = list(study.ALL_RANKERS)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """One value instead of four."""
    for name, grid in training.GRIDS.items():
        one = {parameter: values[2:3] for parameter, values in grid.items()}
        monkeypatch.setitem(training.GRIDS, name, one)  # type: ignore[arg-type]


def done(
    names: list[str], data: Path, folds: tuple[int, ...] = FOLDS
) -> dict[str, tuple[Cells, list[Claim]]]:
    every = [CHENG2014.entries[name] for name in names]
    entries = [
        replace(e, experiments=[w for w in e.experiments if w.params["fold"] in folds])
        for e in every
    ]
    found = run_study(CHENG2014, entries, RunPlan(seeds=1, data=data))
    return {o.entry.name: (o.cells, list(o.claims)) for o in found.results}


def test_all_figures_are_there() -> None:
    wanted = {f"figure{n}{d}" for n in (2, 3, 4) for d in ("", "-td2003", "-td2004", "-mq2008")}
    assert wanted | {"figure4-all"} <= set(CHENG2014.entries)
    assert CHENG2014.entries["figure3-td2004"].datasets == ["td2004"]
    assert CHENG2014.entries["figure4-all"].datasets == ["ohsumed", "td2003", "td2004"]
    assert set(training.COSTS) < set(fp.TopSlack._grid["C"])  # a part of the paper's


def test_every_ranker_of_figure_4_chooses_among_as_many_values() -> None:
    own = {name: len(values) for name, grid in training.GRIDS.items() for values in grid.values()}
    assert set(own) == {*training.SCALINGS, *training.VOTERS, "ListMLE"}
    assert set(own.values()) == {4}


def test_what_figure_4_compares_is_chosen_on_validation_data(
    tmp_path: Path, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = []

    def tune(ranker, train, valid, grid):
        tuned.append((type(ranker).__name__, ranker.measure))
        ranker.set_params(**{name: values[0] for name, values in grid.items()})
        return SimpleNamespace(best=ranker.fit(train))

    monkeypatch.setattr(training, "tune", tune)
    folder = str(letor(tmp_path / "ohsumed"))
    for do in (training.evaluate_rankers, training.evaluate_listmle):
        do(np.random.default_rng(0), "OHSUMED", "precision", 1, folder)
    assert sorted(tuned) == [
        (name, "P@10")
        for name in ("ListMLE", "ListNet", "RankSVM", "Regression", "TopMargin", "TopSlack")
    ]


def test_every_work_is_a_function_of_a_room() -> None:
    for entry in CHENG2014.entries.values():
        for work in entry.experiments:
            assert work.function.__qualname__ == work.function.__name__
            assert work.function.__module__ in CHENG2014.modules


def test_what_the_paper_says_of_its_points_adds_up() -> None:
    ahead = {data: len(study.MEASURES) - len(m) for data, m in study.TOPMARGIN_AHEAD.items()}
    assert ahead == {"OHSUMED": 5, "TD2003": 3, "TD2004": 4}
    assert len(study.PAPER_DATASETS) * len(study.MEASURES) == 11 + 7


# ---- runs on tiny data


@pytest.mark.slow
def test_the_figures_of_one_data_set(tmp_path: Path, hasty: None) -> None:
    letor(tmp_path / "ohsumed")
    found = done(["figure2", "figure3", "figure4", "votes-ohsumed"], tmp_path)
    assert found["figure2"][0].label_values("model") == ["TopMargin", "TopSlack"]
    assert found["figure3"][0].label_values("model") == ["TopSlack", "TopRank"]
    assert set(found["figure4"][0].label_values("model")) == set(MODELS)
    assert found["figure4"][0].label_values("measure") == list(study.MEASURES)
    assert len(found["votes-ohsumed"][0]) == 6 * len(training.VARIANTS)
    for cells, claims in found.values():
        assert all(len(c.samples) == 25 for c in cells)
        assert claims
        assert {c.verdict for c in claims} <= VERDICTS
    texts = [c.text for c in found["figure2"][1]]
    assert texts[1:] == ["TopSlack is better at NDCG@1, NDCG@3, NDCG@10, P@1, P@3",
                         "TopMargin is better at P@10"]  # fmt: skip


@pytest.mark.slow
def test_data_that_are_missing_here_run_where_they_are(tmp_path: Path, hasty: None) -> None:
    letor(tmp_path / "ohsumed")
    letor(tmp_path / "td2003", grades=2, old=True)
    lost = run_study(CHENG2014, [CHENG2014.entries["figure4-all"]], RunPlan(data=tmp_path))
    assert lost.results[0].missing == f"needs td2004 in {tmp_path}"
    letor(tmp_path / "TD2004", grades=2, old=True)
    found = done(["figure4-all", "figure3-td2004", "figure4-td2004"], tmp_path, (2,))
    assert len(found["figure4-all"][0]) == 3 * 6 * len(MODELS)
    assert found["figure4-all"][1][0].evidence.startswith("first at ")
    gains = [c.text for c in found["figure3-td2004"][1][2:]]
    assert gains[0] == "TopRank gains 17.2% over TopSlack at NDCG@1"
    assert found["figure4-td2004"][1][0].text.startswith("RankSVM is much better")


def test_slack_and_margin_with_all_else_alike(tmp_path: Path) -> None:
    folder = str(letor(tmp_path / "mq2008"))
    rows = training.evaluate_scalings(
        np.random.default_rng(0), "MQ2008", "precision", 10.0, 1, folder
    )
    at = {(r["model"], r["measure"]): r["value"] for r in rows}
    assert set(at) == {
        (name, m) for name in training.SCALINGS
        for m in ("P@1", "P@3", "P@10", "folds at w = 0, precision")
    }  # fmt: skip
    assert at["TopMargin", "folds at w = 0, precision"] == 0.0


# ---- votes


def parts(tmp_path: Path) -> tuple[fp.Ranker, list[fp.Ranker], fp.Dataset, fp.Dataset]:
    data = fp.Synthetic(queries=30, docs="uniform(3, 30)", features=6, grades=3, seed=1).dataset()
    train, valid, test = data[:10], data[10:20], data[20:]
    first = fp.TopSlack(normalize="minmax").fit(train)
    voters = [fp.ranker(name, normalize="minmax").fit(train) for name in training.VOTERS]
    return first, voters, valid, test


@pytest.mark.parametrize("credit", ["paper", "extended"])
@pytest.mark.parametrize("depth", [5, 100])
def test_votes_are_those_of_the_ranker(tmp_path: Path, credit: str, depth: int) -> None:
    first, voters, valid, test = parts(tmp_path)
    how = training.VotingRule(credit=credit, depth=depth)  # type: ignore[arg-type]
    ours = training.toprank_scores(first, voters, how, valid, test, "NDCG@10")
    frozen = [FrozenEstimator(v) for v in voters]
    ranker = fp.TopRank(first=FrozenEstimator(first), voters=frozen, depth=depth, credit=credit)
    assert ours.tolist() == ranker.fit(valid, valid=valid).predict(test).tolist()


def by_hand(first: np.ndarray, votes: list[np.ndarray], weights: list[float]) -> list[int]:
    """Algorithm 2 as printed, with the pivot rule of the spec; documents, best first."""
    t = len(first)
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

    return sort(np.argsort(-first, kind="stable").tolist())


def test_votes_by_hand(tmp_path: Path) -> None:
    first, voters, valid, test = parts(tmp_path)
    ours = training.toprank_scores(
        first, voters, training.VotingRule(equal_weights=True), valid, test, "NDCG@10"
    )
    for q in range(len(test)):
        lo, hi = test.offsets[q], test.offsets[q + 1]
        votes = [v.predict(test)[lo:hi] for v in voters]
        wanted = by_hand(first.predict(test)[lo:hi], votes, [1.0, 1.0, 1.0])
        assert np.argsort(-ours[lo:hi]).tolist() == wanted


def test_variants_change_something(tmp_path: Path) -> None:
    first, voters, valid, test = parts(tmp_path)
    base = training.toprank_scores(first, voters, training.VotingRule(), valid, test, "P@10")
    for name in (
        "extended credit",
        "credit for the whole list (k = t)",
        "t = length of the shortest list",
    ):
        other = training.toprank_scores(first, voters, training.VARIANTS[name], valid, test, "P@10")
        assert (other != base).any(), name
    alone = training.toprank_scores(
        first, voters, training.VotingRule(depth=1), valid, test, "P@10"
    )
    assert fp.evaluate(alone, test)["NDCG@10"] == fp.evaluate(first.predict(test), test)["NDCG@10"]


# ---- verdicts


def cells_of(means: dict[str, float], spread: float = 0.01) -> Cells:
    draw = np.random.default_rng(0)
    return Cells(
        Cell({"data": "OHSUMED", "model": name, "measure": m}, np.array([v]), None,
             v + spread * draw.normal(size=200))
        for name, v in means.items() for m in study.MEASURES
    )  # fmt: skip


def test_verdicts_follow_the_numbers() -> None:
    better = dict.fromkeys(MODELS, 0.4) | {"TopRank": 0.5, training.LISTMLE: 0.45}
    claims = {c.text: c for c in study.comparison_claims("OHSUMED")(cells_of(better))}
    top = claims["TopRank is better than all rankers that are not top-k rankers, at every measure"]
    assert top.verdict == "holds"
    assert top.evidence.startswith("of 30 comparisons 30 hold")
    assert claims["TopRank is the best or the second at every measure"].verdict == "holds"
    assert claims[f"TopRank is worse than {training.LISTMLE} at P@1"].verdict == "does not hold"
    worse = better | {"TopRank": 0.3}
    claims = {c.text: c for c in study.comparison_claims("MQ2008")(cells_of(worse))}
    assert claims["TopRank is the best or the second at every measure"].verdict == "does not hold"
    assert all(c.source == "ours" for c in claims.values())


def test_most_cannot_be_told_from_noise() -> None:
    close = {"TopMargin": 0.4, "TopSlack": 0.4005}
    assert study.better_at_most("x", cells_of(close, 0.2), "TopSlack", "TopMargin").verdict == (
        "inconclusive"
    )
    clear = {"TopMargin": 0.4, "TopSlack": 0.45}
    assert study.better_at_most("x", cells_of(clear), "TopSlack", "TopMargin").verdict == "holds"
    assert (
        study.better_at_most("x", cells_of(clear), "TopMargin", "TopSlack").verdict
        == "does not hold"
    )


def test_a_gain_is_a_share() -> None:
    cells = cells_of({"TopSlack": 0.4, "TopRank": 0.4 * 1.172}, 0.0)
    assert study._gain(cells, "NDCG@1", 0.172).verdict == "holds"
    assert study._gain(cells, "NDCG@10", 0.436).verdict == "does not hold"


@pytest.mark.data
def test_votes_are_about_as_good_as_the_voters(real_data: Path, hasty: None) -> None:
    """MQ2008, one fold, one value of each parameter."""
    rows = training.evaluate_rankers(
        np.random.default_rng(0), "MQ2008", "NDCG", 1, str(real_data / "mq2008")
    )
    at = {(r["model"], r["measure"]): r["value"] for r in rows if "variant" not in r}
    voters = [at[name, "NDCG@3"] for name in training.VOTERS]
    assert min(voters) - 0.01 < at["TopRank", "NDCG@3"] < max(voters) + 0.01
    assert all(0.2 < v < 0.7 for (_, m), v in at.items() if m == "NDCG@3")
