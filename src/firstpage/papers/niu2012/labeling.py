"""Tables 1 to 3 with simulated people: what labelling costs, and how far two of them agree."""

from __future__ import annotations

import numpy as np

from firstpage.labeling.simulation.simulate import drive
from firstpage.labeling.statistics.agreement import (
    Agreement,
    by_query,
    compare_methods,
    result_overlaps,
    total,
)
from firstpage.labeling.statistics.effort import SECONDS
from firstpage.labeling.statistics.records import Labels
from firstpage.labeling.statistics.relations import top_labels
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import Answer, Grade, Question, Task
from firstpage.papers.niu2012.assessors import DOCUMENTS, QUERIES, Crowd, K, by_pairs, plan
from firstpage.papers.niu2012.printed import SIGNS
from firstpage.papers.study.letor_protocol import seed_of
from firstpage.papers.study.study import Row
from firstpage.types import Floats

SIMULATED = "simulated"
TOOLS = {"pairs": "top-k", "grades": "graded"}
DOUBLY = 4  # queries that two of the paper's people judged, as its chi-squares tell
RARE = 0.05


def effort(rng: np.random.Generator, strategies: list[str]) -> list[Row]:
    """Judgments a query, and minutes at the seconds a judgment that the paper measured."""
    asked: dict[str, list[int]] = {}
    for _ in range(QUERIES):
        utility, seed = rng.standard_normal(DOCUMENTS), seed_of(rng)
        view = Crowd().seen(utility, rng)
        for how in strategies:  # all begin with the same order of the same view
            asked.setdefault(how, []).append(by_pairs(view, how, seed)[1])
        asked.setdefault("five-grade", []).append(_graded(Crowd().grades(utility, rng), seed))
    found: list[Row] = []
    for how, counts in asked.items():
        each = SECONDS["grades" if how == "five-grade" else "pairs"] / 60
        labels = {"data": SIMULATED, "tool": how}
        for measure, factor in (("judgments", 1.0), ("minutes at the paper's seconds", each)):
            values = [round(factor * n, 6) for n in counts]
            row = {**labels, "measure": measure, "value": float(np.mean(values))}
            found.append({**row, "queries": values})
    return found


def _graded(grades: Floats, seed: int) -> int:
    """How many questions the tool for grades asks."""

    def respond(question: Question) -> Answer:
        assert isinstance(question, Grade)
        return Answer(int(grades[question.document]))

    return drive(strategy("five-grade"), Task(len(grades), K, seed), respond)[0].asked


def growth(rng: np.random.Generator, sizes: list[int], tops: list[int]) -> list[Row]:
    """Judgments of the heap by the number of documents and k, and at worst."""
    found = []
    for n in sizes:
        for k in tops:
            _, asked = by_pairs(rng.standard_normal(n), "heap", seed_of(rng), k)
            labels = {"data": "any order", "documents": n, "k": k}
            found.append({**labels, "measure": "judgments", "value": float(asked)})
    return found


def agreement(rng: np.random.Generator, noise: float) -> list[Row]:
    """Tables 2 and 3: every query by two people with each tool, all four different.

    noise  of those who grade; those who compare have the crowd's
    """
    results = _results(rng, Crowd(noise=noise))
    name = "simulated assessors" if noise == Crowd().noise else f"grading noise {noise:g}"
    found = []
    for tool, called in TOOLS.items():
        overlaps = result_overlaps(results, tool)
        found += agreed(total(overlaps), list(by_query(overlaps).values()), SIMULATED, name, called)
    return found


def agreed(whole: Agreement, each: list[Agreement], data: str, name: str, tool: str) -> list[Row]:
    """Rows of a table of agreement, and of its figures; `each`: its queries.

    Chance and kappa must not depend on what documents are called.
    """
    matrix = {"data": data, "matrix": f"{tool}, {name}"}
    found: list[Row] = [
        {**matrix, "said": row, "other": column, "value": float(whole.table[i, j])}
        for i, row in enumerate(SIGNS)
        for j, column in enumerate(SIGNS)
    ]
    summary = {"data": data, "summary": name, "tool": tool}
    ways = [both.symmetrised() for both in each]
    for measure in ("overall", "without_ties", "chance", "kappa"):
        values = [round(float(getattr(way, measure)), 6) for way in ways]
        row = {**summary, "measure": measure.replace("_", " "), "queries": values}
        found.append({**row, "value": float(getattr(whole.symmetrised(), measure))})
    ties = {**summary, "measure": "ties", "queries": [round(way.ties[0], 6) for way in ways]}
    return [*found, {**ties, "value": whole.symmetrised().ties[0]}]


def alarms(rng: np.random.Generator) -> list[Row]:
    """How often a chi-square of four queries against four others, by one tool, finds a difference.

    There is none; the test takes pairs for independent, and those of one query are not.
    """
    results = _results(rng, Crowd())
    found: list[Row] = []
    for tool, called in TOOLS.items():
        tables = list(by_query(result_overlaps(results, tool)).values())
        fours = [tables[i : i + DOUBLY] for i in range(0, len(tables) - DOUBLY + 1, DOUBLY)]
        sums = [Agreement(np.sum([table.counts for table in four], axis=0)) for four in fours]
        tests = [compare_methods(*two) for two in zip(sums[::2], sums[1::2], strict=True)]
        for figure in ("overall", "without_ties"):
            rare = float(np.mean([test[figure].p < RARE for test in tests]))
            labels = {"data": SIMULATED, "test": f"{called}, 4 queries against 4"}
            found.append({**labels, "finds": figure.replace("_", " "), "value": rare})
    return found


def _results(rng: np.random.Generator, graders: Crowd) -> dict[tuple[str, str, str], Labels]:
    """Final labels by query, person and tool, dealt out as in section 4.1.1."""
    queries = [f"q{i:02}" for i in range(QUERIES)]
    names = [f"d{i:02}" for i in range(DOCUMENTS)]
    utility = {query: rng.standard_normal(DOCUMENTS) for query in queries}
    found: dict[tuple[str, str, str], Labels] = {}
    for task in plan(queries, 2, seed_of(rng)).tasks:
        worth, key = utility[task.query], (task.query, task.assessor, task.tool)
        if task.tool == "pairs":
            top, _ = by_pairs(Crowd().seen(worth, rng), "heap", seed_of(rng))
            found[key] = top_labels([names[i] for i in top], names, K)
        else:
            found[key] = dict(zip(names, graders.grades(worth, rng).tolist(), strict=True))
    return found
