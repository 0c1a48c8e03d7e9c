"""Measures as sums over ranks, which losses can maximize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from firstpage.core import Floats, Ints, inherit_sections
from firstpage.evaluation.measures.lists import RankedLists, kernel_cutoff


@dataclass(frozen=True, eq=False)
class _GainForm:
    """A measure as a sum over ranks, per query: scale * sum of gain * discount * state.

    Parameters
    ----------
    gains : array of float
        The gain of each judged document, in the order of `lists.pool`.
    discounts : array of float
        The discounts of the ranks 1, 2, .., as far as the measure defines them.  Ranks beyond them
        have the discount 0.
    depth : int, optional
        The number of first ranks that count; None counts all that have a discount.
    scale : array of float, optional
        A factor per query; 1 by default.
    """

    gains: Floats
    discounts: Floats
    depth: int | None = None
    scale: Floats | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        inherit_sections(cls)


@dataclass(frozen=True, eq=False)
class AdditiveForm(_GainForm):
    """A measure that adds gains times discounts, such as NDCG, precision, recall and RBP.

    The state is 1: what a document adds does not depend on those above it.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> labels = np.array([2.0, 0.0, 1.0])
    >>> form = fp.extend.AdditiveForm(gains=labels, discounts=1 / np.arange(1, 4), depth=2)
    >>> form.discounts[: form.depth].tolist()
    [1.0, 0.5]
    """


@dataclass(frozen=True, eq=False)
class CascadeForm(_GainForm):
    """A measure of a user who stops at a document with probability `gain`, as ERR and RR.

    The state is the product of 1 - gain over the documents above.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> relevant = np.array([0.0, 1.0, 1.0])
    >>> form = fp.extend.CascadeForm(gains=relevant, discounts=1 / np.arange(1, 4))
    >>> type(form).__name__  # the reciprocal rank
    'CascadeForm'
    """


@dataclass(frozen=True, eq=False)
class PrecisionForm(_GainForm):
    """A measure that adds the precision at each relevant document, as average precision.

    Gains are 1 (relevant) or 0.  The state is 1 plus the number of relevant documents above.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> relevant = np.array([0.0, 1.0, 1.0])
    >>> ranks = np.arange(1, 4)
    >>> form = fp.extend.PrecisionForm(relevant, discounts=1 / ranks, scale=np.array([1 / 2]))
    >>> form.scale.tolist()  # one query with two relevant documents
    [0.5]
    """


@dataclass(frozen=True, eq=False)
class TableForm:
    """A measure that adds a weight for each rank and kind of document.

    Parameters
    ----------
    columns : array of int
        The column of each judged document in the table, in the order of `lists.pool`.
    table : array of float of shape (n_ranks, n_columns)
        The weights, one row per rank that counts.
    scale : array of float, optional
        A factor per query; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> form = fp.extend.TableForm(np.array([1, 0]), table=np.array([[0.0, 2.0], [0.0, 1.5]]))
    >>> form.table.shape
    (2, 2)
    """

    columns: Ints
    table: Floats
    scale: Floats | None = None


RankForm: TypeAlias = AdditiveForm | CascadeForm | PrecisionForm | TableForm


def all_ranks(lists: RankedLists) -> Floats:
    """Return the ranks 1, 2, .., up to one below the longest list."""
    return np.arange(1, int(lists.lengths.max(initial=1)) + 2, dtype=np.float64)


def counted_ranks(lists: RankedLists, cutoff: int | None) -> int:
    """Return the number of ranks that count in the longest list, at least 1."""
    return max(min(kernel_cutoff(cutoff), int(lists.lengths.max(initial=1))), 1)
