"""Significance groups, ranks under resampled queries, and tables for papers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.evaluation.comparison.ranking import significance_groups

QUERIES = 40


def comparison(offsets: dict[str, float], measures: str = "RR", **options) -> fp.results.Comparison:
    """Return systems whose values differ by these offsets, with noise."""
    rng = np.random.default_rng(0)
    scores = {name: [2, 1] * QUERIES for name in offsets}
    labels, qid = [1, 0] * QUERIES, np.repeat(np.arange(QUERIES), 2)
    result = fp.compare(scores, labels, qid=qid, measures=measures, rounds=2000, **options)
    base = rng.random(QUERIES)
    values = [base + offset + rng.normal(scale=0.05, size=QUERIES) for offset in offsets.values()]
    evaluations = zip(result.evaluations, values, strict=True)
    return replace(result, evaluations=tuple(replace(e, values=v[None]) for e, v in evaluations))


@given(st.data())
def test_systems_share_a_letter_if_and_only_if_they_are_alike(data) -> None:
    count = data.draw(st.integers(1, 7))
    alike = np.ones((count, count), bool)
    for i in range(count):
        for j in range(i):
            alike[i, j] = alike[j, i] = data.draw(st.booleans())
    groups = significance_groups(alike)
    for i in range(count):
        assert groups[i]
        for j in range(count):
            assert bool(set(groups[i]) & set(groups[j])) == alike[i, j]


@pytest.mark.parametrize("baseline", [None, "low"])
def test_groups_and_ranks_of_systems(baseline) -> None:
    ranks = fp.rank_systems(
        comparison({"low": 0, "high": 0.5, "same": 0.502, "middle": 0.2}, baseline=baseline)
    )
    assert {row.system for row in ranks.rows[:2]} == {"high", "same"}
    assert [row.system for row in ranks.rows[2:]] == ["middle", "low"]
    assert [row.group for row in ranks.rows] == ["a", "a", "b", "c"]
    assert sum(row.best for row in ranks.rows) == pytest.approx(1)
    assert (ranks.rows[3].low, ranks.rows[3].high) == (4, 4)
    assert all(row.low <= row.rank <= row.high for row in ranks.rows)
    means = [row.mean for row in ranks.rows]
    assert ranks.gaps[0, 3] == pytest.approx(means[0] - means[3])
    matrix = ranks.matrix_table()
    assert (3, 1) in matrix.bold
    assert (0, 2) not in matrix.bold
    assert ranks.to_pandas()["group"].tolist() == ["a", "a", "b", "c"]


def test_equal_systems_share_their_ranks() -> None:
    ranks = fp.rank_systems(
        fp.compare(
            {"a": [2, 1], "b": [2, 1], "c": [2, 1]}, [1, 0], qid=[1, 1], measures="RR", rounds=100
        )
    )
    assert [(row.low, row.high, row.group) for row in ranks.rows] == [(2, 2, "a")] * 3
    assert [row.best for row in ranks.rows] == pytest.approx([1 / 3] * 3)


def test_lower_is_better_where_it_is() -> None:
    losses = comparison({"few": 0, "many": 0.5, "more": 0.9}, "TopK01@1")
    assert [row.system for row in fp.rank_systems(losses).rows] == ["few", "many", "more"]
    assert r"few & \textbf{" in losses.to_latex()
    assert re.search(r"few & .*\$\^\{\\mathrm\{bc\}\}\$", losses.to_latex())


def test_superscripts_name_the_systems_that_are_beaten() -> None:
    text = comparison({"low_1": 0, "high": 0.5, "50%": 0.503}).to_latex("A & B", "tab:x", digits=2)
    lines = text.splitlines()
    assert lines[0] == r"% needs \usepackage{booktabs}"
    assert r"\caption{A \& B}" in lines
    assert r"\label{tab:x}" in lines
    rows = [line for line in lines if line.endswith(r"\\")][1:]
    assert re.fullmatch(r"a & low\\_1 & 0\.\d\d \\\\", rows[0])
    assert re.fullmatch(r"b & high & \S*\d\.\d\d\}?\$\^\{\\mathrm\{a\}\}\$ \\\\", rows[1])
    assert rows[2].startswith(r"c & 50\% & ")
    assert sum("textbf" in row for row in rows) == 1
    assert "Holm correction" in text


def test_latex_is_balanced_and_uses_known_commands() -> None:
    """No LaTeX is needed to see that groups and environments close."""
    text = comparison({"a_b": 0, "c{d": 0.5, "x^2~\\": 0.2}).to_latex()
    body = text.replace(r"\{", "").replace(r"\}", "")
    assert body.count("{") == body.count("}")
    begun, ended = (re.findall(rf"\\{word}\{{(\w+)\}}", text) for word in ("begin", "end"))
    assert begun == ended[::-1] == ["table", "tabular"]
    assert text.count("$") % 2 == 0
    assert text.isascii()
    known = {
        "usepackage", "begin", "end", "centering", "caption", "toprule", "midrule", "bottomrule",
        "textbf", "mathrm", "par", "smallskip", "footnotesize", "textbackslash",
        "textasciicircum", "textasciitilde",
    }  # fmt: skip
    assert set(re.findall(r"\\([a-z]+)", text)) <= known
    columns = re.search(r"\\begin\{tabular\}\{(l+)\}", text)
    assert columns is not None
    for row in re.findall(r"^(.*) \\\\$", text, re.M):
        assert len(re.findall(r"(?<!\\)&", row)) == len(columns[1]) - 1


def test_groups_of_many_systems_do_not_depend_on_the_baseline() -> None:
    """The rounds of a test reach the level, however many pairs there are."""
    generator = np.random.default_rng(0)
    labels, qid = np.tile([1, 0], 30), np.repeat(np.arange(30), 2)
    good = {f"good{i}": np.tile([2.0, 1.0], 30) for i in range(16)}
    bad = {f"bad{i}": generator.permuted(np.tile([1.0, 2.0, 1.0, 2.0], 15)) for i in range(16)}
    for scores in bad.values():
        scores[:50] = np.tile([1.0, 2.0], 25)
    options: dict[str, Any] = {"qid": qid, "measures": "RR", "rounds": 200}
    for baseline in (None, "good0"):
        comparison = fp.compare(good | bad, labels, baseline=baseline, **options)
        groups = {row.system: row.group for row in fp.rank_systems(comparison).rows}
        assert {groups[name] for name in good} == {"a"}
        assert "a" not in {groups[name] for name in bad}
