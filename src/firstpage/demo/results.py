"""What all steps found, for the report and for who reads figures by a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firstpage.demo.collection import Collection
from firstpage.demo.comparing import MAIN, Compared, difference
from firstpage.demo.labeling import Labels
from firstpage.demo.measuring import Measured
from firstpage.demo.training import NAME, Together
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
