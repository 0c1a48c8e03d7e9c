"""The value of a query depends on that query alone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firstpage as fp
from firstpage.evaluation.measures.registry import measure_classes

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning"),
]
NEED_ORDER = ("kNDCG", "kERR")  # a truth without ties
DOCUMENTS = "abcdefgh"
CONVENTIONS = [
    fp.Convention(), fp.Convention("trec"), fp.Convention("letor", ties="docid"),
    fp.Convention(condensed=True), fp.Convention(ties="shuffle"), fp.Convention(ties="worst"),
    fp.Convention(depth=3), fp.Convention(without_relevant="one"),
]  # fmt: skip


def texts() -> list[str]:
    """Return every measure, with and without a cut-off, on a scale that is not that of the data."""
    names = []
    for cls in measure_classes():
        name = cls.text_name or cls.__name__
        inside = "(max=4)" if cls.has_scale else ""
        parameters = {f.name for f in fields(cls)}
        if not cls.without_cutoff:
            names.append(name + inside)
        if "cutoff" in parameters:
            names.append(f"{name}{inside}@3")
    return names


scores = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3).map(float), min_size=1)
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1)
subtopics = st.dictionaries(st.sampled_from("123"), grades, min_size=1)


def long_list(size: int) -> dict[str, float]:
    return {f"long{i}": float(size - i // 2) for i in range(size)}


def kind_of(text: str) -> str:
    """Return what a measure needs: subtopics, a truth without ties, or grades."""
    measure = fp.measure(text)
    if measure.of_subtopics:
        return "subtopics"
    return "order" if measure.name in NEED_ORDER else "grades"


@pytest.mark.parametrize("kind", ["subtopics", "order", "grades"])
@settings(max_examples=40)
@given(data=st.data(), convention=st.sampled_from(CONVENTIONS), run=scores)
def test_value_of_a_query_does_not_depend_on_others(kind: str, data, convention, run) -> None:
    measures = [fp.measure(text) for text in texts() if kind_of(text) == kind]
    judged: dict[str, Any]
    other: dict[str, Any]
    if kind == "subtopics":
        judged, other = data.draw(subtopics), {"1": {"long0": 2, "long30": 1}, "4": {"long7": 3}}
    elif kind == "order":
        judged = {d: i for i, d in enumerate(data.draw(st.permutations(DOCUMENTS)))}
        other = {f"long{i}": i for i in range(20)}
    else:
        judged, other = data.draw(grades), {f"long{i}": i % 4 for i in range(30)}
    alone = fp.evaluate({"q": run}, {"q": judged}, measures=measures, convention=convention)
    among = fp.evaluate(
        {"p": long_list(40), "q": run, "r": {"x": 1.0}},
        {"p": other, "q": judged, "r": other},
        measures=measures,
        convention=convention,
    )
    values, expected = (
        {
            str(measure): dict(
                zip(result.queries, result.per_query(str(measure)), strict=True)
            ).get("q")
            for measure in measures
        }
        for result in (among, alone)
    )
    assert values == pytest.approx(expected, rel=1e-12, abs=1e-12)
