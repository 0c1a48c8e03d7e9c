"""Features of one's own: functions that are named on the command line or in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, imported

OwnFeature = Callable[[str, Sequence[Mapping[str, Any]]], Any]
"""A feature of one's own: from a query's text and its candidates to one number per candidate."""


def own_feature(text: str) -> tuple[str, OwnFeature]:
    """Return the name and the function of `name=module:function`."""
    return own_name(text), imported(text.rpartition("=")[2], "function")


def own_name(text: str) -> str:
    """Return the name of the feature `name=module:function` or `module:function`."""
    name, _, place = text.rpartition("=")
    return name or place.rpartition(":")[2]


def own_values(
    name: str, function: OwnFeature, text: str, documents: Sequence[Mapping[str, Any]]
) -> Floats:
    """Return the values of a feature of one's own, one finite number per document."""
    try:
        values = np.asarray(function(text, documents), float)
    except Exception as error:
        raise DataError(
            f"feature {name!r} failed for query {text!r} ({_first_line(error)})."
        ) from error
    problem = ""
    if values.shape != (len(documents),):
        problem = f"an array of shape {values.shape} for {len(documents)} documents"
    elif not np.isfinite(values).all():
        problem = f"{values[~np.isfinite(values)][0]}"
    if problem:
        raise DataError(
            f"feature {name!r} must return one finite number per document; for query {text!r} it "
            f"returned {problem}."
        )
    return values


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]
