"""The base class `Measure`.  A measure is an immutable value with parameters and a canonical text;
it computes one number per query from ranked lists (`lists`), as a convention (`convention`) says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields, replace
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self

import numpy as np

from firstpage.core import PACKAGE, Floats, MeasureError, inherit_sections, qualified_name, warn
from firstpage.evaluation.measures.convention import Convention, value_text
from firstpage.evaluation.measures.lists import (
    ALL,
    EVERYTHING,
    Needs,
    RankedLists,
    first_ranks,
    kernel_cutoff,
    kernel_values,
    rank_lists,
    relevant_ranks,
)
from firstpage.evaluation.measures.rank_forms import RankForm

__all__ = [
    "ALL", "EVERYTHING", "Convention", "Measure", "Needs", "RankedLists",
    "failed_measure", "fill_empty", "first_ranks", "kernel_cutoff", "kernel_values",
    "measured_values", "needs_of", "rank_lists", "ratio", "relevant_ranks", "text_parameters",
]  # fmt: skip


MAX_CUTOFF = 100_000_000
MAX_PARAMETER = 1e100


def needs_of(measures: Iterable[Measure], convention: Convention) -> Needs:
    """Return what measures need together."""
    needs = (EVERYTHING if m.condensed else m.needs(convention) for m in measures)
    return reduce(or_, needs, Needs())


@dataclass(frozen=True)
class Measure:
    """Base class of all measures.

    A measure is an immutable value: measures with equal parameters are equal and have the same
    hash.  `str(measure)` is its canonical text, which `fp.measure` parses.  A subclass declares its
    parameters as dataclass fields and implements `values`; a field named `cutoff` is written after
    the name, as in NDCG@10.  Set it with `@`: ``fp.measure("NDCG") @ 10``.

    Parameters
    ----------
    condensed : bool, default False
        Whether unjudged documents are removed from the rankings before they are measured.

    Attributes
    ----------
    name : str
        Name of the measure, as in its text.
    about : str
        One-line description (class attribute).
    lower_is_better : bool
        Whether smaller values are better (class attribute).
    without_cutoff : str
        Set where a cut-off is required: an example for the error message (class attribute).
    text_name : str
        Name in texts, where it is not that of the class (class attribute).
    of_subtopics : bool
        Whether the measure needs diversity judgments (class attribute).
    value_range : tuple of (float, float) or None
        The smallest and the largest value that is possible; None if there is none (class
        attribute).
    has_scale : bool
        Whether the parameter `max` is the greatest label of a scale; None is the greatest label in
        the data (class attribute).
    is_mean : bool
        Whether the number to report is the mean of the values of queries: `from_mean` is not
        overridden.
    per_query : str
        What the values of queries are, where their mean is not the number to report (class
        attribute).
    has_rank_form : bool
        Whether `rank_form` returns a form, so that losses can maximize the measure.

    Examples
    --------
    >>> import firstpage as fp
    >>> measure = fp.measure("ndcg(gain=linear)@10")
    >>> isinstance(measure, fp.extend.Measure)
    True
    >>> str(measure @ 5)
    'NDCG(gain=linear)@5'
    """

    about: ClassVar[str] = ""
    lower_is_better: ClassVar[bool] = False
    without_cutoff: ClassVar[str] = ""
    text_name: ClassVar[str] = ""
    of_subtopics: ClassVar[bool] = False
    value_range: ClassVar[tuple[float, float] | None] = None
    has_scale: ClassVar[bool] = False
    per_query: ClassVar[str] = "values per query"

    condensed: bool = field(default=False, kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_sections(cls)
        if "values" in cls.__dict__ and "rank_form" not in cls.__dict__:
            cls.rank_form = Measure.rank_form  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        """Name of the measure, as in its text."""
        return self.text_name or qualified_name(type(self))

    @property
    def is_mean(self) -> bool:
        """Whether the number to report is the mean of the values of queries."""
        return type(self).from_mean is Measure.from_mean

    def __str__(self) -> str:
        parameters = [
            f"{f.name}={value_text(getattr(self, f.name))}"
            for f in text_parameters(type(self))
            if getattr(self, f.name) != f.default
        ]
        cutoff = getattr(self, "cutoff", None)
        inside = f"({', '.join(parameters)})" if parameters else ""
        return self.name + inside + (f"@{cutoff}" if cutoff is not None else "")

    def __matmul__(self, cutoff: int) -> Self:
        """Return the same measure with a cut-off: `NDCG() @ 10`."""
        if "cutoff" not in {f.name for f in fields(self)}:
            raise MeasureError(f"{self.name} takes no cut-off.")
        changes: dict[str, Any] = {"cutoff": cutoff}
        return replace(self, **changes)

    def __post_init__(self) -> None:
        for name, value in ((f.name, getattr(self, f.name)) for f in fields(self) if f.init):
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, float) and not abs(number) <= MAX_PARAMETER:
                    raise MeasureError(
                        f"{name} of {self.name} must be finite, at most {MAX_PARAMETER:g}; got "
                        f"{number}."
                    )
        p = getattr(self, "p", None)
        if p is not None and not 0 < p < 1:
            raise MeasureError(f"p of {self.name} must lie between 0 and 1; got {p}.")
        cutoff = getattr(self, "cutoff", None)
        if cutoff is None and self.without_cutoff:
            raise MeasureError(f"{self.name} needs a cut-off, such as {self.without_cutoff}.")
        if cutoff is not None and (not isinstance(cutoff, (int, np.integer)) or cutoff < 1):
            raise MeasureError(f"the cut-off of {self.name} must be at least 1; got {cutoff!r}.")
        if cutoff is not None and cutoff > MAX_CUTOFF:
            raise MeasureError(f"the cut-off of {self.name} must be at most {MAX_CUTOFF:,}.")

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        """Compute the measure.

        Parameters
        ----------
        lists : RankedLists
            The ranked documents of each query.
        convention : Convention
            Settings that the measure itself does not fix.

        Returns
        -------
        array of float
            One value per query.
        """
        raise AssertionError(f"{self.name} has no values")  # every subclass overrides this

    def from_mean(self, mean: float, queries: int) -> float:
        """Return the number to report, given the mean of the values of all queries.

        Parameters
        ----------
        mean : float
            Mean of the values over the queries.
        queries : int
            Number of queries.

        Returns
        -------
        float
            By default the mean itself; counts report their sum, GMAP the geometric mean.
        """
        return mean

    def mean_text(self, mean: float, digits: int = 4) -> str:
        """Return the number to report as text.

        Parameters
        ----------
        mean : float
            The number, as `from_mean` returns it.
        digits : int, default 4
            Number of decimals.

        Returns
        -------
        str
            The rounded number; counts have no decimals.
        """
        return f"{mean:.{digits}f}"

    def needs(self, convention: Convention) -> Needs:
        """Return what the measure reads of a ranking: by default everything.

        A measure that reads less declares it, so that `evaluate` sorts no more than that; its
        `values` then get lists that are complete down to this depth only.

        Parameters
        ----------
        convention : Convention
            Settings that the measure itself does not fix.

        Returns
        -------
        Needs
            Number of first ranks, and levels whose relevant documents must be found.
        """
        return EVERYTHING

    @property
    def has_rank_form(self) -> bool:
        """Whether `rank_form` returns a form: losses such as LambdaRank's can maximize it."""
        return type(self).rank_form is not Measure.rank_form

    def rank_form(self, lists: RankedLists) -> RankForm | None:
        """Return the measure as a sum over ranks, which LambdaRank and PLRank can maximize.

        A subclass that has `values` of its own has no form, unless it defines this method too.

        Parameters
        ----------
        lists : RankedLists
            The judged documents of each query.

        Returns
        -------
        AdditiveForm, CascadeForm, PrecisionForm, TableForm or None
            What a document adds at each rank, under the default convention; None where the measure
            is not such a sum.
        """
        return None


