"""Columns that hold categories: their codes, and how the codes of two datasets are matched.

A dataset stores a category as its index in `Dataset.categories[column]`, and a missing one as NaN.
A category that is unknown where data are matched to a model is missing, as in LightGBM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from firstpage.core import Advice, Array, DataError, Floats, Ints, warn
from firstpage.data.rows import Categories, FeatureRows

Data = TypeVar("Data", bound=FeatureRows)

MAX_CATEGORIES = 10_000  # per column
MAX_FLOAT32_CODE = 1 << 24  # greater integers are not all distinct in float32


def feature_name(data: Any, column: int) -> str:
    """Return the name of a column for messages."""
    return repr(data.feature_names[column]) if data.feature_names else f"feature {column + 1}"


def listed_features(data: Any, columns: Iterable[int]) -> str:
    """Return the names of at most three columns for messages."""
    names = [feature_name(data, column) for column in columns]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def find_feature(data: FeatureRows, feature: str | int) -> int:
    """Return the column of a feature, by name or by its number, which counts from 1."""
    names = data.feature_names or ()
    if feature in names:
        return names.index(str(feature))
    if str(feature).isascii() and str(feature).isdigit() and 1 <= int(feature) <= data.n_features:
        return int(feature) - 1
    raise DataError(
        f"{data.source}: has no feature {feature!r}; give a name, or a number from 1 to "
        f"{data.n_features}."
    )


def check_count(count: int, where: str) -> None:
    """Raise an error for a column with too many categories."""
    if count > MAX_CATEGORIES:
        raise DataError(
            f"{where} has {count:,} categories, and at most {MAX_CATEGORIES:,} are read; drop the "
            "column, or group rare categories."
        )


def check_categories(data: FeatureRows) -> None:
    """Raise an error for codes that are not those of the categories."""
    if not isinstance(data.X, np.ndarray):
        raise DataError(
            f"{data.source}: categorical features need a dense array; use data.dense() first."
        )
    for column, names in data.categories.items():
        if not 0 <= column < data.n_features:
            raise DataError(f"{data.source}: categories of column {column}, which does not exist.")
        where = f"{data.source}: {feature_name(data, column)}"
        check_count(len(names), where)
        if len(set(names)) < len(names):
            raise DataError(f"{where} has two equal categories.")
        known = data.X[:, column]
        known = known[~np.isnan(known)]
        if ((known < 0) | (known >= len(names)) | (known != np.floor(known))).any():
            raise DataError(f"{where} has codes that are not the indices of its categories.")


def decoded(codes: Array, names: tuple[str, ...]) -> list[str | None]:
    """Return the categories of codes, None where one is missing."""
    lookup = np.array([*names, None], object)
    known = np.where(np.isnan(codes), len(names), codes).astype(np.int64)
    values: list[str | None] = lookup[known].tolist()
    return values


def category_text(value: float) -> str:
    """Return an integer as the text of a category."""
    return str(int(value))


def encode_columns(data: Data, columns: Sequence[int]) -> Data:
    """Return the data with numeric columns as categories, in ascending order."""
    if not columns:
        return data
    if not isinstance(data.X, np.ndarray):
        raise DataError(
            f"{data.source}: categorical features need a dense array; read the file with "
            "sparse=False, or use data.dense() first."
        )
    X, categories = np.array(data.X), dict(data.categories)
    for column in columns:
        where = f"{data.source}: {feature_name(data, column)}"
        if X.dtype == np.float32 and (np.abs(X[:, column]) >= MAX_FLOAT32_CODE).any():
            raise DataError(
                f"{where} has categories of {MAX_FLOAT32_CODE:,} and more, which float32 does not "
                "distinguish.",
                Advice("Read the file with {}.", "dtype", "float64"),
            )
        values, codes = integer_codes(X[:, column], where)
        categories[column], X[:, column] = tuple(map(category_text, values)), codes
    return replace(data, X=X, categories=categories)


def integer_codes(numbers: Array, where: str) -> tuple[list[float], Floats]:
    """Return the distinct integers, and the index of each number; NaN stays NaN."""
    missing = np.isnan(numbers)
    fractional = ~missing & (numbers != np.floor(numbers))
    if fractional.any() or np.isinf(numbers).any():
        value = numbers[np.argmax(fractional | np.isinf(numbers))]
        raise DataError(f"{where} is categorical, and has the value {value:g}; give integers.")
    values, codes = np.unique(numbers[~missing], return_inverse=True)
    check_count(len(values), where)
    out = np.full(len(numbers), np.nan)
    out[~missing] = codes
    return values.tolist(), out


def text_codes(values: Sequence[Any], where: str) -> tuple[tuple[str, ...], Floats]:
    """Return the distinct texts, sorted, and the index of each; None is missing."""
    names = tuple(sorted({str(value) for value in values if value is not None}))
    check_count(len(names), where)
    return names, codes_of(values, names)


def codes_of(values: Sequence[Any], names: Sequence[str]) -> Floats:
    """Return the index of each text among the names; NaN where it is None or unknown."""
    index = {name: float(code) for code, name in enumerate(names)}
    nan = float("nan")
    return np.array([nan if v is None else index.get(str(v), nan) for v in values], np.float64)


def merged_categories(blocks: Sequence[Any]) -> Categories:
    """Return the categories of all blocks, those of the first block first.

    A column must hold categories in all blocks or in none.
    """
    merged: dict[int, tuple[str, ...]] = {}
    for block in blocks:
        if set(block.categories) != set(blocks[0].categories):
            different = sorted(set(block.categories) ^ set(blocks[0].categories))
            raise DataError(
                f"{block.source}: {listed_features(block, different)} holds categories in some of "
                "the data, and numbers in others."
            )
        for column, names in block.categories.items():
            known = merged.get(column, ())
            merged[column] = (*known, *(name for name in names if name not in set(known)))
            check_count(len(merged[column]), f"{block.source}: {feature_name(block, column)}")
    return merged


def recoded(data: Data, categories: Categories) -> tuple[Data, dict[int, int]]:
    """Return the data with the codes of other categories, and the numbers of unknown values.

    A column of numbers is read as categories if the other data have categories there; categories
    where the other data have numbers are an error.
    """
    if data.categories == categories:
        return data, {}
    extra = [column for column in data.categories if column not in categories]
    if extra:
        raise DataError(
            f"{data.source}: {listed_features(data, extra)} holds categories, where numbers are "
            "expected."
        )
    data = encode_columns(data, [column for column in categories if column not in data.categories])
    X, unknown = np.array(data.X), {}
    for column, names in categories.items():
        own = data.categories[column]
        table = np.append(codes_of(own, names), np.nan)
        codes = np.asarray(data.X)[:, column]
        index: Ints = np.where(np.isnan(codes), len(own), codes).astype(np.int64)
        X[:, column] = table[index]
        count = int(np.isnan(X[:, column]).sum() - np.isnan(codes).sum())
        if count:
            unknown[column] = count
    return replace(data, X=X, categories=dict(categories)), unknown


def warn_of_unknown(data: FeatureRows, unknown: Mapping[int, int], target: str) -> None:
    """Warn in one line about categories that were not in the training data."""
    if unknown:
        counts = ", ".join(
            f"{count:,} of {feature_name(data, column)}" for column, count in unknown.items()
        )
        warn(
            f"{data.source}: categories that {target} was not trained on are treated as missing: "
            f"{counts}."
        )


def as_positions(values: Any, source: str) -> Ints:
    """Return positions as integers."""
    try:
        numbers = np.asarray(values, np.float64).ravel()
    except (TypeError, ValueError):
        raise DataError(f"{source}: positions must be integers of at least 0.") from None
    whole = np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
    if not whole or (numbers < 0).any():
        raise DataError(f"{source}: positions must be integers of at least 0, one per document.")
    return numbers.astype(np.int64)


def without_codes(data: Data, path: str) -> Data:
    """Return the data for a file of numbers: categories that are integers, instead of codes."""
    if not data.categories:
        return data
    X = np.array(data.X)
    for column, names in data.categories.items():
        where = feature_name(data, column)
        if not all(name.lstrip("-").isdigit() and name.isascii() for name in names):
            raise DataError(
                f"{path}: LETOR text holds numbers, and {where} has categories such as "
                f"{names[0]!r}; write .parquet, .csv, .arrow or .npz."
            )
        table = np.array([*map(float, names), np.nan])
        codes = np.where(np.isnan(X[:, column]), len(names), X[:, column]).astype(np.int64)
        X[:, column] = table[codes]
    warn(
        f"{path}: LETOR text does not store that {listed_features(data, data.categories)} "
        "holds categories.",
        Advice("Read it with {}.", "categorical"),
    )
    return replace(data, X=X, categories={})
