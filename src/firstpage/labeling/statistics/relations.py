"""From final labels to the relation of every pair of documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firstpage.core import DataError, Floats, Ints
from firstpage.labeling.statistics.records import Labels


def top_labels(top: Sequence[str], documents: Sequence[str], k: int | None = None) -> Labels:
    """Return k + 1 - rank for the ordered top and 0 for other documents (Niu et al. 2012, 3.2.1).

    `k` is by default the length of `top`.  A query with fewer than k documents keeps k, so that
    the best document has label k in every query.
    """
    length = len(top) if k is None else k
    if len(top) > length:
        raise DataError(f"a top {length} cannot have {len(top)} documents; give a greater k.")
    unknown = [doc for doc in top if doc not in set(documents)]
    if unknown or len(set(top)) < len(top):
        problem = f"{unknown[0]!r} is not among them" if unknown else "one occurs twice"
        raise DataError(f"the top must consist of distinct documents of the query; {problem}.")
    rank = {doc: i for i, doc in enumerate(top)}
    return {doc: float(length - rank[doc]) if doc in rank else 0.0 for doc in documents}


def relations(labels: Labels, documents: Sequence[str]) -> Ints:
    """Return +1, 0 or -1 per pair of documents: the earlier one is better, tied or worse.

    The n (n - 1) / 2 pairs are ordered (0,1), (0,2), ..., (1,2), ... by index in `documents`.
    """
    values = label_values(labels, documents)
    first, second = np.triu_indices(len(documents), 1)
    return np.sign(values[first] - values[second]).astype(np.int64)


def label_values(labels: Labels, documents: Sequence[str]) -> Floats:
    """Return the labels in the order of `documents`."""
    try:
        return np.array([labels[doc] for doc in documents], np.float64)
    except KeyError as error:
        raise DataError(
            f"document {error.args[0]!r} has no label; give one to each document."
        ) from error


def common_documents(*labels: Labels) -> list[str]:
    """Return the documents that all have labeled, sorted by name."""
    if not labels:
        return []
    return sorted(set(labels[0]).intersection(*labels[1:]))
