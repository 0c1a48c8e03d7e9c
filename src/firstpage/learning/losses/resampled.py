"""A loss of strict orders, for which equal labels get another random order in every pass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstpage.core import BoundKernel, Floats, Ints
from firstpage.data import Truth
from firstpage.learning.losses.base import Loss, LossTarget, LossTerm, Traits


@dataclass(frozen=True)
class ResampledTies(Loss):
    """A loss whose truth is drawn anew in every pass: equal labels in a random order.

    The order of a query depends on the seed, its id and the number of the pass alone, so neither
    the number of threads nor the other queries change it.  A pass over a slice of queries is an
    epoch of a stochastic solver.

    Parameters
    ----------
    loss : Loss
        The loss of one order.
    k : int, optional
        Draw the top k, labeled k, k-1, .., 1, 0; None draws the full order.
    seed : int, default 0
        The seed of the orders.

    References
    ----------
    Niu, Guo, Lan and Cheng (2012), section 4.2.1, draws one order; so do Xia, Liu and Li (2009).

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> from firstpage.learning.losses.resampled import ResampledTies
    >>> data = fp.Dataset.from_arrays(np.eye(3), [1, 0, 0], [1, 1, 1])
    >>> loss = ResampledTies(fp.extend.loss("PlackettLuce(k=2)"), k=2)
    >>> values, _ = loss.value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(3))  # log 3 + log 2, for any order of the two equal labels
    1.792
    """

    loss: Loss
    k: int | None = None
    seed: int = 0

    @property
    def traits(self) -> Traits:
        return replace(self.loss.traits, deterministic=False)

    def order(self, truth: Truth, epoch: int) -> Truth:
        """Return the truth of one epoch, without ties among the documents that count."""
        seed = int(np.random.SeedSequence([int(self.seed), epoch]).generate_state(1)[0])
        return truth.full_order(seed) if self.k is None else truth.top_k(self.k, seed)

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        return _ResampledTarget(self, truth, weights, np.zeros(len(truth) + 1, np.int64))


@dataclass(frozen=True, eq=False)
class _ResampledTarget(LossTarget):
    resampled: ResampledTies
    truth: Truth
    weights: Floats | None
    epochs: Ints  # by the first query of a slice: how often it was evaluated

    def skip_draws(self, evaluations: int) -> None:
        self.epochs[:] += evaluations

    def set_evaluation(self, number: int) -> None:
        self.epochs[:] = number

    def hessian_scale(self) -> Floats:
        return self._inner(self.truth, self.weights, 0).hessian_scale()

    def terms(self) -> list[LossTerm] | None:
        return None

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        truth, weights = self._slice(lo, hi)
        epoch = self.epochs[lo : lo + 1]

        def run() -> None:
            epoch[0] += 1
            inner = self._inner(truth, weights, int(epoch[0]))
            inner.bind_slice(0, hi - lo, scores, values, grad)()

        return run

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        truth, weights = self._slice(lo, hi)
        return self._inner(truth, weights, 0).bind_curvature(0, hi - lo, scores, out)

    def _inner(self, truth: Truth, weights: Floats | None, epoch: int) -> LossTarget:
        return self.resampled.loss.target(self.resampled.order(truth, epoch), weights)

    def _slice(self, lo: int, hi: int) -> tuple[Truth, Floats | None]:
        """Return the truth and the weights of the queries lo:hi."""
        offsets = self.truth.offsets[lo : hi + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        truth = Truth(self.truth.labels[rows], offsets - offsets[0], self.truth.queries[lo:hi])
        return truth, None if self.weights is None else self.weights[rows]
