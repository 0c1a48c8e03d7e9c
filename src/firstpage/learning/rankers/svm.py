"""The rankers with hinge losses: RankSVM, SVMMAP, FocusedSVM, TopMargin, TopSlack."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from firstpage.core import DataError, Floats, check_number, warn
from firstpage.core.engine import single_threaded_blas
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.focused import focused_svm
from firstpage.learning.losses.pairs import VotedHinge
from firstpage.learning.losses.pairwise import PairwiseHinge
from firstpage.learning.losses.structural import (
    AveragePrecisionHinge,
    Reference,
    StructuralHinge,
)
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.composition import Composition, check_no_k, composed
from firstpage.learning.rankers.fit.estimator import LearnsFrom
from firstpage.learning.rankers.fit.fit import fit_scorer
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.scorers.linear import MAX_COVARIANCE_FEATURES, Linear
from firstpage.learning.solvers.cutting_plane.concave_convex import ConcaveConvexProcedure
from firstpage.learning.solvers.cutting_plane.one_slack import CuttingPlane

DEGENERATE = (
    "the optimum is w = 0: the loss increases in every direction. Too few documents are relevant, "
    "or the data are too noisy, for this true ranking. The weights of the least squares start are "
    "kept; try {}."
)
FROZEN = "gap_ and objective_ are those of the last round: convex, with its true rankings frozen."
Kind = TypeVar("Kind", bound=Composition)
TENTHS = [round(0.1 * i, 1) for i in range(1, 11)]


@dataclass(eq=False, repr=False)
class SVM(Ranker):
    """Base class of rankers with a hinge loss: minimizes |w|^2 / 2 + C * mean loss per query.

    `objective_` is this value divided by C.

    Parameters
    ----------
    scorer : str or scorer, default "linear"
        "linear", "mlp", "network" or "trees", with parameters as in "trees(count=300, leaves=31)"
        or "network(layers=(128, 64), dropout=0.1)".
    solver : str or solver, default "auto"
        "lbfgs", "gd", "sgd", "adam" or "cutting plane", with parameters as in "sgd(rate=0.01)".
        "auto" chooses one that suits the loss and the scorer.
    C : float, default 1.0
        The weight of the loss relative to the penalty |w|^2 / 2.
    """

    _grid: ClassVar = {"C": [1e-5, 1e-4, 1e-3, 1e-2, *TENTHS, 10.0, 100.0, 1000.0]}
    _supports_shards: ClassVar[bool] = True

    _: KW_ONLY
    scorer: Any = "linear"
    solver: Any = "auto"
    C: float = 1.0

    def composed(self, loss: Loss, kind: type[Kind] = Composition, **options: Any) -> Kind:  # type: ignore[assignment]
        """Return the composition of a loss with the scorer, the solver and the penalty 1 / C.

        Parameters
        ----------
        loss : Loss
            The loss.
        kind : type, optional
            A class derived from `Composition`.
        **options : object
            Other attributes of the composition.
        """
        check_number(self, "C", above=0)
        if not 1e-30 < self.C < 1e30:
            raise DataError(f"C must be between 1e-30 and 1e30; got {self.C:g}.")
        return composed(self, kind, loss, 1.0 / float(self.C), None, **options)


@dataclass(eq=False, repr=False)
class RankSVM(SVM):
    """Pairwise hinge loss.

    Minimizes |w|^2 / 2 + C * mean over queries of the sum over pairs, u better than v, of
    max(0, 1 - s_u + s_v).  With `k`, only pairs whose better document is in the top k count.
    `fit(X, pairs=..)` trains on votes on pairs instead of labels.

    Parameters
    ----------
    average : bool, default False
        Take the mean over a query's pairs instead of the sum.
    label_margin : bool, default False
        Multiply s_u - s_v by y_u - y_v, the difference of the labels, as printed for FocusedSVM.
        With `k`, labels are k, k-1, .., 1 for the top k positions and 0 for the others.

    References
    ----------
    Herbrich, Graepel and Obermayer, "Large margin rank boundaries for ordinal regression", 2000.
    Joachims, "Optimizing search engines using clickthrough data", KDD 2002.
    Top-k pairs: Lan et al., "Is top-k sufficient for ranking?", CIKM 2013.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.RankSVM().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Joachims, KDD 2002; top-k: Lan et al., CIKM 2013"
    _about = "pairwise hinge loss"

    _learns_from_votes: ClassVar = True

    _: KW_ONLY
    average: bool = False
    label_margin: bool = False

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        if learns_from == "votes":
            check_no_k(self)
            return self.composed(VotedHinge(self.average), reads_labels=False)
        return self.composed(
            PairwiseHinge(self.k, average=self.average, label_margin=self.label_margin)
        )


