"""The fields of an index: which are texts, numbers and dates, and how texts are analyzed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from firstpage.core import Advice, DataError, warn
from firstpage.data import are_distinct_integers, is_identifier
from firstpage.search.analyzer import LANGUAGES, PLAIN, Analyzer
from firstpage.search.documents import SourceDocument

KINDS = ("text", "number", "date", "ignore")
MAX_FIELDS = 500  # that are searched or become features; each is a file
MAX_NUMBER = float(np.finfo(np.float32).max)  # features are 32-bit numbers
SAMPLE = 1000  # documents from which the kinds of fields are inferred
RESERVED = (  # families of features
    "document", "query", "first_stage", "latent", "feedback", "vector",
)  # fmt: skip


@dataclass(frozen=True)
class Schema:
    """The fields of an index.

    Attributes
    ----------
    analyzers : dict of str to Analyzer
        The analyzer of each text field.
    numbers, dates : tuple of str
        The numeric fields, and the date fields, whose values are seconds since 1970.
    ignored : tuple of str
        Fields that are stored and shown, but not searched.
    """

    analyzers: dict[str, Analyzer]
    numbers: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """The fields whose values are numbers: numeric fields, then dates."""
        return self.numbers + self.dates

    def __contains__(self, field: str) -> bool:
        return field in self.analyzers or field in self.values or field in self.ignored

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as JSON."""
        return {
            "text": {name: analyzer.to_dict() for name, analyzer in self.analyzers.items()},
            "number": list(self.numbers),
            "date": list(self.dates),
            "ignore": list(self.ignored),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Schema:
        """Return the schema of stored JSON."""
        text = {name: Analyzer.from_dict(value) for name, value in stored["text"].items()}
        return cls(text, *(tuple(stored[kind]) for kind in KINDS[1:]))

    @classmethod
    def infer(
        cls,
        sample: Iterable[SourceDocument],
        language: str,
        declared: Mapping[str, str],
        fold_accents: bool = True,
    ) -> Schema:
        """Return the schema of documents: declared kinds, and those that the values suggest.

        A declared kind is one of `KINDS` or the language of a text.  Otherwise a field is numeric
        if all its values in the sample are, a date if all are ISO 8601 dates, and else a text.
        Numbers in a field that is named like an identifier are ignored.
        """
        observed: dict[str, list[str | float]] = {}
        for document in sample:
            for name, value in document.values.items():
                observed.setdefault(name, []).append(value)
        analyzers: dict[str, Analyzer] = {}
        kinds: dict[str, list[str]] = {kind: [] for kind in KINDS[1:]}
        for name, kind in declared.items():
            if kind not in (*KINDS, *LANGUAGES, PLAIN):
                raise DataError(
                    f"field {name!r} cannot be {kind!r}; the kinds are {', '.join(KINDS)} or a "
                    f"language ({', '.join((*LANGUAGES, PLAIN))})."
                )
        for name in dict.fromkeys([*observed, *declared]):
            kind = declared.get(name) or _usual_kind(name, observed[name])
            if kind in kinds:
                kinds[kind].append(name)
                continue
            if name in RESERVED:
                raise DataError(
                    f"a text field cannot be named {name!r}, which names a family of features; "
                    "rename the field."
                )
            analyzers[name] = Analyzer(
                language if kind == "text" else kind, fold_accents=fold_accents
            )
            if name not in declared:
                _note_exceptions(name, observed[name])
        count = len(analyzers) + len(kinds["number"]) + len(kinds["date"])
        if count > MAX_FIELDS:
            raise DataError(
                f"the documents have {count:,} fields, such as {list(observed)[-1]!r}; at most "
                f"{MAX_FIELDS} can be indexed. Join fields, or leave some out.",
                Advice("Fields are left out with {}.", "ignore_fields"),
            )
        if not analyzers:
            raise DataError("the documents have no text field; nothing could be searched.")
        order = sorted(analyzers, key=lambda name: (name != "title", name != "text"))
        return cls({name: analyzers[name] for name in order}, *(tuple(kinds[k]) for k in KINDS[1:]))

    def number(self, document: SourceDocument, field: str) -> float:
        """Return the value of a numeric or date field, NaN if the document has none."""
        value = document.values.get(field)
        if value is None:
            return math.nan
        number = _date(value) if field in self.dates else _number(value)
        if number is None:
            kind = "an ISO 8601 date" if field in self.dates else "a number"
            raise DataError(
                f"{document.location}: {field} is {value!r}, not {kind}; correct it, or create "
                "the index with the field as text.",
                Advice("Its kind is set by {}.", "fields", {field: "text"}),
            )
        if abs(number) > MAX_NUMBER:
            raise DataError(
                f"{document.location}: {field} is {number:g}, beyond the largest number of a "
                f"feature, {MAX_NUMBER:.2g}; correct it, or create the index with the "
                "field stored only.",
                Advice("Its kind is set by {}.", "fields", {field: "ignore"}),
            )
        return number


def _usual_kind(name: str, values: list[str | float]) -> str:
    """Return the kind of a field that was not declared; report numbers that may be identifiers."""
    kind = _kind(values)
    if kind != "number":
        return kind
    if is_identifier(name):
        _note(
            f"the field {name!r} is stored only, since it is named like an identifier and has "
            "numbers; the kind number makes it a feature, and text searches it.",
            Advice("Its kind is set by {}.", "fields", {name: "number"}),
        )
        return "ignore"
    if are_distinct_integers(np.array([float(value) for value in values])):
        _note(
            f"the field {name!r} has another integer in each of {len(values):,} documents, and "
            "becomes a feature; only store it if it identifies them.",
            Advice("Its kind is set by {}.", "fields", {name: "ignore"}),
        )
    return kind


def _note(message: str, advice: Advice) -> None:
    warn(message, advice)


def _kind(values: list[str | float]) -> str:
    if all(_number(value) is not None for value in values):
        return "number"
    if all(isinstance(value, str) and _date(value) is not None for value in values):
        return "date"
    return "text"


def _note_exceptions(name: str, values: list[str | float]) -> None:
    """Warn about a field that is a text because of a few values that are not numbers or dates."""
    for kind, convert in (("numbers", _number), ("dates", _date)):
        others = [value for value in values if convert(value) is None]
        if 0 < len(others) <= len(values) / 2:
            _note(
                f"the field {name!r} is searched as text, since {len(others):,} of its first "
                f"{len(values):,} values are not {kind}, such as {others[0]!r:.40}; correct them, "
                "or choose its kind.",
                Advice("The choice is made by {}.", "fields", {name: "text"}),
            )
            return


def _number(value: str | float) -> float | None:
    try:
        number = float(value.replace("_", "?") if isinstance(value, str) else value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(value: str | float) -> float | None:
    """Return the seconds since 1970 of a date, in UTC unless it names a time zone."""
    if isinstance(value, float):
        return value
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
