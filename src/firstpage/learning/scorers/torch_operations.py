"""The operations of a network in PyTorch, with gradients that cost about as much as the scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from firstpage.core import Ints

if TYPE_CHECKING:
    from torch import Tensor

MIN_FILLED = 0.75  # of the longest list of a padded batch, the length of the shortest
FEW_PADDED = 16  # documents by which any list may be padded
MAX_BATCH_CELLS = 1 << 24  # attention weights of a padded batch


@dataclass(frozen=True, eq=False)
class ListBatches:
    """Lists of similar length, padded together, so that attention is computed list by list.

    Attributes
    ----------
    shapes : list of tuple
        The number of lists of each batch and their length; and a mask that is True where there is
        a document, None where all lists have the same length.
    rows : tensor
        The row of each document of the padded lists, one batch after the other; padding repeats
        the last row of its list.
    positions : tensor
        Where each row is in the padded lists.
    """

    shapes: Sequence[tuple[int, int, Tensor | None]]
    rows: Tensor
    positions: Tensor

    @classmethod
    def of(cls, ends: Ints, heads: int, upload: Callable[[Any], Tensor]) -> ListBatches:
        """Batch lists so that little is padding, and few attention weights are computed at once."""
        lengths, shapes, all_rows = np.diff(ends), [], []
        order = np.argsort(-lengths, kind="stable")
        descending = lengths[order]
        positions, start, filled = np.empty(int(ends[-1]), np.int64), 0, 0
        while start < len(order) and descending[start]:
            width = int(descending[start])
            shortest = max(min(MIN_FILLED * width, width - FEW_PADDED), 1)
            stop = int(np.searchsorted(-descending, -shortest, side="right"))
            stop = min(stop, start + max(1, MAX_BATCH_CELLS // (heads * width * width)))
            chosen = order[start:stop]
            column, lengths_here = np.arange(width), lengths[chosen, None]
            rows = ends[chosen, None] + np.minimum(column, lengths_here - 1)
            mask = column < lengths_here
            positions[rows[mask]] = filled + np.flatnonzero(mask.ravel())
            padded = None if mask.all() else upload(mask[:, None, None, :])
            shapes.append((len(chosen), width, padded))
            all_rows.append(rows.ravel())
            start, filled = stop, filled + rows.size
        return cls(shapes, upload(np.concatenate(all_rows)), upload(positions))


class _Linear(torch.autograd.Function):
    """A matrix product whose gradient by the rows does not read the matrix transposed.

    OpenBLAS multiplies small transposed matrices several times slower than copied ones.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight)

    @staticmethod
    def backward(ctx: Any, output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        rows = output @ weight.t().contiguous() if ctx.needs_input_grad[0] else None
        return rows, x.t() @ output, output.sum(0)


class _Gather(torch.autograd.Function):
    """Rows by their numbers, some of them repeated, of which the first one alone has a gradient.

    So the gradient is gathered too, by the inverse numbers, and nothing is added up.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, output: Tensor) -> tuple[Tensor, None, None]:
        return output.index_select(0, *ctx.saved_tensors), None, None


class TorchOperations:
    """The operations of a forward pass."""

    def __init__(
        self, activation: str, heads: int, lists: ListBatches | None, dropout: float
    ) -> None:
        self._heads, self._lists = heads, lists
        functions = torch.nn.functional
        self._activation = {
            "relu": torch.relu,
            "tanh": torch.tanh,
            "silu": functions.silu,
            "gelu": lambda x: functions.gelu(x, approximate="tanh"),
        }[activation]
        self.dropout = dropout
        self.generator: torch.Generator | None = None

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        if weight.dim() == 1:
            return x @ weight + bias
        if x.device.type == "cpu":
            out: Tensor = _Linear.apply(x, weight, bias)
            return out
        return torch.addmm(bias, x, weight)

    def activate(self, x: Tensor) -> Tensor:
        return self._activation(x)

    def normalize(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)

    def attend(self, qkv: Tensor) -> Tensor:
        assert self._lists is not None
        lists, width = self._lists, qkv.shape[1] // 3
        padded = _Gather.apply(qkv, lists.rows, lists.positions)
        batches = padded.split([count * length for count, length, _ in lists.shapes])
        outputs = []
        for batch, (count, length, mask) in zip(batches, lists.shapes, strict=True):
            split = batch.view(count, length, 3, self._heads, width // self._heads)
            q, k, v = split.permute(2, 0, 3, 1, 4)
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            outputs.append(mixed.transpose(1, 2).reshape(count * length, width))
        attended = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
        return self._unpadded(attended)

    def _unpadded(self, attended: Tensor) -> Tensor:
        assert self._lists is not None
        if len(attended) == len(self._lists.positions):  # nothing is padded
            unpadded: Tensor = _Gather.apply(attended, self._lists.positions, self._lists.rows)
            return unpadded
        return attended.index_select(0, self._lists.positions)

    def drop(self, x: Tensor) -> Tensor:
        if not self.dropout:
            return x
        factor = torch.rand(x.shape, generator=self.generator, device=x.device)
        return x * factor.ge_(self.dropout).mul_(1 / (1 - self.dropout))