@dataclass(eq=False, repr=False)
class SVMMAP(SVM):
    """Structural SVM for average precision.

    Minimizes |w|^2 / 2 + C * mean over queries of the maximum over rankings of
    1 - AP + (score of the ranking - score of the true ranking).  Documents with labels above 0 are
    relevant; with `k`, those in the top k.

    Parameters
    ----------
    C : float, default 10.0
        The weight of the loss relative to the penalty |w|^2 / 2.

    References
    ----------
    Yue, Finley, Radlinski and Joachims, "A support vector method for optimizing average
    precision", SIGIR 2007.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.SVMMAP().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Yue, Finley, Radlinski and Joachims, SIGIR 2007"
    _about = "structural SVM for average precision"
    _weights_by_copying: ClassVar = True

    _: KW_ONLY
    C: float = 10.0

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        return self.composed(AveragePrecisionHinge(self.k))


@dataclass(eq=False, repr=False)
class FocusedSVM(SVM):
    """SVM-MAP within the top k, RankSVM between the top k and the rest.

    Minimizes |w|^2 / 2 + C * mean over queries of beta * list loss + (1 - beta) * pair loss.

    Parameters
    ----------
    k : int, default 10
        The depth of the top.
    beta : float, default 0.5
        The weight of the order within the top k, from 0 to 1.
    list_loss : {"ap", "ndcg"}, default "ap"
        The list loss: the mean of the average precision hinges over the cut-offs of the top k, or
        a hinge of NDCG within the top k.
    label_margin : bool, default False
        Multiply the score difference of a pair by the label k, k-1, .., 1 of its document in the
        top k, as printed.  It demands the smallest differences for the best documents.
    C : float, default 100.0
        The weight of the loss relative to the penalty |w|^2 / 2.

    References
    ----------
    Niu, Guo, Lan and Cheng, "Top-k learning to rank: labeling, ranking and evaluation",
    SIGIR 2012.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.FocusedSVM(k=2).fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Niu, Guo, Lan and Cheng, SIGIR 2012"
    _about = "SVM-MAP within the top k, RankSVM between the top k and the rest"
    _grid: ClassVar = {
        "beta": [round(0.05 * i, 2) for i in range(21)],
        "C": [1.0, 10.0, 100.0, 1000.0],
    }
    _weights_by_copying: ClassVar = True

    k: int | None = 10
    beta: float = 0.5
    _: KW_ONLY
    list_loss: Literal["ap", "ndcg"] = "ap"
    label_margin: bool = False
    C: float = 100.0

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        if self.k is None:
            raise DataError("FocusedSVM needs k, the depth of the top that it focuses on.")
        return self.composed(focused_svm(self.k, self.beta, self.list_loss, self.label_margin))


