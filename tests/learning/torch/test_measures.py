"""Measures in training loops against `fp.evaluate`."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from tests.patience import PATIENCE

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[3]
CONDENSED = fp.Convention(condensed=True)
SHUFFLED = fp.Convention(ties="shuffle")


def batch(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.normal(size=(4, 12)).round(1))
    labels = torch.tensor(rng.integers(0, 4, (4, 12)))
    mask = torch.tensor(rng.random((4, 12)) < 0.7)
    if seed == 1:
        mask[2] = False  # a list without documents is not counted
    return scores, labels, mask


def expected(measure: str, convention: Any = "default") -> float:
    scores, labels, qid = [], [], []
    numbers = count()
    for seed in range(3):
        s, y, m = batch(seed)
        for q in range(4):
            scores += s[q][m[q]].tolist()
            labels += y[q][m[q]].tolist()
            if m[q].any():
                qid += [next(numbers)] * int(m[q].sum())
    return fp.evaluate(scores, labels, qid=qid, measures=measure, convention=convention)[measure]


@pytest.mark.parametrize(
    "measure", ["NDCG@3", "AP", "RR", "P@5", "ERR(max=3)@5", "RBP", "GMAP", "NumRel", "NumQ"]
)
@pytest.mark.parametrize(
    "convention", ["default", "letor", SHUFFLED], ids=["default", "letor", "shuffled"]
)
def test_means_equal_those_of_evaluate(measure: str, convention: Any) -> None:
    metric = fp.torch.RankingMeasure(measure, convention=convention)
    for _ in range(2):
        for seed in range(3):
            metric.update(*batch(seed))
        assert float(metric.compute()) == pytest.approx(expected(measure, convention), abs=1e-12)
        metric.reset()


def test_forward_returns_the_mean_of_the_batch_and_adds_it() -> None:
    metric, alone = fp.torch.RankingMeasure("NDCG@3"), fp.torch.RankingMeasure("NDCG@3")
    for seed in range(3):
        alone.reset()
        alone.update(*batch(seed))
        assert metric(*batch(seed)) == alone.compute()
    assert float(metric.compute()) == pytest.approx(expected("NDCG@3"), abs=1e-12)
    assert int(metric.count) == 11


def test_flat_scores() -> None:
    scores, labels, mask = batch(1)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
    flat, padded = fp.torch.RankingMeasure("AP"), fp.torch.RankingMeasure("AP")
    flat.update(scores[mask], labels[mask], offsets=offsets)
    padded.update(scores, labels, mask)
    assert flat.compute() == padded.compute()


def test_mistakes() -> None:
    metric = fp.torch.RankingMeasure("AP")
    with pytest.raises(fp.DataError, match="AP has no value yet"):
        metric.compute()
    with pytest.raises(fp.DataError, match="differ in shape"):
        metric.update(torch.zeros(2, 3), torch.zeros(3, 2))
    with pytest.raises(fp.DataError, match="a score is nan"):
        metric.update(torch.full((1, 2), float("nan")), torch.zeros(1, 2))
    with pytest.raises(fp.MeasureError):
        fp.torch.RankingMeasure("NDGC@10")
    with pytest.raises(fp.MeasureError, match="depends on the greatest label of all lists"):
        fp.torch.RankingMeasure("ERR@10")
    with pytest.raises(fp.MeasureError, match="ties by document id"):
        fp.torch.RankingMeasure("AP", convention="trec")
    for options in ({"measure": "P(condensed=true)@5"}, {"convention": CONDENSED}):
        with pytest.raises(fp.MeasureError, match=r"condensed lists .* unjudged documents"):
            fp.torch.RankingMeasure(**options)
    assert repr(metric) == "RankingMeasure('AP', convention='default')"


def value_of_two_processes(rank: int, folder: str) -> float:
    """Return the mean over the batches of two processes, of which this is one."""
    torch.distributed.init_process_group(
        "gloo",
        timeout=timedelta(seconds=PATIENCE),
        init_method=f"file://{folder}/init",
        rank=rank,
        world_size=2,
    )
    metric = fp.torch.RankingMeasure("NDCG@3")
    for seed in range(rank, 3, 2):
        metric.update(*batch(seed))
    value = float(metric.compute())
    torch.distributed.destroy_process_group()
    return value


@pytest.mark.slow
def test_processes_add_their_sums(tmp_path: Path) -> None:
    if not torch.distributed.is_gloo_available():
        pytest.skip("gloo is not available")
    code = "import sys; from tests.learning.torch import test_measures as t; "
    code += "print(t.value_of_two_processes(1, sys.argv[1]))"
    command = [sys.executable, "-c", code, tmp_path]
    other = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    values = [value_of_two_processes(0, str(tmp_path)), float(other.communicate()[0])]
    assert values == pytest.approx([expected("NDCG@3")] * 2, abs=1e-12)


@pytest.mark.parametrize("convert", ["bfloat16", "half", "float"])
def test_sums_stay_precise_in_modules_of_lower_precision(convert: str) -> None:
    metric = fp.torch.RankingMeasure("NDCG@3")
    getattr(torch.nn.Sequential(metric, torch.nn.Linear(1, 1)), convert)()
    for seed in range(3):
        metric.update(*batch(seed))
    assert float(metric.compute()) == pytest.approx(expected("NDCG@3"), abs=1e-12)
