"""Belief about the utilities of documents from choices among several of them.

An assessor who is shown documents names the best one, or their order: the best, the best of the
others, and so on (Plackett 1975, Luce 1959).  Each is a choice with P(d) proportional to
exp(u_d + b x_d): x_d is the position at which d was shown, from 1/2 (first) to -1/2 (last), and b
the assessor's position bias, which is estimated together with the utilities.  A choice between two
documents is that of Bradley and Terry (1952).

The prior is normal: means from the scores of a run, by rank, so that their scale does not matter.
The posterior is approximated by the normal distribution at its mode (Laplace); the log posterior is
concave.  Slope and standard deviation of the prior are those with the greatest evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import scipy  # its modules are loaded when they are first used

from firstpage.core import Array, Floats, Ints
from firstpage.labeling.belief.utilities import Utilities

SLOPES, SDS = (0.5, 1.0, 2.0), (1.5, 3.0, 5.0)  # of the prior, in units of a choice's error
DEFAULT_PRIOR = (1.0, 3.0)
BIAS_SD = 1.0  # prior standard deviation of the position bias
LOGISTIC_SD = 1.702  # a logistic error is close to a normal one with this standard deviation
MAX_STEPS, TOLERANCE = 30, 1e-4


@dataclass(frozen=True)
class ListChoice:
    """An answered question.

    Attributes
    ----------
    shown : tuple of int
        The documents in the order in which they were shown.
    ranking : tuple of int
        The best documents, best first; those that are not in it are worse.
    """

    shown: tuple[int, ...]
    ranking: tuple[int, ...]

    def stages(self) -> list[tuple[list[int], list[float]]]:
        """Return each choice that the ranking consists of: the chosen document and the others.

        With every document comes the position at which it was shown.
        """
        at = {document: place for place, document in enumerate(self.shown)}
        order = [*self.ranking, *(each for each in self.shown if each not in self.ranking)]
        scale = max(len(order) - 1, 1)
        positions = [0.5 - at[document] / scale for document in order]
        last = min(len(self.ranking), len(order) - 1)
        return [(order[stage:], positions[stage:]) for stage in range(last)]


@dataclass
class ChoiceBelief:
    """A normal belief about the utilities of n documents, updated by choices.

    Parameters
    ----------
    prior_scores : array
        The scores of the run, which decide the means before any choice.
    """

    prior_scores: Sequence[float] | Floats
    choices: list[ListChoice] = field(default_factory=list)

    def __post_init__(self) -> None:
        n = len(self.prior_scores)
        ranks = scipy.stats.rankdata(np.asarray(self.prior_scores, np.float64))
        self._normal_scores: Floats = scipy.special.ndtri((ranks - 0.375) / (n + 0.25))  # Blom
        self._prior = DEFAULT_PRIOR
        self._documents: Ints = np.zeros((0, 2), np.int64)  # per stage, chosen first; n: none
        self._positions: Floats = np.zeros((0, 2))
        self._mode, self._hessian = np.append(self._normal_scores, 0.0), np.eye(n + 1)
        self._tuned_at = 0
        self._fit()

    def add(self, choice: ListChoice) -> None:
        """Update the belief with a choice; choose the prior again after a quarter more of them."""
        self.choices.append(choice)
        n = len(self._normal_scores)
        stages = choice.stages()
        width = max([self._documents.shape[1], *(len(documents) for documents, _ in stages)])
        rows = len(self._documents)
        documents = np.full((rows + len(stages), width), n)
        positions = np.zeros(documents.shape)
        documents[:rows, : self._documents.shape[1]] = self._documents
        positions[:rows, : self._documents.shape[1]] = self._positions
        for row, (members, places) in enumerate(stages, rows):
            documents[row, : len(members)], positions[row, : len(members)] = members, places
        self._documents, self._positions = documents, positions
        if len(documents) >= 1.25 * self._tuned_at + 8:
            self._tuned_at = len(documents)
            fits = [(self._fit(prior), prior) for prior in product(SLOPES, SDS)]
            self._prior = max(fits)[1]
        self._fit()

    @property
    def position_bias(self) -> float:
        """The logit by which a document gains if it is shown first and not last."""
        return float(self._mode[-1])

    def utilities(self) -> Utilities:
        """Return the belief in units of a normal error, as the choice of questions expects it."""
        covariance = np.asarray(np.linalg.inv(self._hessian), np.float64)[:-1, :-1] / LOGISTIC_SD**2
        return Utilities(self._mode[:-1] / LOGISTIC_SD, covariance, margin=0.0)

    def _fit(self, prior: tuple[float, float] | None = None) -> float:
        """Set mode and Hessian for a prior; return the logarithm of its evidence."""
        slope, sd = prior or self._prior
        n = len(self._normal_scores)
        center = np.append(slope * self._normal_scores, 0.0)
        precision = np.append(np.full(n, sd**-2), BIAS_SD**-2)
        mode, value = self._mode, -np.inf
        gradient, hessian = np.zeros(n + 1), np.diag(precision)
        for _ in range(MAX_STEPS):
            step, length = np.linalg.solve(hessian, gradient), 1.0
            likelihood, new_gradient, new_hessian = self._derivatives(mode + step)
            away = mode + step - center
            new_value = likelihood - 0.5 * float(precision @ (away * away))
            while new_value < value - TOLERANCE and length > 1e-3:
                length *= 0.5
                likelihood, new_gradient, new_hessian = self._derivatives(mode + length * step)
                away = mode + length * step - center
                new_value = likelihood - 0.5 * float(precision @ (away * away))
            mode = mode + length * step
            gradient, hessian = new_gradient - precision * away, new_hessian + np.diag(precision)
            if new_value - value < TOLERANCE:
                break
            value = new_value
        self._mode, self._hessian = mode, hessian
        logdet = float(np.linalg.slogdet(hessian)[1])
        return new_value + 0.5 * (float(np.log(precision).sum()) - logdet)

    def _derivatives(self, at: Floats) -> tuple[float, Floats, Array]:
        """Return the log likelihood, its gradient, and minus its Hessian."""
        n, documents, positions = len(self._normal_scores), self._documents, self._positions
        size = n + 1
        if not len(documents):
            return 0.0, np.zeros(size), np.zeros((size, size))
        logits = np.append(at[:-1], -np.inf)[documents] + at[-1] * positions
        top = logits.max(axis=1, keepdims=True)
        weights = np.exp(logits - top)
        total = weights.sum(axis=1, keepdims=True)
        likelihood = float((logits[:, 0] - top[:, 0] - np.log(total[:, 0])).sum())
        probability = weights / total
        expected = np.zeros((len(documents), size + 1))
        np.put_along_axis(expected, documents, probability, axis=1)
        expected[:, n] = (probability * positions).sum(axis=1)
        expected = expected[:, :size]
        gradient = np.bincount(documents[:, 0], minlength=size).astype(np.float64)
        gradient[n] = positions[:, 0].sum()
        gradient -= expected.sum(axis=0)
        flat, places = documents.ravel(), (probability * positions).ravel()
        diagonal = np.bincount(flat, probability.ravel(), size)
        cross = np.bincount(flat, places, size)
        diagonal[n], cross[n] = (probability * positions * positions).sum(), 0.0
        hessian = np.diag(diagonal) - expected.T @ expected
        hessian[n] += cross
        hessian[:, n] += cross
        return likelihood, gradient, hessian
