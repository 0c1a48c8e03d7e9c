"""How many documents of one query a strategy takes."""

from __future__ import annotations

import pytest

from firstpage.errors import DataError
from firstpage.labeling.strategies.registry import STRATEGIES, check_documents, max_documents


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_has_a_limit(name: str) -> None:
    most = max_documents(name)
    assert most == {"five-grade": 5000, "pairs": 100}.get(name, 500)
    check_documents("q", most, name)
    with pytest.raises(DataError) as error:
        check_documents("q", most + 1, name)
    told = str(error.value)
    assert told.startswith(f"query 'q' has {most + 1:,} ")
    assert f"{name} takes at most {most:,} per query; " in told
    assert "\n" not in told


def test_what_to_do_fits_the_tool() -> None:
    for name, advice in (
        ("adaptive(budget=9)", "pool to a smaller depth (--depth 500, or the best 500 by a score), "
         "or grade them (--tool grades takes 5,000)."),
        ("five-grade", "pool to a smaller depth (--depth 5000, or the best 5,000 by a score)."),
        ("pairs", "keep 100 lists of it."),
    ):  # fmt: skip
        with pytest.raises(DataError) as error:
            check_documents("q", 10_000, name)
        assert str(error.value).endswith(advice)


def test_questions_after_the_grades_are_comparisons() -> None:
    assert max_documents("five-grade", refine=10) == 500
