"""Measures of a user's own: registered, named as module:Name, or plain functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.registry import _DEFINED, ParameterError
from firstpage.evaluation.measures import registry
from tests.evaluation.measures.own_module import (
    LowerIsBetter,
    NamedAsElsewhere,
    OwnPrecision,
    ndcg,
    reciprocal_rank,
)

DATA = fp.Synthetic(queries=12, docs=8, features=4, grades=3, seed=1).dataset()
SCORES = np.random.default_rng(0).permutation(len(DATA.y)).astype(float)
VALID = fp.Synthetic(queries=6, docs=8, features=4, grades=3, seed=2).dataset()
OWN = "tests.evaluation.measures.own_module"
CLASS, FUNCTION = f"{OWN}:OwnPrecision@3", f"{OWN}:reciprocal_rank"
slow_function = pytest.mark.filterwarnings("ignore:the measure .* is a Python function")


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    tables: list[Any] = [registry.REGISTERED, registry.BY_NAME, _DEFINED]
    before = [dict(table) for table in tables]
    registry._noted.clear()
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
    registry._parsed.cache_clear()


@slow_function
@pytest.mark.parametrize(
    ("own", "ours"),
    [
        (OwnPrecision(cutoff=3), "P@3"),
        (CLASS, "P@3"),
        (f"{OWN}:OwnPrecision(level=2)@4", "P(rel=2)@4"),
        (FUNCTION, "RR"),
        (reciprocal_rank, "RR"),
        (f"{OWN}:ndcg", "NDCG"),
    ],
)
def test_values_are_those_of_the_same_measure(own: Any, ours: str) -> None:
    got = fp.evaluate(SCORES, DATA, measures=[own]).values
    np.testing.assert_allclose(got, fp.evaluate(SCORES, DATA, measures=ours).values, rtol=1e-12)


@slow_function
def test_ties_are_averaged_for_functions() -> None:
    """Exactly where there are few orders, by a sample where there are many."""
    scores = np.round(SCORES / 40)
    few = fp.evaluate(scores[:4], DATA.y[:4], qid=[1] * 4, measures=ndcg).values
    exact = fp.evaluate(scores[:4], DATA.y[:4], qid=[1] * 4, measures="NDCG").values
    np.testing.assert_allclose(few, exact, rtol=1e-12)
    many = fp.evaluate(np.zeros(len(SCORES)), DATA, measures=ndcg).values
    again = fp.evaluate(np.zeros(len(SCORES)), DATA, measures=ndcg).values
    np.testing.assert_array_equal(many, again)
    assert abs(many.mean() - fp.evaluate(np.zeros(len(SCORES)), DATA)["NDCG@10"]) < 0.02


def test_a_function_is_said_to_be_slow_once() -> None:
    with pytest.warns(fp.FirstpageWarning, match="is a Python function that is called for every"):
        fp.measure(FUNCTION)
    assert str(fp.measure(FUNCTION)) == FUNCTION  # no second warning


def test_a_registered_measure_is_found_by_name() -> None:
    fp.extend.register_measure(OwnPrecision, "FirstRanks")
    assert fp.measure("first-ranks(level=2)@3") == OwnPrecision(2.0, 3)
    assert fp.extend.register_measure(OwnPrecision, "FirstRanks") is OwnPrecision  # again
    assert str(OwnPrecision(2.0, 3)) == f"{OWN}:OwnPrecision(level=2)@3"
    assert fp.measure(str(OwnPrecision(2.0, 3))) == OwnPrecision(2.0, 3)
    evaluation = fp.evaluate(SCORES, DATA, measures="FirstRanks@3,NDCG@3")
    assert evaluation.texts == ("FirstRanks@3", "NDCG@3")


def test_own_measures_are_compared_cross_validated_and_tuned(tmp_path: Path) -> None:
    comparison = fp.compare(
        {"a": SCORES, "b": -SCORES}, DATA, measures=[CLASS, "P@3"], rounds=100, ci=False
    )
    assert comparison.values(CLASS).tolist() == comparison.values("P@3").tolist()
    lower = fp.compare(
        {"a": SCORES, "b": DATA.y}, DATA, measures=LowerIsBetter(cutoff=3), rounds=100, ci=False
    )
    assert lower.best(str(LowerIsBetter(cutoff=3))) == "b"
    fp.write_folds(DATA, tmp_path / "folds", count=3)
    folds = fp.cross_validate(
        {"ListNet": fp.ListNet()}, fp.read_folds(tmp_path / "folds")[:1], measures=[CLASS, "P@3"]
    )
    assert folds.mean("ListNet", CLASS) == folds.mean("ListNet", "P@3")
    fits = [
        fp.ListNet(measure=m, patience=2).fit(DATA, valid=VALID).best_score_ for m in (CLASS, "P@3")
    ]
    assert fits[0] == fits[1]
    ascent = fp.CoordinateAscent(measure=CLASS, restarts=1, seed=0).fit(DATA)
    ascent.save(tmp_path / "model.json")
    assert fp.load(tmp_path / "model.json").measure == CLASS


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: fp.extend.register_measure(OwnPrecision, "NDCG"),
            ParameterError,
            "already a measure",
        ),
        (
            lambda: fp.extend.register_measure(OwnPrecision, "map"),
            ParameterError,
            "already a measure",
        ),
        (
            lambda: fp.extend.register_measure(OwnPrecision, "a b"),
            ParameterError,
            "'a b' cannot be the",
        ),
        (lambda: fp.extend.register_measure(int), ParameterError, "derived from fp.extend.Measure"),  # type: ignore[arg-type]
        (lambda: fp.measure("gone:X@3"), fp.MeasureError, "module 'gone' cannot be imported"),
        (lambda: fp.measure(f"{OWN}:Absent"), fp.MeasureError, "has no measure 'Absent'"),
        (lambda: fp.measure(f"{OWN}:ABSENT"), fp.MeasureError, "has no measure 'ABSENT'"),
        (lambda: fp.measure("fractions:Fraction"), fp.MeasureError, "is not a measure"),
        (lambda: fp.measure(f"{OWN}:OwnPrecision(size=2)"), fp.MeasureError, "no parameter 'size'"),
        (lambda: fp.measure(OwnPrecision), fp.MeasureError, "Create an instance of it"),  # type: ignore[arg-type]
        (lambda: fp.measure(3), fp.MeasureError, "a measure must be a string such as NDCG@10"),  # type: ignore[arg-type]
        (lambda: fp.measure(partial(max, 1)), fp.MeasureError, "must be defined with def"),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as raised:
        call()
    assert "\n" not in str(raised.value)


@slow_function
def test_functions_with_one_name_are_refused() -> None:
    both = [lambda labels, ideal: 1.0, lambda labels, ideal: 2.0]
    with pytest.raises(fp.MeasureError, match="define functions with def"):
        fp.evaluate(SCORES, DATA, measures=both)


def test_parameters_of_own_measures_are_their_own() -> None:
    text = f"{OWN}:NamedAsElsewhere(judged_only=true, max_rel=2, dcg=log2)"
    assert fp.measure(text) == NamedAsElsewhere(judged_only=True, max_rel=2.0, dcg="log2")
    assert fp.measure(str(fp.measure(text))) == fp.measure(text)


@slow_function
def test_functions_take_condensed_lists() -> None:
    run, qrels = {"q": {"u": 3.0, "a": 2.0, "b": 1.0}}, {"q": {"a": 0, "b": 1}}
    texts = [f"{FUNCTION}(condensed=true)", FUNCTION]
    with pytest.warns(fp.FirstpageWarning, match="unjudged"):
        evaluation = fp.evaluate(run, qrels, measures=texts)
    assert evaluation.values[:, 0].tolist() == [1 / 2, 1 / 3]


@slow_function
def test_functions_have_no_parameters() -> None:
    with pytest.raises(fp.MeasureError, match="a function has no parameters and no cut-off"):
        fp.measure(f"{FUNCTION}@3")


def returning(result: Any) -> fp.extend.Measure:
    @dataclass(frozen=True)
    class Broken(fp.extend.Measure):
        def values(self, lists: fp.extend.RankedLists, convention: fp.Convention) -> Any:
            return result(len(lists))

    return Broken()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda n: np.zeros(n + 1), "must return one number per query, 12 here"),
        (lambda n: np.full(n, np.nan), "returned NaN for query"),
        (lambda n: 1 / 0, "failed (ZeroDivisionError: division by zero)"),
    ],
)
def test_a_broken_measure_is_one_line(result: Any, message: str) -> None:
    with pytest.raises(fp.MeasureError, match=re.escape(message)):
        fp.evaluate(SCORES, DATA, measures=returning(result))


@slow_function
def test_a_broken_function_is_one_line() -> None:
    with pytest.raises(fp.MeasureError, match=r"failed \(TypeError: .* it takes the labels"):
        fp.evaluate(SCORES, DATA, measures=lambda labels: 1.0)
