"""The posterior of more documents than can have a joint distribution.

In a first stage all utilities are independent, and every answer sends a normal message to each of
its two documents (expectation propagation with a factorized posterior, as in TrueSkill, Herbrich
et al. 2006): a sweep costs the number of answers.  In the second stage the most promising documents
are fitted jointly, as few documents are; answers that compare them with others remain messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from firstpage.core import Floats, Ints
from firstpage.labeling.belief.utilities import MAX_JOINT, Answers, Utilities, fit, moments

SWEEPS = 8  # of messages; more change the third digit
MIN_PRECISION = 1e-9
Row: TypeAlias = tuple[int, int, int, float]  # first, second, outcome, weight


def fit_many(
    before: Utilities, answers: Answers, weights: Sequence[float] | None = None
) -> Utilities:
    """Return the posterior after all answers, whatever the number of documents.

    Up to `MAX_JOINT` compared documents this is `fit`; utilities must be independent before
    the answers if there are more documents.
    """
    if before.joint is None:
        return fit(before, answers, weights)
    rows: list[Row] = list(zip(*answers, weights or [1.0] * len(answers[0]), strict=True))
    compared = np.unique(np.array([row[:2] for row in rows], np.int64))
    messages = Messages(before)
    if len(compared) > MAX_JOINT:
        messages.sweep(rows)
        promise = messages.mean[compared] + 2.0 * np.sqrt(messages.variance[compared])
        compared = np.sort(compared[np.argsort(-promise, kind="stable")[:MAX_JOINT]])
    place = {int(document): at for at, document in enumerate(compared)}
    inside = [at for at, row in enumerate(rows) if row[0] in place and row[1] in place]
    messages.remove(inside)
    start = Utilities(
        messages.mean[compared],
        np.diag(messages.variance[compared]),
        before.margin,
        prior_sd=before.prior_sd,
    )
    firsts = [place[rows[at][0]] for at in inside]
    seconds = [place[rows[at][1]] for at in inside]
    local = (firsts, seconds, [rows[at][2] for at in inside])
    fitted = fit(start, local, [rows[at][3] for at in inside])
    mean, variance = messages.mean.copy(), messages.variance.copy()
    mean[compared] = fitted.mean
    return replace(
        before,
        mean=mean,
        covariance=fitted.covariance,
        evidence=fitted.evidence,
        joint=compared,
        marginal_variance=variance,
    )


class Messages:
    """Independent utilities, as their prior and the messages of the answers.

    A message is a normal factor, by its precision and its precision times its mean.
    """

    def __init__(self, before: Utilities) -> None:
        self.margin = before.margin
        self.precision: Floats = 1.0 / before.variance
        self.shift: Floats = self.precision * before.mean  # precision times mean
        self.sent: dict[int, tuple[Row, Floats]] = {}  # by answer: 2 x (precision, shift)

    @property
    def mean(self) -> Floats:
        """The means of the utilities."""
        mean: Floats = self.shift / self.precision
        return mean

    @property
    def variance(self) -> Floats:
        """The variances of the utilities."""
        variance: Floats = 1.0 / self.precision
        return variance

    def sweep(self, rows: Sequence[Row]) -> None:
        """Send the messages of all answers, several times."""
        for _ in range(SWEEPS):
            for at, row in enumerate(rows):
                self._send(at, row)

    def remove(self, answers: Sequence[int]) -> None:
        """Take the messages of these answers back."""
        for at in answers:
            if at in self.sent:
                row, message = self.sent.pop(at)
                self._add(row, -message)

    def _send(self, at: int, row: Row) -> None:
        first, second, outcome, weight = row
        if first == second:
            return
        old = self.sent[at][1] if at in self.sent else np.zeros((2, 2))
        documents: Ints = np.array([first, second])
        precision = np.maximum(self.precision[documents] - old[:, 0], MIN_PRECISION)
        mean, variance = (self.shift[documents] - old[:, 1]) / precision, 1.0 / precision
        root = weight**0.5
        _, gradient, curvature = moments(
            root * float(mean[0] - mean[1]),
            weight * float(variance.sum()),
            outcome,
            root * self.margin,
        )
        new_mean = mean + variance * root * gradient * np.array([1.0, -1.0])
        new_variance = np.maximum(variance + variance**2 * weight * curvature, 1e-12)
        message = np.stack(
            (1.0 / new_variance - precision, new_mean / new_variance - mean * precision), axis=1
        )
        self._add(row, message - old)
        self.sent[at] = row, message

    def _add(self, row: Row, message: Floats) -> None:
        for document, (precision, shift) in zip(row[:2], message, strict=True):
            self.precision[document] += precision
            self.shift[document] += shift
