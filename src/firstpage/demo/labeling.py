"""The labeling step: assessors find the best documents of every question, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lgamma, log

import numpy as np

from firstpage.data import Qrels
from firstpage.data.formats import read_qrels
from firstpage.demo import project as demo_project
from firstpage.demo.collection import Collection
from firstpage.demo.output import Folder, StepPrinter
from firstpage.demo.project import Grades, SimulatedAssessor
from firstpage.labeling import Study
from firstpage.labeling.app import LOCAL
from firstpage.labeling.app.analysis import QueryTruth, project_study, truths
from firstpage.labeling.app.exports import export
from firstpage.labeling.app.store import Project, Store
from firstpage.search import Index

K = 5  # ranks of the first page
DEPTH = 30  # candidates per question: all of them are judged
STRATEGY = "tournament"
DOUBLE_EVERY = 10  # every n-th question is judged by two assessors
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
    labels : Qrels
        The assessors' labels of all candidates.
    judgments : int
        Number of answers.
    per_question : float
        Mean number of answers per question and assessor.
    sorting_comparisons : float
        Mean number of comparisons to sort all documents of a question.
    minutes : float
        Total time in minutes.
    recall : float
        Mean fraction of the correct answers among the candidates that were found, as far as they
        fit on a first page; questions without such an answer do not count.
    study : Study
        Effort and agreement.
    judged_by_two : int
        Number of questions that two assessors judged.
    reader_questions : tuple of str
        Questions that the reader judged.
    """

    labels: Qrels
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


def create_questions_project(
    store: Store, index: Index, folder: Folder, reader_judges: bool
) -> Project:
    """Create the project with all candidates; the reader gets a few questions if they judge."""
    project = demo_project.create_project(
        store,
        demo_project.QUESTIONS,
        "Python's documentation",
        GUIDELINES,
        index,
        folder / "queries.jsonl",
        depth=DEPTH,
        setting={"k": K, "strategy": STRATEGY},
    )
    if reader_judges:
        keys = demo_project.query_keys(store, project)[:READER_QUESTIONS]
        demo_project.add_tasks(store, project, dict.fromkeys(keys, (LOCAL,)))
    return project


def label_questions(
    store: Store, project: Project, collection: Collection, folder: Folder, printer: StepPrinter
) -> LabelingResult:
    """Let simulated assessors judge the questions that the reader has not; return the labels."""
    by_reader = demo_project.finished_queries(store, project, LOCAL)
    keys = demo_project.query_keys(store, project)
    others = [key for key in keys if key not in by_reader]
    total = demo_project.add_tasks(store, project, demo_project.assign_team(others, DOUBLE_EVERY))
    answers = collection.qrels.to_dict()
    team = {
        login: SimulatedAssessor(100 + number, "pairs", answers)
        for number, login in enumerate(demo_project.TEAM)
    }
    with printer.progress("questions judged") as progress:
        demo_project.run_assessors(store, project, team, total, progress)
    with store.read() as tx:
        judged = truths(tx, project)
        study, _ = project_study(tx, project, rounds=BOOTSTRAP_ROUNDS)
        folder.write("labels.qrels", "".join(export(tx, project, "truth.qrels")))
    labels = read_qrels(folder / "labels.qrels")
    return _result(labels, judged, answers, study, tuple(q for q in keys if q in by_reader))


def _result(
    labels: Qrels,
    judged: Sequence[QueryTruth],
    answers: Grades,
    study: Study,
    reader_questions: tuple[str, ...],
) -> LabelingResult:
    effort = study.effort["pairs"]
    recall = [_recall(truth, answers[truth.query]) for truth in judged]
    return LabelingResult(
        labels=labels,
        judgments=effort.judgments,
        per_question=effort.per_query.mean,
        sorting_comparisons=float(
            np.mean([sorting_comparisons(len(truth.documents)) for truth in judged])
        ),
        minutes=effort.active / 60,
        recall=float(np.nanmean(recall)),
        study=study,
        judged_by_two=sum(truth.assessors > 1 for truth in judged),
        reader_questions=reader_questions,
    )


def sorting_comparisons(n: int) -> float:
    """Return the least mean number of comparisons that can sort n documents: log2 n!"""
    return lgamma(n + 1) / log(2)


def _recall(truth: QueryTruth, grades: Mapping[str, float]) -> float:
    """Return the fraction of correct answers that were found, NaN if there was none to find."""
    correct = {key for key, grade in grades.items() if grade > 0} & set(truth.documents)
    if not correct:
        return float("nan")
    return len(correct & set(truth.order[:K])) / min(K, len(correct))
