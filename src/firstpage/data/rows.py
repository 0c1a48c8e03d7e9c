"""What functions on data need of a Dataset, which itself uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from firstpage.core import Floats, Ints
from firstpage.data.ids import Ids

Categories = Mapping[int, tuple[str, ...]]
"""The categories of each column, counted from 0, that holds categories."""


class FeatureRows(Protocol):
    """A dataclass with one row of features per document."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def X(self) -> Any: ...
    @property
    def feature_names(self) -> tuple[str, ...] | None: ...
    @property
    def categories(self) -> Categories: ...
    @property
    def source(self) -> str: ...
    @property
    def n_features(self) -> int: ...


class LabeledRows(FeatureRows, Protocol):
    """Rows of features with labels, grouped by query."""

    @property
    def y(self) -> Floats: ...
    @property
    def offsets(self) -> Ints: ...
    @property
    def queries(self) -> Ids: ...
    @property
    def docids(self) -> Ids | None: ...
    @property
    def query_weights(self) -> Floats | None: ...
    @property
    def positions(self) -> Ints | None: ...
    @property
    def n_docs(self) -> int: ...
    def __len__(self) -> int: ...


Data = TypeVar("Data", bound=LabeledRows)


def take_rows(data: Data, rows: slice | Ints, queries: slice | Ints, offsets: Ints) -> Data:
    """Return these rows, which are offsets[q]:offsets[q + 1] of each query of the result."""
    by_row = {name: getattr(data, name) for name in ("X", "y", "docids", "positions")}
    by_query = {name: getattr(data, name) for name in ("queries", "query_weights")}
    taken = {name: None if v is None else v[rows] for name, v in by_row.items()}
    taken |= {name: None if v is None else v[queries] for name, v in by_query.items()}
    return replace(data, **taken, offsets=offsets, row_order=None)
