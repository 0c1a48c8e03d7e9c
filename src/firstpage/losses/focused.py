"""Focused: order inside the top, and the top above the rest, in one loss (FocusedRank)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.levels import Levels, expected_places, levels
from firstpage.losses.listwise import TopOne
from firstpage.losses.loss import Loss, Run, Target, Term, Traits, safe_inverse
from firstpage.losses.pairwise import PairwiseHinge, PairwiseLogistic
from firstpage.losses.permutation import LONGEST, Permutations
from firstpage.losses.structural import AveragePrecisionHinge, StructuralHinge
from firstpage.registry import check_number
from firstpage.types import Bools, Floats


@dataclass(frozen=True)
class Focused(Loss):
    """beta * listwise(top k, in order) + (1 - beta) * pairwise(top k above the rest).

    Each part is scaled to be 1 where all scores are equal and 0 at its infimum, so that beta means
    the same for any k.
    """

    listwise: Loss
    pairwise: Loss
    beta: float = 0.5
    traits: ClassVar[Traits] = Traits()

    def __post_init__(self) -> None:
        check_number(self, "beta", 0)
        if self.beta > 1:
            raise DataError(f"beta must be from 0 to 1; got {self.beta}.")

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        parts = [(self.beta, self.listwise), (1 - self.beta, self.pairwise)]
        return _Sum([(b, part.target(truth, weights)) for b, part in parts if b > 0])


@dataclass(frozen=True, eq=False)
class _Sum:
    parts: list[tuple[float, Target]]

    def stiffness(self) -> Floats:
        found: Floats = np.sum([share * part.stiffness() for share, part in self.parts], axis=0)
        return found

    def terms(self) -> list[Term] | None:
        """None where a part has none."""
        found = [(share, part.terms()) for share, part in self.parts]
        if any(terms is None for _, terms in found):
            return None
        return [term.times(share) for share, terms in found for term in terms or ()]

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        spare = [(np.empty_like(values), np.empty_like(grad)) for _ in self.parts]
        runs = [
            (share, part.bind(lo, hi, scores, v, g), v, g)
            for (share, part), (v, g) in zip(self.parts, spare, strict=True)
        ]

        def run() -> None:
            values[:] = 0.0
            grad[:] = 0.0
            for share, part, v, g in runs:
                part()
                np.add(values, share * v, out=values)
                np.add(grad, share * g, out=grad)

        return run

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        runs = []
        for share, part in self.parts:
            spare = np.empty_like(out)
            runs.append((share, part.bind_curvature(lo, hi, scores, spare), spare))

        def run() -> None:
            out[:] = 0.0
            for share, part, spare in runs:
                part()
                np.add(out, share * spare, out=out)

        return run


@dataclass(frozen=True)
class TopList(Loss):
    """The order inside the top k: cross entropy of its permutations, from 1 down to 0.

    Permutations in queries whose top the truth orders strictly, if k is at most 12; else the
    top-one form, in which documents that may or may not be in the top count by their chance.
    """

    k: int = 10

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        found = levels(truth, weights, self.k)
        strict = self._strict(found, weights)
        parts: list[tuple[float, Target]] = []
        if strict.any():
            parts.append((1.0, _scaled(self._permutations(truth, found, strict))))
        if not strict.all():
            chance, psi = found.spread(found.share), expected_places(found, self.k)
            weight = chance if weights is None else chance * weights
            part = TopOne(psi, weight, truth.offsets, np.ones(len(truth)))
            parts.append((1.0, _scaled(part, ~strict)))
        return _Sum(parts)

    def _strict(self, found: Levels, weights: Floats | None) -> Bools:
        """Queries whose top is ordered one by one."""
        if self.k > LONGEST or (weights is not None and not np.all(weights == 1.0)):
            return np.zeros(len(found.offsets) - 1, bool)
        tied = (found.total > 1.0) & (found.share > 0.0)
        none: Bools = found.per_query(tied.astype(np.float64)) == 0
        return none

    def _permutations(self, truth: Truth, found: Levels, strict: Bools) -> Permutations:
        sizes = np.where(strict, np.minimum(truth.lengths, self.k), 0)
        firsts = offsets_from_lengths(sizes)
        place = np.arange(len(found.order)) - np.repeat(truth.offsets[:-1], truth.lengths)
        top = place < np.repeat(sizes, truth.lengths)
        psi = (self.k - place[top]).astype(np.float64)
        return Permutations(psi, found.order[top], firsts, truth.offsets, np.ones(len(truth)))


class _Normal(Target, Protocol):
    factor: Floats

    def entropy(self) -> Floats: ...

    def at_zero(self) -> Floats: ...


def _scaled(part: _Normal, counted: Bools | None = None) -> Target:
    """1 where all scores are equal, 0 at the entropy; queries that do not count are 0."""
    least = part.entropy()
    height = part.at_zero() - least
    if counted is not None:
        height[~counted] = 0.0
    height[height < 1e-9] = 0.0  # a target that knows no order, up to rounding
    part.factor = safe_inverse(height)
    return _Less(part, part.factor * least)


@dataclass(frozen=True, eq=False)
class _Less:
    """A target whose values begin at 0."""

    part: Target
    least: Floats

    def stiffness(self) -> Floats:
        return self.part.stiffness()

    def terms(self) -> list[Term] | None:
        found = self.part.terms()
        if found is None or len(found) != 1:
            return None
        return [replace(found[0], less=self.least)]

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        run, least = self.part.bind(lo, hi, scores, values, grad), self.least[lo:hi]

        def less() -> None:
            run()
            np.subtract(values, least, out=values)

        return less

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        return self.part.bind_curvature(lo, hi, scores, out)


@dataclass(frozen=True)
class Scaled(Loss):
    """A loss times a number."""

    loss: Loss
    factor: float

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        return _Sum([(self.factor, self.loss.target(truth, weights))])


@dataclass(frozen=True)
class FocusedHinge(Focused):
    """The same of parts with corners."""

    traits: ClassVar[Traits] = Traits(smooth=False)


def focused_svm(k: int, beta: float, list_loss: str = "ap") -> FocusedHinge:
    """FocusedSVM: hinges of the order inside the top k, and of its pairs with the rest.

    As printed the order inside the top would be judged by average precision with all of it
    relevant, which is 1 for every order.  So it is judged at every cut of the top ("ap"), or by
    NDCG ("ndcg").
    """
    listwise: Loss
    if list_loss == "ap":
        listwise = AveragePrecisionHinge(k, cuts=True)
    elif list_loss == "ndcg":
        listwise = StructuralHinge(k=k, within=True, reference="mean")
    else:
        raise DataError(f"list_loss must be 'ap' or 'ndcg'; got {list_loss!r}.")
    return FocusedHinge(listwise, PairwiseHinge(k=k, pairs="cross", average=True), beta)


def focused_net(
    k: int = 10, beta: float = 0.5, listwise: Loss | None = None, pairwise: Loss | None = None
) -> Focused:
    """FocusedNet: permutations of the top k, logistic pairs of the top k against the rest; or other
    losses in the place of either."""
    pairs = PairwiseLogistic(k=k, pairs="cross", average=True)
    return Focused(listwise or TopList(k), pairwise or Scaled(pairs, 1 / float(np.log(2))), beta)
