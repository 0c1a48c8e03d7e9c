"""The options of a project: which there are, their defaults and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from firstpage.errors import DataError

Tool = Literal["pairs", "grades", "lists"]
Number = int | float  # as it was given: 120 is not 120.0 on a page


def _each_once(tools: list[str]) -> list[str]:
    if len(set(tools)) < len(tools):
        raise ValueError("each once")
    return tools


Tools = Annotated[list[Tool], Field(min_length=1, strict=False), AfterValidator(_each_once)]


class Options(BaseModel):
    """What a lead may choose beside the setting; the descriptions complete "the option x is"."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    ties: bool = Field(False, description="true or false")  # a button for "neither is better"
    bad: bool = Field(True, description="true or false")  # buttons for "clearly irrelevant"
    # Seconds without a sign of life until we ask.
    away_after: Number = Field(120, ge=5, le=86400, description="seconds from 5 to 86400")
    # The fraction of training questions to answer correctly.
    training_pass: Number = Field(0.7, ge=0, le=1, description="a share from 0 to 1")
    # Assessors per query, under each tool.
    replicates: int = Field(1, ge=1, le=1000, description="a whole number from 1 to 1000")
    # Several tools, for a study; else the project's own.
    tools: Tools | None = Field(None, description="a list of pairs, grades, lists, each once")
    folds: int | None = Field(None, ge=1, le=100_000, description="a whole number from 1 to 100000")
    # Documents read from right to left; None: as their text does.
    rtl: bool | None = Field(None, description="true or false")
    # Expected per judgment; None: as published for the tool.
    seconds: Number | None = Field(None, ge=0.1, le=3600, description="seconds from 0.1 to 3600")
    # Which pair of lists comes next: by the order of work, or what teaches most.
    choose: Literal["order", "simple-margin", "diverse", "committee"] = Field(
        "order", description="one of order, simple-margin, diverse, committee"
    )


def read_options(given: Mapping[str, Any]) -> Options:
    """Return the options given, with defaults for the rest; the first mistake is refused."""
    try:
        return Options.model_validate(dict(given))
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
    fields = Options.model_fields
    if name not in fields:
        raise DataError(f"a project has no option {name!r} (it has: {', '.join(fields)}).")
    raise DataError(f"the option {name} is {fields[name].description}; got {given[name]!r}.")
