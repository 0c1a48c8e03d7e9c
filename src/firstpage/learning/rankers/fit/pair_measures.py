"""Measures of scores on votes on pairs of documents, for validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.core.kernels.losses import voted_agreement
from firstpage.data import Dataset
from firstpage.data.preferences import PairTruth, RowPairs
from firstpage.evaluation.measures import NAME, Measure
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.losses.base import safe_inverse
from firstpage.learning.losses.levels import query_sums
from firstpage.learning.losses.pairs import VotedLogistic

ACCURACY, LOG_LOSS = NAME, "PairLogLoss"
DEFAULT_MEASURE = "NDCG@10"  # of rankers: with pairs, it stands for PairAccuracy
NEEDS_PAIRS = "{} measures votes on pairs; give pairs=.., or choose a measure of labels."


@dataclass(frozen=True)
class PairMeasure:
    """The fraction of votes that scores agree with, or the mean log loss of a vote.

    Votes count with their weights.  Equal scores agree with half of the votes on the pair.  The
    accuracy ignores votes that neither document is better; in the log loss they count as half a
    vote for each.
    """

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def lower_is_better(self) -> bool:
        """Whether it is a loss."""
        return self.name == LOG_LOSS

    def mean(self, scores: Floats, truth: PairTruth) -> float:
        """Return the mean over all votes; NaN if there are none."""
        sums, weights = self._sums(scores, truth)
        return float(sums.sum() / weights.sum()) if weights.sum() > 0 else float("nan")

    def per_query(self, scores: Floats, truth: PairTruth) -> Floats:
        """Return the mean over the votes of each query; 0 where there are none."""
        sums, weights = self._sums(scores, truth)
        values: Floats = sums * safe_inverse(weights)
        return values

    def counts(self, pairs: RowPairs) -> Floats:
        """Return the weight of the votes of each query that count."""
        weights = pairs.left_weight + pairs.right_weight
        if self.name == LOG_LOSS:
            weights = weights + pairs.tie_weight
        return query_sums(weights, pairs.offsets)

    def _sums(self, scores: Floats, truth: PairTruth) -> tuple[Floats, Floats]:
        """Return the sum over the votes of each query, and their weight."""
        scores, pairs = np.ascontiguousarray(scores, np.float64), truth.votes
        if self.name == LOG_LOSS:
            return VotedLogistic().value_grad(scores, truth)[0], self.counts(pairs)
        agreed, total = np.empty(len(truth)), np.empty(len(truth))
        voted_agreement(
            scores,
            truth.offsets,
            pair_offsets=pairs.offsets,
            left=pairs.left,
            right=pairs.right,
            left_weight=pairs.left_weight,
            right_weight=pairs.right_weight,
            agreed=agreed,
            total=total,
        )
        return agreed, total


PAIR_MEASURES = {name: PairMeasure(name) for name in (ACCURACY, LOG_LOSS)}
AnyMeasure = Measure | PairMeasure


def any_measure(text: object) -> AnyMeasure:
    """Return a measure of labels or of pairs by its name."""
    if isinstance(text, str) and text in PAIR_MEASURES:
        return PAIR_MEASURES[text]
    return parse_measure(text)  # type: ignore[arg-type]


def pair_measure(text: object) -> PairMeasure:
    """Return the measure of pairs by its name; the default of rankers stands for accuracy."""
    if text == DEFAULT_MEASURE:
        return PAIR_MEASURES[ACCURACY]
    measure = any_measure(text)
    if not isinstance(measure, PairMeasure):
        raise DataError(
            f"{measure} is a measure of labels; pairs are measured by {ACCURACY} or {LOG_LOSS}."
        )
    return measure


def truth_of_pairs(data: Dataset, pairs: RowPairs) -> PairTruth:
    """Return pairs of documents as their truth; labels, which may be missing, are not read."""
    return PairTruth(np.zeros(data.n_docs), data.offsets, data.queries, pairs)
