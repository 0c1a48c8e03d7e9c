"""Comparisons within segments of the queries, and tests of whether segments differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.core import Floats, Ints, Table, Tabular
from firstpage.evaluation.comparison.comparison import Comparison, Difference
from firstpage.evaluation.measures.evaluation import segment_means_table
from firstpage.evaluation.measures.query_segments import (
    as_query_table,
    segment_columns,
    segments_of,
)
from firstpage.evaluation.measures.significance import adjust_p_values, format_p, paired_differences

MIN_QUERIES = 2  # in a segment that is tested
INTERACTION_ROUNDS = 9_999
MAX_INTERACTION_CELLS = 20_000_000  # rounds times queries
VARIANCE_FLOOR = 1e-12


@dataclass(frozen=True)
class Interaction:
    """The test of whether the difference of two systems is the same in all segments.

    Attributes
    ----------
    measure, system, against : str
        Text of the measure, and names of the systems.
    largest, smallest : str
        Segments with the largest and the smallest difference.
    p : float
        p-value: how often randomly assigned segments differ as much.
    p_corrected : float
        p-value, corrected for the number of comparisons in this measure.
    """

    measure: str
    system: str
    against: str
    largest: str
    smallest: str
    p: float
    p_corrected: float


@dataclass(frozen=True, eq=False)
class Segments(Tabular):
    """Systems compared within segments of the queries; the result of `fp.compare_segments`.

    As a data frame it has one row per segment and difference.

    Attributes
    ----------
    name : str
        What the segments are: the column of the table of queries.
    overall : Comparison
        The comparison on all queries.
    parts : dict of str to Comparison
        The comparison in each segment.
    differences : dict of str to tuple of Difference
        Differences per segment; p-values are corrected over all segments of a measure.
    interactions : tuple of Interaction
        Tests of whether the differences vary between segments.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [2, 1, 2, 1, 2, 1, 1, 2], "b": [1, 2, 2, 1, 2, 1, 2, 1]}
    >>> labels, qid = [1, 0, 1, 0, 1, 0, 1, 0], [1, 1, 2, 2, 3, 3, 4, 4]
    >>> comparison = fp.compare(systems, labels, qid=qid, measures="RR")
    >>> segments = fp.compare_segments(comparison, {"1": "en", "2": "en", "3": "de", "4": "de"})
    >>> list(segments.parts)
    ['en', 'de']
    """

    name: str
    overall: Comparison
    parts: dict[str, Comparison]

    @cached_property
    def differences(self) -> dict[str, tuple[Difference, ...]]:
        """Differences per segment, corrected over all segments and pairs of a measure."""
        corrected: dict[str, list[Difference]] = {segment: [] for segment in self.parts}
        for text in self.overall.texts:
            family = [
                (segment, difference)
                for segment, part in self.parts.items()
                for difference in part.differences
                if difference.measure == text
            ]
            p = adjust_p_values(np.array([d.p for _, d in family]), self.overall.correction)
            for (segment, difference), value in zip(family, p.tolist(), strict=True):
                corrected[segment].append(replace(difference, p_corrected=value))
        return {segment: tuple(rows) for segment, rows in corrected.items()}

    @cached_property
    def interactions(self) -> tuple[Interaction, ...]:
        """Tests of whether the difference of two systems varies between segments."""
        if len(self.parts) < 2:
            return ()
        rows = []
        for text in self.overall.texts:
            found = [self._interaction(text, a, b) for a, b in self.overall._pairs()]
            p = adjust_p_values(np.array([i.p for i in found]), self.overall.correction)
            rows += [
                replace(i, p_corrected=value) for i, value in zip(found, p.tolist(), strict=True)
            ]
        return tuple(rows)

    def _interaction(self, text: str, a: int, b: int) -> Interaction:
        groups, weights = [], []
        for part in self.parts.values():
            values = part.values(text)
            groups.append(paired_differences(values[a], values[b]))
            weights.append(np.ones(len(groups[-1])) if part.weights is None else part.weights)
        sizes = np.array([len(group) for group in groups])
        p = interaction_p_value(
            np.concatenate(groups), np.concatenate(weights), sizes, self.overall.seed
        )
        means = [float(np.average(g, weights=w)) for g, w in zip(groups, weights, strict=True)]
        names, segments = self.overall.systems, list(self.parts)
        return Interaction(
            text,
            names[a],
            names[b],
            segments[int(np.argmax(means))],
            segments[int(np.argmin(means))],
            p,
            p,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the segments as a dictionary.

        Returns
        -------
        dict
            Means and differences per segment, and the interactions.
        """
        return {
            "by": self.name,
            "segments": {
                segment: {
                    "queries": len(part.queries),
                    "systems": {e.name: e.means for e in part.evaluations},
                    "differences": [d.to_dict() for d in self.differences[segment]],
                }
                for segment, part in self.parts.items()
            },
            "interactions": [dict(vars(i)) for i in self.interactions],
        }

    def _frame_columns(self) -> dict[str, Any]:
        rows = [(segment, d) for segment, found in self.differences.items() for d in found]
        names = [f.name for f in fields(Difference)]
        columns: dict[str, Any] = {"segment": [segment for segment, _ in rows]}
        return columns | {name: [getattr(d, name) for _, d in rows] for name in names}

    def means_table(self) -> Table:
        """Return a row per segment and system with the means.

        Returns
        -------
        Table
            Means by segment.
        """
        parts = {
            segment: [replace(e, intervals={}) for e in part.evaluations]
            for segment, part in self.parts.items()
        }
        return segment_means_table(self.name, parts)

    def differences_table(self) -> Table:
        """Return a row per segment and difference.

        Returns
        -------
        Table
            Differences with intervals and p-values.
        """
        head = [
            "measure", self.name, "system", "against", "difference", "95 % interval", "p",
            f"p {self.overall.correction}",
        ]  # fmt: skip
        pairs = [(segment, d) for segment, found in self.differences.items() for d in found]
        pairs.sort(key=lambda pair: self.overall.texts.index(pair[1].measure))
        rows = [
            [
                d.measure,
                segment,
                d.system,
                d.against,
                f"{d.difference:+.4f}",
                f"[{d.low:+.4f}, {d.high:+.4f}]",
                format_p(d.p),
                format_p(d.p_corrected),
            ]
            for segment, d in pairs
        ]
        bold = frozenset((r, 7) for r, (_, d) in enumerate(pairs) if d.p_corrected < 0.05)
        return Table(
            head,
            rows,
            left_aligned=4,
            bold=bold,
            bold_mark="†",
            bold_legend="corrected p below .05, over all segments and pairs of the measure",
        )

    def interactions_table(self) -> Table:
        """Return a row per pair of systems: does their difference vary between segments?

        Returns
        -------
        Table
            The tests of interaction.
        """
        head = ["measure", "system", "against", "largest in", "smallest in", "p", "p corrected"]
        rows = [
            [
                i.measure,
                i.system,
                i.against,
                i.largest,
                i.smallest,
                format_p(i.p),
                format_p(i.p_corrected),
            ]
            for i in self.interactions
        ]
        note = "p: how often randomly assigned segments differ as much in the difference"
        return Table(head, rows, f"Does the difference depend on {self.name}?", note, 5)

    def summary_table(self) -> Table:
        return self.means_table()

    def __str__(self) -> str:
        tables = [self.means_table(), self.differences_table(), self.interactions_table()]
        return "\n\n".join(table.text() for table in tables if table.rows)

    __repr__ = __str__