def text_parameters(cls: type[Measure]) -> list[Field[Any]]:
    """Return the fields that a measure's text has in parentheses, those of all measures last."""
    inside = [f for f in fields(cls) if f.name != "cutoff"]
    return sorted(inside, key=lambda f: f.name == "condensed")


def measured_values(measure: Measure, lists: RankedLists, convention: Convention) -> Floats:
    """Return the values of a measure; one of the user's own is checked first."""
    lists = lists.condensed if measure.condensed else lists
    if type(measure).__module__.partition(".")[0] == PACKAGE:
        return measure.values(lists, convention)
    try:
        values = np.asarray(measure.values(lists, convention), np.float64)
    except MeasureError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise failed_measure(measure, error) from error
    if values.shape != (len(lists),):
        raise MeasureError(
            f"values of the measure {measure} must return one number per query, {len(lists)} here; "
            f"the shape is {values.shape}."
        )
    if np.isnan(values).any():
        query = lists.queries[int(np.argmax(np.isnan(values)))]
        raise MeasureError(f"the measure {measure} returned NaN for query {query!r}.")
    return values


def failed_measure(measure: Measure, error: Exception, hint: str = "") -> MeasureError:
    """Return the error of a measure of the user's own that raised another one."""
    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    return MeasureError(f"the measure {measure} failed ({reason}){hint}.")


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return numerator / denominator, and 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def fill_empty(values: Floats, lists: RankedLists, convention: Convention) -> Floats:
    """Set the values of queries without relevant documents to 1, if the convention says so."""
    if convention.without_relevant == "one":
        values[lists.without_relevant(convention.rel)] = 1.0
    return values


def warn_of_differences(measures: Iterable[Measure]) -> None:
    """Warn of measures whose differences are not those of the numbers that are reported."""
    by_kind: dict[str, list[str]] = {}
    for measure in dict.fromkeys(measures):
        if not measure.is_mean:
            by_kind.setdefault(measure.per_query, []).append(str(measure))
    for kind, texts in by_kind.items():
        warn(
            f"differences and tests of {', '.join(texts)} are of mean {kind}, not of the numbers "
            "reported."
        )
