"""The gate: verdicts, levels under simulation, stored baselines, Markdown and JUnit XML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import firstpage as fp

SIZE = 400
QUERIES = [str(q) for q in range(SIZE)]
LABELS, QID = [1, 0] * SIZE, np.repeat(np.arange(SIZE), 2)
TEMPLATE = fp.evaluate([2, 1] * SIZE, LABELS, qid=QID, measures="RR", name="old")


def system(values, name: str = "new") -> fp.results.Evaluation:
    return replace(TEMPLATE, values=np.array([values], float), name=name)


OLD = np.linspace(0.2, 0.9, SIZE)
NOISE = np.tile([0.01, -0.01], SIZE // 2)
old = system(OLD, "old")


@pytest.mark.parametrize(
    ("values", "margin", "verdict"),
    [
        (OLD, 0.01, "pass"),  # equal on every query
        (OLD, 0.005, "unsure"),  # 1 % of the queries, lost, may be missing in the sample
        (OLD, 0, "unsure"),
        (OLD - 0.03, 0.01, "fail"),  # worse by the same amount on every query
        (OLD - 0.002, 0.01, "pass"),
        (OLD - 0.005, 0.01, "unsure"),
        (OLD + NOISE - 0.05, 0.01, "fail"),
        (OLD + NOISE, 0.01, "pass"),
        (OLD + 20 * NOISE, 0.01, "unsure"),
        (OLD + NOISE + 0.1, 0, "pass"),
    ],
)
def test_verdicts(values, margin: float, verdict: str) -> None:
    (check,) = fp.planning.gate(system(values), baseline=old, fail_if_worse=margin).checks
    assert check.verdict == verdict
    assert check.value == pytest.approx(np.mean(values - OLD), abs=1e-12)
    strict = fp.planning.gate(
        system(values), baseline=old, fail_if_worse=margin, fail_if_unsure=True
    )
    assert strict.passed == (verdict == "pass")


def test_a_loss_measure_gets_worse_when_it_rises() -> None:
    losses = fp.evaluate([2, 1] * SIZE, LABELS, qid=QID, measures="TopK01@1", name="old")
    before = replace(losses, values=OLD[None])
    after = replace(losses, values=OLD[None] + 0.1, name="new")
    assert not fp.planning.gate(after, baseline=before, fail_if_worse=0.01).passed
    assert fp.planning.gate(before, baseline=after, fail_if_worse=0.01).passed
    with pytest.raises(fp.MeasureError, match="no least mean"):
        fp.planning.gate(after, fail_under={"TopK01@1": 0.5})


def test_several_systems_are_corrected_together() -> None:
    rng = np.random.default_rng(3)
    shifted = OLD - 0.004 + rng.normal(scale=0.04, size=SIZE)
    alone = fp.planning.gate(system(shifted), baseline=old, fail_if_worse=0).checks[0].p
    others = [system(OLD + NOISE, f"n{i}") for i in range(9)]
    together = (
        fp.planning.gate([system(shifted), *others], baseline=old, fail_if_worse=0).checks[0].p
    )
    assert alone is not None
    assert together == pytest.approx(min(1, 10 * alone), rel=1e-9)


def test_means_must_reach_a_value() -> None:
    evaluation = fp.evaluate(
        [2, 1] * SIZE, LABELS, qid=QID, measures=["ndcg_cut_5", "AP"], name="x"
    )
    gate = fp.planning.gate(evaluation, fail_under={"NDCG@5": 1.0, "AP": 1.1})
    assert [check.verdict for check in gate.checks] == ["pass", "fail"]
    assert not gate.passed
    assert "x: AP is 1.0000, below 1.1." in str(gate)


@pytest.mark.parametrize(
    ("text", "value", "differences"),
    [("GMAP", 0.7071, "mean logarithms of AP"), ("NumRelRet", 2, "mean counts per query")],
)
def test_the_gate_tests_the_number_that_is_reported(text, value, differences) -> None:
    new = fp.evaluate([2, 1, 1, 2], [1, 0, 1, 0], qid=[1, 1, 2, 2], measures=text)
    assert new[text] == pytest.approx(value, abs=1e-4)
    (check,) = fp.planning.gate(new, fail_under={text: value - 0.01}).checks
    assert (check.verdict, check.value) == ("pass", new[text])
    (check,) = fp.planning.gate(new, fail_under={text: value + 0.01}).checks
    assert check.verdict == "fail"
    with pytest.warns(
        fp.FirstpageWarning, match=f"differences and tests of {text} are of {differences}"
    ):
        fp.planning.gate(new, baseline=new, fail_if_worse=0.1)
    with pytest.warns(fp.FirstpageWarning, match=f"tests of {text} are of {differences}, not of"):
        fp.compare([[2, 1, 1, 2], [1, 2, 1, 2]], [1, 0, 1, 0], qid=[1, 1, 2, 2], measures=text)


def test_baselines_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    fp.planning.Baseline.from_evaluation(old).save(path)
    assert fp.planning.Baseline.read(path).values["RR"] == dict(zip(old.queries, OLD, strict=True))
    stored = fp.planning.gate(system(OLD - 0.1), baseline=path, fail_if_worse=0.01)
    assert (
        stored.checks
        == fp.planning.gate(system(OLD - 0.1), baseline=old, fail_if_worse=0.01).checks
    )
    path.write_text("{}")
    with pytest.raises(fp.DataError, match="not a baseline of Firstpage"):
        fp.planning.gate(old, baseline=path, fail_if_worse=0)


def test_the_shared_queries_are_compared() -> None:
    fewer = fp.planning.Baseline("old", {"RR": dict(zip(QUERIES[:30], OLD[:30], strict=True))}, {})
    with pytest.warns(fp.FirstpageWarning, match="30 queries are shared, of 30 .* and 400"):
        (check,) = fp.planning.gate(system(OLD - 0.2), baseline=fewer, fail_if_worse=0.01).checks
    assert (check.queries, check.verdict) == (30, "fail")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to check"),
        ({"baseline": old}, "go together"),
        ({"fail_under": {"AP": 1}}, "'AP' was not measured; available: RR"),
        ({"baseline": old, "fail_if_worse": -1}, "must not be negative"),
        (
            {"baseline": fp.planning.Baseline("b", {"AP": {}}, {}), "fail_if_worse": 0},
            "no values of RR",
        ),
        (
            {"baseline": fp.planning.Baseline("b", {"RR": {}}, {}), "fail_if_worse": 0},
            "fewer than two",
        ),
        (
            {
                "baseline": fp.planning.Baseline("b", {"RR": {}}, {"ties": "file"}),
                "fail_if_worse": 0,
            },
            "measured with ties=file, and the system with ties=average",
        ),
    ],
)
def test_invalid_gates_raise_an_error(options, message: str) -> None:
    with pytest.raises(fp.FirstpageError, match=message):
        fp.planning.gate(old, **options)


def test_reports_name_every_check() -> None:
    gate = fp.planning.gate(
        system(OLD - 0.1, "a & b"), fail_under={"RR": 0.1}, baseline=old, fail_if_worse=0.01
    )
    root = ElementTree.fromstring(gate.to_junit())
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    cases = root.findall("testsuite/testcase")
    assert [case.get("classname") for case in cases] == ["a & b", "a & b"]
    (failure,) = root.findall(".//failure")
    assert "worse than old by more than 0.01" in str(failure.get("message"))
    lines = gate.to_markdown().splitlines()
    assert lines[0] == "**Gate failed**"
    assert lines[5].startswith("| fail | a & b | RR | -0.1000 | -0.01 | < 0.0001 |")
    assert gate.to_pandas()["verdict"].tolist() == ["pass", "fail"]


def test_a_measure_of_ones_own_need_not_be_a_mean() -> None:
    class Total(type(fp.measure("RR"))):  # type: ignore[misc]
        def from_mean(self, mean: float, queries: int) -> float:
            return mean * queries

    assert fp.measure("RR").is_mean
    assert not Total().is_mean
    new = fp.evaluate([2, 1, 1, 2], [1, 0, 1, 0], qid=[1, 1, 2, 2], measures=Total())
    assert new[Total()] == 1.5
    with pytest.warns(fp.FirstpageWarning, match="are of mean values per query, not of"):
        fp.compare([[2, 1, 1, 2]] * 2, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures=Total())
