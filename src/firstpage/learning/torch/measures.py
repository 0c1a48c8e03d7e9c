"""Measures of rankings for training loops, with the interface of torchmetrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from firstpage.core import DataError, MeasureError
from firstpage.data import Ids, Truth
from firstpage.evaluation.measures import ALL_JUDGED, Convention, MeasureLike, rank_lists
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import read_batch
from firstpage.learning.torch.direct import check_known_maximum

if TYPE_CHECKING:
    from torch import Tensor


class RankingMeasure(torch.nn.Module):
    """The mean of a measure over all lists so far, with the interface of torchmetrics.

    Values are those of `fp.evaluate`: they are computed on the CPU, in float64, with the exact mean
    over the orders of documents of equal score.  Lists without documents are not counted.  With
    ``torch.distributed``, `compute` adds the sums of all processes, so that each returns the mean
    over all lists.

    Parameters
    ----------
    measure : str or Measure, default "NDCG@10"
        The measure, such as "NDCG@10", "AP" or "RR".
    convention : {"default", "letor"} or Convention, default "default"
        How rankings and judgments are interpreted; see docs/conventions.md.  Ties by document id
        are refused, as lists have none.

    Attributes
    ----------
    total : Tensor
        The sum of the values so far.
    count : Tensor
        The number of lists so far.

    Raises
    ------
    MeasureError
        If the measure or the convention is unknown, the measure depends on all lists at once (ERR
        needs `max`, its greatest label), or lists are condensed: all their documents have labels.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> measure = fp.torch.RankingMeasure("RR")
    >>> measure.update(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([[1, 0], [0, 1]]))
    >>> float(measure.compute())
    0.75
    """

    total: Tensor
    count: Tensor

    def __init__(
        self, measure: MeasureLike = "NDCG@10", *, convention: str | Convention = "default"
    ) -> None:
        super().__init__()
        self.measure = parse_measure(measure)
        self.convention = Convention(convention)
        if self.convention.ties == "docid":
            raise MeasureError(
                "ties by document id need document ids, and lists of scores have none: choose the "
                "convention 'default' or 'letor'."
            )
        if self.convention.condensed or getattr(self.measure, "condensed", False):
            raise MeasureError(ALL_JUDGED)
        check_known_maximum(self.measure)
        self.register_buffer("total", torch.zeros((), dtype=torch.float64), persistent=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64), persistent=False)

    def update(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        offsets: Tensor | None = None,
    ) -> None:
        """Add a batch of lists.

        Parameters
        ----------
        scores : Tensor of shape (lists, documents), or (documents,) with `offsets`
            Scores.
        labels : Tensor of the same shape
            Labels; larger is better.
        mask : Tensor of bool of the same shape, optional
            Where there is a document; the rest is padding.
        offsets : Tensor of int of shape (lists + 1,), optional
            With flat scores: list q has the documents offsets[q]:offsets[q + 1].

        Raises
        ------
        DataError
            If shapes or types do not fit, there is no list, or a number is not finite.
        """
        values = self._values(scores, labels, mask, offsets)
        self.total += float(values.sum())
        self.count += len(values)

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        offsets: Tensor | None = None,
    ) -> Tensor:
        """Add a batch of lists, and return the measure over this batch.

        Parameters
        ----------
        scores : Tensor of shape (lists, documents), or (documents,) with `offsets`
            Scores.
        labels : Tensor of the same shape
            Labels; larger is better.
        mask : Tensor of bool of the same shape, optional
            Where there is a document; the rest is padding.
        offsets : Tensor of int of shape (lists + 1,), optional
            With flat scores: list q has the documents offsets[q]:offsets[q + 1].

        Returns
        -------
        Tensor
            The mean over the lists of the batch; NaN if none has a document.

        Raises
        ------
        DataError
            If shapes or types do not fit, there is no list, or a number is not finite.
        """
        values = self._values(scores, labels, mask, offsets)
        total, count = float(values.sum()), len(values)
        self.total += total
        self.count += count
        return self._reported(total, count)

    def compute(self) -> Tensor:
        """Return the measure over all lists, those of all processes included.

        Returns
        -------
        Tensor
            One number (float64).

        Raises
        ------
        DataError
            If there was no list.
        """
        total, count = self.total.clone(), self.count.clone()
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(total)
            torch.distributed.all_reduce(count)
        if not int(count):
            raise DataError(f"{self.measure} has no value yet: update() received no document.")
        return self._reported(float(total), int(count))

    def _reported(self, total: float, count: int) -> Tensor:
        """Return what `fp.evaluate` reports: a mean, a sum of counts, or a geometric mean."""
        value = self.measure.from_mean(total / count, count) if count else math.nan
        return self.total.new_tensor(value)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the sums to another device, but never to a type of lower precision."""
        super()._apply(fn, recurse)
        self.total, self.count = self.total.double(), self.count.long()
        return self

    def reset(self) -> None:
        """Forget all lists."""
        self.total.zero_()
        self.count.zero_()

    def extra_repr(self) -> str:
        """Return the parameters, as PyTorch prints them.

        Returns
        -------
        str
            The measure and the convention.
        """
        return f"{str(self.measure)!r}, convention={str(self.convention)!r}"

    def _values(self, scores: Any, labels: Any, mask: Any, offsets: Any) -> Any:
        """Return one value per list that has a document."""
        lists = read_batch(scores, labels, mask, offsets, check=True).lists
        exists = np.ones(lists.key.shape, bool) if lists.mask is None else lists.mask.cpu().numpy()
        lengths = exists.sum(1)
        bounds = np.concatenate([[0], np.cumsum(lengths[lengths > 0])]).astype(np.int64)
        if not bounds[-1]:
            return np.empty(0)
        flat_scores = lists.scores.double().cpu().numpy()[exists]
        flat_labels = lists.key.double().cpu().numpy()[exists]
        first = int(self.count)  # lists are numbered through: shuffled ties depend on the number
        queries = Ids.from_values(range(first, first + len(bounds) - 1))
        truth, needs = Truth(flat_labels, bounds, queries), self.measure.needs(self.convention)
        ranked = rank_lists(flat_scores, truth, self.convention, needs=needs)
        return self.measure.values(ranked, self.convention)
