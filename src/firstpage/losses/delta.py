"""What a structural hinge compares rankings by: NDCG, precision, or the NDCG of a measure file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from firstpage.data.preferences.utility import Source, names_file
from firstpage.errors import DataError
from firstpage.types import Floats, Ints

PLACES = 10  # of Precision, where the text does not say
FALL = 20.0  # labels so far below the best gain a millionth: their losses would be rounding
FORM = re.compile(
    r"\s*(ndcg|precision|p)\s*(?:\((.*)\))?\s*(?:@\s*([1-9]\d{0,8}))?\s*", re.DOTALL | re.IGNORECASE
)
MENDED = (
    "{}: its discounts rise or go below 0, and the most violated ranking can only be found where "
    "they fall. The nearest that fall are used: {}."
)


@dataclass(frozen=True)
class Delta:
    """A text such as "NDCG@10" or "NDCG(measure.json)@10", read.

    cutoff     None: all places
    grades, gains, discounts   of a measure file; the last falling, and above 0
    note       what was done to the discounts, if anything
    """

    kind: Literal["ndcg", "precision", "file"]
    cutoff: int | None
    grades: tuple[int, ...] = ()
    gains: tuple[float, ...] = ()
    discounts: tuple[float, ...] = ()
    note: str = ""

    def places(self, longest: int) -> Floats:
        """The discounts of lists of up to so many documents."""
        if self.kind == "file":
            return np.array(self.discounts[:longest])
        depth = longest if self.cutoff is None else min(self.cutoff, longest)
        if self.kind == "ndcg":
            found: Floats = 1.0 / np.log2(np.arange(2.0, depth + 2.0))
            return found
        return np.full(depth, 1.0 / (self.cutoff or PLACES))

    def classes(self, labels: Floats, offsets: Ints) -> Floats:
        """Labels, equal where the measure sees no difference; of a file, their gains."""
        if self.kind == "precision":
            return (labels > 0).astype(np.float64)
        if self.kind == "file":
            labels = self._gains(labels)
        top = np.repeat(_greatest(labels, offsets), np.diff(offsets))
        least = top * 2.0**-FALL if self.kind == "file" else np.maximum(top - FALL, 0.0)
        return np.where(labels > least, labels, 0.0)

    def worth(self, classes: Floats, starts: Ints) -> Floats:
        """Gains of what `classes` gave, for groups from one start to the next."""
        if self.kind != "ndcg":
            return classes
        top = np.repeat(_greatest(classes, starts), np.diff(starts))
        found: Floats = np.exp2(classes - top) - np.exp2(-top)
        return found

    def _gains(self, labels: Floats) -> Floats:
        grades = np.array(self.grades, np.float64)
        at = np.minimum(np.searchsorted(grades, labels), len(grades) - 1)
        off = (labels >= grades[0]) & (grades[at] != labels)
        if off.any():
            raise DataError(
                f"the measure file has gains of the grades {', '.join(map(str, self.grades))}, and "
                f"the data hold a label {labels[off][0]:g}."
            )
        return np.where(labels < grades[0], 0.0, np.array(self.gains)[at])


def delta(text: str) -> Delta:
    """What a text names; a measure file is read here."""
    match = FORM.fullmatch(text) if isinstance(text, str) else None
    inside = (match[2] or "").strip() if match else ""
    if match is None or (inside and (match[1].lower() != "ndcg" or not names_file(inside))):
        raise DataError(
            "delta must be NDCG or Precision, as in 'NDCG@10', or of a measure file, as in "
            f"'NDCG(measure.json)@10'; got {text!r}."
        )
    cutoff = int(match[3]) if match[3] else None
    if match[1].lower() != "ndcg":
        return Delta("precision", cutoff or PLACES)
    return _of_file(Source.parse(inside), cutoff) if inside else Delta("ndcg", cutoff)


def _of_file(source: Source, cutoff: int | None) -> Delta:
    if source.form == "weights":
        raise DataError("delta needs gains and discounts: form=gains, or no form.")
    utility = source.read()
    if cutoff is not None and cutoff > utility.places:
        raise DataError(
            f"the cut-off of delta is {cutoff}, and {source.file} has discounts of "
            f"{utility.places} places; choose one from 1 to {utility.places}."
        )
    gains, given = utility.gains - utility.gains[0], utility.discounts[:cutoff]
    if (gains < 0).any() or not gains.any():
        raise DataError(f"{source.file}: no gain may be below that of the worst grade, nor all 0.")
    falling = _falling(given)
    if not falling[0] > 0:
        raise DataError(f"{source.file}: the first places have no discount above 0 to train for.")
    note = ""
    if not np.array_equal(falling, given):
        note = MENDED.format(source.file, ", ".join(f"{c:.3g}" for c in falling))
    kept = falling[falling > 0]  # places without a discount do not count
    return Delta("file", cutoff, utility.grades, tuple(gains.tolist()), tuple(kept.tolist()), note)


def _falling(values: Floats) -> Floats:
    """The nearest numbers, by squares, that never rise and are never below 0."""
    if (np.diff(values) <= 0).all() and values[-1] >= 0:
        return values
    from scipy.optimize import isotonic_regression  # slow to load, and seldom needed

    found: Floats = np.maximum(isotonic_regression(values, increasing=False).x, 0.0)
    return found


def _greatest(values: Floats, starts: Ints) -> Floats:
    """Of each group; 0 for groups without members."""
    out = np.zeros(len(starts) - 1)
    filled = np.diff(starts) > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(values, starts[:-1][filled])
    return out
