"""The labeling step: assessors find the best documents of every question, pair by pair."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lgamma, log

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.demo import project as desk
from firstpage.demo.collection import Collection
from firstpage.demo.output import Folder, Teller
from firstpage.demo.project import SimulatedAssessor
from firstpage.labeling.statistics.study import Study
from firstpage.types import Floats
from firstpage.web.analysis.figures import project_study
from firstpage.web.analysis.truth import QueryTruth, truths
from firstpage.web.app import LOCAL
from firstpage.web.exports.make import export
from firstpage.web.store.connect import Store
from firstpage.web.store.projects import Project

K = 5  # places of the first page
DOUBLE = 6  # every so many questions are judged by two
YOURS = 2  # questions for the reader
ROUNDS = 200  # of the bootstrap behind intervals of agreement
GUIDELINES = (
    "Somebody programs in Python and asks the question above. Which of the two entries of the "
    "documentation would help more? Press 'clearly irrelevant' where one does not help at all."
)


@dataclass(frozen=True, eq=False)
class Labels:
    """What the assessors found, and what it took."""

    data: Dataset  # the collection with their labels instead of the right answers
    judgments: int
    per_question: float  # of one assessor
    sorting: float  # what sorting all documents of a question would take
    minutes: float
    recall: float  # of the right answers that fit on the first page
    study: Study
    double: int  # questions that two judged
    yours: tuple[str, ...]  # those that the reader judged

    @property
    def agreement(self) -> float:
        """How often two people gave the same answer to a pair that both were asked."""
        return self.study.shared["pairs"].overall

    @property
    def minutes_each(self) -> float:
        """Of one question and one assessor."""
        return self.study.effort["pairs"].minutes.mean


def write_texts(collection: Collection, folder: Folder) -> None:
    """Questions and documents as `label setup` reads them."""
    data = collection.data
    asked = [{"query": q, "text": collection.questions[q]} for q in data.queries]
    shown = [
        {"query": q, "document": key, "title": key, "text": collection.documents[key]}
        for q, keys in documents_of(data).items()
        for key in keys
    ]
    for name, rows in (("queries.jsonl", asked), ("documents.jsonl", shown)):
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))


def begin(store: Store, folder: Folder, yours: bool) -> Project:
    """The project with all texts; the reader gets a few questions if they are to judge."""
    made = desk.make(
        store, desk.QUESTIONS, "Python's documentation", GUIDELINES,
        {"queries": folder / "queries.jsonl", "documents": folder / "documents.jsonl"},
        setting={"k": K},
    )  # fmt: skip
    if yours:
        keys = [str(number) for number in range(1, YOURS + 1)]
        desk.deal(store, made, dict.fromkeys(keys, (LOCAL,)))
    return made


def label(
    store: Store, project: Project, collection: Collection, folder: Folder, teller: Teller
) -> Labels:
    """Simulated assessors judge what the reader has not; then the truth is taken out."""
    data = collection.data
    done = desk.finished(store, project, LOCAL)
    rest = [q for q in data.queries if q not in done]
    total = desk.deal(store, project, desk.team_of(rest, DOUBLE))
    worth = {
        (collection.questions[q], key): float(grade)
        for q, grades in right_answers(data).items()
        for key, grade in grades.items()
    }
    team = {
        login: SimulatedAssessor(100 + number, "pairs", worth)
        for number, login in enumerate(desk.TEAM)
    }
    with teller.counting("questions judged") as progress:
        desk.work(store, project, team, total, progress)
    with store.read() as tx:
        found = truths(tx, project)
        study, _ = project_study(tx, project, rounds=ROUNDS)
        folder.write("truth.jsonl", "".join(export(tx, project, "truth.jsonl")))
    return _labels(data, found, study, tuple(q for q in data.queries if q in done))


def _labels(
    data: Dataset, found: Sequence[QueryTruth], study: Study, yours: tuple[str, ...]
) -> Labels:
    judged = replace(data, y=labels_of(data, found), source="the assessors' labels")
    effort = study.effort["pairs"]
    recall = [_recall(truth, right_answers(data)[truth.query]) for truth in found]
    return Labels(
        judged, effort.judgments, effort.per_query.mean,
        float(np.mean([sorting_takes(len(truth.documents)) for truth in found])),
        effort.active / 60, float(np.mean(recall)), study,
        sum(truth.assessors > 1 for truth in found), yours,
    )  # fmt: skip


def labels_of(data: Dataset, found: Sequence[QueryTruth]) -> Floats:
    """k for the best document of each question, one less for each next; nothing for what was
    called clearly irrelevant, although it had to fill a place."""
    y = np.zeros(data.n_docs)
    rows = {q: int(lo) for q, lo in zip(data.queries, data.offsets, strict=False)}
    for truth in found:
        for number, key in enumerate(documents_of(data)[truth.query]):
            label = 0 if key in truth.bad else truth.labels[key]
            y[rows[truth.query] + number] = label
    return y


def sorting_takes(n: int) -> float:
    """The least number of comparisons, on average, that can sort n documents: log2 n!"""
    return lgamma(n + 1) / log(2)


def documents_of(data: Dataset) -> dict[str, list[str]]:
    """The candidates of every question, in order."""
    assert data.docids is not None
    keys, ends = list(data.docids), data.offsets.tolist()
    return {q: keys[lo:hi] for q, lo, hi in zip(data.queries, ends, ends[1:], strict=False)}


def right_answers(data: Dataset) -> Mapping[str, Mapping[str, int]]:
    """The grade of every candidate."""
    grades, ends = data.y.astype(int).tolist(), data.offsets.tolist()
    return {
        q: dict(zip(keys, grades[lo:], strict=False))
        for (q, keys), lo in zip(documents_of(data).items(), ends, strict=False)
    }


def _recall(truth: QueryTruth, grades: Mapping[str, int]) -> float:
    right = {key for key, grade in grades.items() if grade > 0}
    return len(right & set(truth.order[:K])) / min(K, len(right))
