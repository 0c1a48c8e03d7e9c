"""LambdaMART."""

from __future__ import annotations

import pytest

import firstpage as fp

DATA = fp.Synthetic(queries=30, docs=12, features=6, grades=3).dataset()


TRAIN, VALID = DATA[:20], DATA[20:]


def test_lambdamart_uses_validation_data() -> None:
    result = fp.LambdaMART(scorer="trees(count=10, leaves=5)").fit(TRAIN, valid=VALID)
    assert result.best_score_ == pytest.approx(result.score(VALID))
