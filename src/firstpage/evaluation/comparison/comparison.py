"""Comparison: several systems on the same queries, with tests of their differences."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.core import (
    Chart,
    Floats,
    Table,
    Tabular,
    charts,
    latex_note,
    latex_tabular,
    latex_text,
    stacked,
)
from firstpage.data import Ids
from firstpage.evaluation.measures.evaluation import Drawing, Evaluation, means_of_systems
from firstpage.evaluation.measures.significance import (
    Correction,
    Test,
    adjust_p_values,
    difference_interval,
    effect_size,
    mean_of,
    p_phrase,
    p_value,
    paired_differences,
    randomized_tukey,
)

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def system_letter(number: int) -> str:
    """Return a, b, .. z, a1, b1, .. ."""
    round_, letter = divmod(number, len(ALPHABET))
    return ALPHABET[letter] + (str(round_) if round_ else "")


TEST_NAMES = {
    "randomization": "Fisher's randomization test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test",
}
CORRECTION_NAMES = {"holm": "Holm correction", "bh": "Benjamini-Hochberg", "none": "no correction"}


def better_than(comparison: Comparison, text: str, alpha: float) -> dict[str, list[str]]:
    """Return the systems that each system is significantly better than, in one measure."""
    sign = -1 if comparison.lower_is_better(text) else 1
    beaten: dict[str, list[str]] = {name: [] for name in comparison.systems}
    for d in comparison.differences:
        if d.measure == text and d.p_corrected < alpha:
            winner, loser = (
                (d.system, d.against) if sign * d.difference > 0 else (d.against, d.system)
            )
            beaten[winner].append(loser)
    return beaten


def signed(comparison: Comparison, text: str) -> list[float]:
    """Return the means of the systems, negated where lower is better."""
    sign = -1 if comparison.lower_is_better(text) else 1
    return [sign * evaluation[text] for evaluation in comparison.evaluations]


def paper_table(
    comparison: Comparison, caption: str | None, label: str | None, digits: int, alpha: float
) -> str:
    """Return a LaTeX table of means; superscripts name the systems that are beaten."""
    names = comparison.systems
    letters = {name: system_letter(n) for n, name in enumerate(names)}
    beaten = {text: better_than(comparison, text, alpha) for text in comparison.texts}
    best = {text: max(signed(comparison, text)) for text in comparison.texts}
    rows = []
    for row, evaluation in enumerate(comparison.evaluations):
        name = evaluation.name
        cells = []
        for text in comparison.texts:
            mean = evaluation.mean_text(text, digits)
            is_best = signed(comparison, text)[row] >= best[text] - TIE_TOLERANCE
            shown = rf"\textbf{{{mean}}}" if is_best else mean
            marks = "".join(sorted(letters[loser] for loser in beaten[text][name]))
            cells.append(shown + (rf"$^{{\mathrm{{{marks}}}}}$" if marks else ""))
        rows.append([letters[name], latex_text(name), *cells])
    head = ["", "System", *map(latex_text, comparison.texts)]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption if caption is not None else _caption(comparison))}}}",
        *([rf"\label{{{label}}}"] if label else []),
        *latex_tabular("ll" + "l" * len(comparison.texts), head, rows),
        latex_note(_legend(comparison, alpha)),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _caption(comparison: Comparison) -> str:
    return f"Means over {len(comparison.queries):,} queries."


def _legend(comparison: Comparison, alpha: float) -> str:
    against = f", against {comparison.baseline}" if comparison.baseline else ""
    return (
        "Superscripts: significantly better than the systems of these letters "
        f"({TEST_NAMES[comparison.test]}, {CORRECTION_NAMES[comparison.correction]}{against}, "
        f"p < {alpha:g}). bold: best mean; says nothing about significance."
    )


MAX_PRINTED = 20  # differences that are printed
MAX_TUKEY_ROUNDS = 20_000
TIE_TOLERANCE = 1e-9  # values of two systems closer than this count as equal


@dataclass(frozen=True)
class Difference:
    """The difference of two systems in one measure, with its significance.

    Attributes
    ----------
    measure : str
        Text of the measure.
    system, against : str
        Names of the two systems.
    difference : float
        Mean of `system` minus mean of `against`.
    low, high : float
        95 % bootstrap confidence interval of the difference; it contains 0 if fewer than six
        queries differ.
    p : float
        p-value of the paired test.
    p_corrected : float
        p-value, corrected for the number of comparisons in this measure.
    p_tukey : float
        p-value of the randomized Tukey HSD test over all systems.
    effect : float
        Effect size: mean of the differences per query divided by their standard deviation.
    wins, ties, losses : int
        Number of queries on which `system` is better, equal and worse.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [2, 1, 2, 1], "b": [1, 2, 2, 1]}
    >>> comparison = fp.compare(systems, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="RR")
    >>> difference = comparison.differences[0]
    >>> difference.system, difference.against, difference.difference
    ('b', 'a', -0.25)
    """

    measure: str
    system: str
    against: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float
    p_tukey: float
    effect: float
    wins: int
    ties: int
    losses: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """The result of `fp.compare`: systems side by side, with tests of their differences.

    As a data frame (`to_pandas`, `to_polars`) it has one row per difference, with the fields of
    `Difference`.

    Attributes
    ----------
    evaluations : tuple of Evaluation
        One per system, all on the same queries.
    baseline : str or None
        The system that all others are compared with; None compares every pair.
    test : {"randomization", "t", "wilcoxon"}
        Paired test of significance.
    correction : {"holm", "bh", "none"}
        Correction for multiple comparisons.
    rounds : int
        Number of random permutations per test.
    seed : int
        Seed of the tests and intervals.
    segments : Segments or None
        The same comparison within segments of the queries, where `by` was given.
    systems : tuple of str
        Names of the systems.
    texts : tuple of str
        Texts of the measures.
    queries : Ids
        Ids of the queries.
    weights : array of float or None
        Weights of the queries in the means.
    differences : tuple of Difference
        Differences between systems, measure by measure.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [2, 1, 2, 1], "b": [1, 2, 2, 1]}
    >>> comparison = fp.compare(systems, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="RR")
    >>> comparison.best("RR")
    'a'
    >>> comparison.values("RR").tolist()
    [[1.0, 1.0], [0.5, 1.0]]
    """

    evaluations: tuple[Evaluation, ...]
    baseline: str | None
    test: Test
    correction: Correction
    rounds: int
    seed: int
    segments: Any = field(default=None, repr=False)  # Segments, which hold comparisons

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(e.name for e in self.evaluations)

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts of the measures."""
        return self.evaluations[0].texts

    @property
    def queries(self) -> Ids:
        """Ids of the queries."""
        return self.evaluations[0].queries

    @property
    def weights(self) -> Floats | None:
        """Weights of the queries; None where all count the same."""
        return self.evaluations[0].weights

    def values(self, text: str) -> Floats:
        """Return the values of a measure.

        Parameters
        ----------
        text : str
            Any text for the measure.

        Returns
        -------
        array of float of shape (n_systems, n_queries)
            Value of each system for each query.
        """
        return np.array([e.per_query(text) for e in self.evaluations])

    def lower_is_better(self, text: str) -> bool:
        """Return whether smaller values of a measure are better.

        Parameters
        ----------
        text : str
            Any text for the measure.

        Returns
        -------
        bool
            True for losses and distances.
        """
        first = self.evaluations[0]
        return first.measures[first.row(text)].lower_is_better

    def best(self, text: str) -> str:
        """Return the system with the best mean.

        Parameters
        ----------
        text : str
            Any text for the measure.

        Returns
        -------
        str
            Name of the system.
        """
        means = [e[text] for e in self.evaluations]
        index = np.argmin(means) if self.lower_is_better(text) else np.argmax(means)
        return self.systems[int(index)]

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Differences of all systems to the baseline, or of all pairs if there is none.

        They are ordered by measure.  p-values are corrected within each measure, over all its
        comparisons.
        """
        return tuple(d for text in self.texts for d in self._measure_differences(text))

    def _pairs(self) -> list[tuple[int, int]]:
        names = self.systems
        if self.baseline is not None:
            base = names.index(self.baseline)
            return [(i, base) for i in range(len(names)) if i != base]
        return [(j, i) for i in range(len(names)) for j in range(i + 1, len(names))]

    def _measure_differences(self, text: str) -> list[Difference]:
        values = self.values(text)
        pairs = self._pairs()
        per_query = [paired_differences(values[a], values[b]) for a, b in pairs]
        weights = self.weights
        p = np.array([p_value(d, self.test, self.rounds, self.seed, weights) for d in per_query])
        adjusted = adjust_p_values(p, self.correction)
        weighted = values if weights is None else values * weights / weights.mean()
        tukey = randomized_tukey(weighted, min(self.rounds, MAX_TUKEY_ROUNDS), self.seed)
        sign = -1 if self.lower_is_better(text) else 1
        differences = []
        for row, ((a, b), d) in enumerate(zip(pairs, per_query, strict=True)):
            wins = int((sign * d > TIE_TOLERANCE).sum())
            losses = int((sign * d < -TIE_TOLERANCE).sum())
            differences.append(
                Difference(
                    text,
                    self.systems[a],
                    self.systems[b],
                    mean_of(d, weights),
                    *difference_interval(d, self.seed, weights),
                    float(p[row]),
                    float(adjusted[row]),
                    float(tukey[a, b]),
                    effect_size(d, weights),
                    wins,
                    len(d) - wins - losses,
                    losses,
                )
            )
        return differences

    def most_different(self, text: str, a: str, b: str, count: int = 5) -> list[tuple[str, float]]:
        """Return the queries on which two systems differ most.

        Parameters
        ----------
        text : str
            Any text for the measure.
        a, b : str
            Names of the two systems.
        count : int, default 5
            Greatest number of queries to return.

        Returns
        -------
        list of (str, float)
            Query and value of `a` minus value of `b`, in descending order of the absolute
            difference.  Queries with equal values are omitted.
        """
        names = self.systems
        values = self.values(text)
        differences = values[names.index(a)] - values[names.index(b)]
        order = np.argsort(-np.abs(differences), kind="stable")[:count]
        return [
            (self.queries[int(q)], float(differences[q]))
            for q in order
            if abs(differences[q]) > TIE_TOLERANCE
        ]

    def plot(self, measure: str | None = None) -> Chart:
        """Return a chart of means, differences with intervals, and queries won and lost.

        Parameters
        ----------
        measure : str, optional
            Text of a measure; by default all measures are drawn.

        Returns
        -------
        Chart
            A chart that notebooks show; `save` writes it to a file.

        Raises
        ------
        KeyError
            If the measure was not requested.
        """
        texts = self.texts if measure is None else (self.evaluations[0].text_of(measure),)
        drawings = []
        for text in texts:
            drawings += means_of_systems(self.evaluations, text)
            drawings += differences_of_systems(self, text)
        return stacked(drawings, f"Comparison of {', '.join(self.systems)}")

    def to_latex(
        self,
        caption: str | None = None,
        label: str | None = None,
        digits: int = 4,
        alpha: float = 0.05,
    ) -> str:
        """Return a table for a paper: means with superscripts of significance.

        Parameters
        ----------
        caption, label : str, optional
            Caption (by default the number of queries) and label of the table.
        digits : int, default 4
            Decimals of the means.
        alpha : float, default 0.05
            Level of the corrected p-values.

        Returns
        -------
        str
            A `table` environment that needs the package booktabs and no other.
        """
        return paper_table(self, caption, label, digits, alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return means, differences and the most different queries as a dictionary.

        Returns
        -------
        dict
            The content of `firstpage compare --json`.
        """
        bounds = {e.name: e.bounds_by_text() for e in self.evaluations if e.bounds}
        return {
            "systems": {e.name: e.means for e in self.evaluations},
            **({"bounds": bounds} if bounds else {}),
            "queries": len(self.queries),
            "convention": str(self.evaluations[0].convention),
            "test": self.test,
            "correction": self.correction,
            "baseline": self.baseline,
            "differences": [d.to_dict() for d in self.differences],
            "most_different": [
                {
                    "measure": d.measure,
                    "system": d.system,
                    "against": d.against,
                    "queries": [
                        {"query": query, "difference": difference}
                        for query, difference in self.most_different(d.measure, d.system, d.against)
                    ],
                }
                for d in self.differences
            ],
            **({} if self.segments is None else {"segments": self.segments.to_dict()}),
        }

    def __str__(self) -> str:
        width = max(len(name) for name in self.systems)
        lines = [f"{len(self.queries)} queries"]
        for e in self.evaluations:
            means = "  ".join(f"{text} {e.mean_text(text)}" for text in self.texts)
            lines.append(f"{e.name:<{width}}  {means}")
        lines += [
            f"{d.measure}: {d.system} - {d.against} = {d.difference:+.4f}, "
            + p_phrase(d.p_corrected)
            for d in self.differences[:MAX_PRINTED]
        ]
        if len(self.differences) > MAX_PRINTED:
            lines.append(f".. and {len(self.differences) - MAX_PRINTED} more, in `differences`")
        text = "\n".join(lines)
        return text if self.segments is None else f"{text}\n\n{self.segments}"

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, Any]:
        """Return the fields of the differences, one row per difference."""
        return {
            f.name: [getattr(difference, f.name) for difference in self.differences]
            for f in fields(Difference)
        }

    def summary_table(self) -> Table:
        """Return the mean of every measure by system, the best ones in bold."""
        rows = [
            [evaluation.name, *map(evaluation.mean_text, self.texts)]
            for evaluation in self.evaluations
        ]
        bold = {
            (self.systems.index(self.best(text)), column)
            for column, text in enumerate(self.texts, start=1)
        }
        title = f"{len(self.queries)} queries"
        return Table(
            ["system", *self.texts], rows, title, bold=frozenset(bold), bold_legend="best mean"
        )


def differences_of_systems(comparison: Comparison, text: str) -> list[Drawing]:
    """Return charts of the differences in a measure, and of the queries won and lost."""
    rows = [d for d in comparison.differences if d.measure == text]
    gaps = [(f"{d.system} − {d.against}", d.difference, d.low, d.high) for d in rows]
    wins = [(f"{d.system} − {d.against}", d.wins, d.ties, d.losses) for d in rows]
    return [
        (
            charts.intervals(gaps, f"differences in {text}", zero=True),
            "Differences with 95 % intervals; blue where the interval excludes 0.",
        ),
        (charts.outcomes(wins, "wins, ties, losses"), "Queries won, tied and lost."),
    ]