@dataclass(eq=False, repr=False)
class TopMargin(SVM):
    """Structural SVM for NDCG or precision, with margin scaling.

    Minimizes |w|^2 / 2 + C * mean over queries of the maximum over rankings of
    Delta + (score of the ranking - score of the true ranking), where Delta is 1 - NDCG or
    1 - Precision, and the score of a ranking is the discounted sum of its documents' scores.

    Parameters
    ----------
    delta : str, default "NDCG"
        The measure of Delta: "NDCG", "NDCG@10", "Precision@10", or one with the gains and discounts
        of a measure file, "NDCG(measure.json)@10".  Discounts that increase are made nonincreasing,
        with a warning.
    reference : {"resort", "mean", "fixed"}, default "resort"
        The true ranking among equal labels.  "resort" takes the one with the highest score, fixes
        it and updates it in up to `rounds` rounds from a least squares start; "mean" takes the
        mean over all orders; "fixed" takes the order of the data, with which w = 0 is optimal
        where few documents are relevant (with a warning).
    rounds : int, default 5
        The maximum number of rounds of reference="resort".
    C : float, default 10.0
        The weight of the loss relative to the penalty |w|^2 / 2.

    References
    ----------
    Cheng, Sun and Xie, "TopRank: a novel top-k ranking method based on rank aggregation", 2014.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.TopMargin().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Cheng, Sun and Xie, TopRank"
    _about = "structural SVM for NDCG or precision, margin scaling"
    _grid: ClassVar = {"C": [10.0**i for i in range(-5, 6)]}
    _weights_by_copying: ClassVar = True

    _: KW_ONLY
    delta: str = "NDCG"
    reference: Reference = "resort"
    rounds: int = 5
    C: float = 10.0

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        return _in_rounds(self, StructuralHinge(self.delta, "margin", self.reference, self.k))


@dataclass(eq=False, repr=False)
class TopSlack(SVM):
    """Structural SVM for NDCG or precision, with slack scaling.

    Minimizes |w|^2 / 2 + C * mean over queries of the maximum over rankings of
    Delta * (1 + score of the ranking - score of the true ranking), with Delta as in TopMargin.

    Parameters
    ----------
    delta : str, default "NDCG"
        The measure of Delta: "NDCG", "NDCG@10", "Precision@10", or one with the gains and discounts
        of a measure file, "NDCG(measure.json)@10".  Discounts that increase are made nonincreasing,
        with a warning.
    reference : {"resort", "mean", "fixed"}, default "resort"
        The true ranking among equal labels.  "resort" takes the one with the highest score, fixes
        it and updates it in up to `rounds` rounds from a least squares start; "mean" takes the
        mean over all orders; "fixed" takes the order of the data, with which w = 0 is optimal
        where few documents are relevant (with a warning).
    rounds : int, default 5
        The maximum number of rounds of reference="resort".
    C : float, default 10.0
        The weight of the loss relative to the penalty |w|^2 / 2.

    References
    ----------
    Cheng, Sun and Xie, "TopRank: a novel top-k ranking method based on rank aggregation", 2014.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.TopSlack().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Cheng, Sun and Xie, TopRank"
    _about = "structural SVM for NDCG or precision, slack scaling"
    _grid: ClassVar = {"C": [10.0**i for i in range(-5, 6)]}
    _weights_by_copying: ClassVar = True

    _: KW_ONLY
    delta: str = "NDCG"
    reference: Reference = "resort"
    rounds: int = 5
    C: float = 10.0

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        return _in_rounds(self, StructuralHinge(self.delta, "slack", self.reference, self.k))


@dataclass(frozen=True, eq=False)
class Rounds(Composition):
    """A structural hinge, whose linear weights are fitted in rounds from a least squares start.

    Where a fit ends at 0, it is tried again from the optimum of the loss `second_start`.
    """

    k: int | None = None
    rounds: int = 1
    resorts: bool = False
    second_start: Loss | None = None

    def fit(self, request: FitRequest) -> FitResult:
        solver = CuttingPlane() if isinstance(self.solver, str) else self.solver
        if self.scorer != Linear() or not solver.linear:
            return super().fit(request)  # descents re-sort in every step
        if request.start is None:
            request = replace(request, start=_least_squares_start(request, self.k))
        procedure = ConcaveConvexProcedure(solver, self.rounds, self.resorts)
        result = fit_scorer(request, self.loss, Linear(), procedure, self.penalty)
        if "degenerate" in result.record and self.second_start is not None:
            result = self._second_fit(request, procedure, self.second_start) or result
        if self.resorts and result.record["gap"] is not None:
            result.record["gap_note"] = FROZEN
        if "degenerate" in result.record:
            warn(DEGENERATE.format("a larger C" if self.resorts else "reference='resort'"))
        return result

    def _second_fit(
        self, request: FitRequest, procedure: ConcaveConvexProcedure, loss: Loss
    ) -> FitResult | None:
        """Return the fit from the optimum of another loss, unless it ends at 0 too."""
        silent = replace(request, progress=None, checkpoint=None)
        first = fit_scorer(silent, loss, Linear(), procedure, self.penalty)
        assert first.model.coefficients is not None  # it is linear
        start = first.model.coefficients[0]
        request = replace(request, start=start, checkpoint=None)
        second = fit_scorer(request, self.loss, Linear(), procedure, self.penalty)
        return None if "degenerate" in second.record else second


def _in_rounds(ranker: TopMargin | TopSlack, loss: StructuralHinge) -> Rounds:
    """Return the composition of a structural hinge whose true rankings may be updated in rounds."""
    check_number(ranker, "rounds", 1, integer=True)
    resorts = ranker.reference == "resort"
    second = replace(loss, scaling="margin") if resorts and loss.scaling == "slack" else None
    options = {"k": ranker.k, "rounds": ranker.rounds, "resorts": resorts, "second_start": second}
    return ranker.composed(loss, Rounds, **options)


def _least_squares_start(request: FitRequest, k: int | None) -> Floats | None:
    """Return the least squares weights of the labels; None if too wide or not finite."""
    if request.training.n_features > MAX_COVARIANCE_FEATURES:
        return None
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        try:
            weights = request.training.direction(k, 1e-6)
        except np.linalg.LinAlgError:  # squares of the features overflow
            return None
    return weights if np.isfinite(weights).all() else None
