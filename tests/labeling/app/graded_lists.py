"""Projects that compare graded lists, and simulated assessors who know which list is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from firstpage.labeling.app.store import projects, tasks, texts
from firstpage.labeling.app.store.judging import JudgingService, SubmittedAnswer
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.site import Client, Site, add_query

GAINS = (0.0, 0.2, 0.3, 1.0)  # of grades 0 to 3; neither linear nor exponential
DISCOUNTS = (1.0, 0.6, 0.5, 0.2, 0.1)


def list_value(grades: Sequence[int | None]) -> float:
    """Return the value of a list to the simulated assessors."""
    return sum(c * GAINS[g or 0] for c, g in zip(DISCOUNTS, grades, strict=False))


def outcome(left: Sequence[int | None], right: Sequence[int | None]) -> int:
    """Return the answer of the simulated assessors, from 2 to -2."""
    apart = list_value(left) - list_value(right)
    size = 0 if abs(apart) < 0.02 else 2 if abs(apart) > 1 else 1
    return size if apart > 0 else -size


def list_document(key: str, grades: Sequence[int | None]) -> DocumentRecord:
    """Return a list of items with these grades; an unjudged item has the grade None or no grade."""
    items = [
        {"id": f"{key}-{i}", "title": f"Result {i}", "text": "words", "grade": g}
        for i, g in enumerate(grades)
    ]
    return DocumentRecord(key, f"List {key}", "list", fields={"items": items})


def graded_queries(count: int, lists: int = 2, depth: int = 5, seed: int = 0) -> list[QueryRecord]:
    rng = np.random.default_rng(seed)
    queries = []
    for number in range(count):
        documents = tuple(
            list_document(f"l{i}", rng.integers(0, 4, depth).tolist()) for i in range(lists)
        )
        queries.append(QueryRecord(f"q{number}", f"query {number}", "", documents))
    return queries


def lists_project(
    site: Site,
    queries: list[QueryRecord],
    assessors: tuple[str, ...] = ("ada",),
    list_selection: str = "order",
    slug: str = "books",
    setting: dict[str, Any] | None = None,
) -> Project:
    """Create an open project led by lena, with every query assigned to every assessor."""
    project = site.project(
        slug,
        assessors=assessors,
        queries=0,
        tool="lists",
        opened=False,
        options={"list_selection": list_selection},
        setting=setting,
    )
    team, lena = [site.person(login) for login in assessors], site.person("lena")
    with site.store.write() as tx:
        for number, query in enumerate(queries):
            row = add_query(tx, project.id, query, number)
            for person in team:
                tasks.add(tx, project, row, person.id, "lists", 0, number)
        return projects.set_state(tx, project, "open", lena)


def grades_in(site: Site, project: Project) -> dict[tuple[str, str], tuple[int | None, ...]]:
    """Return the grades of each list by query text and list."""
    with site.store.read() as tx:
        return {
            (row["text"], d["key"]): tuple(item.get("grade") for item in d["fields"]["items"])
            for row in texts.of_project(tx, project.id)
            for d in texts.documents_of(tx, row["id"])
        }


def judge(client: Client, task: int, grades: dict[tuple[str, str], Any]) -> dict[str, Any]:
    """Judge a whole task by the values of the lists."""
    state = client.state(task)
    while state["question"] is not None:
        left, right = (
            grades[state["query"]["text"], state["question"][side]["key"]]
            for side in ("left", "right")
        )
        state = client.answer(state, outcome(left, right)).json()
    return state


def judge_first(site: Site, project: Project, login: str, queries: int) -> None:
    """Judge the first queries of a person in working order, without requests."""
    service, person, grades = (
        JudgingService(site.store),
        site.person(login),
        grades_in(site, project),
    )
    for task in site.tasks(project.slug, login)[:queries]:
        state = service.state(task, person)
        while (question := state.question) is not None:
            assert question.right is not None
            pair = question.left.key, question.right.key
            value = outcome(*(grades[state.query.text, key] for key in pair))
            answer = SubmittedAnswer(state.seq, uuid4().hex, *pair, value)
            state = service.answer(task, person, answer)
