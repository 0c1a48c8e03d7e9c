"""A measure with gains and discounts, from its text: `NDCG@10`, `DCG(gain=linear)@5`, a file.

Only DCG and NDCG have them; every other measure is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.errors import MeasureError
from firstpage.measures.graded import DCG, NDCG, discounts
from firstpage.measures.inputs import DEPTH
from firstpage.measures.learned import LearnedDCG, LearnedNDCG
from firstpage.measures.measure import Convention
from firstpage.measures.registry import measure
from firstpage.types import Floats

CLOSE = 1e-12  # steps below zero by less than this, of the greatest, are zero


@dataclass(frozen=True, eq=False)
class Scale:
    """Gains and discounts under the name they were asked for by.

    normalized  divided by the ideal order's value, as NDCG is
    unit        what the utility's own numbers are to be multiplied by, so that values are those
                that `evaluate` gives
    strict      where a convention asks for it, lists shorter than the places are worth nothing
    """

    text: str
    utility: Utility
    normalized: bool = False
    unit: float = 1.0
    strict: bool = False

    @property
    def table(self) -> Floats:
        """What a document is worth: a row a place, a column a grade."""
        return self.unit * self.utility.table()

    @property
    def places(self) -> int:
        return self.utility.places


@dataclass(frozen=True, eq=False)
class Wanted:
    """A measure's text, read; what it is on given grades, `on` tells."""

    text: str
    asked: DCG | NDCG
    utility: Utility | None = None

    @property
    def depth(self) -> int:
        """How many documents of a list the measure looks at."""
        places = DEPTH if self.utility is None else self.utility.places
        return self.asked.cutoff or places

    def on(self, grades: Sequence[int], longest: int, how: Convention) -> Scale:
        """With gains for these grades; without a cut-off, as deep as the longest list."""
        normalized = isinstance(self.asked, NDCG)
        if self.utility is not None:
            found = Scale(self.text, cut(self.utility, self.asked.cutoff, self.text), normalized)
        else:
            found = self._usual(grades, longest, how, normalized)
        strict = how.strict_cutoff and normalized and self.asked.cutoff is not None
        return replace(found, strict=strict)

    def _usual(
        self, grades: Sequence[int], longest: int, how: Convention, normalized: bool
    ) -> Scale:
        asked = self.asked
        gain = asked.gain if asked.gain is not None else how.gain
        if isinstance(gain, str):
            kept = tuple(sorted({0, *(g for g in grades if g > 0)}))
            kept = kept if len(kept) > 1 else (0, 1)
            shape = Utility.standard(gain, kept, 1)
            unit = float(shape.weights[0, -1])
        else:
            kept, unit = tuple(range(len(gain))), float(gain[-1] - gain[0])
            shape = Utility.of(gain, [1.0])
            if gain[0] != 0:
                raise MeasureError(f"{self.text}: the gain of the worst grade must be 0.")
        fall = discounts(asked.discount or how.discount, asked.cutoff or longest)
        utility = Utility.of(shape.gains, fall, kept)
        return Scale(self.text, utility, normalized, unit * float(fall[0]))


def wanted(text: str | Utility) -> Wanted:
    """Read a measure's text, or refuse it, before any data are read."""
    if isinstance(text, Utility):
        return Wanted("DCG", DCG(), text)
    bare = text.strip().lower().endswith(".json")  # a measure file is its DCG
    found = measure(f'DCG(file="{text.strip()}")' if bare else text)
    if isinstance(found, (LearnedDCG, LearnedNDCG)):
        kind = NDCG if isinstance(found, LearnedNDCG) else DCG
        form = found.source.form or found.utility.form
        return Wanted(text, kind(cutoff=found.cutoff), found.utility.with_form(form))
    if not isinstance(found, (DCG, NDCG)):
        raise MeasureError(
            f"{text!r}: only DCG and NDCG have gains and discounts; give one of them, such as "
            "NDCG@10, or a measure file, such as DCG(measure.json)@10."
        )
    return Wanted(text, found)


def cut(utility: Utility, places: int | None, text: str = "the measure") -> Utility:
    """The first places of a utility; all of them if None."""
    if places is None or places == utility.places:
        return utility
    if places > utility.places:
        raise MeasureError(
            f"{text}: has discounts for {utility.places} places; ask for no more than these."
        )
    return replace(utility, weights=utility.weights[:places], discounts=utility.discounts[:places])


def steps_of(scale: Scale, falling: bool) -> tuple[Floats, Floats, Floats]:
    """Steps of the discounts, of the gains, and of the weights (a row a place, a column a step).

    A gain is the sum of the steps up to its grade, a discount the sum of the steps from its place
    on.  Without `falling` a discount is a step of its own.
    """
    utility = scale.utility
    gains = np.diff(utility.gains)
    down = _falls(utility.discounts[:, None])[:, 0] if falling else utility.discounts
    weights = np.diff(utility.table(), axis=1)
    weights = _falls(weights) if falling else weights
    if utility.form == "weights":
        _refuse(weights, f"{scale.text}: its weights", falling)
    else:
        _refuse(gains, f"{scale.text}: its gains", False)
        _refuse(down, f"{scale.text}: its discounts", falling)
    return _cleared(down), _cleared(gains), _cleared(weights)


def _cleared(steps: Floats) -> Floats:
    return np.where(steps > CLOSE * np.abs(steps).max(), steps, 0.0)


def _falls(values: Floats) -> Floats:
    """How much less each place has than the one before it is left with: the last keeps all."""
    return values - np.vstack([values[1:], np.zeros((1, values.shape[1]))])


def _refuse(steps: Floats, what: str, falling: bool) -> None:
    if (steps < -CLOSE * np.abs(steps).max()).any():
        hint = " or rise with the place: let discounts be any (--any-discounts)" if falling else ""
        raise MeasureError(f"{what} are negative, or fall with the grade{hint}.")
    if not steps.any():
        raise MeasureError(f"{what} are all the same, so nothing is better than anything.")
