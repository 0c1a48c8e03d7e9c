"""Measures as sums over ranks: the forms of this package, and those of measures of one's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core import FirstpageError
from firstpage.evaluation.measures.base import Convention, Measure, rank_lists
from firstpage.evaluation.measures.registry import measure_classes
from firstpage.learning.losses.lambdaloss import LambdaLoss
from firstpage.learning.losses.measure_forms import measure_form
from firstpage.learning.losses.plrank import ExpectedMeasure
from tests.learning.losses.test_plrank import MEASURES as TEXTS
from tests.learning.losses.test_plrank import learned_measures

DATA = fp.Synthetic(queries=30, docs="uniform(1, 12)", features=4, grades=4, seed=2).dataset()
DEFAULT = Convention()


def plain_values(form: Any, order: np.ndarray, offsets: np.ndarray) -> list[float]:
    """Return the sums over ranks, in Python."""
    values = []
    for q, (lo, hi) in enumerate(itertools.pairwise(offsets)):
        total, state = 0.0, 1.0
        for rank, row in enumerate(order[lo:hi]):
            if isinstance(form, fp.extend.TableForm):
                total += form.table[rank, form.columns[row]] if rank < len(form.table) else 0.0
                continue
            gain = form.gains[row]
            if rank < len(form.discounts[: form.depth]):
                total += gain * form.discounts[rank] * state
            if isinstance(form, fp.extend.CascadeForm):
                state *= 1 - gain
            elif isinstance(form, fp.extend.PrecisionForm):
                state += gain
        values.append(total * (1.0 if form.scale is None else form.scale[q]))
    return values


@pytest.mark.parametrize("measure", [*map(fp.measure, TEXTS), *learned_measures()], ids=str)
def test_forms_add_up_to_the_measure(measure: Measure) -> None:
    truth = DATA.truth
    scores = np.random.default_rng(1).permutation(DATA.n_docs).astype(float)
    order = np.lexsort((-scores, np.repeat(np.arange(len(truth)), truth.lengths)))
    form = measure.rank_form(rank_lists(truth.labels, truth, DEFAULT))
    expected = measure.values(rank_lists(scores, truth, DEFAULT), DEFAULT)
    assert plain_values(form, order, truth.offsets) == pytest.approx(expected)
    assert measure_form(measure, truth).values(order, truth.offsets) == pytest.approx(expected)


def test_a_class_with_other_values_has_no_form() -> None:
    """GMAP is derived from AP, whose form is not that of GMAP."""
    with_form = {
        cls.__name__ for cls in measure_classes() if cls.rank_form is not Measure.rank_form
    }
    assert with_form == {
        "NDCG", "DCG", "ERR", "kNDCG", "kERR", "AP", "P", "Recall", "RR", "Success", "RBP",
    }  # fmt: skip
    for text, expected in (("GMAP", False), ("RBP(gain=exp)", False), ("RBP", True), ("AP", True)):
        assert fp.measure(text).has_rank_form is expected


@dataclass(frozen=True)
class FirstGrades(fp.extend.Measure):
    """The sum of the labels of the first k documents, halved from rank to rank."""

    cutoff: int = 3

    def values(self, lists: Any, convention: Any) -> np.ndarray:
        rank = np.arange(len(lists.labels)) - np.repeat(lists.offsets[:-1], lists.lengths)
        gains = lists.labels * np.where(rank < self.cutoff, 0.5**rank, 0.0)
        return np.add.reduceat(gains, lists.offsets[:-1])

    def rank_form(self, lists: Any) -> fp.extend.AdditiveForm:
        return fp.extend.AdditiveForm(lists.pool, np.exp2(-np.arange(30.0)), depth=self.cutoff)


def form_of(make: Callable[[Any], Any]) -> fp.extend.Measure:
    """Return the measure above with another form."""

    class Other(FirstGrades):
        def rank_form(self, lists: Any) -> Any:
            return make(lists)

    return Other()


def test_a_measure_of_ones_own_is_maximized() -> None:
    measure: Any = FirstGrades()
    random = fp.evaluate(np.random.default_rng(0).random(DATA.n_docs), DATA, measures=measure)
    for ranker in (
        fp.LambdaRank(measure=measure, solver="adam(rate=0.05, max_iter=30)"),
        fp.PLRank(measure=measure, solver="adam(rate=0.05, max_iter=30)"),
        fp.CoordinateAscent(measure=measure, restarts=0),
    ):
        scores = ranker.fit(DATA).predict(DATA)
        reached = fp.evaluate(scores, DATA, measures=measure)
        assert reached.values.mean() > random.values.mean() + 0.3, ranker


def test_the_loss_of_an_equal_measure_is_equal() -> None:
    """The own form is that of a DCG with gains and discounts, of which the greatest are 1."""
    utility = fp.dcglearn.Utility.from_gains(gains=[0, 1, 2, 3], discounts=[1.0, 0.5, 0.25])
    equal: Any = fp.measure("DCG", of=utility)
    own: Any = FirstGrades()
    scores = np.random.default_rng(3).normal(size=DATA.n_docs)
    for loss in (LambdaLoss, ExpectedMeasure):
        first, second = (loss(measure=m).value_grad(scores, DATA.truth) for m in (own, equal))
        assert first[0] == pytest.approx(3 * second[0])
        assert first[1] == pytest.approx(3 * second[1])


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (form_of(lambda lists: None), "its rank_form is None"),
        (
            form_of(lambda lists: fp.extend.AdditiveForm(lists.pool[1:], np.ones(3))),
            r"the gains of rank_form .* must be \d+ finite numbers here, one per document",
        ),
        (
            form_of(lambda lists: fp.extend.AdditiveForm(lists.pool, np.ones(3), scale=np.ones(2))),
            "the scale of rank_form .* must be 30 finite numbers here, one per query",
        ),
        (
            form_of(lambda lists: fp.extend.AdditiveForm(lists.pool, np.ones(3))),
            r"rank_form of the measure .* is wrong: in query '\d+' it adds up to",
        ),
        ("Tau", "cannot maximize Tau; choose one of NDCG, DCG, ERR, .* with a method rank_form"),
    ],
)
def test_wrong_forms_are_one_line(measure: Any, message: str) -> None:
    with pytest.raises(FirstpageError, match=message) as caught:
        LambdaLoss(measure=measure).target(DATA.truth)
    assert "\n" not in str(caught.value)
