"""From a final result to the relation of every two documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firstpage.errors import DataError
from firstpage.labeling.statistics.records import Labels
from firstpage.types import Floats, Ints


def top_labels(top: Sequence[str], documents: Sequence[str], k: int | None = None) -> Labels:
    """k + 1 - position for the ordered top, 0 for all other documents (Niu et al. 2012, 3.2.1).

    `k` is the number asked for, the length of `top` if not given; queries with fewer
    documents keep it, so the best document has label k everywhere.
    """
    places = len(top) if k is None else k
    if len(top) > places:
        raise DataError(f"a top {places} cannot hold {len(top)} documents; give a greater k.")
    odd = [doc for doc in top if doc not in set(documents)]
    if odd or len(set(top)) < len(top):
        what = f"{odd[0]!r} is not among them" if odd else "one comes twice"
        raise DataError(f"the top must name different documents of the query; {what}.")
    place = {doc: i for i, doc in enumerate(top)}
    return {doc: float(places - place[doc]) if doc in place else 0.0 for doc in documents}


def relations(labels: Labels, documents: Sequence[str]) -> Ints:
    """+1, 0 or -1 for all n(n-1)/2 pairs: the earlier document is better, tied, worse.

    Pairs stand as (0,1), (0,2), ..., (1,2), ... in the order of `documents`.
    """
    values = label_values(labels, documents)
    first, second = np.triu_indices(len(documents), 1)
    return np.sign(values[first] - values[second]).astype(np.int64)


def label_values(labels: Labels, documents: Sequence[str]) -> Floats:
    """The labels in the order of `documents`."""
    try:
        return np.array([labels[doc] for doc in documents], np.float64)
    except KeyError as error:
        raise DataError(f"document {error.args[0]!r} has no label; give one to each.") from error


def common(*labeled: Labels) -> list[str]:
    """The documents that all have labeled, by name: the fixed order of every pair."""
    if not labeled:
        return []
    return sorted(set(labeled[0]).intersection(*labeled[1:]))
