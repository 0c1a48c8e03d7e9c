"""The columns of data that a model reads: matched by name, or else by number.

One rule for every model and all data: where both sides name their features, a column is found by
its name, wherever it stands; columns that the model does not know are left out, with a warning;
one that the data lack is refused.  Where one side has no names, the numbers of features must be
equal, and columns are taken in their order; where the other side has names, a warning says so.
LETOR text leaves out zeros, so its last features may be missing: `pad` takes them for 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset, pad_features
from firstpage.data.shards.shards import Shards
from firstpage.errors import DataError, FirstpageWarning
from firstpage.types import Ints

MAX_NAMES_SHOWN = 5  # names in a message


@dataclass(frozen=True, eq=False)
class ColumnMatch:
    """What becomes of the columns of some data.

    columns  those that are taken, in the order of the model; None: all, as they are
    width   how many there are then; zeros are added on the right
    names   of the features then; None: they have none
    """

    columns: Ints | None
    width: int
    names: tuple[str, ...] | None

    def apply(self, data: Dataset) -> Dataset:
        """Return the data with these columns; the same object where nothing changes."""
        if self.columns is not None:
            X: Any = data.X
            X = (
                np.take(X, self.columns, axis=1)
                if isinstance(X, np.ndarray)
                else X[:, self.columns]
            )
            return data.with_features(X, self.names)
        if data.n_features == self.width:
            return data
        return data.with_features(pad_features(data.X, self.width), self.names)


def match_columns(
    data: Dataset | Shards, names: Sequence[str] | None, count: int, target: str, pad: bool = False
) -> ColumnMatch:
    """Return which columns of the data are the features of `target`, or refuse the data.

    names  of the target's features, `count` of them; None: they have none
    pad    features that data without names lack at the end are 0
    """
    if names is not None and data.feature_names is not None:
        return _by_name(data.feature_names, tuple(names), data.source, target)
    if data.n_features < count and pad and data.feature_names is None:
        warnings.warn(
            f"{data.source}: has {data.n_features} of the {count} features of {target}; the others "
            "are taken for 0 (pad).",
            FirstpageWarning,
            stacklevel=4,
        )
    elif data.n_features != count:
        raise DataError(_refusal(data, count, target))
    elif (names is None) != (data.feature_names is None):
        warnings.warn(_in_order(data, target), FirstpageWarning, stacklevel=4)
    return ColumnMatch(None, count, data.feature_names)


def _in_order(data: Dataset | Shards, target: str) -> str:
    """Say that columns are taken in their order, as only one side names its features."""
    unnamed = data.source if data.feature_names is None else target
    return (
        f"{data.source}: its columns are taken in their order for the features of {target}, as "
        f"{unnamed} has no names of features."
    )


def _by_name(
    have: tuple[str, ...], names: tuple[str, ...], source: str, target: str
) -> ColumnMatch:  # fmt: skip
    if have == names:
        return ColumnMatch(None, len(names), names)
    places = {name: place for place, name in enumerate(have)}
    missing = [name for name in names if name not in places]
    if missing:
        raise DataError(
            f"{source}: lacks {_listed(missing)}, which {target} reads; add "
            f"{'them' if len(missing) > 1 else 'it'}, or give data that have every feature."
        )
    known = set(names)
    extra = [name for name in have if name not in known]
    if extra:
        warnings.warn(
            f"{source}: {target} does not know {_listed(extra)}; left out.",
            FirstpageWarning,
            stacklevel=5,
        )
    return ColumnMatch(np.array([places[name] for name in names], np.int64), len(names), names)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:MAX_NAMES_SHOWN])
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return f"the feature{'s' * (len(names) > 1)} {shown}{more}"


def _refusal(data: Dataset | Shards, count: int, target: str) -> str:
    text = f"{data.source}: has {data.n_features} features, and {target} was trained on {count}"
    if data.n_features > count:
        return f"{text}; without names on both sides they cannot be matched."
    if data.feature_names is not None:
        return f"{text}."
    return (
        f"{text}. LETOR text may leave out features that are 0: if these do, read them with "
        f"n_features={count} (--pad)."
    )
