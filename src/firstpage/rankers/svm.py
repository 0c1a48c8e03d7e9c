"""The rankers with hinges: RankSVM, SVMMAP, FocusedSVM, TopMargin, TopSlack."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from firstpage.engine.threads import quiet_blas
from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.focused import focused_svm
from firstpage.losses.loss import Loss
from firstpage.losses.pairwise import PairwiseHinge
from firstpage.losses.structural import AveragePrecisionHinge, Reference, Search, StructuralHinge
from firstpage.rankers.composed import Composed
from firstpage.rankers.fit.fit import fit_composition
from firstpage.rankers.fit.request import Composition, FitRequest, FitResult
from firstpage.rankers.ranker import Ranker
from firstpage.registry import check_number
from firstpage.scorers.linear import WIDE, Linear
from firstpage.solvers.cutting_plane.one_slack import CuttingPlane
from firstpage.solvers.cutting_plane.refreezing import Rounds
from firstpage.solvers.registry import solver as solver_of
from firstpage.types import Floats

DEGENERATE = (
    "the optimum is w = 0: the loss rises in every direction. Too few documents are relevant, or "
    "too much is noise, for this true ranking. The order of the start, least squares, is kept; "
    "try {}."
)
FROZEN = "gap_ and objective_ are those of the last round: convex, with its true rankings frozen."
STEPS = [round(0.1 * i, 1) for i in range(1, 11)]


@dataclass(eq=False, repr=False)
class SVM(Composed):
    """Rankers whose loss is a hinge: |w|^2 / 2 + C * the mean loss of a query.

    C          how much the loss counts against the size of the weights
    """

    _grid: ClassVar = {"C": [1e-5, 1e-4, 1e-3, 1e-2, *STEPS, 10.0, 100.0, 1000.0]}

    _: KW_ONLY
    C: float = 1.0

    def _penalty(self) -> float:
        return 1.0 / float(self.C)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "C", above=0)
        if not 1e-30 < self.C < 1e30:
            raise DataError(f"C must be between 1e-30 and 1e30; got {self.C:g}.")

    def _reuse(self, other: Ranker) -> None:
        """The planes below a loss are the same for every C."""
        if type(other) is not type(self):
            return
        mine, its = self.get_params(deep=False), other.get_params(deep=False)
        if {**mine, "C": None} == {**its, "C": None}:
            self._inherited = other._memory


@dataclass(eq=False, repr=False)
class RankSVM(SVM):
    """Hinge over pairs of documents (Herbrich et al. 2000, Joachims 2002).

    Minimizes |w|^2 / 2 + C * mean over queries of the sum over pairs, u better than v, of
    max(0, 1 - s_u + s_v).  With k, pairs whose better document is among the first k places.
    `average` takes the mean over a query's pairs.
    """

    _paper = "Joachims, KDD 2002; top-k: Lan et al., CIKM 2013"
    _about = "hinge over pairs"

    _: KW_ONLY
    average: bool = False

    def _loss(self) -> Loss:
        return PairwiseHinge(self.k, average=self.average)


@dataclass(eq=False, repr=False)
class SVMMAP(SVM):
    """The most violated ranking under average precision (Yue et al. 2007).

    Minimizes |w|^2 / 2 + C * mean over queries of max over rankings of 1 - AP + (its score - that
    of the true one).  Labels above 0 are relevant; with k, the first k places.
    """

    _paper = "Yue, Finley, Radlinski and Joachims, SIGIR 2007"
    _about = "average precision, by its most violated ranking"
    _weights_by_copying: ClassVar = True

    _: KW_ONLY
    C: float = 10.0

    def _loss(self) -> Loss:
        return AveragePrecisionHinge(self.k)


@dataclass(eq=False, repr=False)
class FocusedSVM(SVM):
    """Order inside the top k by SVM-MAP, the top k above the rest by RankSVM (Niu et al. 2012).

    Minimizes |w|^2 / 2 + C * mean over queries of beta * list + (1 - beta) * pair.  The list part
    is the mean over the cuts of the top k (list_loss="ap"), or a hinge of NDCG in it ("ndcg").
    """

    _paper = "Niu, Guo, Lan and Cheng, SIGIR 2012"
    _about = "SVM-MAP inside the top k, RankSVM between the top k and the rest"
    _grid: ClassVar = {
        "beta": [round(0.05 * i, 2) for i in range(21)],
        "C": [1.0, 10.0, 100.0, 1000.0],
    }
    _weights_by_copying: ClassVar = True

    k: int | None = 10
    beta: float = 0.5
    _: KW_ONLY
    list_loss: Literal["ap", "ndcg"] = "ap"
    C: float = 100.0

    def _loss(self) -> Loss:
        if self.k is None:
            raise DataError("FocusedSVM needs k, the depth of the top that it focuses on.")
        return focused_svm(self.k, self.beta, self.list_loss)


@dataclass(eq=False, repr=False)
class TopMargin(SVM):
    """The most violated ranking under NDCG or precision, margin scaling (Cheng et al. 2014).

    Minimizes |w|^2 / 2 + C * mean over queries of max over rankings of Delta + (its score - that of
    the true one), where Delta = 1 - NDCG or 1 - Precision, and a ranking's score sums the
    discounted scores of its documents.

    delta      "NDCG", "NDCG@10", "Precision@10", or with the gains and discounts of a measure file:
               "NDCG(measure.json)@10".  Discounts that rise are made to fall: you are warned
    reference  the true ranking among equal labels: "resort" (the one that scores best, frozen and
               looked at again in up to `rounds` rounds, from a least-squares start), "mean",
               "fixed".  With few relevant documents "fixed" has its optimum at 0: you are warned
    """

    _paper = "Cheng, Sun and Xie, TopRank"
    _about = "NDCG or precision, by its most violated ranking: margin scaling"
    _grid: ClassVar = {"C": [10.0**i for i in range(-5, 6)]}
    _weights_by_copying: ClassVar = True

    _: KW_ONLY
    delta: str = "NDCG"
    reference: Reference = "resort"
    rounds: int = 5
    C: float = 10.0

    def _loss(self) -> Loss:
        return StructuralHinge(self.delta, "margin", self.reference, k=self.k)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "rounds", 1, integer=True)
        self._loss()

    def _learn(self, request: FitRequest) -> FitResult:
        parts = self._composition()
        auto = parts.solver == "auto"
        solver = CuttingPlane() if auto else solver_of(parts.solver, request.seed)
        if parts.scorer != Linear() or not solver.linear:
            return fit_composition(request, parts)  # descents rank anew in every step
        parts = replace(parts, solver=Rounds(solver, self.rounds, self.reference == "resort"))
        if request.start is None:
            request = replace(request, start=_direction(request, self.k))
        found = self._solved(request, parts)
        if self.reference == "resort" and found.record["gap"] is not None:
            found.record["gap_note"] = FROZEN
        if "degenerate" in found.record:
            other = "a larger C" if self.reference == "resort" else "reference='resort'"
            warnings.warn(DEGENERATE.format(other), FirstpageWarning, stacklevel=4)
        return found

    def _solved(self, request: FitRequest, parts: Composition) -> FitResult:
        return fit_composition(request, parts)


@dataclass(eq=False, repr=False)
class TopSlack(TopMargin):
    """The most violated ranking under NDCG or precision, slack scaling (Cheng et al. 2014).

    As TopMargin, with Delta * (1 + its score - that of the true one).  `search` is how the ranking
    is looked for: by "chords" and branch and bound, exactly but for some long lists, or by the
    paper's "golden" section, which is slower and misses some.  `gap_` counts what it may miss.
    """

    _about = "NDCG or precision, by its most violated ranking: slack scaling"

    _: KW_ONLY
    search: Search = "chords"

    def _loss(self) -> Loss:
        return StructuralHinge(self.delta, "slack", self.reference, self.search, self.k)

    def _solved(self, request: FitRequest, parts: Composition) -> FitResult:
        """Where least squares lead to 0, margin scaling shows another way."""
        found = fit_composition(request, parts)
        if "degenerate" not in found.record or self.reference != "resort":
            return found
        margin = StructuralHinge(self.delta, "margin", self.reference, k=self.k)
        other = fit_composition(
            replace(request, progress=None, checkpoint=None), replace(parts, loss=margin)
        )
        assert other.model.coefficients is not None  # it is linear
        start = other.model.coefficients[0]
        again = fit_composition(replace(request, start=start, checkpoint=None), parts)
        return again if "degenerate" not in again.record else found


def _direction(request: FitRequest, k: int | None) -> Floats | None:
    """Where to look for the first true ranking: at the least squares of the labels."""
    if request.training.n_features > WIDE:
        return None
    with quiet_blas(), np.errstate(over="ignore", invalid="ignore"):
        try:
            found = request.training.direction(k, 1e-6)
        except np.linalg.LinAlgError:  # squares of the features overflow
            return None
    return found if np.isfinite(found).all() else None
