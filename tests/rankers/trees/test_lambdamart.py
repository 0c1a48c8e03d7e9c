"""LambdaMART."""

from __future__ import annotations

import pytest

import firstpage as fp

DATA = fp.Synthetic(queries=30, docs=12, features=6, grades=3).dataset()


TRAIN, VALID = DATA[:20], DATA[20:]


def test_lambdamart_takes_validation_data() -> None:
    found = fp.LambdaMART(scorer="trees(count=10, leaves=5)").fit(TRAIN, valid=VALID)
    assert found.best_score_ == pytest.approx(found.score(VALID))
