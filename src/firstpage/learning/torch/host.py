"""Losses of tensors on the CPU, by the compiled kernels of the package.

They are several times faster there than the same formulas by operations of PyTorch.  A batch is
read as flat arrays of float64, a loss writes values and the gradient, and both become tensors.  In
compiled code this is one operation, so that the graph is not broken.
"""

from __future__ import annotations

import itertools
import math
import weakref
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from firstpage.core import Floats, Ints
from firstpage.data import Ids, Truth
from firstpage.learning.losses.base import LossTarget
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import FlatOffsets, result_type

if TYPE_CHECKING:
    from torch import Tensor

ValueGrad = tuple[Floats, Floats]


class FlatLists(NamedTuple):
    """Scores and labels of all documents, list after list."""

    scores: Floats
    labels: Floats
    offsets: Ints
    shortest: int
    longest: int

    @property
    def truth(self) -> Truth:
        """The labels as losses of the package read them; lists are numbered from 0."""
        return Truth(self.labels, self.offsets, _list_names(self.size))

    @property
    def size(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    @property
    def is_finite(self) -> bool:
        """Whether no sum shows a score or label that is not finite; large ones may overflow."""
        return math.isfinite(self.scores.sum()) and math.isfinite(self.labels.sum())

    def mean_factor(self, weights: Floats | None) -> Floats | float:
        """Return factors with which a sum over lists is the mean over those with a document."""
        if weights is None and self.shortest > 0:
            return 1.0 / self.size
        filled = self.offsets[1:] > self.offsets[:-1]
        counted = filled.astype(np.float64) if weights is None else filled * weights
        total = float(counted.sum())
        factor: Floats = counted / (total if total > 0 else 1.0)
        return factor


@lru_cache(maxsize=64)
def _list_names(count: int) -> Ids:
    return Ids.from_values(list(range(count)))


def evaluate(target: LossTarget, lists: FlatLists) -> ValueGrad:
    """Return values and gradient of a prepared loss."""
    values, gradient = np.empty(lists.size), np.empty_like(lists.scores)
    target.bind_slice(0, len(values), lists.scores, values, gradient)()
    return values, gradient


def is_used(scores: Tensor) -> bool:
    """Return whether kernels of the CPU compute these scores."""
    return scores.device.type == "cpu"


def flat_lists(
    scores: Tensor, labels: Tensor, mask: Tensor | None = None, offsets: FlatOffsets | None = None
) -> FlatLists:
    """Return the documents of lists on the CPU."""
    if offsets is None and mask is None:
        count, n = scores.shape
        ends = np.arange(count + 1, dtype=np.int64) * n
        return FlatLists(array(scores), array(labels), ends, n, n)
    if offsets is not None:
        ends = np.ascontiguousarray(offsets.ends.numpy())
        return FlatLists(array(scores), array(labels), ends, offsets.shortest, offsets.longest)
    assert mask is not None
    lengths = mask.sum(-1).numpy()
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    shortest, longest = int(lengths.min()), int(lengths.max())
    return FlatLists(array(scores[mask]), array(labels[mask]), ends, shortest, longest)


def array(values: Tensor) -> Floats:
    """Return a tensor on the CPU as a flat array of float64."""
    values = values.detach().resolve_neg()
    if values.dtype in (torch.bfloat16, torch.float16):
        values = values.float()
    flat: Floats = values.numpy().astype(np.float64, order="C", copy=False).reshape(-1)
    return flat


def shaped(gradient: Floats, like: Tensor, mask: Tensor | None) -> Tensor:
    """Return the gradient in the shape of the scores, in the type of the result."""
    dtype = np.float64 if like.dtype == torch.float64 else np.float32
    out = gradient.astype(dtype, copy=False)
    if mask is None:
        return torch.from_numpy(out.reshape(like.shape))
    padded = np.zeros(like.shape, dtype)
    padded[mask.numpy()] = out
    return torch.from_numpy(padded)


def scalar(value: float, like: Tensor) -> Tensor:
    """Return a number as a tensor; several times faster than `torch.tensor`."""
    dtype = np.float64 if like.dtype == torch.float64 else np.float32
    return torch.from_numpy(np.array(value, dtype))


# In compiled code a loss is one operation, which finds its formula by number.
_numbers = itertools.count()
_formulas: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def register_formula(owner: Any) -> int:
    """Return the number by which `opaque` finds `owner._host_formula`."""
    number = next(_numbers)
    _formulas[number] = owner
    return number


@torch.library.custom_op("firstpage::ranking_loss", mutates_args=())
def opaque(
    scores: torch.Tensor,
    labels: torch.Tensor,
    mask: torch.Tensor | None,
    seed: torch.Tensor | None,
    number: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return values per list and the gradient of padded lists, computed on the CPU."""
    owner = _formulas[number]
    device, dtype = scores.device, result_type(scores)
    if device.type != "cpu":
        scores, labels = scores.cpu(), labels.cpu()
        mask = None if mask is None else mask.cpu()
    values, gradient = owner._host_formula(
        flat_lists(scores, labels, mask), 0 if seed is None else int(seed)
    )
    tensor = shaped(gradient, scores, mask)
    return torch.from_numpy(values).to(device, dtype), tensor.to(device)


@opaque.register_fake
def _(
    scores: Any, labels: Any, mask: Any, seed: Any, number: int
) -> tuple[torch.Tensor, torch.Tensor]:
    dtype = result_type(scores)
    return scores.new_empty(scores.shape[:1], dtype=dtype), torch.empty_like(scores, dtype=dtype)
