"""Match the columns of data to the features of a model: by name, or else by number.

Where both sides name their features, a column is matched by its name, in any order; columns that
the model does not use are dropped with a warning, and a missing one is an error.  Where one side
has no names, the numbers of features must be equal and columns are used in their order; a warning
says so if the other side has names.  LETOR text omits zeros, so its last features may be missing:
`pad` treats them as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from firstpage.core import Advice, DataError, Ints, warn
from firstpage.data.categories import recoded, warn_of_unknown
from firstpage.data.concat import pad_features
from firstpage.data.dataset import Dataset
from firstpage.data.ids import is_identifier
from firstpage.data.rows import Categories
from firstpage.data.shards.shards import Shards

MAX_NAMES_SHOWN = 5  # in a message


@dataclass(frozen=True, eq=False)
class ColumnMatch:
    """Which columns of some data a model uses.

    Attributes
    ----------
    columns : ndarray of int or None
        The columns to use, in the order of the model; None for all columns as they are.
    width : int
        The resulting number of columns; zeros are appended on the right.
    names : tuple of str or None
        The resulting feature names.
    categories : mapping
        The categories of the model's features; others in the data are treated as missing.
    target : str
        What messages call the model.
    """

    columns: Ints | None
    width: int
    names: tuple[str, ...] | None
    categories: Categories = field(default_factory=dict)
    target: str = "the model"

    def apply(self, data: Dataset) -> Dataset:
        """Return the data with these columns; the same object if nothing changes."""
        if self.columns is not None:
            X: Any = data.X
            dense = isinstance(X, np.ndarray)
            X = np.take(X, self.columns, axis=1) if dense else X[:, self.columns]
            held = {
                new: data.categories[old]
                for new, old in enumerate(self.columns.tolist())
                if old in data.categories
            }
            data = replace(data.with_features(X, self.names), categories=held)
        elif data.n_features != self.width:
            held = dict(data.categories)
            data = data.with_features(pad_features(data.X, self.width), self.names)
            data = replace(data, categories=held)
        matched, unknown = recoded(data, self.categories)
        warn_of_unknown(matched, unknown, self.target)
        return matched


def match_columns(
    data: Dataset | Shards,
    names: Sequence[str] | None,
    count: int,
    target: str,
    pad: bool = False,
    categories: Categories | None = None,
) -> ColumnMatch:
    """Return which columns of the data are the features of a model; raise if they do not fit."""
    known = data.categories if categories is None else categories
    match = _match(data, names, count, target, pad)
    return replace(match, categories=known, target=target)


def _match(
    data: Dataset | Shards, names: Sequence[str] | None, count: int, target: str, pad: bool
) -> ColumnMatch:
    if names is not None and data.feature_names is not None:
        return _match_names(data.feature_names, tuple(names), data.source, target)
    if data.n_features < count and pad and data.feature_names is None:
        warn(
            f"{data.source}: has {data.n_features} of the {count} features of {target}; the others "
            "are treated as 0 (pad)."
        )
    elif data.n_features != count:
        raise _width_error(data, count, target)
    elif (names is None) != (data.feature_names is None):
        warn(_order_message(data, target))
    return ColumnMatch(None, count, data.feature_names)


def _order_message(data: Dataset | Shards, target: str) -> str:
    unnamed = data.source if data.feature_names is None else target
    return (
        f"{data.source}: its columns are matched to the features of {target} by their order, since "
        f"{unnamed} has no feature names."
    )


def _match_names(
    available: tuple[str, ...], names: tuple[str, ...], source: str, target: str
) -> ColumnMatch:
    if available == names:
        return ColumnMatch(None, len(names), names)
    numbers = {name: number for number, name in enumerate(available)}
    missing = [name for name in names if name not in numbers]
    identifiers = [name for name in missing if is_identifier(name)]
    if identifiers:
        raise DataError(
            f"{source}: lacks {_feature_list(missing)}, which {target} uses. Tables are read "
            f"without columns that are named like identifiers, such as {identifiers[0]!r}; give "
            "the data as .npz, or rename the column and train again."
        )
    if missing:
        raise DataError(
            f"{source}: lacks {_feature_list(missing)}, which {target} uses; add "
            f"{'them' if len(missing) > 1 else 'it'}, or give data that have every feature."
        )
    known = set(names)
    extra = [name for name in available if name not in known]
    if extra:
        warn(f"{source}: {target} does not use {_feature_list(extra)}; ignored.")
    return ColumnMatch(np.array([numbers[name] for name in names], np.int64), len(names), names)


def _feature_list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:MAX_NAMES_SHOWN])
    rest = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return f"the feature{'s' * (len(names) > 1)} {shown}{rest}"


def _width_error(data: Dataset | Shards, count: int, target: str) -> DataError:
    text = f"{data.source}: has {data.n_features} features, and {target} was trained on {count}"
    if data.n_features > count:
        return DataError(f"{text}; without names on both sides they cannot be matched.")
    if data.feature_names is not None:
        return DataError(f"{text}.")
    return DataError(
        f"{text}. LETOR text may omit features that are 0, and may count them from 0.",
        Advice("If this file does, read it with {}.", "n_features", count),
    )
