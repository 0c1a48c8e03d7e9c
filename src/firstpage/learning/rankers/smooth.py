"""The rankers with smooth losses, from Regression to FocusedNet; LossRanker takes any loss."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar, cast

import numpy as np

from firstpage.core import DataError, check_number, parameter_names, warn
from firstpage.core.engine import single_threaded_blas
from firstpage.learning.losses.base import FunctionLoss, Loss
from firstpage.learning.losses.focused import Scaled, focused_net
from firstpage.learning.losses.listwise import (
    Cosine,
    PlackettLuce,
    SoftmaxCrossEntropy,
    SquaredError,
)
from firstpage.learning.losses.pairs import VotedLogistic
from firstpage.learning.losses.pairwise import PairwiseLogistic
from firstpage.learning.losses.permutation import PermutationCrossEntropy
from firstpage.learning.losses.registry import loss as create_loss
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.composition import Composition, check_no_k, composed
from firstpage.learning.rankers.fit.estimator import LearnsFrom
from firstpage.learning.rankers.fit.fit import fit_least_squares
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.scorers.linear import MAX_COVARIANCE_FEATURES, LinearScoring

Kind = TypeVar("Kind", bound=Composition)
FUNCTION = (
    "the loss {} is a Python function that is called for every query in every pass: slow with many "
    "queries. A fp.extend.Loss computes all queries of a block at once."
)
ONE_PASS = (
    "least squares of linear weights take one pass over the data, which runs on the CPU; device is "
    "not used. Leave it out."
)


@dataclass(eq=False, repr=False)
class Smooth(Ranker):
    """Base class of rankers with a smooth loss and an L2 penalty.

    Parameters
    ----------
    scorer : str or scorer, default "linear"
        "linear", "mlp", "network" or "trees", with parameters as in "trees(count=300, leaves=31)"
        or "network(layers=(128, 64), dropout=0.1)".
    solver : str or solver, default "auto"
        "lbfgs", "gd", "sgd", "adam" or "cutting plane", with parameters as in "sgd(rate=0.01)".
        "auto" chooses one that suits the loss and the scorer.
    l2 : float, default 0.01
        The weight of the penalty l2 / 2 * |w|^2, which is added to the mean loss per query.
    device : str, optional
        "cuda" trains linear scorers and networks on a GPU with PyTorch.  None leaves it to the
        scorer.
    """

    _grid: ClassVar = {"l2": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}

    _supports_shards: ClassVar[bool] = True

    _: KW_ONLY
    scorer: Any = "linear"
    solver: Any = "auto"
    l2: float = 0.01
    device: str | None = None

    def composed(self, loss: Loss, kind: type[Kind] = Composition, **options: Any) -> Kind:  # type: ignore[assignment]
        """Return the composition of a loss with the scorer, the solver and the penalty.

        Parameters
        ----------
        loss : Loss
            The loss.
        kind : type, optional
            A class derived from `Composition`.
        **options : object
            Other attributes of the composition.
        """
        check_number(self, "l2", 0)
        device = None if self.device is None else str(self.device)
        return composed(self, kind, loss, float(self.l2), device, **options)


@dataclass(eq=False, repr=False)
class RankNet(Smooth):
    """Pairwise logistic loss.

    Minimizes the sum over the pairs of a query, u better than v, of log(1 + exp(s_v - s_u)).  With
    `k`, only pairs whose better document is in the top k count.  `fit(X, pairs=..)` trains on votes
    on pairs instead of labels.

    Parameters
    ----------
    average : bool, default False
        Take the mean over a query's pairs instead of the sum.

    References
    ----------
    Burges et al., "Learning to rank using gradient descent", ICML 2005.
    Top-k pairs: Lan et al., "Is top-k sufficient for ranking?", CIKM 2013.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.RankNet().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Burges et al., ICML 2005; top-k: Lan et al., CIKM 2013"
    _about = "pairwise logistic loss"

    _learns_from_votes: ClassVar = True

    _: KW_ONLY
    average: bool = False

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        if learns_from == "votes":
            check_no_k(self)
            return self.composed(VotedLogistic(self.average), reads_labels=False)
        return self.composed(PairwiseLogistic(self.k, average=self.average))


