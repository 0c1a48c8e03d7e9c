"""Order rows inside their groups: the workspace that the sorting kernels need, in one place."""

from __future__ import annotations

import numpy as np

from firstpage.kernels import sorting as kernel
from firstpage.types import Floats, Ints, Words


def _workspace(offsets: Ints) -> tuple[Words, Words, Ints]:
    size = int(np.diff(offsets).max(initial=0))
    return np.empty(size, np.uint64), np.empty(size, np.uint64), np.empty(size, np.int64)


def ranked(values: Floats, offsets: Ints) -> tuple[Ints, Floats]:
    """Row numbers of every group, greatest value first and stable; and the values so."""
    values = np.ascontiguousarray(values, np.float64)
    order, keys = np.empty(len(values), np.int64), np.empty(len(values))
    kernel.rank(values, values.view(np.uint64), offsets, *_workspace(offsets), order, keys)
    return order, keys


def ranked_labels(scores: Floats, labels: Floats, offsets: Ints) -> tuple[Floats, Ints, int]:
    """Labels in the order of the scores, lengths of ties at their first place, the longest."""
    words, spare_words, spare = _workspace(offsets)
    out, block = np.empty(len(scores)), np.empty(len(scores), np.int64)
    longest = kernel.rank_labels(
        scores, scores.view(np.uint64), labels, offsets,
        np.empty_like(spare), words, spare_words, spare, out, block,
    )  # fmt: skip
    return out, block, longest