def compare_segments(comparison: Comparison, segments: Any, by: str = "segment") -> Segments:
    """Compare systems within segments of the queries, and test whether the segments differ.

    Queries without a segment are left out, with a warning; so are segments of one query.

    Parameters
    ----------
    comparison : Comparison
        The systems on all queries.
    segments : dict, QueryTable, data frame or path
        The segment of each query id, or a table of queries.
    by : str, default "segment"
        The column of the table: `language`; `traffic(10, 100)`, which divides the numbers of a
        column at cut points; or `traffic(head)`, which makes head, torso and tail with a third of
        the sum each.  For a dict, the name of the segments.

    Returns
    -------
    Segments
        Means, differences and tests per segment, with p-values corrected over all segments.

    Raises
    ------
    DataError
        If there is no such column, or it has too many different values.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [2, 1, 2, 1, 2, 1, 1, 2], "b": [1, 2, 2, 1, 2, 1, 2, 1]}
    >>> labels, qid = [1, 0, 1, 0, 1, 0, 1, 0], [1, 1, 2, 2, 3, 3, 4, 4]
    >>> comparison = fp.compare(systems, labels, qid=qid, measures="RR", baseline="a")
    >>> table = fp.QueryTable({"traffic": {"1": 90, "2": 80, "3": 5, "4": 1}})
    >>> segments = fp.compare_segments(comparison, table, by="traffic(10)")
    >>> {name: part.differences[0].difference for name, part in segments.parts.items()}
    {'from 10': -0.25, 'below 10': 0.25}
    """
    name = by
    if not isinstance(segments, Mapping):
        name, segments = segments_of(as_query_table(segments), by)
    columns = segment_columns(comparison.queries, segments, name, MIN_QUERIES)
    parts = {segment: select_columns(comparison, rows) for segment, rows in columns.items()}
    return Segments(name, comparison, parts)


def select_columns(comparison: Comparison, columns: Ints) -> Comparison:
    """Return the comparison on some of its queries."""
    evaluations = tuple(e.on_queries(columns) for e in comparison.evaluations)
    return replace(comparison, evaluations=evaluations, segments=None)


def interaction_p_value(
    differences: Floats, weights: Floats, sizes: Ints, seed: int, rounds: int = INTERACTION_ROUNDS
) -> float:
    """Return the p-value of the hypothesis that the mean difference is equal in all groups.

    Queries are assigned to groups at random.  The statistic is that of Welch's test (Wald type),
    with which the test is asymptotically valid for groups of different variance too (Pauly,
    Brunner and Konietschke 2015).
    """
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rounds = min(rounds, max(999, MAX_INTERACTION_CELLS // len(differences)))
    observed = _wald(differences[None], weights[None], starts, sizes)[0]
    reached = 0
    step = max(1, 2_000_000 // len(differences))
    for start in range(0, rounds, step):
        count = min(step, rounds - start)
        order = rng.permuted(np.tile(np.arange(len(differences)), (count, 1)), axis=1)
        statistics = _wald(differences[order], weights[order], starts, sizes)
        reached += int((statistics >= observed * (1 - 1e-9)).sum())
    return (reached + 1) / (rounds + 1)


def _wald(differences: Floats, weights: Floats, starts: Ints, sizes: Ints) -> Floats:
    """Return the weighted sum of squares between the groups' means, one per row."""
    total = np.add.reduceat(weights, starts, axis=1)
    total = np.where(total > 0, total, 1.0)
    means = np.add.reduceat(weights * differences, starts, axis=1) / total
    residuals = weights * (differences - np.repeat(means, sizes, axis=1))
    variance = np.add.reduceat(residuals**2, starts, axis=1) / total**2
    variance = np.maximum(variance * sizes / np.maximum(sizes - 1, 1), VARIANCE_FLOOR)
    common = (means / variance).sum(axis=1) / (1 / variance).sum(axis=1)
    statistic: Floats = ((means - common[:, None]) ** 2 / variance).sum(axis=1)
    return statistic