@dataclass(eq=False, repr=False)
class ListMLE(Smooth):
    """Likelihood of the true order under the Plackett-Luce model.

    Minimizes the sum over positions i of log(sum over j >= i of exp(s_j)) - s_i, where s_j is the
    score of the document at position j of the true order.  With `k`, only the top k positions
    count: top-k ListMLE.  With ties="share", documents with equal labels share their positions;
    with ties="random" they are put into a random order, as in the papers, and with
    ties="resample" into another one in every epoch of solver="sgd" or "adam".

    Parameters
    ----------
    average : bool, default False
        Take the mean over the positions of a query instead of the sum.

    References
    ----------
    Xia et al., "Listwise approach to learning to rank: theory and algorithm", ICML 2008.
    Top-k: Xia, Liu and Li, "Statistical consistency of top-k ranking", NIPS 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.ListMLE(k=1).fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Xia et al., ICML 2008; top-k: Xia, Liu and Li, NIPS 2009"
    _about = "likelihood of the true order; with k, of its top k positions"
    _orders_all: ClassVar = True

    _: KW_ONLY
    average: bool = False

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        return self.composed(PlackettLuce(self.k, self.average))


@dataclass(eq=False, repr=False)
class ListNet(Smooth):
    """Cross entropy between the softmax distributions of labels and of scores.

    Minimizes - sum of softmax(labels / temperature) * log softmax(scores).  With `k`, the labels
    are replaced by k, k-1, .., 1 for the top k positions and 0 for the others.

    Parameters
    ----------
    temperature : float, default 1.0
        The labels are divided by it.
    form : {"top-one", "permutation"}, default "top-one"
        Which distributions are compared: those of the first document, or those of complete
        permutations, which are computed exactly for lists of at most 12 documents.
    l2 : float, default 0.001
        The weight of the penalty l2 / 2 * |w|^2, which is added to the mean loss per query.

    References
    ----------
    Cao et al., "Learning to rank: from pairwise approach to listwise approach", ICML 2007.
    Top-k: Xia, Liu and Li, "Statistical consistency of top-k ranking", NIPS 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.ListNet().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Cao et al., ICML 2007; top-k: Xia, Liu and Li, NIPS 2009"
    _about = "cross entropy of the softmax of labels and scores"

    _: KW_ONLY
    temperature: float = 1.0
    form: Literal["top-one", "permutation"] = "top-one"
    l2: float = 0.001

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        if self.form not in ("top-one", "permutation"):
            raise DataError(f"form must be 'top-one' or 'permutation'; got {self.form!r}.")
        if self.form == "permutation":
            return self.composed(PermutationCrossEntropy(self.k, self.temperature))
        return self.composed(SoftmaxCrossEntropy(self.k, self.temperature))


@dataclass(eq=False, repr=False)
class RankCosine(Smooth):
    """Cosine similarity between the vectors of labels and of scores.

    Minimizes (1 - cosine) / 2.  With `k`, the labels are replaced by k, k-1, .., 1 for the top k
    positions and 0 for the others.  The loss is not convex, and it changes when a constant is added
    to all scores, so centered features help (normalize="standard").

    Parameters
    ----------
    l2 : float, default 0.0
        The weight of the penalty; it has no effect on the ranking, because the cosine does not
        depend on the length of the score vector.

    References
    ----------
    Qin et al., "Query-level loss functions for information retrieval", IPM 2008.
    Top-k: Xia, Liu and Li, "Statistical consistency of top-k ranking", NIPS 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.RankCosine(normalize="global standard").fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Qin et al., IPM 2008; top-k: Xia, Liu and Li, NIPS 2009"
    _about = "cosine similarity of labels and scores"
    _grid: ClassVar = {"l2": [0.0]}  # there is nothing to tune

    _: KW_ONLY
    l2: float = 0.0

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        # On trees, scores have lengths of at least 1: the cosine has no gradient at 0.
        loss = Cosine(self.k, floor=1.0) if learns_from == "trees" else Cosine(self.k)
        return self.composed(loss, UnitWeights)


@dataclass(frozen=True, eq=False)
class UnitWeights(Composition):
    """A loss that does not depend on the length of linear weights, which becomes 1."""

    def fit(self, request: FitRequest) -> FitResult:
        result = super().fit(request)
        if result.model.coefficients is None:
            return result
        weights = result.model.coefficients[0]
        unit = weights / (float(np.linalg.norm(weights)) or 1.0)
        return replace(result, model=LinearScoring(unit))


@dataclass(eq=False, repr=False)
class FocusedNet(Smooth):
    """ListNet within the top k, RankNet between the top k and the rest.

    Minimizes beta * list loss + (1 - beta) * pair loss.  Both are scaled to 1 for equal scores and
    to 0 at their infimum.  With `fit(.., pairs=..)` the pair loss is that of the given votes, each
    query with its mean; the list loss reads labels, which only beta=0 does without.

    Parameters
    ----------
    k : int, default 10
        The depth of the top.
    beta : float, default 0.5
        The weight of the order within the top k, from 0 to 1.

    References
    ----------
    Niu, Guo, Lan and Cheng, "Top-k learning to rank: labeling, ranking and evaluation",
    SIGIR 2012.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.FocusedNet(k=2).fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Niu, Guo, Lan and Cheng, SIGIR 2012"
    _about = "ListNet within the top k, RankNet between the top k and the rest"
    _grid: ClassVar = {"beta": [round(0.05 * i, 2) for i in range(21)]}

    _learns_from_votes: ClassVar = True

    k: int | None = 10
    beta: float = 0.5

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        if self.k is None:
            raise DataError("FocusedNet needs k, the depth of the top that it focuses on.")
        loss = focused_net(self.k, self.beta)
        if learns_from != "votes":
            return self.composed(loss)
        if self.beta == 1:
            raise DataError("FocusedNet(beta=1) has no pair loss; choose beta below 1.")
        voted = Scaled(VotedLogistic(average=True), 1 / float(np.log(2)))
        loss = focused_net(self.k, self.beta, pairwise=voted)
        return self.composed(loss, reads_labels=self.beta > 0)


