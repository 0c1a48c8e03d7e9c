"""Features of one's own, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NUMBER = 3


def title_length(query: str, documents: Sequence[Mapping[str, Any]]) -> list[int]:
    return [len(document.get("title", "")) + len(query) for document in documents]


def wrong_shape(query: str, documents: Sequence[Mapping[str, Any]]) -> list[float]:
    return [1.0]


def scalar(query: str, documents: Sequence[Mapping[str, Any]]) -> float:
    return 1.0


def not_finite(query: str, documents: Sequence[Mapping[str, Any]]) -> Any:
    return np.full(len(documents), np.nan)


def failing(query: str, documents: Sequence[Mapping[str, Any]]) -> list[float]:
    return [document["absent"] for document in documents]


def dividing(query: str, documents: Sequence[Mapping[str, Any]]) -> float:
    return 1 / 0


def texts(query: str, documents: Sequence[Mapping[str, Any]]) -> list[str]:
    return ["many\nlines" for _ in documents]
