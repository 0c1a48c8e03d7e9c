"""The measure step: editors compare first pages, and DCGLearn learns their utility."""

from __future__ import annotations

from dataclasses import dataclass

from firstpage.data.preferences import Utility
from firstpage.demo import project as demo_project
from firstpage.demo.collection import Collection
from firstpage.demo.labeling import K
from firstpage.demo.output import Folder, StepPrinter
from firstpage.demo.project import SimulatedEditor
from firstpage.demo.rankings import (
    MAIN_MEASURE,
    BaselineComparison,
    Runs,
    difference,
)
from firstpage.evaluation.comparison import Comparison, Difference, compare
from firstpage.evaluation.dcglearn import DCGComparison
from firstpage.evaluation.measures import measure
from firstpage.labeling.app.analysis import learned_measure, project_study
from firstpage.labeling.app.exports import export
from firstpage.labeling.app.store import Store
from firstpage.search import Index

GUIDELINES = "Which of the two first pages would you rather see for this question?"


@dataclass(frozen=True, eq=False)
class MeasureLearningResult:
    """The learned measure, its agreement with held-out preferences, and its comparison.

    Attributes
    ----------
    utility : Utility
        The learned gains and discounts.
    judgments : int
        Number of pairs of pages compared.
    minutes : float
        Total time in minutes.
    held_out : DCGComparison
        How often the learned measure and DCG agree with held-out preferences.
    comparison : Comparison
        All systems under the learned measure.
    best : str
        The best system under the learned measure, apart from the baseline.
    """

    utility: Utility
    judgments: int
    minutes: float
    held_out: DCGComparison
    comparison: Comparison
    best: str

    @property
    def name(self) -> str:
        """The text of the learned measure."""
        return self.comparison.texts[0]

    def verdict(self, compared: BaselineComparison) -> Difference:
        """Return the best learned ranking against the baseline, by the learned measure."""
        return difference(self.comparison, self.name, self.best, compared.baseline)


def learn_measure(
    store: Store,
    index: Index,
    collection: Collection,
    systems: Runs,
    compared: BaselineComparison,
    folder: Folder,
    printer: StepPrinter,
) -> MeasureLearningResult:
    """Let editors compare first pages of the baseline and the best ranking; learn a measure."""
    shown = [folder.run(name) for name in (compared.baseline, compared.best)]
    project = demo_project.create_project(
        store,
        demo_project.PAGES,
        "First pages side by side",
        GUIDELINES,
        index,
        folder / "queries.jsonl",
        runs=shown,
        qrels=folder / "answers.qrels",
        depth=K,
        tool="lists",
        setting={"k": 1},
    )
    keys = demo_project.query_keys(store, project)
    total = demo_project.add_tasks(store, project, demo_project.assign_team(keys, None))
    answers = collection.qrels.to_dict()
    team = {
        login: SimulatedEditor(200 + number, "lists", answers)
        for number, login in enumerate(demo_project.TEAM)
    }
    with printer.progress("questions compared") as progress:
        demo_project.run_assessors(store, project, team, total, progress)
    with store.read() as tx:
        fitted = learned_measure(tx, project)
        utility = fitted.require_utility()
        study, _ = project_study(tx, project, rounds=1)
        for name in ("preferences.jsonl", "measure.json"):
            folder.write(name, "".join(export(tx, project, name)))
    assert fitted.comparison is not None
    learned_ndcg = measure(MAIN_MEASURE, of=utility)
    comparison = compare(
        systems, collection.qrels, measures=[learned_ndcg], baseline=compared.baseline
    )
    means = {
        name: comparison.values(comparison.texts[0])[row].mean()
        for row, name in enumerate(comparison.systems)
        if name != compared.baseline
    }
    return MeasureLearningResult(
        utility,
        fitted.judgments,
        study.effort["lists"].active / 60,
        fitted.comparison,
        comparison,
        max(means, key=lambda name: means[name]),
    )
