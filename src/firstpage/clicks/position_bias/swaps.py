"""The swap graph: which ranks are connected by documents that were seen at several of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.clicks.position_bias.counts import (
    DEFAULT_RANKS,
    SwapCounts,
    components,
    count_swaps,
)
from firstpage.clicks.position_bias.harvesting import LogEstimate, fit_all_pairs
from firstpage.clicks.position_bias.rank_table import RankTable, ranges
from firstpage.clicks.sessions import Sessions
from firstpage.core import Array, DataError, Floats, counted
from firstpage.data.io import JsonFormat

THIN_ERROR = 0.25  # standard error of a logarithm: a 95 % interval of about a factor 1.6 each way
THIN_QUERIES = 5.0  # effective queries, below which a few queries decide
SENTENCES = {
    "identified": "Identified relative to rank {}: ranks {}.",
    "connected": "Connected with rank {}: ranks {}.",
    "thin": "Too thin to rely on, relative to rank {}: ranks {}.",
    "not identified": "Not identified relative to rank {}: ranks {}.",
}


@dataclass(frozen=True, eq=False, repr=False)
class SwapGraph(RankTable):
    """Which ranks documents connect, and so which propensities clicks can tell.

    A document of a query that was seen at several ranks compares these ranks: its relevance is the
    same at both.  Ranks that no such documents connect cannot be compared without further
    assumptions, whatever is fitted.

    Attributes
    ----------
    rank : tuple of int
        The ranks with impressions, in ascending order.
    component : tuple of int
        The component of each rank, as the first of its ranks.
    impressions, clicks : tuple of int
        Counts by rank.
    swapped : tuple of int
        Documents (of a query) that were seen at this rank and at another one.
    comparing_clicks : tuple of float
        The clicks that compare this rank with others; without clicks the documents.
    effective_queries : tuple of float
        How many queries of equal weight are as good as those of the log.
    status : tuple of str
        "identified", "thin" or "not identified" relative to the reference; "connected" without
        clicks.
    reference : int
        The rank to which the others are compared.
    verdict : tuple of str
        What can be trusted and what cannot, in sentences.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 6, document=["a", "b", "c", "b", "a", "c"], rank=[1, 2, 3, 1, 2, 3],
    ...     clicked=[1, 0, 0, 1, 1, 0], page=[1, 1, 1, 2, 2, 2])
    >>> graph = fp.clicks.swap_graph(sessions)
    >>> graph.component
    (1, 1, 3)
    >>> print(graph.verdict[0])
    Ranks fall into 2 components: 1-2; 3.
    """

    _file: ClassVar[JsonFormat] = JsonFormat("firstpage-swap-graph", 1, "swap graph")
    _note: ClassVar[str] = "swapped: documents (of a query) that were seen here and at another rank"

    rank: tuple[int, ...]
    component: tuple[int, ...]
    impressions: tuple[int, ...]
    clicks: tuple[int, ...]
    swapped: tuple[int, ...]
    comparing_clicks: tuple[float, ...]
    effective_queries: tuple[float, ...]
    status: tuple[str, ...]
    reference: int
    verdict: tuple[str, ...]

    @property
    def connected(self) -> bool:
        """Whether all ranks are in one component."""
        return len(set(self.component)) == 1


def swap_graph(
    sessions: Sessions, *, reference: int | None = None, max_rank: int = DEFAULT_RANKS
) -> SwapGraph:
    """Return which ranks the documents of a log connect.

    Parameters
    ----------
    sessions : Sessions
        Pages of results with clicks.
    reference : int, optional
        The rank to which the others are compared; by default the first one of the largest
        component.
    max_rank : int, default 10
        Impressions below are left out.

    Returns
    -------
    SwapGraph
        The components of ranks, and how well each is connected.

    Raises
    ------
    DataError
        If there are no impressions, or none at the reference.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 4, document=["a", "b", "a", "b"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 1, 0], page=[1, 1, 2, 2])
    >>> fp.clicks.swap_graph(sessions).connected
    False
    """
    return graph_of(count_sessions(sessions, max_rank), reference)[0]


def position_overlap(item: Array, position: Array) -> SwapGraph:
    """Return which positions are connected by items that were seen at several of them.

    Models that add an effect of the position to an effect of the features (`position=` of
    LightGBM, two-tower models) can only tell them apart along these connections.

    Parameters
    ----------
    item : array of int
        What is the same wherever it is shown: numbers of documents of a query, or of distinct rows
        of features.
    position : array of int
        The position of each row, from 0 or 1.

    Returns
    -------
    SwapGraph
        The components of positions, without clicks.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.clicks.position_overlap([0, 1, 0, 2], [1, 2, 2, 3]).component
    (1, 1, 3)
    """
    _, number = np.unique(np.asarray(item), return_inverse=True)
    ranks = np.asarray(position, np.int64)
    query = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    nothing = np.zeros(len(ranks), bool)
    counts = count_swaps(number, ranks, nothing, query, max(int(ranks.max(initial=0)), 2))
    return graph_of(counts)[0]


def count_sessions(sessions: Sessions, max_rank: int) -> SwapCounts:
    """Return the counts of a log, by distinct pairs of query and document."""
    pairs = sessions.pairs
    return count_swaps(pairs.pair, sessions.rank, sessions.clicked, pairs.query, max_rank)


def graph_of(
    counts: SwapCounts, reference: int | None = None
) -> tuple[SwapGraph, LogEstimate | None]:
    """Return the graph of counts, and with clicks the propensities by all pairs."""
    component = components(counts.connections())
    base = int(np.argmax(np.bincount(component)))
    if reference is not None:
        base = column_of(counts, reference)
    members = component == component[base]
    links, estimate = counts.seen_at_both * (1.0 - np.eye(len(members))), None
    status = tuple(np.where(members, "connected", "not identified").tolist())
    effective = np.full(len(members), np.nan)
    if counts.clicks.any():
        estimate, links = fit_all_pairs(counts, members, base)
        status, effective = statuses(estimate), estimate.effective_queries
    first = int(counts.ranks[base])
    columns = [
        counts.ranks, counts.ranks[component], counts.impressions, counts.clicks,
        np.diag(counts.seen_at_both), links.sum(axis=1), effective, status,
    ]  # fmt: skip
    lines = [*_component_lines(counts, component), *_weakest(counts, links, members, base)]
    lines += status_lines(counts.ranks, status, first)
    others = members & (np.arange(len(members)) != base)
    fewest = effective[others].min(initial=np.inf)
    if fewest < THIN_QUERIES:
        lines.append(f"Few queries decide: at some rank they are worth {fewest:.1f} equal ones.")
    if counts.left_out:
        lines.append(f"{counts.left_out:,} impressions at lower ranks are left out.")
    return SwapGraph._of(columns, reference=first, verdict=tuple(lines)), estimate


def column_of(counts: SwapCounts, reference: int) -> int:
    """Return the column of a reference rank; refuse one without impressions."""
    if reference not in counts.ranks:
        raise DataError(
            f"reference={reference!r} has no impressions; ranks with impressions are "
            f"{ranges(counts.ranks.tolist())}."
        )
    return int(np.searchsorted(counts.ranks, reference))


def statuses(estimate: LogEstimate) -> tuple[str, ...]:
    """Return whether the logarithm of each propensity is identified, thin or not identified."""
    thin = ~(estimate.errors <= THIN_ERROR) | (estimate.effective_queries < THIN_QUERIES)
    known = np.isfinite(estimate.values)
    status = np.where(known, np.where(thin, "thin", "identified"), "not identified").tolist()
    status[estimate.reference] = "reference"
    return tuple(status)


def status_lines(ranks: Array, status: tuple[str, ...], reference: int) -> list[str]:
    """Return sentences on the ranks of each status but the reference."""
    lines = []
    for name, text in SENTENCES.items():
        known = zip(ranks.tolist(), status, strict=True)
        of_status = [rank for rank, s in known if s == name and rank != reference]
        if of_status:
            lines.append(text.format(reference, ranges(of_status)))
    return lines


def _component_lines(counts: SwapCounts, component: Array) -> list[str]:
    """Return sentences on the components."""
    parts = [counts.ranks[component == first].tolist() for first in np.unique(component)]
    lines = [f"All {len(counts.ranks)} ranks are connected."]
    if len(counts.ranks) == 1:
        lines = [f"All impressions are at rank {counts.ranks[0]}: there is nothing to compare."]
    if len(parts) > 1:
        lines = [
            f"Ranks fall into {len(parts)} components: {'; '.join(map(ranges, parts))}.",
            "Between components nothing tells position from relevance: no clicked document was "
            "seen on both sides.",
        ]
    swapped = f"{len(counts.shown):,} of {counts.n_items:,} documents (of a query)"
    return [*lines, f"{swapped} were seen at several ranks."]


def _weakest(counts: SwapCounts, links: Floats, members: Array, base: int) -> list[str]:
    """Return a sentence on the weakest link that the component of the reference needs."""
    tree, needed, wanted = [base], [], np.flatnonzero(members)
    while len(tree) < len(wanted):  # grow the tree of the strongest links
        outside = np.setdiff1d(wanted, tree)
        link = links[tree][:, outside]
        row, column = np.unravel_index(np.argmax(link), link.shape)
        needed.append((float(link[row, column]), tree[row], int(outside[column])))
        tree.append(int(outside[column]))
    if not needed:
        return []
    strength, *ends = min(needed)
    low, high = sorted(ends)
    documents = counted(int(counts.seen_at_both[low, high]), "documents")
    clicks = f" and {strength:,.1f} comparing clicks" if counts.clicks.any() else ""
    between = f"{counts.ranks[low]} and {counts.ranks[high]}"
    return [f"The weakest link is that of ranks {between}: {documents}{clicks}."]
