"""The options of a project, with their defaults and bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert, structs, to_builtins

from firstpage.core import DataError
from firstpage.labeling.app.store.scales import Scale, Tags, check_names, check_scale

Tool = Literal["pairs", "grades", "lists"]
# Numbers are integers or not, so that 120 stays 120 on a page, not 120.0.
SECONDS, FRACTION, WEIGHT = Meta(ge=5, le=86400), Meta(ge=0, le=1), Meta(ge=0, le=1000)
Flag = Annotated[bool, Meta(description="true or false")]
Names = Annotated[Tags | None, Meta(description="a list of 1 to 20 distinct names")]
Selection = Literal["order", "simple-margin", "diverse", "committee"]


class Options(Struct, frozen=True, kw_only=True):
    """Choices of a lead beside the setting; the descriptions complete "the option x must be"."""

    ties: Flag = False  # a button for "equally good"
    bad: Flag = True  # buttons for "clearly irrelevant"
    # Seconds without input until the assessor is asked whether they are still working.
    away_after: Annotated[
        Annotated[int, SECONDS] | Annotated[float, SECONDS],
        Meta(description="seconds from 5 to 86400"),
    ] = 120
    # The fraction of practice questions to answer correctly.
    training_pass: Annotated[
        Annotated[int, FRACTION] | Annotated[float, FRACTION],
        Meta(description="a fraction from 0 to 1"),
    ] = 0.7
    # Assessors per query with each tool.
    replicates: Annotated[int, Meta(ge=1, le=1000, description="an integer from 1 to 1000")] = 1
    # Several tools, for a study; None: the project's own.
    tools: Annotated[
        Annotated[list[Tool], Meta(min_length=1)] | None,
        Meta(description="a list of pairs, grades, lists, each once"),
    ] = None
    # Groups of queries that are assigned together; None: as many as assessors.
    folds: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="an integer from 1 to 100000"),
    ] = None
    # Whether documents are read from right to left; None: as their text is.
    rtl: Annotated[bool | None, Meta(description="true or false")] = None
    # Expected seconds per judgment; None: as published for the tool.
    seconds_per_judgment: Annotated[
        Annotated[int, Meta(ge=1, le=3600)] | Annotated[float, Meta(ge=0.1, le=3600)] | None,
        Meta(description="seconds from 0.1 to 3600"),
    ] = None
    # How many answers a lead's verdict counts as; 0 records verdicts without effect.
    verdict_weight: Annotated[
        Annotated[int, WEIGHT] | Annotated[float, WEIGHT],
        Meta(description="a number from 0 to 1000"),
    ] = 10
    # How the next pair of lists is chosen: in working order, or the most informative one.
    list_selection: Annotated[
        Selection, Meta(description="one of order, simple-margin, diverse, committee")
    ] = "order"
    # The grades, worst first; None: five grades from bad to perfect.
    grades: Annotated[
        Scale | None, Meta(description="a list of 2 to 10 grades with distinct names and free keys")
    ] = None
    aspects: Names = None  # what else is graded, on the same scale
    reasons: Names = None  # why, as tags

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON has them."""
        record: dict[str, Any] = to_builtins(self)
        return record


TYPES = {field.name: field.type for field in structs.fields(Options)}
CHECKS: dict[str, Callable[[Any], None]] = {
    "tools": check_names,
    "grades": check_scale,
    "aspects": check_names,
    "reasons": check_names,
}  # of values that are not None, beyond their types


def comparison_outcomes(options: Options, tools: Sequence[str]) -> tuple[int, ...]:
    """Return the outcomes of a comparison for which the judging pages have a button.

    Two result lists can be much better.  Two documents are equal if both are bad, or by a tie.
    """
    if "lists" in tools:
        return (-2, -1, 0, 1, 2)
    return (-1, 0, 1) if options.ties or options.bad else (-1, 1)


def check_bad(tool: str, left: str, outcome: int, bad: Sequence[str], options: Options) -> None:
    """Refuse marks of bad documents in a comparison that the pages do not offer.

    A bad document cannot be the better one, and two bad documents are equal.
    """
    if bad and tool != "pairs":
        raise DataError(f"documents cannot be marked bad with the tool {tool!r}.")
    if bad and not options.bad:
        raise DataError("documents cannot be marked bad in this project.")
    if len(bad) == 1 and outcome != (-1 if left in bad else 1):
        raise DataError("if one document is marked bad, the other one must be the better one.")
    if len(bad) > 1 and outcome != 0:
        raise DataError("if both documents are marked bad, the outcome must be 0.")


def read_options(record: Mapping[str, Any]) -> Options:
    """Return the options of a record, with defaults for the rest; raise on the first mistake."""
    values = {}
    for name, value in record.items():
        if name not in TYPES:
            raise DataError(f"a project has no option {name!r} (it has: {', '.join(TYPES)}).")
        try:
            values[name] = convert(value, TYPES[name])
            if name in CHECKS and values[name] is not None:
                CHECKS[name](values[name])
        except (ValidationError, ValueError) as error:
            needed = TYPES[name].__metadata__[-1].description
            raise DataError(f"the option {name} must be {needed}; got {value!r}.") from error
    return Options(**values)
