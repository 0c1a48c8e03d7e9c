"""What a measure is: a frozen value with parameters, a text, and one number a query."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from firstpage.errors import MeasureError
from firstpage.measures.conventions import Convention
from firstpage.measures.lists import ALL, Lists
from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class Additive:
    """A measure as the sum over places of a document's gain times the place's discount."""

    gains: Floats  # one a judged document
    discount: Floats  # of the places that count


@dataclass(frozen=True)
class Measure:
    """Base of all measures.  `str(measure)` is its canonical text, which `measure()` parses.

    Subclasses declare parameters as fields; one called `cutoff` is written `@10`.
    """

    about: ClassVar[str] = ""  # one line, for the manual
    lower_is_better: ClassVar[bool] = False
    without_cutoff: ClassVar[str] = ""  # what to do instead, where there must be a cut-off

    @property
    def name(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        given = [
            f"{f.name}={_text(getattr(self, f.name))}"
            for f in fields(self)
            if f.name != "cutoff" and getattr(self, f.name) != f.default
        ]
        cutoff = getattr(self, "cutoff", None)
        inside = f"({', '.join(given)})" if given else ""
        return self.name + inside + (f"@{cutoff}" if cutoff is not None else "")

    def __matmul__(self, cutoff: int) -> Self:
        """`NDCG() @ 10`."""
        if "cutoff" not in {f.name for f in fields(self)}:
            raise MeasureError(f"{self.name} takes no cut-off.")
        changes: dict[str, Any] = {"cutoff": cutoff}
        return replace(self, **changes)

    def __post_init__(self) -> None:
        for name in ("rel", "max", "p", "gain"):
            value = getattr(self, name, None)
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, float) and not np.isfinite(number):
                    raise MeasureError(f"{name} of {self.name} must be finite; got {number}.")
        p = getattr(self, "p", None)
        if p is not None and not 0 < p < 1:
            raise MeasureError(f"p of {self.name} must lie between 0 and 1; got {p}.")
        cutoff = getattr(self, "cutoff", None)
        if cutoff is None and self.without_cutoff:
            raise MeasureError(f"{self.name} needs a cut-off, such as {self.without_cutoff}.")
        if cutoff is not None and (not isinstance(cutoff, (int, np.integer)) or cutoff < 1):
            raise MeasureError(f"the cut-off of {self.name} must be at least 1; got {cutoff!r}.")

    def values(self, lists: Lists, how: Convention) -> Floats:
        """One number a query."""
        raise AssertionError(f"{self.name} has no values")  # every subclass has its own

    def additive(self, lists: Lists, how: Convention) -> Additive | None:
        """Gains and discounts, where the measure adds them up; else None."""
        return None


def cut(cutoff: int | None) -> int:
    """A cut-off as kernels take it."""
    return ALL if cutoff is None else min(int(cutoff), ALL)


def ratio(above: Floats, below: Floats) -> Floats:
    """above / below, and 0 where below is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    return str(value)
