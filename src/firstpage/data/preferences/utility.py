"""What a document of each grade is worth at each place: gains and discounts, or weights.

A DCG is such a utility (Zhou et al. 2013): the sum over places of a weight that depends on the
place and on the grade there.  Where the weight is a discount of the place times a gain of the
grade, it is a DCG as everybody knows it.  Files hold both forms.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from firstpage.data.io.json_files import JsonFormat, json_digest, write_json
from firstpage.errors import DataError
from firstpage.types import Floats

MEASURE_FORMAT = JsonFormat("firstpage-measure", 1, "measure")
MAX_EXP_LABEL = 1000  # whose 2^label - 1 is still a number
Form = Literal["gains", "weights"]
NAMED_GAINS = ("exp", "linear")  # gains that have a name
ROUNDING_EPS = 1e-9  # of the greatest discount: less than this is rounding


@dataclass(frozen=True, eq=False)
class Utility:
    """Weights of grades at places, and the gains and discounts nearest to them.

    grades     whole numbers, upward; the first is the worst, and worth nothing
    weights    a row a place, a column a grade
    gains      of the grades: 0 for the worst, 1 for the best
    discounts  of the places: 1 for the first (or for the greatest, where the first has none)
    form       which of the two a measure uses that does not say
    about      how it came to be: pairs, C, accuracy, intervals, ..
    segments   utilities of kinds of queries, by name
    """

    grades: tuple[int, ...]
    weights: Floats
    gains: Floats
    discounts: Floats
    form: Form = "gains"
    about: Mapping[str, Any] = field(default_factory=dict)
    segments: Mapping[str, Utility] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("weights", "gains", "discounts"):
            array = np.array(getattr(self, name), np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "grades", tuple(int(g) for g in self.grades))
        self._check()

    def _check(self) -> None:
        if len(self.grades) < 2 or list(self.grades) != sorted(set(self.grades)):
            raise DataError(f"grades must be two or more, upward; got {list(self.grades)}.")
        places, levels = len(self.discounts), len(self.grades)
        if self.weights.shape != (places, levels) or self.gains.shape != (levels,) or not places:
            raise DataError(
                f"weights must have a row a place and a column a grade ({places} x {levels}), and "
                f"gains be one a grade; the shapes are {self.weights.shape}, {self.gains.shape}."
            )
        for name in ("weights", "gains", "discounts"):
            if not np.isfinite(getattr(self, name)).all():
                raise DataError(f"{name} must be finite numbers.")
        if self.form not in get_args(Form):
            raise DataError(f"form must be gains or weights; got {self.form!r}.")

    def __repr__(self) -> str:
        gains = ", ".join(
            f"{g}: {gain:.3g}" for g, gain in zip(self.grades, self.gains, strict=True)
        )
        segments = f", {len(self.segments)} segments" if self.segments else ""
        return (
            f"Utility({self.form}, {self.n_positions} places, gains by grade {{{gains}}}{segments})"
        )

    @property
    def n_positions(self) -> int:
        """K: the places that count."""
        return len(self.discounts)

    @classmethod
    def from_gains(
        cls, gains: Sequence[float] | Floats, discounts: Sequence[float] | Floats,
        grades: Sequence[int] | None = None, **more: Any,
    ) -> Utility:  # fmt: skip
        """From gains upward (of grades 0, 1, .. unless given) and discounts, however scaled."""
        g, c = np.asarray(gains, np.float64), np.asarray(discounts, np.float64)
        if g.ndim != 1 or c.ndim != 1 or len(g) < 2 or not len(c):
            raise DataError("give the gains of two or more grades, and the discounts of places.")
        weights = np.outer(c, g - g[0])
        g, c = normalize_gains(g, c)
        return cls(tuple(range(len(g)) if grades is None else grades), weights, g, c, **more)

    @classmethod
    def from_dcg(cls, gain: str, grades: Iterable[int], places: int) -> Utility:
        """The usual ones: gains 2^grade - 1 (`exp`) or the grade (`linear`), 1/log2(1 + place)."""
        if gain not in NAMED_GAINS:
            raise DataError(f"gains with a name are {' and '.join(NAMED_GAINS)}; got {gain!r}.")
        kept = tuple(grades)
        number = np.asarray(kept, np.float64)
        values = np.exp2(number) - 1.0 if gain == "exp" else number
        return cls.from_gains(values, 1.0 / np.log2(np.arange(2.0, places + 2.0)), kept)

    def table(self, form: Form | None = None) -> Floats:
        """Weights in a form: as they are, or as discounts times gains."""
        chosen = form or self.form
        return self.weights if chosen == "weights" else np.outer(self.discounts, self.gains)

    def label_gain(self, top: float | None = None) -> list[float]:
        """A gain for every label 0, 1, .. up to the best grade, as LightGBM's `label_gain` wants.

        Labels between or below the grades have the gain of the next lower grade; the best has
        `top` (2^best - 1 if None).
        """
        best = self.grades[-1]
        if best < 0:
            raise DataError("label_gain is for grades from 0 on; all of these are below.")
        if top is None and best > MAX_EXP_LABEL:
            raise DataError(f"2^{best} - 1 is no gain that anyone can use; say what the best has.")
        scale = (2.0**best - 1.0 if best else 1.0) if top is None else float(top)
        if not (np.isfinite(scale) and scale > 0):
            raise DataError(f"the gain of the best label must be above 0 and finite; got {top}.")
        at = np.searchsorted(self.grades, np.arange(best + 1), side="right") - 1
        return [float(v) for v in scale * self.gains[np.maximum(at, 0)]]

    def segment(self, name: str) -> Utility:
        """The utility of one kind of queries."""
        if name not in self.segments:
            known = ", ".join(self.segments) or "none"
            raise DataError(f"there is no segment {name!r} in this measure; there are: {known}.")
        return self.segments[name]

    def to_dict(self) -> dict[str, Any]:
        return MEASURE_FORMAT.with_header(self._plain())

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> Utility:
        """Of what `to_dict` gave."""
        return _from_plain(held)

    def _plain(self) -> dict[str, Any]:
        return {
            "grades": list(self.grades), "gains": self.gains.tolist(),
            "discounts": self.discounts.tolist(), "weights": self.weights.tolist(),
            "form": self.form, "about": dict(self.about),
            "segments": {name: part._plain() for name, part in self.segments.items()},
        }  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as JSON, in one step."""
        write_json(self.to_dict(), path)

    def with_form(self, form: Form) -> Utility:
        return replace(self, form=form)


