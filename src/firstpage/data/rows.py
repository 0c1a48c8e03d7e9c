"""What functions on data need of a Dataset, which itself uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any, ClassVar, Protocol

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
