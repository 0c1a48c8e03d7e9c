"""What a log contains: traffic of queries, click-through by rank, what is too thin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.clicks.models.pages import totals
from firstpage.clicks.sessions import Sessions
from firstpage.core import Array, Chart, DataError, Floats, Ints, Table, Tabular, curves, stacked

CONFIDENCE = 0.95
TRAFFIC = (1, 2, 10, 100, 1000)  # the least pages of each class of queries
MIN_PAGES = 10  # of a query, for estimates of its own
MIN_SHOWN = 10  # impressions of a query's document, for an estimate of its own
MIN_QUERIES = 10  # for intervals by query
FEW_MOVED = 0.1  # fraction of impressions of documents that were shown at several ranks


@dataclass(frozen=True)
class LogDescription(Tabular):
    """What a log contains; `str(description)` shows it in a terminal.

    Data frames have one row per rank.

    Attributes
    ----------
    source : str
        Where the log comes from.
    counts : dict of str to int
        Sessions, pages, impressions, clicks, and distinct queries, documents and pairs of both.
    traffic : tuple of dict
        Queries by the number of their pages: how many queries, and their fraction of the pages.
    ranks : tuple of dict
        Per rank: impressions, how many were clicked, the click-through rate, its 95 % interval by
        query, and the number of queries.
    moved : dict of str to float
        The fraction of pairs of query and document that were shown at several ranks, and the
        fraction of the impressions that are of such pairs.
    thin : tuple of str
        What is too thin to learn from.
    decisions : dict of str to int
        What was decided when the log was read, and in how many cases.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox", "fox"], document=["a", "b"], rank=[1, 2], clicked=[1, 0])
    >>> fp.clicks.describe(sessions).counts["clicks"]
    1
    """

    source: str
    counts: dict[str, int]
    traffic: tuple[dict[str, Any], ...]
    ranks: tuple[dict[str, Any], ...]
    moved: dict[str, float]
    thin: tuple[str, ...]
    decisions: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON-serializable values, as `--json` prints them."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}

    def _frame_columns(self) -> Mapping[str, Any]:
        return {name: [row[name] for row in self.ranks] for name in self.ranks[0]}

    def summary_table(self) -> Table:
        """Return the click-through rates by rank as a table."""
        form = "{rank}|{impressions:,}|{clicked:,}|{rate:.4f}|[{low:.4f}, {high:.4f}]"
        rows = [form.format(**row).split("|") for row in self.ranks]
        head = ["rank", "impressions", "clicked", "click-through", "95 % by query"]
        return Table(head, rows, left_aligned=0)

    def traffic_table(self) -> Table:
        """Return the queries by traffic as a table."""
        rows = [
            [row["pages_per_query"], f"{row['queries']:,}", f"{row['fraction_of_pages']:.1%}"]
            for row in self.traffic
        ]
        return Table(["pages of a query", "queries", "of all pages"], rows)

    def drawing(self) -> str:
        """Return click-through by rank with its intervals as an SVG drawing."""
        points = [(row["rank"], row["rate"]) for row in self.ranks]
        bands = [(row["low"], row["high"]) for row in self.ranks]
        name = "click-through"
        return curves({name: points}, f"{name} by rank", "rank", name, bands={name: bands})

    def plot(self) -> Chart:
        """Return a chart of click-through by rank, with 95 % intervals by query."""
        return stacked([(self.drawing(), self.source)], "click-through by rank")

    def __str__(self) -> str:
        lines = [self.source]
        lines += [f"  {name:<12} {count:>12,}" for name, count in self.counts.items()]
        lines += ["", self.traffic_table().text(), "", self.summary_table().text(), ""]
        lines += [self.moved_text, *(f"Too thin: {text}" for text in self.thin)]
        return "\n".join(lines)

    @property
    def moved_text(self) -> str:
        """How much was shown at several ranks, as a sentence."""
        return (
            f"{self.moved['pairs']:.1%} of the pairs of query and document were shown at several "
            f"ranks, and {self.moved['impressions']:.1%} of the impressions are of these."
        )


def describe(sessions: Sessions) -> LogDescription:
    """Describe a log: its size and traffic, click-through by rank, and what is too thin.

    Parameters
    ----------
    sessions : Sessions
        The log.

    Returns
    -------
    LogDescription
        Counts and rates, with intervals by query.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox", "fox"], document=["a", "b"], rank=[1, 2], clicked=[1, 0])
    >>> [row["rate"] for row in fp.clicks.describe(sessions).ranks]
    [1.0, 0.0]
    """
    if not sessions.n_impressions:
        raise DataError(f"{sessions.source}: has no impressions to describe.")
    pages = np.bincount(sessions.page_query, minlength=sessions.n_queries)
    pages = pages[pages > 0]
    pairs = sessions.pairs
    depth = int(sessions.rank.max(initial=0)) + 1
    cell, number = np.unique(pairs.pair * depth + sessions.rank, return_inverse=True)
    cell_shown = np.bincount(number, minlength=len(cell)).astype(np.float64)
    cell_clicked = np.bincount(number, sessions.clicked, len(cell)).astype(np.float64)
    shown = np.bincount(cell // depth, cell_shown)
    several = np.bincount(cell // depth) > 1
    counts = {
        "sessions": len(np.unique(sessions.session)), "pages": sessions.n_pages,
        "impressions": sessions.n_impressions, "clicks": int(sessions.clicks.sum()),
        "queries": len(pages), "documents": len(np.unique(sessions.document)), "pairs": len(shown),
    }  # fmt: skip
    fraction = float(shown[several].sum() / sessions.n_impressions)
    moved = {"pairs": float(several.mean()), "impressions": fraction}
    ranks = _by_rank(pairs.query[cell // depth], cell % depth, cell_shown, cell_clicked)
    thin = _thin(pages, shown, moved["impressions"], ranks)
    return LogDescription(
        sessions.source, counts, _traffic(pages), ranks, moved, thin, dict(sessions.decisions)
    )


def _traffic(pages: Array) -> tuple[dict[str, Any], ...]:
    """Return the queries by classes of the number of their pages."""
    rows = []
    for least, beyond in zip(TRAFFIC, [*TRAFFIC[1:], None], strict=True):
        inside = pages[(pages >= least) & (pages < (beyond or np.inf))]
        last = f"{least:,} or more" if beyond is None else f"{least:,} to {beyond - 1:,}"
        row = {"pages_per_query": "1" if beyond == least + 1 else last, "queries": len(inside)}
        rows.append({**row, "fraction_of_pages": float(inside.sum() / pages.sum())})
    return tuple(rows)


def _thin(
    pages: Array, shown: Array, moved: float, ranks: tuple[dict[str, Any], ...]
) -> tuple[str, ...]:
    """Return sentences on what is too thin to learn from."""
    texts = []
    few, rare = pages < MIN_PAGES, shown < MIN_SHOWN
    if few.any():
        texts.append(
            f"{int(few.sum()):,} of {len(pages):,} queries have fewer than {MIN_PAGES} pages "
            f"({pages[few].sum() / pages.sum():.1%} of all pages)."
        )
    if rare.any():
        texts.append(
            f"{int(rare.sum()):,} of {len(shown):,} pairs of query and document were shown fewer "
            f"than {MIN_SHOWN} times ({shown[rare].sum() / shown.sum():.1%} of the impressions)."
        )
    if len(pages) < MIN_QUERIES:
        texts.append(f"intervals by query need at least {MIN_QUERIES} queries.")
    wide = [str(row["rank"]) for row in ranks if row["high"] - row["low"] > max(row["rate"], 0.01)]
    if wide:
        listed = ", ".join(wide[:10]) + (", .." if len(wide) > 10 else "")
        texts.append(f"the interval of click-through is wider than the rate at rank {listed}.")
    if moved < FEW_MOVED:
        texts.append(
            f"only {moved:.1%} of the impressions are of documents that were shown at several "
            "ranks, so that rank and document can hardly be told apart."
        )
    return tuple(texts)


def _by_rank(query: Ints, rank: Ints, shown: Floats, clicked: Floats) -> tuple[dict[str, Any], ...]:
    """Return impressions, clicks and click-through with its interval per rank."""
    rows = []
    for each in np.unique(rank).tolist():
        at = rank == each
        sums = [totals(query[at], values[at], 0) for values in (shown, clicked)]
        of_query, clicks = (values[sums[0] > 0] for values in sums)
        low, high = ratio_interval(clicks, of_query)
        row = {"rank": each, "impressions": int(of_query.sum()), "clicked": int(clicks.sum())}
        rate = float(clicks.sum() / of_query.sum())
        rows.append({**row, "rate": rate, "low": low, "high": high, "queries": len(of_query)})
    return tuple(rows)


def ratio_interval(clicked: Floats, shown: Floats) -> tuple[float, float]:
    """Return a 95 % interval of sum(clicked) / sum(shown), whose terms are clusters (queries).

    It is Wilson's, with the number of independent impressions that has the variance between
    clusters (linearized), and Student's t with one degree of freedom less than there are clusters.
    """
    from scipy.special import stdtrit

    clusters, total = len(shown), float(shown.sum())
    rate = float(clicked.sum()) / total
    if clusters < 2:
        return 0.0, 1.0
    residuals = clicked - rate * shown
    variance = clusters / (clusters - 1) * float(residuals @ residuals) / total**2
    size = min(total, rate * (1 - rate) / variance) if variance > 0 else float(clusters)
    t = float(stdtrit(clusters - 1, 0.5 + CONFIDENCE / 2))
    center = (rate + t * t / (2 * size)) / (1 + t * t / size)
    radius = t / (1 + t * t / size) * np.sqrt(rate * (1 - rate) / size + (t / (2 * size)) ** 2)
    return max(0.0, center - float(radius)), min(1.0, center + float(radius))
