"""The focused loss."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.learning.losses.focused import TopList

RNG = np.random.default_rng(0)


def test_the_form_of_the_list_loss_is_chosen_per_query() -> None:
    strict = fp.Truth.from_labels([3, 2, 1, 0, 0], [1] * 5)
    both = fp.Truth.from_labels([3, 2, 1, 0, 0, 1, 1, 1, 0, 0], [1] * 5 + [2] * 5)
    scores = RNG.normal(size=10)
    alone = TopList(3).value_grad(scores[:5], strict)[0][0]
    assert TopList(3).value_grad(scores, both)[0][0] == pytest.approx(alone)
