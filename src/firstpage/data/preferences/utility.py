"""Utility of a document of each grade at each position: gains and discounts, or weights.

A DCG is such a utility (Zhou et al. 2013): the sum over positions of a weight that depends on the
position and on the grade there.  If the weight is a discount of the position times a gain of the
grade, it is the standard DCG.  Files contain both forms.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.data.io.json_files import JsonFormat, json_digest, write_json

MEASURE_FORMAT = JsonFormat("firstpage-measure", 1, "measure")
MAX_EXP_LABEL = 1000  # 2^label - 1 is still finite
Form = Literal["gains", "weights"]
NAMED_GAINS = ("exp", "linear")
ROUNDING_EPS = 1e-9  # relative to the largest discount; smaller ones are rounding errors


@dataclass(frozen=True, eq=False)
class Utility:
    """Weights of grades at positions, and the gains and discounts closest to them.

    Use `Utility.from_gains` for gains and discounts, `Utility.from_dcg` for the standard ones, and
    `read_utility` for a learned measure.

    Parameters
    ----------
    grades : sequence of int
        The grades in ascending order; the first is the worst, and worth nothing.
    weights : array_like of shape (n_positions, n_grades)
        The weight of each grade at each position.
    gains : array_like of shape (n_grades,)
        The gain of each grade: 0 for the worst, 1 for the best.
    discounts : array_like of shape (n_positions,)
        The discount of each position: 1 for the first, or for the largest if the first is 0.
    form : {"gains", "weights"}, default "gains"
        Which form a measure uses by default.
    about : mapping, optional
        How the utility was learned: pairs, C, accuracy, intervals, ..
    segments : mapping of str to Utility, optional
        Utilities of segments (kinds of queries), by name.

    Attributes
    ----------
    n_positions : int
        K: the number of positions that count.

    Raises
    ------
    DataError
        If shapes do not agree, a number is not finite, or grades are not in ascending order.

    References
    ----------
    .. [1] K. Zhou, H. Zha, Y. Chang, G.-R. Xue, "Learning the Gain Values and Discount Factors of
       Discounted Cumulative Gains", 2013.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.dcglearn.Utility.from_gains([0, 1, 3], [1, 0.5])
    Utility(gains, 2 positions, gains by grade {0: 0, 1: 0.333, 2: 1})
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
            raise DataError(
                f"grades must be two or more integers in ascending order; got {list(self.grades)}."
            )
        rows, columns = len(self.discounts), len(self.grades)
        if self.weights.shape != (rows, columns) or self.gains.shape != (columns,) or not rows:
            raise DataError(
                f"weights must have one row per position and one column per grade ({rows} x "
                f"{columns}), and gains one entry per grade; the shapes are {self.weights.shape}, "
                f"{self.gains.shape}."
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
            f"Utility({self.form}, {self.n_positions} positions, gains by grade "
            f"{{{gains}}}{segments})"
        )

    @property
    def n_positions(self) -> int:
        """K: the number of positions that count."""
        return len(self.discounts)

    @classmethod
    def from_gains(
        cls,
        gains: Sequence[float] | Floats,
        discounts: Sequence[float] | Floats,
        grades: Sequence[int] | None = None,
        **options: Any,
    ) -> Utility:
        """Return the utility of gains and discounts, which are normalized.

        Parameters
        ----------
        gains : array_like of shape (n_grades,)
            The gain of each grade, in the order of the grades.
        discounts : array_like of shape (n_positions,)
            The discount of each position.
        grades : sequence of int, optional
            The grades; 0, 1, .. by default.
        **options
            `form`, `about` and `segments` of `Utility`.

        Returns
        -------
        Utility
            Its weights are the products of discounts and gains above the worst, unscaled.

        Raises
        ------
        DataError
            If there are fewer than two gains, or no discounts.
        """
        g, c = np.asarray(gains, np.float64), np.asarray(discounts, np.float64)
        if g.ndim != 1 or c.ndim != 1 or len(g) < 2 or not len(c):
            raise DataError("give the gains of two or more grades, and the discounts of positions.")
        weights = np.outer(c, g - g[0])
        g, c = normalize_gains(g, c)
        return cls(tuple(range(len(g)) if grades is None else grades), weights, g, c, **options)

    @classmethod
    def from_dcg(cls, gain: str, grades: Iterable[int], n_positions: int) -> Utility:
        """Return the utility of the standard DCG, with discounts 1 / log2(1 + position).

        Parameters
        ----------
        gain : {"exp", "linear"}
            Gains 2^grade - 1 ("exp"), or the grades themselves ("linear").
        grades : iterable of int
            The grades in ascending order.
        n_positions : int
            The number of positions.

        Returns
        -------
        Utility
            Normalized gains and discounts.

        Raises
        ------
        DataError
            If `gain` is neither, or 2^grade overflows.

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.dcglearn.Utility.from_dcg("exp", range(3), 10).gains.round(3).tolist()
        [0.0, 0.333, 1.0]
        """
        if gain not in NAMED_GAINS:
            raise DataError(f"gain must be {' or '.join(NAMED_GAINS)}; got {gain!r}.")
        all_grades = tuple(grades)
        if gain == "exp" and max(all_grades, default=0) > MAX_EXP_LABEL:
            raise DataError(
                f"the gain 2^grade - 1 is limited to grade {MAX_EXP_LABEL}; got "
                f"{max(all_grades)}. Use linear gains."
            )
        numbers = np.asarray(all_grades, np.float64)
        gains = np.exp2(numbers) - 1.0 if gain == "exp" else numbers
        return cls.from_gains(gains, 1.0 / np.log2(np.arange(2.0, n_positions + 2.0)), all_grades)

    def table(self, form: Form | None = None) -> Floats:
        """Return the weight of each grade at each position.

        Parameters
        ----------
        form : {"gains", "weights"}, optional
            Discounts times gains, or the weights; by default the form of this utility.

        Returns
        -------
        ndarray of shape (n_positions, n_grades)
            The weights.
        """
        chosen = form or self.form
        return self.weights if chosen == "weights" else np.outer(self.discounts, self.gains)

    def label_gain(self, top: float | None = None) -> list[float]:
        """Return the gains of the labels 0, 1, .. up to the best grade, as LightGBM takes them.

        Labels between or below the grades have the gain of the next lower grade.

        Parameters
        ----------
        top : float, optional
            The gain of the best grade; 2^best - 1 by default.

        Returns
        -------
        list of float
            A gain per label, for LightGBM's parameter `label_gain`.

        Raises
        ------
        DataError
            If all grades are negative, or the gain of the best is not positive and finite.

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.dcglearn.Utility.from_gains([0, 1, 3], [1, 0.5]).label_gain()
        [0.0, 1.0, 3.0]
        """
        best = self.grades[-1]
        if best < 0:
            raise DataError("label_gain needs grades of at least 0; all of these are negative.")
        if top is None and best > MAX_EXP_LABEL:
            raise DataError(f"2^{best} - 1 is too large; give the gain of the best label.")
        scale = (2.0**best - 1.0 if best else 1.0) if top is None else float(top)
        if not (np.isfinite(scale) and scale > 0):
            raise DataError(f"the gain of the best label must be above 0 and finite; got {top}.")
        levels = np.searchsorted(self.grades, np.arange(best + 1), side="right") - 1
        return [float(v) for v in scale * self.gains[np.maximum(levels, 0)]]

    def segment(self, name: str) -> Utility:
        """Return the utility of a segment.

        Parameters
        ----------
        name : str
            The name of the segment.

        Returns
        -------
        Utility
            The utility of these queries.

        Raises
        ------
        DataError
            If there is no such segment.
        """
        if name not in self.segments:
            names = ", ".join(self.segments) or "none"
            raise DataError(f"there is no segment {name!r} in this measure; there are: {names}.")
        return self.segments[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a measure file.

        Returns
        -------
        dict
            JSON-serializable values, with the format, its version and a checksum.
        """
        return MEASURE_FORMAT.with_header(self._content())

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Utility:
        """Return the utility that `to_dict` wrote.

        Parameters
        ----------
        stored : mapping
            The result of `to_dict`.

        Returns
        -------
        Utility
            An equal utility.
        """
        return _from_content(stored)

    def _content(self) -> dict[str, Any]:
        return {
            "grades": list(self.grades),
            "gains": self.gains.tolist(),
            "discounts": self.discounts.tolist(),
            "weights": self.weights.tolist(),
            "form": self.form,
            "about": dict(self.about),
            "segments": {name: segment._content() for name, segment in self.segments.items()},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a measure file (JSON), atomically.

        Parameters
        ----------
        path : path
            The file, which `read_utility` and measures such as `DCG(measure.json)@10` read.
        """
        write_json(self.to_dict(), path)

    def with_form(self, form: Form) -> Utility:
        """Return the same utility, and those of its segments, with another default form.

        Parameters
        ----------
        form : {"gains", "weights"}
            The form that a measure uses by default.

        Returns
        -------
        Utility
            A copy.
        """
        segments = {name: segment.with_form(form) for name, segment in self.segments.items()}
        return replace(self, form=form, segments=segments)


def normalize_gains(gains: Floats, discounts: Floats) -> tuple[Floats, Floats]:
    """Return gains scaled to 0 .. 1, and discounts scaled to 1 at the first position.

    If the first discount is 0 (but for rounding), the largest one becomes 1 instead.
    """
    span = gains[-1] - gains[0]
    g = (gains - gains[0]) / span if span else np.zeros_like(gains)
    top = float(np.abs(discounts).max())
    if abs(discounts[0]) > ROUNDING_EPS * top:
        return g, discounts / discounts[0]
    c = np.where(np.abs(discounts) > ROUNDING_EPS * top, discounts, 0.0)
    return g, c / top if top else c


def read_utility(path: str | os.PathLike[str]) -> Utility:
    """Read a measure file that `Utility.save` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Utility
        The utility.

    Raises
    ------
    DataError
        If the file is missing, damaged, of another kind, or written by a newer version.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "measure.json")
    ...     fp.dcglearn.Utility.from_dcg("linear", range(3), 5).save(path)
    ...     fp.dcglearn.read_utility(path).n_positions
    5
    """
    name, stored = os.fspath(path), MEASURE_FORMAT.read(path)
    try:
        utility = _from_content(stored)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{name}: damaged ({reason}).") from None
    if stored.get("sha256", (own := json_digest(utility._content()))) != own:
        raise DataError(
            f"{name}: its numbers are not those that were written (the checksum differs); if you "
            "changed them by hand, remove the line with sha256."
        )
    return utility


def _from_content(stored: Mapping[str, Any]) -> Utility:
    segments = {str(name): _from_content(segment) for name, segment in stored["segments"].items()}
    return Utility(
        tuple(stored["grades"]),
        np.array(stored["weights"], np.float64),
        np.array(stored["gains"], np.float64),
        np.array(stored["discounts"], np.float64),
        stored["form"],
        dict(stored["about"]),
        segments,
    )


OPTIONS = ("file", "form", "segment")
OPTION_NAMES = "(?:file|form|segment|gain|discount)"
# A comma separates items only before a name, not in file names, segment names or quotes.
ITEM = re.compile(
    rf"\s*(?:({OPTION_NAMES})\s*=\s*)?(\"[^\"]*\"|'[^']*'|.*?)\s*(?:,\s*(?={OPTION_NAMES}\s*=)|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True)
class MeasureSource:
    """A reference to a measure file, such as `measure.json, segment=news`.

    `file` is empty if a Utility is used directly, `form` None for that of the file.
    """

    file: str = ""
    form: Form | None = None
    segment: str | None = None

    @classmethod
    def parse(cls, text: str) -> MeasureSource:
        """Return the reference that a text (between brackets) denotes; `file=` may be omitted."""
        options: dict[str, str] = {}
        for name, value in _items(text):
            if name not in OPTIONS:
                raise DataError(
                    f"{name} cannot be combined with a measure file, which has its own."
                )
            if name in options:
                raise DataError(f"{name} is given twice.")
            options[name] = _unquoted(value)
        form = options.get("form")
        if form not in (None, *get_args(Form)):
            raise DataError(f"form must be gains or weights; got {form!r}.")
        return cls(options.get("file", ""), form, options.get("segment"))  # type: ignore[arg-type]

    def __str__(self) -> str:
        """Return the shortest text that `parse` reads back."""
        form = [] if self.form is None else [f"form={self.form}"]
        files = [self.file, f"file={self.file}", f'file="{self.file}"'] if self.file else [""]
        segments = ["", ""]
        if self.segment is not None:
            segments = [f"segment={self.segment}", f'segment="{self.segment}"']
        texts = [", ".join(filter(None, [f, *form, s])) for s in segments for f in files]
        return next((text for text in texts if self._denoted_by(text)), texts[-1])

    def _denoted_by(self, text: str) -> bool:
        try:
            return (not self.file or refers_to_file(text)) and MeasureSource.parse(text) == self
        except DataError:
            return False

    def read(self) -> Utility:
        """Return the utility of the file, or of its segment."""
        if not self.file:
            raise DataError("no measure file is named; write for example DCG(measure.json)@10.")
        return self.select(read_utility(self.file), f"{self.file}: ")

    def select(self, utility: Utility, where: str = "") -> Utility:
        """Return the utility, or that of its segment; `where` precedes an error message."""
        try:
            return utility if self.segment is None else utility.segment(self.segment)
        except DataError as error:
            raise DataError(f"{where}{error}") from None


def refers_to_file(inside: str) -> bool:
    """Return whether the text between the brackets of a measure refers to a measure file.

    A bare name does so only if it has a point, a slash or quotes.
    """
    if re.match(rf"\s*(?!{OPTION_NAMES}\s*=)\w+\s*=", inside):
        return False  # another parameter
    items = [(match[1], match[2]) for match in ITEM.finditer(inside)]
    return any(name in OPTIONS for name, _ in items) or (
        items[0][0] is None and any(mark in items[0][1] for mark in "./\\\"'")
    )


def _items(text: str) -> list[tuple[str, str]]:
    """Return names and values; the first value needs no name."""
    items = [(match[1] or "file", match[2]) for match in ITEM.finditer(text)]
    return [item for item in items if item != ("file", "")]


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value