@dataclass(eq=False, repr=False)
class Regression(Smooth):
    """Least squares regression of the labels on the features, with an intercept.

    With `k`, the labels are replaced by k, k-1, .., 1 for the top k positions and 0 for the others.
    Linear weights are computed in closed form.  With a descent (solver="gd"), or with more than
    2,000 features, there is no intercept.

    Parameters
    ----------
    l2 : float, default 1e-6
        The weight of the ridge penalty l2 / 2 * |w|^2.

    References
    ----------
    The pointwise baseline of Cheng, Sun and Xie, "TopRank: a novel top-k ranking method based on
    rank aggregation", 2014.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.Regression().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "the pointwise baseline of Cheng et al., 2014"
    _about = "least squares regression of the labels"
    _grid: ClassVar = {"l2": [1e-6, 1e-4, 1e-3, 1e-2, 1e-1]}
    needs_preferences: ClassVar = False

    _: KW_ONLY
    l2: float = 1e-6

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        loss = SquaredError(self.k, average=learns_from != "trees")
        return self.composed(loss, LeastSquares, k=self.k)


@dataclass(frozen=True, eq=False)
class LeastSquares(Composition):
    """Squared errors of documents of equal weight, so that queries are weighted by length.

    Solvers of smooth losses run to the optimum, which has a closed form for linear weights.
    """

    k: int | None = None

    def fit(self, request: FitRequest) -> FitResult:
        if self.scorer.additive:
            return super().fit(request)  # trees sum over documents anyway
        exact = isinstance(self.solver, str) or "smooth" in self.solver.required_traits
        narrow = request.training.n_features <= MAX_COVARIANCE_FEATURES
        if self.scorer.linear and exact and narrow:
            if (self.device or self.scorer.device) != "cpu":
                warn(ONE_PASS)
            with single_threaded_blas():
                return fit_least_squares(request, self.k, self.penalty)
        return super().fit(replace(request, training=request.training.by_documents()))


@dataclass(eq=False, repr=False)
class LossRanker(Smooth):
    """Any loss, by name or of your own.

    Minimizes the mean loss per query plus a penalty.  Smooth losses are minimized by L-BFGS, convex
    hinges by cutting planes, others by Adam.  On trees, a loss of your own that has no `curvature`
    steps by at most 1 per leaf.  The derivatives of a loss of your own are checked by finite
    differences on a few queries.

    Parameters
    ----------
    k : int, optional
        The depth `k` of the loss, if it has such a parameter and does not set it.
    loss : str, Loss or callable, default "PlackettLuce"
        The loss, as `fp.extend.loss` takes it: a name such as "PairwiseLogistic(average=True)", a
        registered one, "module:Name", a `fp.extend.Loss`, or a function of the scores and the
        labels of one query, which returns a value and its gradient.  A function is called for every
        query in every pass, which is slow.

    References
    ----------
    Liu, "Learning to rank for information retrieval", Foundations and Trends in Information
    Retrieval 3(3), 2009: a survey of losses.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.LossRanker(loss="PairwiseExponential").fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "any loss"
    _about = "any loss, by name or of your own"

    _: KW_ONLY
    loss: Any = "PlackettLuce"

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        loss: Any = create_loss(self.loss)
        note = FUNCTION.format(loss) if isinstance(loss, FunctionLoss) else None
        if self.k is not None and "k" not in parameter_names(type(loss)):
            raise DataError(f"the loss {loss} has no parameter k; leave k out.")
        if self.k is not None and loss.k is None:
            loss = replace(loss, k=self.k)
        return self.composed(cast(Loss, loss), note=note)
