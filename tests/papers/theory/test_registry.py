"""All checks in one list: names, records, independence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstpage.errors import DataError
from firstpage.papers.cheng2014.theorems import CHECKS as CHENG2014
from firstpage.papers.theory.checks import PAPERS, Result
from firstpage.papers.theory.registry import CHECKS, chosen, run
from firstpage.papers.xia2009.theorems import CHECKS as XIA2009
from firstpage.papers.xia2009.theorems import refuted
from firstpage.papers.zhou2013.theorems import CHECKS as ZHOU2013


def test_names_are_unique_and_papers_known() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names) >= 50
    assert {check.paper for check in CHECKS} == set(PAPERS)


def test_what_is_false_as_printed_is_mended_or_explained() -> None:
    false = {check.name: check for check in CHECKS if not check.holds}
    mended = {check.mends for check in CHECKS if check.mends}
    assert mended <= set(false)
    assert all(name in mended or check.note for name, check in false.items())
    assert all(check.kind == "printed" for check in false.values())
    assert all(bool(check.mends) == (check.kind == "mended") for check in CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [*XIA2009, *CHENG2014, *ZHOU2013],
    ids=lambda check: check.name,
)
def test_checks_come_out_as_recorded(check) -> None:
    (found,) = run([check], samples=200, seed=5)
    assert found.as_recorded, found.result


def test_choice_by_name_and_by_beginning() -> None:
    assert len(chosen([])) == len(CHECKS)
    assert [c.name for c in chosen(["lan2013/theorem-1"])] == ["lan2013/theorem-1"]
    assert all(c.name.startswith("zhou2013/") for c in chosen(["zhou"]))
    both = chosen(["lan2013/theorem-1", "zhou2013/e"])
    assert [c.name for c in both] == ["lan2013/theorem-1", "zhou2013/example-1"]
    with pytest.raises(DataError, match="no check begins with 'nope'; --list shows all"):
        chosen(["nope"])


@pytest.mark.slow
def test_a_check_sees_its_own_random_numbers() -> None:
    names = ["lan2013/theorem-1", "lan2013/theorem-2-hinge", "zhou2013/theorem-1"]
    together = run(chosen(names), samples=100, seed=3)
    alone = [run(chosen([name]), samples=100, seed=3)[0] for name in names]
    assert [o.result for o in together] == [o.result for o in alone]
    other = run(chosen(names), samples=100, seed=4)
    assert [o.result.numbers for o in together] != [o.result.numbers for o in other]


@pytest.mark.slow
def test_an_outcome_that_is_not_recorded_is_seen() -> None:
    (check,) = chosen(["lan2013/final-logistic"])
    (found,) = run([replace(check, holds=True)], samples=100)
    assert (found.as_recorded, found.verdict) == (False, "does not hold")
    infinite = replace(check, run=lambda rng, samples: Result(False, {"ratio": float("inf")}))
    assert run([infinite])[0].to_dict()["numbers"] == {"ratio": None}


def test_a_claim_of_failure_needs_an_example() -> None:
    silent = refuted(lambda rng, samples: Result(False))
    assert not silent(None, 0).holds  # type: ignore[arg-type]
    shown = refuted(lambda rng, samples: Result(False, {}, "here"))
    assert shown(None, 0).holds  # type: ignore[arg-type]
