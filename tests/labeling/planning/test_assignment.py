"""Who judges what: the paper's design, every small case, and people who come and go."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.errors import DataError
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
    """The three requirements once more, written plainly."""
    rows = [(t.query, t.assessor, t.tool) for t in a.tasks]
    covered = all(
        len({w for q, w, t in rows if (q, t) == (query, tool)}) == a.replicates
        for query, tool in product(a.queries, a.tools)
    )
    once = len({(q, w) for q, w, _ in rows}) == len(rows)
    every_tool = len(a.tools) == 1 or all(
        {t for _, w, t in rows if w == who} == set(a.tools) for who in a.assessors
    )
    return covered and once and every_tool


def join(a: Assignment, who: str, done=()) -> Assignment:
    """Somebody comes, or comes back; `done` names what stays."""
    departed = tuple(name for name in a.departed if name != who)
    return rebalance(replace(a, assessors=(*a.assessors, who), departed=departed), frozenset(done))


def leave(a: Assignment, who: str, done=(), begun=()) -> Assignment:
    """Somebody goes, who had begun and not finished some queries."""
    mine = [t for t in a.tasks if t.assessor == who and t.key not in done]
    abandoned = tuple(t for t in mine if t.query in begun)
    fewer = tuple(name for name in a.assessors if name != who)
    return rebalance(
        replace(
            a, assessors=fewer, departed=(*a.departed, who), abandoned=(*a.abandoned, *abandoned),
            tasks=tuple(t for t in a.tasks if t not in mine),
        ),
        frozenset(done),
    )  # fmt: skip


def spread(loads):
    return max(loads) - min(loads)


def test_the_paper_s_design():
    a = make_assignment(names("q", 50), names("u", 5), folds=5)
    done = {(t.assessor, t.tool): set() for t in a.tasks}
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
    fold = {q: int(who[1]) for q, who in first.items()}
    for t in a.tasks:
        step = 2 * t.replicate + (t.tool == "grades")
        assert (int(t.assessor[1]) + step) % 5 == fold[t.query]
    # two of each tool, all four people different, as the specification says
    for rows in a.by_query().values():
        assert Counter(t.tool for t in rows) == {"pairs": 2, "grades": 2}
        assert len({t.assessor for t in rows}) == 4
    assert problems(a) == []


def test_every_small_case():
    """Made exactly where the counts allow it; then right and even; else refused in one line."""
    made = 0
    for queries, people, tools, replicates in product(
        range(1, 7), range(1, 8), range(1, 4), range(1, 3)
    ):
        for folds in [None, *range(1, queries + 1)]:
            parts = folds or queries
            kinds = ["pairs", "grades", "lists"][:tools]
            possible = people >= tools * replicates and (tools == 1 or people <= parts * replicates)
            case = {"folds": folds, "tools": kinds, "replicates": replicates}
            if not possible:
                with pytest.raises(DataError, match="assessors"):
                    make_assignment(names("q", queries), names("u", people), **case)
                continue
            a = make_assignment(names("q", queries), names("u", people), **case)
            made += 1
            assert keeps_requirements(a)
            assert problems(a) == []
            if queries % parts == 0:  # else whole folds differ by a query
                assert spread(a.load().values()) <= queries // parts
            if folds is None:
                assert spread(a.load().values()) <= 1
    assert made > 300


@given(
    st.integers(1, 40), st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.integers(0, 9)
)
def test_loads_are_even_and_tools_are_even(queries, people, tools, replicates, seed):
    kinds = ["pairs", "grades", "lists"][:tools]
    if people < tools * replicates or (tools > 1 and people > queries * replicates):
        return
    a = make_assignment(
        names("q", queries), names("u", people), tools=kinds, replicates=replicates, seed=seed
    )
    assert problems(a) == []
    assert spread(a.load().values()) <= 1
    for who in a.assessors:
        assert spread([a.load(kind)[who] for kind in kinds]) <= 1


def test_one_tool_is_ordinary_labeling():
    a = make_assignment(names("q", 10), names("u", 4), tools=["pairs"], replicates=3)
    assert sorted(a.load().values()) == [7, 7, 8, 8]
    assert problems(a) == []
    lonely = make_assignment(["q"], names("u", 3), tools=["pairs"])
    assert sorted(lonely.load().values()) == [0, 0, 1]
    assert problems(lonely) == []


def test_the_seed_decides():
    a, b, c = (make_assignment(names("q", 20), names("u", 5), seed=s) for s in (1, 1, 2))
    assert a == b != c


@pytest.mark.parametrize(
    ("queries", "people", "more", "words"),
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
def test_what_cannot_be_is_said_in_one_line(queries, people, more, words):
    with pytest.raises(DataError, match=words) as caught:
        make_assignment(queries, people, **more)
    assert "\n" not in str(caught.value)


def test_problems_names_each_requirement():
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


def test_there_and_back_through_json():
    a = make_assignment(names("q", 7), names("u", 3))
    b = leave(a, "u1", [])
    for one in (a, b):
        assert Assignment.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    with pytest.raises(DataError, match="not an assignment"):
        Assignment.from_dict({"queries": ["q"]})


def test_a_leaver_s_finished_work_stays():
    a = make_assignment(names("q", 10), names("u", 5), folds=5)
    mine = a.by_assessor()["u2"]
    done = [mine[0].key]
    b = leave(a, "u2", done)
    assert b.by_assessor()["u2"] == (mine[0],)
    assert problems(b) == []
    assert spread(b.load().values()) <= 1


def test_what_can_no_longer_be_covered_is_said_and_filled_by_the_next():
    a = make_assignment(["q", "r"], ["u", "v"])
    b = leave(a, "v", [])
    assert len(problems(b)) == 2  # each query keeps one of its two tools
    assert all("0 of 1 assessors" in line for line in problems(b))
    c = join(b, "w", [])
    assert problems(c) == []


def test_a_tool_without_anyone_takes_from_one_that_has_several():
    tasks = (Task("q", "u", "pairs", 0), Task("q", "v", "pairs", 1), Task("q", "w", "grades", 0))
    a = Assignment(("q",), ("u", "v", "w"), ("pairs", "grades"), 2, tasks)
    b = leave(a, "w", [])
    assert {t.tool for t in b.tasks} == {"pairs", "grades"}


def test_come_and_go():
    a = make_assignment(names("q", 4), names("u", 2))
    back = join(leave(a, "u1"), "u1")
    assert back.departed == ()
    assert problems(back) == []
    assert leave(leave(a, "u0"), "u1").tasks == ()


def test_begun_work_of_a_leaver_is_dealt_again():
    a = make_assignment(names("q", 6), names("u", 3), tools=["pairs"])
    mine = a.by_assessor()["u1"]
    b = leave(a, "u1", done=[mine[0].key], begun=[mine[1].query])
    assert problems(b) == []
    assert b.by_assessor()["u1"] == (mine[0],)
    assert {t.assessor for t in b.by_query()[mine[1].query]} <= {"u0", "u2"}
    assert b.abandoned == (mine[1],)
    assert Assignment.from_dict(json.loads(json.dumps(b.to_dict()))) == b


def test_nobody_gets_a_query_again_that_they_abandoned():
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
        names("q", queries), names("u", people), tools=tools, replicates=replicates,
        seed=draw(st.integers(0, 3)),
    )  # fmt: skip
    moves = draw(
        st.lists(st.tuples(st.booleans(), st.integers(0, 99), st.floats(0, 1)), max_size=6)
    )
    return a, moves


@given(histories())
def test_coming_and_going_keeps_what_is_done_and_the_requirements(history):
    a, moves = history
    done: dict[tuple[str, str], Task] = {}
    for number, (comes, pick, share) in enumerate(moves):
        open_ = [t for t in a.tasks if t.key not in done]
        done.update({t.key: t for t in open_[: int(share * len(open_) / 2)]})
        if comes:
            a = join(a, f"new{number}", done)
        elif a.assessors:
            a = leave(a, a.assessors[pick % len(a.assessors)], done)
        held = {t.key: t for t in a.tasks}
        assert len(held) == len(a.tasks)  # nobody sees a query twice
        assert all(held[key] == task for key, task in done.items())  # nothing done is touched
        assert all(t.key in done for t in a.tasks if t.assessor in a.departed)
        # covered wherever there are people enough
        for query, rows in a.by_query().items():
            able = {t.assessor for t in rows} | set(a.assessors)
            assert len(rows) == min(len(able), a.replicates * len(a.tools)), query
        if not a.assessors:
            continue
        _even_where_possible(a, done)


def _even_where_possible(a, done):
    """No single open task can be given to make open loads more even, and keep everyone's tools."""
    load = dict.fromkeys(a.assessors, 0)
    for t in a.tasks:
        if t.key not in done:
            load[t.assessor] += 1
    seen = {t.key for t in a.tasks}
    used = Counter((t.assessor, t.tool) for t in a.tasks)
    for t in a.tasks:
        if t.key not in done and (len(a.tools) == 1 or used[t.assessor, t.tool] > 1):
            for who in a.assessors:
                assert load[t.assessor] - load[who] < 2 or (t.query, who) in seen


@pytest.mark.slow
@given(st.integers(2, 12), st.integers(8, 30), st.integers(1, 2), st.data())
def test_with_nothing_done_a_joiner_or_leaver_leaves_a_fresh_design(
    people, queries, replicates, data
):
    if people - 1 < 2 * replicates or people + 1 > queries * replicates:
        return
    a = make_assignment(names("q", queries), names("u", people), replicates=replicates)
    who = data.draw(st.sampled_from(a.assessors))
    for b in (leave(a, who), join(a, "new")):
        assert problems(b) == []
        assert keeps_requirements(b)
        assert spread(b.load().values()) <= 1


def test_long_lists_are_cut():
    assert format_names(range(14)).endswith("11 and 2 more")
