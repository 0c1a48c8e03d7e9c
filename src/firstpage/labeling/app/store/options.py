"""The options of a project, with their defaults and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from firstpage.core import DataError
from firstpage.labeling.app.store.scales import Scale, Tags

Tool = Literal["pairs", "grades", "lists"]
Number = int | float  # 120 stays 120 on a page, not 120.0


def _distinct(tools: list[str]) -> list[str]:
    if len(set(tools)) < len(tools):
        raise ValueError("must be distinct")
    return tools


Tools = Annotated[list[Tool], Field(min_length=1, strict=False), AfterValidator(_distinct)]


class Options(BaseModel):
    """Choices of a lead beside the setting; the descriptions complete "the option x must be"."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    ties: bool = Field(False, description="true or false")  # a button for "equally good"
    bad: bool = Field(True, description="true or false")  # buttons for "clearly irrelevant"
    # Seconds without input until the assessor is asked whether they are still working.
    away_after: Number = Field(120, ge=5, le=86400, description="seconds from 5 to 86400")
    # The fraction of practice questions to answer correctly.
    training_pass: Number = Field(0.7, ge=0, le=1, description="a fraction from 0 to 1")
    # Assessors per query with each tool.
    replicates: int = Field(1, ge=1, le=1000, description="an integer from 1 to 1000")
    # Several tools, for a study; None: the project's own.
    tools: Tools | None = Field(None, description="a list of pairs, grades, lists, each once")
    # Groups of queries that are assigned together; None: as many as assessors.
    folds: int | None = Field(None, ge=1, le=100_000, description="an integer from 1 to 100000")
    # Whether documents are read from right to left; None: as their text is.
    rtl: bool | None = Field(None, description="true or false")
    # Expected seconds per judgment; None: as published for the tool.
    seconds_per_judgment: Number | None = Field(
        None, ge=0.1, le=3600, description="seconds from 0.1 to 3600"
    )
    # How many answers a lead's verdict counts as; 0 records verdicts without effect.
    verdict_weight: Number = Field(10, ge=0, le=1000, description="a number from 0 to 1000")
    # How the next pair of lists is chosen: in working order, or the most informative one.
    list_selection: Literal["order", "simple-margin", "diverse", "committee"] = Field(
        "order", description="one of order, simple-margin, diverse, committee"
    )
    # The grades, worst first; None: five grades from bad to perfect.
    grades: Scale | None = Field(
        None, description="a list of 2 to 10 grades with distinct names and free keys"
    )
    # What else is graded, on the same scale; and why, as tags.
    aspects: Tags | None = Field(None, description="a list of 1 to 20 distinct names")
    reasons: Tags | None = Field(None, description="a list of 1 to 20 distinct names")


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
    try:
        return Options.model_validate(dict(record))
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
    fields = Options.model_fields
    if name not in fields:
        raise DataError(f"a project has no option {name!r} (it has: {', '.join(fields)}).")
    raise DataError(f"the option {name} must be {fields[name].description}; got {record[name]!r}.")