def normalize_gains(gains: Floats, discounts: Floats) -> tuple[Floats, Floats]:
    """Gains from 0 to 1; discounts with 1 at the first place, or, where that one is worth nothing
    (but for rounding), at the one that is worth most."""
    span = gains[-1] - gains[0]
    g = (gains - gains[0]) / span if span else np.zeros_like(gains)
    top = float(np.abs(discounts).max())
    if abs(discounts[0]) > ROUNDING_EPS * top:
        return g, discounts / discounts[0]
    c = np.where(np.abs(discounts) > ROUNDING_EPS * top, discounts, 0.0)
    return g, c / top if top else c


def read_utility(path: str | os.PathLike[str]) -> Utility:
    """The utility of a file that `save` wrote; a newer, foreign or damaged one is refused."""
    name, held = os.fspath(path), MEASURE_FORMAT.read(path)
    try:
        found = _from_plain(held)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{name}: damaged ({said}).") from None
    if held.get("sha256", (own := json_digest(found._plain()))) != own:
        raise DataError(
            f"{name}: its numbers are not those that were written (the checksum differs); if you "
            "changed them by hand, remove the line with sha256."
        )
    return found


def _from_plain(held: Mapping[str, Any]) -> Utility:
    parts = {str(name): _from_plain(part) for name, part in held["segments"].items()}
    return Utility(
        tuple(held["grades"]), np.array(held["weights"], np.float64),
        np.array(held["gains"], np.float64), np.array(held["discounts"], np.float64),
        held["form"], dict(held["about"]), parts,
    )  # fmt: skip


OPTIONS = ("file", "form", "segment")
NAMES = "(?:file|form|segment|gain|discount)"
# A comma parts items only before a name: those in file names, in names of segments and between
# quotes do not.
ITEM = re.compile(
    rf"\s*(?:({NAMES})\s*=\s*)?(\"[^\"]*\"|'[^']*'|.*?)\s*(?:,\s*(?={NAMES}\s*=)|\Z)", re.DOTALL
)


@dataclass(frozen=True)
class MeasureSource:
    """A measure file, and what is meant of it.

    file     its path; empty where a Utility is at hand
    form     gains or weights; None: what the file says
    segment  a kind of queries; None: all
    """

    file: str = ""
    form: Form | None = None
    segment: str | None = None

    @classmethod
    def parse(cls, text: str) -> MeasureSource:
        """From the text between the brackets; `file=` may be left out."""
        given: dict[str, str] = {}
        for name, value in _items(text):
            if name not in OPTIONS:
                raise DataError(f"{name} does not go with a measure file, which has its own.")
            if name in given:
                raise DataError(f"{name} is given twice.")
            given[name] = _bare(value)
        form = given.get("form")
        if form not in (None, *get_args(Form)):
            raise DataError(f"form must be gains or weights; got {form!r}.")
        return cls(given.get("file", ""), form, given.get("segment"))  # type: ignore[arg-type]

    def __str__(self) -> str:
        """What `parse` reads back, in the plainest way."""
        form = [] if self.form is None else [f"form={self.form}"]
        files = [self.file, f"file={self.file}", f'file="{self.file}"'] if self.file else [""]
        parts = ["", ""]
        if self.segment is not None:
            parts = [f"segment={self.segment}", f'segment="{self.segment}"']
        texts = [", ".join(filter(None, [f, *form, part])) for part in parts for f in files]
        return next((text for text in texts if self._is(text)), texts[-1])

    def _is(self, text: str) -> bool:
        try:
            return (not self.file or refers_to_file(text)) and MeasureSource.parse(text) == self
        except DataError:
            return False

    def read(self) -> Utility:
        """The utility of the file, or of its segment."""
        if not self.file:
            raise DataError("no measure file is named, as in DCG(measure.json)@10.")
        return self.select(read_utility(self.file), f"{self.file}: ")

    def select(self, utility: Utility, where: str = "") -> Utility:
        """The segment's part of a utility."""
        try:
            return utility if self.segment is None else utility.segment(self.segment)
        except DataError as error:
            raise DataError(f"{where}{error}") from None


def refers_to_file(inside: str) -> bool:
    """Whether the text between the brackets of a measure names a file, or speaks of one.

    A name alone does so if it could not be anything else: by a point, a slash or quotes.
    """
    if re.match(rf"\s*(?!{NAMES}\s*=)\w+\s*=", inside):
        return False  # another parameter
    given = [(match[1], match[2]) for match in ITEM.finditer(inside)]
    return any(name in OPTIONS for name, _ in given) or (
        given[0][0] is None and any(mark in given[0][1] for mark in "./\\\"'")
    )


def _items(text: str) -> list[tuple[str, str]]:
    """Names and values; the first needs no name."""
    found = [(match[1] or "file", match[2]) for match in ITEM.finditer(text)]
    return [item for item in found if item != ("file", "")]


def _bare(value: str) -> str:
    """Without the quotes around it."""
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value
