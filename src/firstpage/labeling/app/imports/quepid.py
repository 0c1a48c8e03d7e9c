"""Ratings of Quepid as judgments of an assessor: recorded in the same log as those of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from firstpage.core import DataError
from firstpage.labeling.app.store import log, people, projects, tasks, texts, webhooks
from firstpage.labeling.app.store.connect import Store, Tx
from firstpage.labeling.app.store.log import Timing
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.scales import describe_scale, shown_scale
from firstpage.labeling.app.store.sessions import result_of, synchronized
from firstpage.labeling.app.store.tables import events
from firstpage.labeling.app.store.tasks import TaskRow
from firstpage.labeling.session.events import RATES

NOT_RATED = "not rated in Quepid"
Ratings = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class ImportedRatings:
    """What was imported, and what of the file has no place in the project."""

    queries: int
    ratings: int
    unrated: int  # documents of the imported queries
    unknown_queries: tuple[str, ...]
    unknown_documents: int

    def notes(self) -> list[str]:
        """Return a sentence for each kind of rating that was not imported."""
        notes = []
        if self.unknown_queries:
            shown = ", ".join(map(repr, self.unknown_queries[:3]))
            notes.append(
                f"{len(self.unknown_queries)} queries of the file are not in the project: {shown}."
            )
        if self.unknown_documents:
            notes.append(
                f"{self.unknown_documents} rated documents are not among those of their query."
            )
        if self.unrated:
            notes.append(f"{self.unrated} documents have no rating; they are recorded as skipped.")
        return notes


def import_ratings(store: Store, project: Project, login: str, ratings: Ratings) -> ImportedRatings:
    """Record ratings as the answers of an assessor, who gets no other queries to judge.

    Queries are matched by their text, else by their id.  All ratings are recorded, or none.  The
    login must be new to the project.  Practice, repeats and gold questions are for people: each
    document is asked once.
    """
    if "grades" not in project.tools:
        raise DataError(
            f"the project {project.slug!r} has the tool {' and '.join(project.tools)}; ratings are "
            "grades, so set up a project with --tool grades."
        )
    if project.state != "open":
        raise DataError(f"the project {project.slug!r} is not open; open it first.")
    _check_scale(project, ratings)
    changes: dict[str, Any] = {"refine": 0, **dict.fromkeys(RATES, 0.0)}
    plain = replace(project, setting=replace(project.setting, **changes))
    with store.write() as tx:
        matched, unknown = _matched(tx, project, ratings)
        if not matched:
            raise DataError(f"no query of the file is in the project {project.slug!r}.")
        person = _assessor(tx, project, login)
        rows = [_record(tx, plain, person, query, of_query) for query, of_query in matched.items()]
        projects.leave(tx, project, person, person)
        for row in rows:
            webhooks.query_finished(tx, row.task)
    imported, unrated = sum(row.rated for row in rows), sum(row.unrated for row in rows)
    unknown_documents = sum(map(len, matched.values())) - imported
    return ImportedRatings(len(rows), imported, unrated, unknown, unknown_documents)


def _check_scale(project: Project, ratings: Ratings) -> None:
    """Refuse ratings that are not grades of the project, before anything is stored."""
    levels = shown_scale(project.options.grades)
    for query, of_query in ratings.items():
        for document, rating in of_query.items():
            if rating not in range(len(levels)):
                raise DataError(
                    f"the rating {rating:g} of {document!r} for {query!r} is not a grade of the "
                    f"project ({describe_scale(project.options.grades)}); set its grades."
                )


def _matched(
    tx: Tx, project: Project, ratings: Ratings
) -> tuple[dict[int, dict[str, float]], tuple[str, ...]]:
    """Return the ratings by the id of their query, and the queries that the project lacks."""
    rows = texts.of_project(tx, project.id)
    count = Counter(row["text"].strip() for row in rows)
    by_key = {row["key"]: row for row in rows}
    by_text = {row["text"].strip(): row for row in rows}
    matched: dict[int, dict[str, float]] = {}
    unknown = []
    for query, of_query in ratings.items():
        name = query.strip()
        if count[name] > 1:
            raise DataError(f"{count[name]} queries of the project have the text {name!r}.")
        row = by_text.get(name) or by_key.get(name)
        if row is None:
            unknown.append(query)
        else:
            _merge(row["key"], matched.setdefault(row["id"], {}), of_query)
    return matched, tuple(unknown)


def _merge(query: str, merged: dict[str, float], ratings: Mapping[str, float]) -> None:
    """Add the ratings of a query, which a file may name by its text and by its id."""
    for document, rating in ratings.items():
        if merged.setdefault(document, rating) != rating:
            raise DataError(
                f"the file has the ratings {merged[document]:g} and {rating:g} of {document!r} for "
                f"the query {query!r}, by its text and by its id; remove one."
            )


def _assessor(tx: Tx, project: Project, login: str) -> Person:
    """Return the assessor, who must not have judged or led anything here."""
    person = people.ensure(tx, login)
    if person.admin or people.password_hash(tx, person.id) is not None:
        raise DataError(f"{login!r} is the account of a person; choose a login for the file.")
    if tasks.of_person(tx, project, person.id):
        raise DataError(
            f"{login!r} has judgments in {project.slug!r} already; choose another login (--login)."
        )
    if project.id in projects.projects_of(tx, person.id):
        raise DataError(
            f"{login!r} is a member of {project.slug!r} already; choose another login (--login)."
        )
    projects.join(tx, project, person, "assessor")
    return person


@dataclass(frozen=True)
class RecordedTask:
    """A finished task, and how many of its documents have a rating and how many have none."""

    task: TaskRow
    rated: int
    unrated: int


def _record(
    tx: Tx, project: Project, person: Person, query: int, ratings: Mapping[str, float]
) -> RecordedTask:
    """Record the ratings of one query as a task that is done."""
    number = tasks.add(tx, project, query, person.id, "grades", project.options.replicates, 0)
    task = tasks.get(tx, number)
    assert task is not None
    session = synchronized(tx, task, None, 0).session
    rows: list[dict[str, Any]] = []
    while (question := session.question) is not None:
        rating = ratings.get(question.left)
        event = session.answer(int(rating or 0), skipped=rating is None)
        timing = Timing(comment=NOT_RATED if rating is None else None)
        rows.append(log.event_row(tx, number, len(rows), uuid4().hex, event, person.id, timing))
    tx.add_all(events, rows)
    tasks.set_state(tx, number, "done", judgments=len(rows), result=result_of(session))
    unrated = sum(judgment.skipped for judgment in session.judgments)
    return RecordedTask(task, len(rows) - unrated, unrated)
