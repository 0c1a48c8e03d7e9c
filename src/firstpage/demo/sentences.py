"""The results of all steps: as a dictionary, and as sentences that follow from the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firstpage.demo.collection import Collection
from firstpage.demo.labeling import LabelingResult
from firstpage.demo.measuring import MeasureLearningResult
from firstpage.demo.rankings import (
    ALPHA,
    COMBINED,
    MAIN_MEASURE,
    BaselineComparison,
    CombinedRanking,
    Runs,
    difference,
)
from firstpage.evaluation.comparison import Comparison, Difference


@dataclass(frozen=True, eq=False)
class DemoResults:
    """The results of all steps.

    Attributes
    ----------
    collection : Collection
        Documents, questions and answers.
    candidates_recall : float
        Mean fraction of the correct answers that are candidates.
    labels : LabelingResult
        The assessors' labels.
    systems : mapping of str to Run
        The rankings: the baseline first, then the learned rankings, then their combination.
    compared : BaselineComparison
        The learned rankings compared with the baseline.
    measured : MeasureLearningResult
        The learned measure.
    combined : CombinedRanking
        The combination of the learned rankings.
    against_best : Comparison
        The combination compared with the best single ranking.
    seconds : mapping of str to float
        Duration per step.
    commands : mapping of str to list of str
        The commands that do the same, per step.
    own_commands : mapping of str to list of str
        The commands with which the reader judges and continues, per purpose.
    """

    collection: Collection
    candidates_recall: float
    labels: LabelingResult
    systems: Runs
    compared: BaselineComparison
    measured: MeasureLearningResult
    combined: CombinedRanking
    against_best: Comparison
    seconds: Mapping[str, float]
    commands: Mapping[str, Sequence[str]]
    own_commands: Mapping[str, Sequence[str]]

    @property
    def combination_gain(self) -> Difference:
        """The combination against the best single ranking, by the main measure."""
        return difference(self.against_best, MAIN_MEASURE, COMBINED, self.compared.best)

    @property
    def questions(self) -> int:
        """The number of questions."""
        return len(self.collection.queries)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the report."""
        labels, compared, measured = self.labels, self.compared, self.measured
        return {
            "questions": self.questions,
            "documents": len(self.collection.documents),
            "candidates_recall": self.candidates_recall,
            "labels": {
                "judgments": labels.judgments,
                "per_question": labels.per_question,
                "sorting_comparisons": labels.sorting_comparisons,
                "minutes": labels.minutes,
                "recall": labels.recall,
                "agreement": labels.agreement,
                "judged_by_two": labels.judged_by_two,
                "judged_by_you": list(labels.reader_questions),
            },
            "baseline": compared.baseline,
            "best": compared.best,
            "first_correct": dict(compared.first_correct),
            "comparison": compared.comparison.to_dict(),
            "questions_needed": compared.questions_needed,
            "steps": [step.to_dict() for step in compared.steps],
            "measure": {
                "judgments": measured.judgments,
                "minutes": measured.minutes,
                "held_out": measured.held_out.to_dict(),
                "gains": measured.utility.gains.tolist(),
                "discounts": measured.utility.discounts.tolist(),
                "best": measured.best,
                "comparison": measured.comparison.to_dict(),
            },
            "aggregation": {
                "weights": dict(self.combined.weights),
                "difference_from_best": self.combination_gain.to_dict(),
            },
            "seconds": dict(self.seconds),
            "commands": dict(self.commands),
            "own_commands": dict(self.own_commands),
        }


def significance(d: Difference) -> str:
    """Return whether a difference is significant; p is corrected for all rankings compared."""
    note = (
        ""
        if d.p == d.p_corrected
        else f", corrected for all rankings compared; {d.p:.2g} uncorrected"
    )
    return _significance(d.p_corrected, note)


def _significance(p: float, note: str = "") -> str:
    value = ("p < .0001" if p < 0.0001 else f"p = {p:.2g}") + note
    if p < ALPHA:
        return f"the difference is statistically significant ({value})"
    return f"the difference is not statistically significant ({value})"


