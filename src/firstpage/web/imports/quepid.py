"""Ratings of Quepid as judgments of an assessor: recorded in the same log as those of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import RowMapping

from firstpage.errors import DataError
from firstpage.web.store import people, projects, tasks, texts
from firstpage.web.store.connect import Store, Tx
from firstpage.web.store.judging import JudgingService, SubmittedAnswer
from firstpage.web.store.log import Timing
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.scales import describe_scale, shown_scale

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

    Queries are matched by their text, else by their id.  A query that this assessor has judged
    already is refused.
    """
    if "grades" not in project.tools:
        raise DataError(
            f"the project {project.slug!r} has the tool {' and '.join(project.tools)}; ratings are "
            "grades, so set up a project with --tool grades."
        )
    if project.state != "open":
        raise DataError(f"the project {project.slug!r} is not open; open it first.")
    _check_scale(project, ratings)
    with store.write() as tx:
        matched, unknown = _matched(tx, project, ratings)
        if not matched:
            raise DataError(f"no query of the file is in the project {project.slug!r}.")
        person = _assessor(tx, project, login)
        rows = [
            tasks.add(tx, project, row["id"], person.id, "grades", project.options.replicates, 0)
            for row, _ in matched
        ]
    try:
        return _recorded(store, person, rows, matched, unknown)
    finally:
        with store.write() as tx:
            projects.leave(tx, project, person, person)


def _check_scale(project: Project, ratings: Ratings) -> None:
    """Refuse ratings that are no grades of the project, before anything is stored."""
    levels = shown_scale(project.options.grades)
    for query, of_query in ratings.items():
        for document, rating in of_query.items():
            if rating not in range(len(levels)):
                raise DataError(
                    f"the rating {rating:g} of {document!r} for {query!r} is no grade of the "
                    f"project ({describe_scale(project.options.grades)}); set its grades."
                )


def _matched(
    tx: Tx, project: Project, ratings: Ratings
) -> tuple[list[tuple[RowMapping, Mapping[str, float]]], tuple[str, ...]]:
    """Return the queries of the project with their ratings, and the queries it does not have."""
    rows = texts.of_project(tx, project.id)
    count = Counter(row["text"].strip() for row in rows)
    by_key = {row["key"]: row for row in rows}
    by_text = {row["text"].strip(): row for row in rows}
    matched, unknown = [], []
    for query, of_query in ratings.items():
        name = query.strip()
        if count[name] > 1:
            raise DataError(f"{count[name]} queries of the project have the text {name!r}.")
        row = by_text.get(name) or by_key.get(name)
        if row is None:
            unknown.append(query)
        else:
            matched.append((row, of_query))
    return matched, tuple(unknown)


def _assessor(tx: Tx, project: Project, login: str) -> Person:
    """Return the assessor, who must not have judged or led anything here."""
    person = people.ensure(tx, login)
    if people.password_hash(tx, person.id) is not None:
        raise DataError(f"{login!r} is the account of a person; choose a login for the file.")
    if tasks.of_person(tx, project, person.id):
        raise DataError(
            f"{login!r} has judgments in {project.slug!r} already; choose another login (--login)."
        )
    projects.join(tx, project, person, "assessor")
    return person


def _recorded(
    store: Store, person: Person, rows: Sequence[int],
    matched: Sequence[tuple[RowMapping, Mapping[str, float]]], unknown: tuple[str, ...],
) -> ImportedRatings:  # fmt: skip
    service = JudgingService(store)
    imported = unrated = rated = 0
    for task, (_, ratings) in zip(rows, matched, strict=True):
        state = service.state(task, person)
        while state.question is not None:
            key = state.question.left.key
            rating = ratings.get(key)
            state = service.answer(
                task, person,
                SubmittedAnswer(
                    state.seq, uuid4().hex, key, None, int(rating or 0), (), rating is None,
                    Timing(comment=NOT_RATED if rating is None else None),
                ),
            )  # fmt: skip
            imported += rating is not None
            unrated += rating is None
        if not state.done:
            raise DataError(f"the ratings cannot be recorded: {state.message}")
        rated += len(ratings)
    return ImportedRatings(len(rows), imported, unrated, unknown, rated - imported)
