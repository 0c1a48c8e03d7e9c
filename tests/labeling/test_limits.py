"""The maximum number of documents per query of each strategy."""

from __future__ import annotations

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.strategies.registry import STRATEGIES, check_documents, max_documents


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_has_a_limit(name: str) -> None:
    limit = max_documents(name)
    assert limit == {"five-grade": 5000, "pairs": 100}.get(name, 10_000)
    check_documents("q", limit, name)
    with pytest.raises(DataError) as error:
        check_documents("q", limit + 1, name)
    message = str(error.value)
    assert message.startswith(f"query 'q' has {limit + 1:,} ")
    assert f"{name} takes at most {limit:,} per query; " in message
    assert "\n" not in message


def test_the_message_gives_advice_for_the_tool() -> None:
    for name, advice in (
        (
            "adaptive(budget=9)",
            "pool to a smaller depth (--depth 10000, or the best 10,000 by a score).",
        ),
        (
            "five-grade",
            "pool to a smaller depth (--depth 5000, or the best 5,000 by a score), or "
            "compare them (--tool pairs takes 10,000).",
        ),
        ("pairs", "keep 100 lists of it."),
    ):
        with pytest.raises(DataError) as error:
            check_documents("q", 10_001, name)
        assert str(error.value).endswith(advice)


def test_refinement_of_grades_has_a_limit_of_its_own() -> None:
    assert max_documents("five-grade", refine=10) == 500
