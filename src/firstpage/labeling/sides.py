"""On which side a document is shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firstpage.labeling.events import Judged


def sides(first: str, second: str, before: Sequence[Judged], seed: int) -> tuple[str, str]:
    """Left and right: a document that was just shown keeps its side, else the seed decides.

    A document that stays where it is need not be read again.
    """
    if before and before[-1].right is not None:
        left, right = before[-1].left, before[-1].right
        if first == left or second == right:
            return first, second
        if first == right or second == left:
            return second, first
    flip = np.random.default_rng([seed, len(before)]).random() < 0.5
    return (second, first) if flip else (first, second)
