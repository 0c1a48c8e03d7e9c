"""Pages for tests: all click patterns of a page, and random logs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import firstpage as fp


def patterns(documents: list[str], ranks: list[int]) -> fp.Sessions:
    """Return a page of one query per click pattern."""
    n = len(documents)
    clicks = list(itertools.product([0, 1], repeat=n))
    return fp.Sessions.from_arrays(
        query=["q"] * n * 2**n,
        document=documents * 2**n,
        rank=ranks * 2**n,
        clicked=[c for pattern in clicks for c in pattern],
        page=np.repeat(np.arange(2**n), n),
    )


def random_pages(
    pages: int, length: int = 6, queries: int = 4, documents: int = 10, seed: int = 0
) -> fp.Sessions:
    """Return pages of random documents, each query with documents of its own, and random clicks."""
    rng = np.random.default_rng(seed)
    query = rng.integers(queries, size=pages)
    shown = np.array([rng.permutation(documents)[:length] for _ in range(pages)])
    arrays: dict[str, Any] = {
        "query": [f"q{q}" for q in np.repeat(query, length)],
        "document": [f"d{d}" for d in shown.ravel()],
        "rank": np.tile(np.arange(1, length + 1), pages),
        "page": np.repeat(np.arange(pages), length),
        "clicked": rng.random(pages * length) < 0.3,
    }
    return fp.Sessions.from_arrays(**arrays)
