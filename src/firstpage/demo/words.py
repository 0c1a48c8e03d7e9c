"""What all steps found, for programs, and in sentences: each follows from the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firstpage.demo.collection import Collection
from firstpage.demo.labeling import Labels
from firstpage.demo.measuring import Measured
from firstpage.demo.rankings import MAIN, NAME, SURE, Compared, Together, difference
from firstpage.measures.compare import Comparison, Difference
from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class Results:
    """One field a step."""

    collection: Collection
    labels: Labels
    systems: Mapping[str, Floats]  # the baseline first, the learned ones, all four together
    compared: Compared
    measured: Measured
    together: Together
    against_best: Comparison  # all four together, and the best single one
    seconds: Mapping[str, float]

    @property
    def votes(self) -> Difference:
        """All four together against the best single ranker."""
        return difference(self.against_best, MAIN, NAME, self.compared.best)

    @property
    def questions(self) -> int:
        return len(self.collection.data)

    def to_dict(self) -> dict[str, Any]:
        """The figures of the report."""
        labels, compared, measured = self.labels, self.compared, self.measured
        return {
            "questions": self.questions,
            "documents": len(self.collection.documents),
            "labels": {
                "judgments": labels.judgments, "per_question": labels.per_question,
                "sorting": labels.sorting, "minutes": labels.minutes, "recall": labels.recall,
                "agreement": labels.agreement, "judged_by_two": labels.double,
                "judged_by_you": list(labels.yours),
            },
            "baseline": compared.baseline,
            "best": compared.best,
            "first_right": dict(compared.first_right),
            "comparison": compared.found.to_dict(),
            "needed": compared.needed,
            "measure": {
                "judgments": measured.judgments, "minutes": measured.minutes,
                "learned": measured.learned, "usual": measured.usual, "p": measured.p,
                "gains": measured.utility.gains.tolist(),
                "discounts": measured.utility.discounts.tolist(),
                "best": measured.best, "comparison": measured.found.to_dict(),
            },
            "together": {
                "weights": dict(self.together.weights), "against_best": self.votes.to_dict(),
            },
            "seconds": dict(self.seconds),
        }  # fmt: skip


def chance(d: Difference) -> str:
    """How far chance can explain a difference; p with allowance for all that were tried."""
    alone = "" if d.p == d.p_corrected else f" among all that were tried; {d.p:.2g} alone"
    return _chance(d.p_corrected, alone)


def _chance(p: float, more: str = "") -> str:
    told = ("p < .0001" if p < 0.0001 else f"p = {p:.2g}") + more
    return f"chance is an unlikely cause ({told})" if p < SURE else f"it may be chance ({told})"


def verdict(compared: Compared) -> str:
    """The answer, in a sentence."""
    d, n = compared.verdict, len(compared.found.queries)
    if d.difference <= 0:
        return (
            f"No: on these {n} questions no learned ranking shows better first pages than "
            f"{d.against}, the best that needs no learning."
        )
    start = (
        f"on these {n} questions the learned ranking {d.system} shows better first pages than "
        f"{d.against}, the best that needs no learning"
    )
    if compared.sure:
        return f"Yes: {start}, and {chance(d)}."
    return f"Perhaps: {start}; but {chance(d)}."


def advice(compared: Compared, labels: Labels) -> str:
    """What to do now."""
    d, n = compared.verdict, len(compared.found.queries)
    if d.difference <= 0:
        return f"Keep {d.against}; label more questions before you try again."
    if compared.sure:
        return f"Switch to {d.system}, and keep measuring: {d.losses} of {n} questions got worse."
    needed = compared.needed
    if needed is None or needed <= n:
        return "Label more questions before you switch: these are too few to be sure."
    hours = (needed - n) * labels.minutes_each / 60
    return (
        f"Label more before you switch: if the difference is what it seems, about {needed} "
        f"questions would show it four times out of five. That is {needed - n} more, about "
        f"{hours:.1f} hours of one person."
    )


def spread(d: Difference) -> str:
    """A difference with its interval and how many questions won and lost."""
    return (
        f"{d.difference:+.3f} in {d.measure} (95 % interval {d.low:+.3f} to {d.high:+.3f}); "
        f"{d.wins} questions better, {d.ties} the same, {d.losses} worse; {chance(d)}"
    )


def labeling(labels: Labels) -> str:
    """What was asked of whom."""
    by = ""
    if labels.yours:
        by = f" You judged {_questions(labels.yours)} yourself; the rest was simulated."
    return (
        f"{labels.judgments:,} answers to 'which of the two is better?', "
        f"{labels.per_question:.0f} for a question and an assessor, where sorting all documents "
        f"would take about {labels.sorting:.0f}. They took {labels.minutes / 60:.1f} hours of "
        f"simulated time and found {labels.recall:.0%} of the right answers. "
        f"{labels.double} questions were judged by two people, who gave the same answer to "
        f"{labels.agreement:.0%} of the pairs that both were asked.{by}"
    )


def _questions(keys: tuple[str, ...]) -> str:
    return ("question " if len(keys) == 1 else "questions ") + ", ".join(keys)


def short(d: Difference) -> str:
    """The verdict in a few words."""
    if d.difference <= 0:
        return f"no learned ranking is better than {d.against}"
    word = "is" if d.p_corrected < SURE else "may be"
    return f"{d.system} {word} better than {d.against}"


def measure(measured: Measured, compared: Compared) -> str:
    """Whether the learned measure fits people better, and whether it changes the verdict."""
    before, now = short(compared.verdict), short(measured.verdict(compared))
    same = f"the verdict is the same: {now}" if now == before else f"{now}; by {MAIN}, {before}"
    return (
        f"Editors compared {measured.judgments} pairs of first pages. On questions held out, the "
        f"measure learned from them agrees with {measured.learned:.0%} of their preferences "
        f"between pages that differ in grades, the usual DCG with {measured.usual:.0%}; "
        f"{_chance(measured.p)}. By the learned measure {same}."
    )


def together(results: Results) -> str:
    """Whether voting helps."""
    d = results.votes
    word = "better than" if d.difference > 0 else "worse than" if d.difference < 0 else "as good as"
    return (
        f"All four rankers vote, each with the weight that the assessors' labels give it. "
        f"Together they are {word} the best single one ({d.against}): {spread(d)}. Votes help "
        "where rankers err differently; these four learned the same from the same features."
    )