def verdict(compared: BaselineComparison) -> str:
    """Return whether a learned ranking is better than the baseline, in a sentence."""
    d, n = compared.verdict, len(compared.comparison.queries)
    if d.difference <= 0:
        return (
            f"No: on these {n} questions no learned ranking has better first pages than "
            f"{d.against} with tuned parameters."
        )
    claim = (
        f"on these {n} questions the learned ranking {d.system} has better first pages than "
        f"{d.against} with tuned parameters"
    )
    if compared.significant:
        return f"Yes: {claim}, and {significance(d)}."
    return f"Perhaps: {claim}, but {significance(d)}."


def steps(compared: BaselineComparison) -> list[str]:
    """Return what each step from BM25 to the learned ranking gains, a sentence each."""
    return [f"{d.system} over {d.against}: {difference_text(d)}." for d in compared.steps]


def advice(compared: BaselineComparison, labels: LabelingResult) -> str:
    """Return what to do next."""
    d, n = compared.verdict, len(compared.comparison.queries)
    if d.difference <= 0:
        return f"Keep {d.against}; label more questions before you try again."
    if compared.significant:
        return f"Switch to {d.system}, and keep measuring: {d.losses} of {n} questions got worse."
    needed = compared.questions_needed
    if needed is None or needed <= n:
        return "Label more questions before you switch: there are too few for a clear result."
    hours = (needed - n) * labels.minutes_per_question / 60
    return (
        f"Label more questions before you switch: if the true difference is as large as the "
        f"observed one, about {needed} questions would show it with a probability of 80 %. That "
        f"is {needed - n} more questions, or about {hours:.1f} hours of work for one assessor."
    )


def difference_text(d: Difference) -> str:
    """Return a difference with its interval, wins, ties, losses and significance."""
    return (
        f"{d.difference:+.3f} in {d.measure} (95 % interval {d.low:+.3f} to {d.high:+.3f}); "
        f"{d.wins} questions better, {d.ties} equal, {d.losses} worse; {significance(d)}"
    )


def labeling(labels: LabelingResult) -> str:
    """Return how many questions the assessors answered, and what they found."""
    reader = ""
    if labels.reader_questions:
        reader = (
            f" You judged {_question_list(labels.reader_questions)} yourself; the other questions "
            "were judged by simulated assessors."
        )
    return (
        f"The assessors gave {labels.judgments:,} answers to 'which of the two is better?': "
        f"{labels.per_question:.0f} per question and assessor, where sorting all documents would "
        f"take about {labels.sorting_comparisons:.0f}. This took {labels.minutes / 60:.1f} hours "
        f"of simulated time and found {labels.recall:.0%} of the correct answers. Two assessors "
        f"judged {labels.judged_by_two} of the questions; they gave the same answer to "
        f"{labels.agreement:.0%} of the pairs that both were shown.{reader}"
    )


def _question_list(keys: tuple[str, ...]) -> str:
    return ("question " if len(keys) == 1 else "questions ") + ", ".join(keys)


def short_verdict(d: Difference) -> str:
    """Return the verdict in a few words."""
    if d.difference <= 0:
        return f"no learned ranking is better than {d.against}"
    verb = "is" if d.p_corrected < ALPHA else "may be"
    return f"{d.system} {verb} better than {d.against}"


def learned_measure(measured: MeasureLearningResult, compared: BaselineComparison) -> str:
    """Return whether the learned measure agrees with editors, and whether the verdict changes."""
    before, now = short_verdict(compared.verdict), short_verdict(measured.verdict(compared))
    if now == before:
        conclusion = f"By the learned measure the verdict is the same: {now}."
    else:
        conclusion = f"By the learned measure {now}; by {MAIN_MEASURE}, {before}."
    return (
        f"Editors compared the first pages of {compared.baseline} and {compared.best} for "
        f"{measured.judgments} questions. A measure was learned from their answers: "
        f"{measured.held_out} {conclusion}"
    )


def combination(results: DemoResults) -> str:
    """Return whether combining the rankings helps."""
    d = results.combination_gain
    relation = (
        "not shown to differ from"
        if d.p_corrected >= ALPHA
        else "better than"
        if d.difference > 0
        else "worse than"
    )
    return (
        "All four rankers vote, each with a weight learned from the assessors' labels. The "
        f"aggregated ranking is {relation} the best single one ({d.against}): "
        f"{difference_text(d)}. Votes help where rankers make different errors; these four learned "
        "from the same labels and features."
    )
