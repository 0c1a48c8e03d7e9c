"""The rankers with smooth losses: Regression, RankNet, ListNet, ListMLE, RankCosine, FocusedNet."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from firstpage.data.truth import Truth
from firstpage.engine.threads import quiet_blas
from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.focused import focused_net
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy, SquaredError
from firstpage.losses.loss import Loss
from firstpage.losses.pairwise import PairwiseLogistic
from firstpage.losses.permutation import PermutationCrossEntropy
from firstpage.rankers.composed import Composed
from firstpage.rankers.fit.fit import fit_least_squares
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.registry import check_number
from firstpage.scorers.linear import WIDE, LinearScoring
from firstpage.scorers.registry import scorer
from firstpage.solvers.registry import solver

ONE_PASS = (
    "least squares of linear weights take one pass over the data, which is done on the CPU; device "
    "is not used. Leave it out."
)


@dataclass(eq=False, repr=False)
class Smooth(Composed):
    """Rankers whose loss is smooth.

    l2         penalty on the weights, l2 / 2 * |w|^2 beside the mean loss of a query
    device     "cuda" fits linear scores and networks on a GPU (PyTorch); None: as the scorer says
    """

    _grid: ClassVar = {"l2": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}

    _: KW_ONLY
    l2: float = 0.01
    device: str | None = None

    def _device(self) -> str | None:
        return None if self.device is None else str(self.device)

    def _penalty(self) -> float:
        return float(self.l2)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "l2", 0)


@dataclass(eq=False, repr=False)
class RankNet(Smooth):
    """Logistic loss over pairs of documents (Burges et al. 2005).

    Minimizes the sum over pairs, u better than v, of log(1 + exp(s_v - s_u)).  With k, pairs whose
    better document is among the first k places.  `average` takes the mean over a query's pairs.
    """

    _paper = "Burges et al., ICML 2005; top-k: Lan et al., CIKM 2013"
    _about = "logistic loss over pairs"

    _: KW_ONLY
    average: bool = False

    def _loss(self) -> Loss:
        return PairwiseLogistic(self.k, average=self.average)


@dataclass(eq=False, repr=False)
class ListMLE(Smooth):
    """Likelihood of the true order under Plackett and Luce's model (Xia et al. 2008, 2009).

    Minimizes the sum over places i of log(sum of exp(s) over places i, i+1, ..) - s_i.  With k, the
    first k places alone: top-k ListMLE.  Equal labels share their places (`ties="share"`), or are
    put into a random order as in the papers ("random", by the seed).
    """

    _paper = "Xia et al., ICML 2008; top-k: Xia, Liu and Li, NIPS 2009"
    _about = "likelihood of the true order; with k, of its first k places"

    _: KW_ONLY
    average: bool = False

    def _loss(self) -> Loss:
        return PlackettLuce(self.k, self.average)

    def _truth(self, truth: Truth) -> Truth:
        if self.ties == "random" and self.k is None:
            return truth.full_order(self.seed)
        return super()._truth(truth)


@dataclass(eq=False, repr=False)
class ListNet(Smooth):
    """Cross entropy between softmax distributions of labels and of scores (Cao et al. 2007).

    Minimizes - sum of softmax(labels / temperature) * log softmax(scores).  With k, labels are the
    top-k map k, k-1, .. 1, 0, .. 0.  `form="permutation"` compares the distributions of whole
    permutations, exactly, for lists of up to 12 documents.
    """

    _paper = "Cao et al., ICML 2007; top-k: Xia, Liu and Li, NIPS 2009"
    _about = "cross entropy of softmax distributions"

    _: KW_ONLY
    temperature: float = 1.0
    form: Literal["top-one", "permutation"] = "top-one"
    l2: float = 0.001

    def _loss(self) -> Loss:
        if self.form not in ("top-one", "permutation"):
            raise DataError(f"form must be 'top-one' or 'permutation'; got {self.form!r}.")
        if self.form == "permutation":
            return PermutationCrossEntropy(self.k, self.temperature)
        return SoftmaxCrossEntropy(self.k, self.temperature)


@dataclass(eq=False, repr=False)
class RankCosine(Smooth):
    """Cosine between the vectors of labels and of scores (Qin et al. 2008).

    Minimizes (1 - cosine) / 2.  With k, labels are the top-k map k, k-1, .. 1, 0, .. 0.  It is not
    convex, and adding a number to all scores changes it: centered features help
    (`normalize="standard"`).  The length of the scores is free, so a penalty (`l2`) says nothing.
    """

    _paper = "Qin et al., IPM 2008; top-k: Xia, Liu and Li, NIPS 2009"
    _about = "cosine between labels and scores"
    _grid: ClassVar = {"l2": [0.0]}  # nothing to tune

    _: KW_ONLY
    l2: float = 0.0

    def _loss(self) -> Loss:
        return Cosine(self.k)

    def _tree_loss(self) -> Loss:
        """Trees start from scores of 0, where a cosine has no slope: lengths count from 1 on."""
        return Cosine(self.k, floor=1.0)

    def _learn(self, request: FitRequest) -> FitResult:
        """The length of linear weights means nothing to a cosine: it is set to 1."""
        found = super()._learn(request)
        if found.model.coefficients is None:
            return found
        weights = found.model.coefficients[0]
        unit = weights / (float(np.linalg.norm(weights)) or 1.0)
        return replace(found, model=LinearScoring(unit))


@dataclass(eq=False, repr=False)
class FocusedNet(Smooth):
    """Order inside the top k by ListNet, the top k above the rest by RankNet (Niu et al. 2012).

    Minimizes beta * list + (1 - beta) * pair, each 1 where scores are equal and 0 at its infimum.
    """

    _paper = "Niu, Guo, Lan and Cheng, SIGIR 2012"
    _about = "ListNet inside the top k, RankNet between the top k and the rest"
    _grid: ClassVar = {"beta": [round(0.05 * i, 2) for i in range(21)]}

    k: int | None = 10
    beta: float = 0.5

    def _loss(self) -> Loss:
        if self.k is None:
            raise DataError("FocusedNet needs k, the depth of the top that it focuses on.")
        return focused_net(self.k, self.beta)


@dataclass(eq=False, repr=False)
class Regression(Smooth):
    """Least squares of the labels on the features, with intercept and a small ridge.

    With k, labels are the top-k map k, k-1, .. 1, 0, .. 0.  Linear weights are found exactly; with
    a descent (`solver="gd"`), or with more than 2,000 features, there is no intercept.
    """

    _paper = "the pointwise baseline of Cheng et al., 2014"
    _about = "least squares on the labels"
    _grid: ClassVar = {"l2": [1e-6, 1e-4, 1e-3, 1e-2, 1e-1]}
    _needs_preferences: ClassVar = False

    _: KW_ONLY
    l2: float = 1e-6

    def _loss(self) -> Loss:
        return SquaredError(self.k)

    def _tree_loss(self) -> Loss:
        return SquaredError(self.k, average=False)

    def _learn(self, request: FitRequest) -> FitResult:
        """Every document counts alike, so a query counts by the number of its documents."""
        kind = scorer(self.scorer)
        if kind.additive:
            return super()._learn(request)  # trees add documents up as they are
        # A solver of smooth losses goes to the optimum, which is known in closed form.
        exact = self.solver == "auto" or "smooth" in solver(self.solver, self.seed).needs
        if kind.linear and exact and request.training.n_features <= WIDE:
            if (self.device or kind.device) != "cpu":
                warnings.warn(ONE_PASS, FirstpageWarning, stacklevel=4)
            with quiet_blas():
                return fit_least_squares(request, self.k, self._penalty())
        return super()._learn(replace(request, training=request.training.by_documents()))
