"""The labeling step: assessors find the best documents of every question, pair by pair."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lgamma, log

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.demo import project as demo_project
from firstpage.demo.collection import Collection
from firstpage.demo.output import Folder, StepPrinter
from firstpage.demo.project import SimulatedAssessor
from firstpage.labeling.statistics.study import Study
from firstpage.types import Floats
from firstpage.web.analysis.figures import project_study
from firstpage.web.analysis.truth import QueryTruth, truths
from firstpage.web.app import LOCAL
from firstpage.web.exports.make import export
from firstpage.web.store.connect import Store
from firstpage.web.store.projects import Project

K = 5  # ranks of the first page
DOUBLE_EVERY = 6  # every n-th question is judged by two assessors
READER_QUESTIONS = 2  # questions for the reader
BOOTSTRAP_ROUNDS = 200  # of the intervals of agreement
GUIDELINES = (
    "A Python programmer asks the question above. Which of the two entries of the documentation "
    "helps more? Press 'clearly irrelevant' if an entry does not help at all."
)


@dataclass(frozen=True, eq=False)
class LabelingResult:
    """The labels of the assessors, and their effort.

    Attributes
    ----------
    data : Dataset
        The collection with the assessors' labels in place of the correct grades.
    judgments : int
        Number of answers.
    per_question : float
        Mean number of answers per question and assessor.
    sorting_comparisons : float
        Mean number of comparisons to sort all documents of a question.
    minutes : float
        Total time in minutes.
    recall : float
        Mean fraction of the correct answers that were found, among those that fit on a first page.
    study : Study
        Effort and agreement.
    judged_by_two : int
        Number of questions that two assessors judged.
    reader_questions : tuple of str
        Questions that the reader judged.
    """

    data: Dataset
    judgments: int
    per_question: float
    sorting_comparisons: float
    minutes: float
    recall: float
    study: Study
    judged_by_two: int
    reader_questions: tuple[str, ...]

    @property
    def agreement(self) -> float:
        """The fraction of equal answers to the pairs that two assessors both answered."""
        return self.study.shared["pairs"].overall

    @property
    def minutes_per_question(self) -> float:
        """Mean minutes per question and assessor."""
        return self.study.effort["pairs"].minutes.mean


def write_texts(collection: Collection, folder: Folder) -> None:
    """Write questions and documents as `label setup` reads them."""
    data = collection.data
    queries = [{"query": q, "text": collection.questions[q]} for q in data.queries]
    documents = [
        {"query": q, "document": key, "title": key, "text": collection.documents[key]}
        for q, keys in candidates(data).items()
        for key in keys
    ]
    for name, rows in (("queries.jsonl", queries), ("documents.jsonl", documents)):
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))


def create_questions_project(store: Store, folder: Folder, reader_judges: bool) -> Project:
    """Create the project with all texts; the reader gets a few questions if they judge."""
    project = demo_project.create_project(
        store, demo_project.QUESTIONS, "Python's documentation", GUIDELINES,
        {"queries": folder / "queries.jsonl", "documents": folder / "documents.jsonl"},
        setting={"k": K},
    )  # fmt: skip
    if reader_judges:
        keys = [str(number) for number in range(1, READER_QUESTIONS + 1)]
        demo_project.add_tasks(store, project, dict.fromkeys(keys, (LOCAL,)))
    return project


def label_questions(
    store: Store, project: Project, collection: Collection, folder: Folder, printer: StepPrinter
) -> LabelingResult:
    """Let simulated assessors judge the questions that the reader has not; return the labels."""
    data = collection.data
    by_reader = demo_project.finished_queries(store, project, LOCAL)
    others = [q for q in data.queries if q not in by_reader]
    total = demo_project.add_tasks(store, project, demo_project.assign_team(others, DOUBLE_EVERY))
    relevance = {
        (collection.questions[q], key): float(grade)
        for q, grades in correct_grades(data).items()
        for key, grade in grades.items()
    }
    team = {
        login: SimulatedAssessor(100 + number, "pairs", relevance)
        for number, login in enumerate(demo_project.TEAM)
    }
    with printer.progress("questions judged") as progress:
        demo_project.run_assessors(store, project, team, total, progress)
    with store.read() as tx:
        judged = truths(tx, project)
        study, _ = project_study(tx, project, rounds=BOOTSTRAP_ROUNDS)
        folder.write("truth.jsonl", "".join(export(tx, project, "truth.jsonl")))
    return _result(data, judged, study, tuple(q for q in data.queries if q in by_reader))


def _result(
    data: Dataset, judged: Sequence[QueryTruth], study: Study, reader_questions: tuple[str, ...]
) -> LabelingResult:
    effort = study.effort["pairs"]
    recall = [_recall(truth, correct_grades(data)[truth.query]) for truth in judged]
    return LabelingResult(
        data=replace(data, y=labels_of(data, judged), source="the assessors' labels"),
        judgments=effort.judgments,
        per_question=effort.per_query.mean,
        sorting_comparisons=float(
            np.mean([sorting_comparisons(len(truth.documents)) for truth in judged])
        ),
        minutes=effort.active / 60,
        recall=float(np.mean(recall)),
        study=study,
        judged_by_two=sum(truth.assessors > 1 for truth in judged),
        reader_questions=reader_questions,
    )


def labels_of(data: Dataset, judged: Sequence[QueryTruth]) -> Floats:
    """Return the label per row: k for the best document of a question, k - 1 for the next, ...

    A document called clearly irrelevant gets 0, even if it had to fill a rank.
    """
    y = np.zeros(data.n_docs)
    rows = {q: int(lo) for q, lo in zip(data.queries, data.offsets, strict=False)}
    for truth in judged:
        for number, key in enumerate(candidates(data)[truth.query]):
            label = 0 if key in truth.bad else truth.labels[key]
            y[rows[truth.query] + number] = label
    return y


def sorting_comparisons(n: int) -> float:
    """Return the least mean number of comparisons that can sort n documents: log2 n!"""
    return lgamma(n + 1) / log(2)


def candidates(data: Dataset) -> dict[str, list[str]]:
    """Return the documents of every question, in order."""
    assert data.docids is not None
    keys, ends = list(data.docids), data.offsets.tolist()
    return {q: keys[lo:hi] for q, lo, hi in zip(data.queries, ends, ends[1:], strict=False)}


def correct_grades(data: Dataset) -> Mapping[str, Mapping[str, int]]:
    """Return the grade of every document, by question."""
    grades, ends = data.y.astype(int).tolist(), data.offsets.tolist()
    return {
        q: dict(zip(keys, grades[lo:], strict=False))
        for (q, keys), lo in zip(candidates(data).items(), ends, strict=False)
    }


def _recall(truth: QueryTruth, grades: Mapping[str, int]) -> float:
    correct = {key for key, grade in grades.items() if grade > 0}
    return len(correct & set(truth.order[:K])) / min(K, len(correct))
