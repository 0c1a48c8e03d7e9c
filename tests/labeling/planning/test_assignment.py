"""Assignments: the paper's design, every small case, and assessors who join and leave."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.errors import DataError
from firstpage.labeling.planning.assignment import (
    Assignment,
    Task,
    make_assignment,
    problems,
    rebalance,
)
from firstpage.labeling.planning.tasks import format_names


def names(letter, count):
    return [f"{letter}{i}" for i in range(count)]


def keeps_requirements(a: Assignment) -> bool:
    """Return whether the three requirements are met, by their definition."""
    rows = [(t.query, t.assessor, t.tool) for t in a.tasks]
    covered = all(
        len({w for q, w, t in rows if (q, t) == (query, tool)}) == a.replicates
        for query, tool in product(a.queries, a.tools)
    )
    once = len({(q, w) for q, w, _ in rows}) == len(rows)
    every_tool = len(a.tools) == 1 or all(
        {t for _, w, t in rows if w == assessor} == set(a.tools) for assessor in a.assessors
    )
    return covered and once and every_tool


def join(a: Assignment, assessor: str, done=()) -> Assignment:
    """Return the assignment after an assessor joined or came back; `done` tasks are fixed."""
    departed = tuple(name for name in a.departed if name != assessor)
    return rebalance(
        replace(a, assessors=(*a.assessors, assessor), departed=departed), frozenset(done)
    )


def leave(a: Assignment, assessor: str, done=(), begun=()) -> Assignment:
    """Return the assignment after an assessor left, who had started the queries `begun`."""
    open_tasks = [t for t in a.tasks if t.assessor == assessor and t.key not in done]
    abandoned = tuple(t for t in open_tasks if t.query in begun)
    remaining = tuple(name for name in a.assessors if name != assessor)
    return rebalance(
        replace(
            a,
            assessors=remaining,
            departed=(*a.departed, assessor),
            abandoned=(*a.abandoned, *abandoned),
            tasks=tuple(t for t in a.tasks if t not in open_tasks),
        ),
        frozenset(done),
    )


def load_range(loads):
    return max(loads) - min(loads)


def test_the_paper_s_design():
    a = make_assignment(names("q", 50), names("u", 5), folds=5)
    done: dict[tuple[str, str], set[str]] = {(t.assessor, t.tool): set() for t in a.tasks}
    for t in a.tasks:
        done[t.assessor, t.tool].add(t.query)
    for i in range(5):  # U_i does Q_i with T1 and Q_{i+1} with T2
        assert len(done[f"u{i}", "pairs"]) == 10
        assert done[f"u{i}", "grades"] == done[f"u{(i + 1) % 5}", "pairs"]
    assert problems(a) == []
    assert set(a.load().values()) == {20}


def test_the_second_replicate_is_the_shift_by_two():
    a = make_assignment(names("q", 50), names("u", 5), folds=5, replicates=2)
    first = {t.query: t.assessor for t in a.tasks if (t.tool, t.replicate) == ("pairs", 0)}
    fold = {q: int(assessor[1]) for q, assessor in first.items()}
    for t in a.tasks:
        step = 2 * t.replicate + (t.tool == "grades")
        assert (int(t.assessor[1]) + step) % 5 == fold[t.query]
    # two assessors per tool, all four different
    for rows in a.by_query().values():
        assert Counter(t.tool for t in rows) == {"pairs": 2, "grades": 2}
        assert len({t.assessor for t in rows}) == 4
    assert problems(a) == []


def test_every_small_case():
    """An assignment exists exactly where the counts allow it; then it is valid and balanced."""
    count = 0
    for queries, people, tools, replicates in product(
        range(1, 7), range(1, 8), range(1, 4), range(1, 3)
    ):
        for folds in [None, *range(1, queries + 1)]:
            n_folds = folds or queries
            kinds = ["pairs", "grades", "lists"][:tools]
            possible = people >= tools * replicates and (
                tools == 1 or people <= n_folds * replicates
            )
            case = {"folds": folds, "tools": kinds, "replicates": replicates}
            if not possible:
                with pytest.raises(DataError, match="assessors"):
                    make_assignment(names("q", queries), names("u", people), **case)
                continue
            a = make_assignment(names("q", queries), names("u", people), **case)
            count += 1
            assert keeps_requirements(a)
            assert problems(a) == []
            if queries % n_folds == 0:  # else whole folds differ by a query
                assert load_range(a.load().values()) <= queries // n_folds
            if folds is None:
                assert load_range(a.load().values()) <= 1
    assert count > 300


@given(
    st.integers(1, 40), st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.integers(0, 9)
)
def test_loads_and_tools_are_balanced(queries, people, tools, replicates, seed):
    kinds = ["pairs", "grades", "lists"][:tools]
    if people < tools * replicates or (tools > 1 and people > queries * replicates):
        return
    a = make_assignment(
        names("q", queries), names("u", people), tools=kinds, replicates=replicates, seed=seed
    )
    assert problems(a) == []
    assert load_range(a.load().values()) <= 1
    for assessor in a.assessors:
        assert load_range([a.load(kind)[assessor] for kind in kinds]) <= 1


def test_a_single_tool():
    a = make_assignment(names("q", 10), names("u", 4), tools=["pairs"], replicates=3)
    assert sorted(a.load().values()) == [7, 7, 8, 8]
    assert problems(a) == []
    single_query = make_assignment(["q"], names("u", 3), tools=["pairs"])
    assert sorted(single_query.load().values()) == [0, 0, 1]
    assert problems(single_query) == []


def test_the_assignment_depends_on_the_seed():
    a, b, c = (make_assignment(names("q", 20), names("u", 5), seed=s) for s in (1, 1, 2))
    assert a == b != c


@pytest.mark.parametrize(
    ("queries", "people", "options", "message"),
    [
        ([], ["u"], {}, "at least one query"),
        (["q"], [], {}, "at least one assessor"),
        (["q"], ["u"], {"tools": ()}, "at least one tool"),
        (["q", "q"], ["u", "v"], {}, "each query must be named once"),
        (["q"], ["u"], {}, "need at least 2 assessors"),
        (["q", "r"], ["u", "v", "w"], {"replicates": 2}, "need at least 4 assessors"),
        (["q"], ["u", "v", "w"], {}, "at most 1 assessors"),
        (["q", "r"], ["u", "v"], {"folds": 3}, "folds must be between 1 and the 2 queries"),
        (["q"], ["u"], {"replicates": 0}, "replicates must be"),
    ],
)  # fmt: skip
def test_impossible_requests_raise_an_error_of_one_line(queries, people, options, message):
    with pytest.raises(DataError, match=message) as caught:
        make_assignment(queries, people, **options)
    assert "\n" not in str(caught.value)


def test_problems_reports_each_requirement():
    tasks = (Task("q", "u", "pairs"), Task("q", "u", "grades"), Task("x", "w", "lists"))
    a = Assignment(("q", "r"), ("u", "v"), ("pairs", "grades"), 1, tasks)
    assert problems(a) == [
        "tasks refer to names that are not in the assignment: query x",
        "tasks refer to names that are not in the assignment: assessor w",
        "tasks refer to names that are not in the assignment: tool lists",
        "query r has 0 of 1 assessors under pairs",
        "query r has 0 of 1 assessors under grades",
        "assessor u sees query q 2 times (pairs, grades)",
        "assessor v never uses pairs",
        "assessor v never uses grades",
    ]
    assert a.by_query()["r"] == ()
    assert a.by_assessor()["v"] == ()
    assert len(a) == 3


def test_round_trip_through_json():
    a = make_assignment(names("q", 7), names("u", 3))
    b = leave(a, "u1", [])
    for assignment in (a, b):
        assert Assignment.from_dict(json.loads(json.dumps(assignment.to_dict()))) == assignment
    with pytest.raises(DataError, match="not an assignment"):
        Assignment.from_dict({"queries": ["q"]})


def test_finished_tasks_of_a_departed_assessor_stay():
    a = make_assignment(names("q", 10), names("u", 5), folds=5)
    tasks = a.by_assessor()["u2"]
    done = [tasks[0].key]
    b = leave(a, "u2", done)
    assert b.by_assessor()["u2"] == (tasks[0],)
    assert problems(b) == []
    assert load_range(b.load().values()) <= 1


def test_uncovered_queries_are_reported_and_covered_by_a_new_assessor():
    a = make_assignment(["q", "r"], ["u", "v"])
    b = leave(a, "v", [])
    assert len(problems(b)) == 2  # each query keeps one of its two tools
    assert all("0 of 1 assessors" in line for line in problems(b))
    c = join(b, "w", [])
    assert problems(c) == []


def test_a_tool_without_a_task_takes_one_from_another_tool():
    tasks = (Task("q", "u", "pairs", 0), Task("q", "v", "pairs", 1), Task("q", "w", "grades", 0))
    a = Assignment(("q",), ("u", "v", "w"), ("pairs", "grades"), 2, tasks)
    b = leave(a, "w", [])
    assert {t.tool for t in b.tasks} == {"pairs", "grades"}


def test_leaving_and_returning():
    a = make_assignment(names("q", 4), names("u", 2))
    back = join(leave(a, "u1"), "u1")
    assert back.departed == ()
    assert problems(back) == []
    assert leave(leave(a, "u0"), "u1").tasks == ()


def test_started_tasks_of_a_departed_assessor_are_reassigned():
    a = make_assignment(names("q", 6), names("u", 3), tools=["pairs"])
    tasks = a.by_assessor()["u1"]
    b = leave(a, "u1", done=[tasks[0].key], begun=[tasks[1].query])
    assert problems(b) == []
    assert b.by_assessor()["u1"] == (tasks[0],)
    assert {t.assessor for t in b.by_query()[tasks[1].query]} <= {"u0", "u2"}
    assert b.abandoned == (tasks[1],)
    assert Assignment.from_dict(json.loads(json.dumps(b.to_dict()))) == b


def test_an_abandoned_query_is_not_assigned_again():
    a = Assignment(("q",), ("u",), ("pairs",), 1, (), (), (Task("q", "u", "pairs"),))
    b = rebalance(a)
    assert b.tasks == ()
    assert problems(b) == ["query q has 0 of 1 assessors under pairs"]
    assert [t.assessor for t in join(b, "v").tasks] == ["v"]


@st.composite
def histories(draw):
    tools = draw(st.sampled_from([["pairs"], ["pairs", "grades"]]))
    replicates = draw(st.integers(1, 2))
    people = draw(st.integers(len(tools) * replicates, 7))
    queries = draw(st.integers(max(1, -(-people // replicates)), 15))
    a = make_assignment(
        names("q", queries),
        names("u", people),
        tools=tools,
        replicates=replicates,
        seed=draw(st.integers(0, 3)),
    )
    moves = draw(
        st.lists(st.tuples(st.booleans(), st.integers(0, 99), st.floats(0, 1)), max_size=6)
    )
    return a, moves


@given(histories())
def test_rebalancing_keeps_finished_tasks_and_requirements(history):
    a, moves = history
    done: dict[tuple[str, str], Task] = {}
    for number, (joins, pick, fraction) in enumerate(moves):
        open_ = [t for t in a.tasks if t.key not in done]
        done.update({t.key: t for t in open_[: int(fraction * len(open_) / 2)]})
        if joins:
            a = join(a, f"new{number}", done)
        elif a.assessors:
            a = leave(a, a.assessors[pick % len(a.assessors)], done)
        tasks = {t.key: t for t in a.tasks}
        assert len(tasks) == len(a.tasks)  # nobody sees a query twice
        assert all(tasks[key] == task for key, task in done.items())  # nothing done is touched
        assert all(t.key in done for t in a.tasks if t.assessor in a.departed)
        # covered wherever there are people enough
        for query, rows in a.by_query().items():
            able = {t.assessor for t in rows} | set(a.assessors)
            assert len(rows) == min(len(able), a.replicates * len(a.tools)), query
        if not a.assessors:
            continue
        _check_balanced(a, done)


def _check_balanced(a, done):
    """Check that no single move makes open loads more even and keeps everyone's tools."""
    load = dict.fromkeys(a.assessors, 0)
    for t in a.tasks:
        if t.key not in done:
            load[t.assessor] += 1
    assigned = {t.key for t in a.tasks}
    used = Counter((t.assessor, t.tool) for t in a.tasks)
    for t in a.tasks:
        if t.key not in done and (len(a.tools) == 1 or used[t.assessor, t.tool] > 1):
            for assessor in a.assessors:
                assert load[t.assessor] - load[assessor] < 2 or (t.query, assessor) in assigned


@given(st.integers(2, 12), st.integers(8, 30), st.integers(1, 2), st.data())
def test_open_work_is_balanced_after_an_assessor_joins_or_leaves(people, queries, replicates, data):
    if people - 1 < 2 * replicates or people + 1 > queries * replicates:
        return
    a = make_assignment(names("q", queries), names("u", people), replicates=replicates)
    assessor = data.draw(st.sampled_from(a.assessors))
    for b in (leave(a, assessor), join(a, "new")):
        assert problems(b) == []
        assert keeps_requirements(b)
        assert load_range(b.load().values()) <= 1


def test_long_lists_of_names_are_truncated():
    assert format_names(range(14)).endswith("11 and 2 more")
