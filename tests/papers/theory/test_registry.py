"""All checks in one list: names, records, independence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstpage.core.errors import DataError
from firstpage.papers.cheng2014.theorems import CHECKS as CHENG2014
from firstpage.papers.theory.checks import PAPERS, Evidence
from firstpage.papers.theory.registry import CHECKS, check_theorems, run_checks, select_checks
from firstpage.papers.xia2009.theorems import CHECKS as XIA2009
from firstpage.papers.xia2009.theorems import refuted
from firstpage.papers.zhou2013.theorems import CHECKS as ZHOU2013


def test_names_are_unique_and_papers_known() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names) >= 50
    assert {check.paper for check in CHECKS} == set(PAPERS)


def test_false_statements_are_corrected_or_explained() -> None:
    false = {check.name: check for check in CHECKS if not check.holds}
    corrected = {check.corrects for check in CHECKS if check.corrects}
    assert corrected <= set(false)
    assert all(name in corrected or check.note for name, check in false.items())
    assert all(check.kind == "printed" for check in false.values())
    assert all(bool(check.corrects) == (check.kind == "corrected") for check in CHECKS)


@pytest.mark.parametrize(
    "check",
    [*XIA2009, *CHENG2014, *ZHOU2013],
    ids=lambda check: check.name,
)
def test_results_are_as_recorded(check) -> None:
    (result,) = run_checks([check], samples=100, seed=5)
    assert result.as_recorded, result.evidence


def test_checks_are_selected_by_name_and_prefix() -> None:
    assert len(select_checks([])) == len(CHECKS)
    assert [c.name for c in select_checks(["lan2013/theorem-1"])] == ["lan2013/theorem-1"]
    assert all(c.name.startswith("zhou2013/") for c in select_checks(["zhou"]))
    both = select_checks(["lan2013/theorem-1", "zhou2013/e"])
    assert [c.name for c in both] == ["lan2013/theorem-1", "zhou2013/example-1"]
    with pytest.raises(DataError, match="no check begins with 'nope'; --list shows all"):
        select_checks(["nope"])


def test_each_check_has_its_own_random_stream() -> None:
    names = ["lan2013/theorem-1", "lan2013/theorem-2-hinge", "zhou2013/theorem-1"]
    together = run_checks(select_checks(names), samples=100, seed=3)
    alone = [run_checks(select_checks([name]), samples=100, seed=3)[0] for name in names]
    assert [o.evidence for o in together] == [o.evidence for o in alone]
    other = run_checks(select_checks(names), samples=100, seed=4)
    assert [o.evidence.numbers for o in together] != [o.evidence.numbers for o in other]


def test_unexpected_result_is_not_as_recorded() -> None:
    (check,) = select_checks(["lan2013/final-logistic"])
    (result,) = run_checks([replace(check, holds=True)], samples=100)
    assert (result.as_recorded, result.verdict) == (False, "does not hold")
    infinite = replace(check, run=lambda rng, samples: Evidence(False, {"ratio": float("inf")}))
    assert run_checks([infinite])[0].to_dict()["numbers"] == {"ratio": None}


def test_refutation_needs_an_example() -> None:
    silent = refuted(lambda rng, samples: Evidence(False))
    assert not silent(None, 0).holds  # type: ignore[arg-type]
    shown = refuted(lambda rng, samples: Evidence(False, {}, "here"))
    assert shown(None, 0).holds  # type: ignore[arg-type]


def test_check_theorems_takes_names_and_reports_progress() -> None:
    calls: list[tuple[int, int]] = []
    (result,) = check_theorems("zhou2013/example-1", progress=lambda *call: calls.append(call))
    assert (result.check.name, result.verdict) == ("zhou2013/example-1", "holds")
    assert calls == [(0, 1)]
    with pytest.raises(DataError, match="samples must be an integer of at least 1; got 0"):
        check_theorems(samples=0)
