"""Many systems in one measure: groups that do not differ, and ranks under resampled queries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import Floats, Table, Tabular
from firstpage.core.kernels.measures import bootstrap_means
from firstpage.evaluation.comparison.comparison import TIE_TOLERANCE, Comparison, system_letter
from firstpage.evaluation.measures.significance import (
    adjust_p_values,
    p_value,
    paired_differences,
    percentile_interval,
)

RANK_ROUNDS = 2_000
MAX_PAIR_ROUNDS = 20_000  # of tests between systems that are not compared otherwise
RANK_LEVEL = 0.9


@dataclass(frozen=True)
class SystemRank:
    """One system among many.

    Attributes
    ----------
    system : str
        Name of the system.
    mean : float
        Mean of the measure.
    group : str
        Letters of its groups: systems that share a letter do not differ significantly.
    rank : int
        Rank by the mean, from 1.
    low, high : float
        Bounds of the central 90 % of its ranks over resampled queries.
    best : float
        Fraction of the samples in which it has the best mean; ties are shared.
    """

    system: str
    mean: float
    group: str
    rank: int
    low: float
    high: float
    best: float


@dataclass(frozen=True, eq=False)
class SystemRanks(Tabular):
    """Systems in the order of a measure; the result of `fp.rank_systems`.

    Attributes
    ----------
    measure : str
        Text of the measure.
    rows : tuple of SystemRank
        The systems, the best one first.
    p : array of float of shape (n_systems, n_systems)
        Corrected p-values of all pairs, in the order of the rows.
    gaps : array of float of shape (n_systems, n_systems)
        Mean of the system of the row minus that of the column.
    alpha : float
        Level of the groups.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [1, 2, 2, 1], "b": [2, 1, 2, 1]}
    >>> comparison = fp.compare(systems, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="RR")
    >>> fp.rank_systems(comparison).gaps.tolist()
    [[0.0, 0.25], [-0.25, 0.0]]
    """

    measure: str
    rows: tuple[SystemRank, ...]
    p: Floats
    gaps: Floats
    alpha: float

    def _frame_columns(self) -> dict[str, Any]:
        names = list(SystemRank.__dataclass_fields__)
        return {name: [getattr(row, name) for row in self.rows] for name in names}

    def summary_table(self) -> Table:
        head = ["system", self.measure, "group", "rank", "90 % of ranks", "best in"]
        rows = [
            [
                row.system,
                f"{row.mean:.4f}",
                row.group,
                str(row.rank),
                f"{row.low:g} to {row.high:g}",
                f"{row.best:.0%}",
            ]
            for row in self.rows
        ]
        note = (
            "Systems that share a letter do not differ significantly (corrected p of all pairs, "
            f"alpha {self.alpha:g}); ranks and best over {RANK_ROUNDS:,} samples of the queries"
        )
        return Table(head, rows, note=note)

    def matrix_table(self) -> Table:
        """Return the differences of all pairs: the row's mean minus the column's.

        Returns
        -------
        Table
            A row and a column per system; significant differences are bold.
        """
        names = [row.system for row in self.rows]
        cells = [
            [name, *("" if i == j else f"{self.gaps[i, j]:+.4f}" for j in range(len(names)))]
            for i, name in enumerate(names)
        ]
        bold = frozenset(
            (i, j + 1)
            for i in range(len(names))
            for j in range(len(names))
            if i != j and self.p[i, j] < self.alpha
        )
        legend = f"corrected p below {self.alpha:g}"
        return Table([self.measure, *names], cells, bold=bold, bold_legend=legend, bold_mark="†")

    def __str__(self) -> str:
        return self.summary_table().text()

    __repr__ = __str__


def rank_systems(
    comparison: Comparison, measure: str | None = None, alpha: float = 0.05
) -> SystemRanks:
    """Order systems by a measure, with significance groups and the stability of the ranks.

    Parameters
    ----------
    comparison : Comparison
        The compared systems.
    measure : str, optional
        Text of the measure, as it was requested; by default the first.
    alpha : float, default 0.05
        Level of the tests, corrected over all pairs of systems.

    Returns
    -------
    SystemRanks
        The systems, the best one first.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [1, 2, 2, 1], "b": [2, 1, 2, 1]}
    >>> comparison = fp.compare(systems, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="RR")
    >>> [(row.system, row.group) for row in fp.rank_systems(comparison).rows]
    [('b', 'a'), ('a', 'a')]
    """
    first = comparison.evaluations[0]
    text = first.texts[0] if measure is None else first.text_of(measure)
    values, weights = comparison.values(text), comparison.weights
    sign = -1.0 if comparison.lower_is_better(text) else 1.0
    means = np.array([e[text] for e in comparison.evaluations])
    order = np.argsort(-sign * means, kind="stable")
    weighted = values if weights is None else values * weights / weights.mean()
    p = _pair_p_values(comparison, text, alpha)[np.ix_(order, order)]
    groups = significance_groups(p >= alpha)
    draws = np.empty((RANK_ROUNDS, len(values)))
    sample = np.empty(values.shape[1], np.int64)
    bootstrap_means(np.ascontiguousarray(weighted), comparison.seed, sample, draws)
    ranks, best = _ranks(sign * draws)
    bounds = percentile_interval(ranks, RANK_LEVEL)
    rows = tuple(
        SystemRank(
            comparison.systems[s],
            float(means[s]),
            groups[place],
            place + 1,
            float(bounds[0, s]),
            float(bounds[1, s]),
            float(best[s]),
        )
        for place, s in enumerate(order.tolist())
    )
    gaps = means[order][:, None] - means[order][None, :]
    return SystemRanks(text, rows, p, gaps, alpha)


def _pair_p_values(comparison: Comparison, text: str, alpha: float) -> Floats:
    """Return the p-values of all pairs of systems, corrected together.

    They are pairwise tests, not Tukey's: permutations among all systems have little power between
    good systems where one system is far worse.  There are at least as many rounds as it takes to
    reach the level with so many pairs.
    """
    count = len(comparison.systems)
    pairs = [(j, i) for i in range(count) for j in range(i + 1, count)]
    needed = math.ceil(2 * len(pairs) / alpha)
    enough = comparison.test != "randomization" or comparison.rounds >= needed
    if comparison.baseline is None and enough:
        p = [d.p_corrected for d in comparison.differences if d.measure == text]
    else:
        values = comparison.values(text)
        rounds = max(min(comparison.rounds, MAX_PAIR_ROUNDS), needed)
        settings = (comparison.test, rounds, comparison.seed, comparison.weights)
        plain = [p_value(paired_differences(values[a], values[b]), *settings) for a, b in pairs]
        p = adjust_p_values(np.array(plain), comparison.correction).tolist()
    matrix = np.ones((count, count))
    for (a, b), value in zip(pairs, p, strict=True):
        matrix[a, b] = matrix[b, a] = value
    return matrix


def _ranks(draws: Floats) -> tuple[Floats, Floats]:
    """Return the rank of each system in each draw (ties share the mean rank), and how often it
    is the best."""
    above = draws[:, None, :] > draws[:, :, None] + TIE_TOLERANCE
    tied = np.abs(draws[:, None, :] - draws[:, :, None]) <= TIE_TOLERANCE
    ranks: Floats = 1 + above.sum(axis=2) + (tied.sum(axis=2) - 1) / 2
    first = ~above.any(axis=2)
    best: Floats = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    return ranks, best


def significance_groups(alike: Any) -> list[str]:
    """Return the letters of each system: two systems share one if and only if they are alike.

    The insert-and-absorb algorithm (Piepho 2004): every significant pair splits the groups that
    contain both, and groups within others are dropped.
    """
    count = len(alike)
    groups = [frozenset(range(count))]
    for i in range(count):
        for j in range(i + 1, count):
            if alike[i][j]:
                continue
            split = [group for group in groups if {i, j} <= group]
            groups = [group for group in groups if group not in split]
            for group in split:
                groups += [group - {i}, group - {j}]
            groups = [
                group
                for n, group in enumerate(groups)
                if not any(
                    group < other or (group == other and n > m) for m, other in enumerate(groups)
                )
            ]
    groups.sort(key=sorted)
    return [
        "".join(system_letter(g) for g, group in enumerate(groups) if i in group)
        for i in range(count)
    ]
