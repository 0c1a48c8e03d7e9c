"""Evaluation: the measures of one system, per query and averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from firstpage.core import (
    Chart,
    DataError,
    Floats,
    Ints,
    MeasureError,
    Table,
    Tabular,
    charts,
    stacked,
)
from firstpage.data import Ids, check_query_weights
from firstpage.evaluation.measures.base import Convention, Measure
from firstpage.evaluation.measures.inputs import first_ids
from firstpage.evaluation.measures.query_segments import segment_columns
from firstpage.evaluation.measures.registry import measure
from firstpage.evaluation.measures.significance import mean_intervals, mean_of
from firstpage.evaluation.measures.unjudged import Bounds


@dataclass(frozen=True, eq=False)
class Evaluation(Tabular):
    """The result of `fp.evaluate`: means of measures and values per query.

    ``evaluation["NDCG@10"]`` is the mean of a measure over the queries; any text for it will do.
    Tables have the texts that the measures were requested by.  As a data frame (`to_pandas`,
    `to_polars`) it has one row per query: its id, and a column per measure.

    Attributes
    ----------
    texts : tuple of str
        Texts of the measures, in the order of the request.
    measures : tuple of Measure
        The measures.
    queries : Ids
        Ids of the queries that were measured.
    values : array of float of shape (n_measures, n_queries)
        Value of every measure for every query.
    convention : Convention
        The convention that applied.
    intervals : dict of str to (float, float)
        95 % bootstrap confidence intervals of the means, by text; empty without ``ci=True``.
    name : str
        Name of the system.
    weights : array of float of shape (n_queries,) or None
        Weight of each query in the means, such as its traffic.
    bounds : dict of str to Bounds
        Means without the unjudged documents (`condensed`) and with these as relevant ones
        (`relevant`), by text; empty without ``bounds=True``.
    by : str
        Name of the segments; empty where there are none.
    k : int or None
        Depth of the truth, if it was cut to its top k.
    segments : dict of str to Evaluation
        The same measures within each segment of the queries.
    means : dict of str to float
        Mean of each measure over the queries, by text.

    Examples
    --------
    >>> import firstpage as fp
    >>> evaluation = fp.evaluate([2, 1, 2, 1], [1, 0, 0, 1], qid=[1, 1, 2, 2], measures="RR")
    >>> evaluation["RR"]
    0.75
    >>> evaluation.per_query("RR").tolist()
    [1.0, 0.5]
    """

    interval_kind: ClassVar[str] = "bootstrap"
    texts: tuple[str, ...]
    measures: tuple[Measure, ...]
    queries: Ids
    values: Floats  # one row per measure, one column per query
    convention: Convention
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    name: str = ""
    weights: Floats | None = field(default=None, repr=False)
    bounds: dict[str, Bounds] = field(default_factory=dict)
    by: str = ""
    segments: dict[str, Evaluation] = field(default_factory=dict, repr=False)
    k: int | None = None

    def __getitem__(self, text: str | Measure) -> float:
        """Return the mean of a measure over the queries, weighted where they have weights."""
        row = self.row(text)
        mean = mean_of(self.values[row], self.weights)
        return self.measures[row].from_mean(mean, len(self.queries))

    def row(self, text: str | Measure) -> int:
        """Return the row of a measure in `values`.

        Parameters
        ----------
        text : str or Measure
            The measure, or a text for it: as it was requested, or another one.

        Returns
        -------
        int
            The row.

        Raises
        ------
        KeyError
            If the measure was not requested.

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.evaluate([2, 1], [1, 0], qid=[1, 1], measures="AP,NDCG@10").row("ndcg_cut_10")
        1
        """
        if text in self.texts:
            return self.texts.index(str(text))
        with suppress(MeasureError):
            if (wanted := measure(text)) in self.measures:
                return self.measures.index(wanted)
        name = repr(text) if isinstance(text, str) else str(text)
        raise KeyError(f"{name} was not measured; available: {', '.join(self.texts)}")

    def text_of(self, text: str | Measure) -> str:
        """Return the text by which a measure was requested.

        Parameters
        ----------
        text : str or Measure
            The measure, or any text for it.

        Returns
        -------
        str
            Its text in `texts`.

        Raises
        ------
        KeyError
            If the measure was not requested.

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.evaluate([2, 1], [1, 0], qid=[1, 1], measures="map").text_of("AP")
        'map'
        """
        return self.texts[self.row(text)]

    def per_query(self, text: str | Measure) -> Floats:
        """Return the values of a measure per query.

        Parameters
        ----------
        text : str or Measure
            The measure, or any text for it.

        Returns
        -------
        array of float
            One value per query, in the order of `queries`.

        Raises
        ------
        KeyError
            If the measure was not requested.
        """
        values: Floats = self.values[self.row(text)]
        return values

    def mean_text(self, text: str, digits: int = 4) -> str:
        """Return the mean of a measure as text; counts have no decimals.

        Parameters
        ----------
        text : str
            Any text for the measure.
        digits : int, default 4
            Number of decimals.

        Returns
        -------
        str
            The rounded mean.
        """
        return self.measures[self.row(text)].mean_text(self[text], digits)

    def interval_text(self, text: str) -> str:
        """Return the confidence interval of a mean as text; "" where there is none.

        Parameters
        ----------
        text : str
            Any text for the measure.

        Returns
        -------
        str
            The rounded bounds, as in "[0.4012, 0.4530]".
        """
        row = self.row(text)
        interval = self.intervals.get(self.texts[row])
        if interval is None:
            return ""
        return "[{}, {}]".format(*map(self.measures[row].mean_text, interval))

    @property
    def means(self) -> dict[str, float]:
        """Mean of each measure over the queries, by text."""
        return {text: self[text] for text in self.texts}

    def to_dict(self) -> dict[str, Any]:
        """Return means, number of queries, convention and intervals as a dictionary.

        Returns
        -------
        dict
            The content of `firstpage evaluate --json`.
        """
        summary: dict[str, Any] = {
            "measures": self.means,
            "queries": len(self.queries),
            "convention": str(self.convention),
        }
        if self.weights is not None:
            summary["effective_queries"] = effective_queries(self.weights)
        if self.convention.condensed:
            summary["condensed"] = True
        if self.intervals:
            summary["ci"] = {text: list(bounds) for text, bounds in self.intervals.items()}
        if self.bounds:
            summary["bounds"] = self.bounds_by_text()
        if self.segments:
            summary["by"] = self.by
            summary["segments"] = {name: part.to_dict() for name, part in self.segments.items()}
        return summary

    def on_queries(self, columns: Ints) -> Evaluation:
        """Return the evaluation on some of the queries.

        Parameters
        ----------
        columns : array of int
            Numbers of the queries.

        Returns
        -------
        Evaluation
            Means of these queries, with intervals where this one has any, without bounds and
            segments.
        """
        values = np.ascontiguousarray(self.values[:, columns])
        weights = None if self.weights is None else self.weights[columns]
        if weights is not None and not weights.sum() > 0:
            raise DataError("the queries of a segment have no weight.")
        part = replace(
            self,
            queries=self.queries[columns],
            values=values,
            weights=weights,
            intervals={},
            bounds={},
            segments={},
            by="",
        )
        return part._with_intervals() if self.intervals else part

    def _with_intervals(self) -> Evaluation:
        """Return the evaluation with bootstrap intervals of the means."""
        bounds = mean_intervals(self.values, self.convention.seed, self.weights)
        count = len(self.queries)
        intervals = {
            text: (m.from_mean(low, count), m.from_mean(high, count))
            for text, m, (low, high) in zip(self.texts, self.measures, bounds, strict=True)
        }
        return replace(self, intervals=intervals)

    def _with_segments(self, name: str, segments: Mapping[str, Any]) -> Evaluation:
        """Return the evaluation with those of its segments."""
        columns = segment_columns(self.queries, segments, name)
        parts = {segment: self.on_queries(rows) for segment, rows in columns.items()}
        return replace(self, by=name, segments=parts)

    def segments_table(self) -> Table:
        """Return a row per segment with the number of queries and the means.

        Returns
        -------
        Table
            Means by segment, with intervals where these were computed.

        Raises
        ------
        DataError
            If the evaluation has no segments.
        """
        if not self.segments:
            raise DataError("this evaluation has no segments; call evaluate with by.")
        parts = {segment: [part] for segment, part in self.segments.items()}
        return segment_means_table(self.by, parts)

    def bounds_by_text(self) -> dict[str, dict[str, float]]:
        """Return the bounds as nested dictionaries.

        Returns
        -------
        dict
            {measure: {"condensed": mean, "relevant": mean}}.
        """
        return {text: bounds._asdict() for text, bounds in self.bounds.items()}

    def bounds_table(self) -> Table:
        """Return a row per measure: the mean by what unjudged documents are.

        Returns
        -------
        Table
            Means where they are not relevant, removed, and relevant.

        Raises
        ------
        DataError
            If the evaluation has no bounds.
        """
        if not self.bounds:
            raise DataError("this evaluation has no bounds; call evaluate with bounds=True.")
        return bounds_table([self])

    def plot(self, measure: str | None = None) -> Chart:
        """Return a chart: means with intervals where there are any, and values over the queries.

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
        texts = self.texts if measure is None else (self.text_of(measure),)
        drawings = means_of_measures(self) if measure is None else []
        drawings += distributions([self], texts, named=False)
        return stacked(drawings, f"Evaluation of {self.name or 'a ranking'}")

    def __str__(self) -> str:
        width = max(len(text) for text in self.texts)
        lines = [f"{len(self.queries)} queries, convention {self.convention}"]
        for text in self.texts:
            cells = f"{text:<{width}}  {self.mean_text(text)}  {self.interval_text(text)}"
            lines.append(cells.rstrip())
        tables = [self.bounds_table()] if self.bounds else []
        tables += [self.segments_table()] if self.segments else []
        return "\n\n".join(["\n".join(lines), *(table.text() for table in tables)])

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, Any]:
        """Return the query ids and the values of every measure, one row per query."""
        values = dict(zip(self.texts, self.values, strict=True))
        return {"query": [str(query) for query in self.queries], **values}

    def summary_table(self) -> Table:
        """Return the means, with their intervals where these were computed."""
        rows = [[text, self.mean_text(text)] for text in self.texts]
        if self.intervals:
            for row in rows:
                row.append(self.interval_text(row[0]))
        head = ["measure", "mean", "95 % interval"][: 3 if self.intervals else 2]
        title = f"{len(self.queries)} queries, convention {self.convention}"
        return Table(head, rows, title)


def bounds_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return a row per system and measure: the mean by what unjudged documents are."""
    several = len(evaluations) > 1
    head = [*(["system"] * several), "measure", "not relevant", "removed", "relevant"]
    rows = []
    for e in evaluations:
        for text, m in zip(e.texts, e.measures, strict=True):
            means = map(m.mean_text, (e[text], *e.bounds[text]))
            rows.append([*([e.name] * several), text, *means])
    return Table(head, rows, "Unjudged documents are", left_aligned=1 + several)


def segment_means_table(name: str, parts: Mapping[str, Sequence[Evaluation]]) -> Table:
    """Return a row per segment and system with the number of queries and the means."""
    first = next(iter(parts.values()))
    several = len(first) > 1
    rows = []
    for segment, evaluations in parts.items():
        for e in evaluations:
            means = [f"{e.mean_text(text)} {e.interval_text(text)}".strip() for text in e.texts]
            rows.append([segment, *([e.name] * several), f"{len(e.queries):,}", *means])
    head = [name, *(["system"] * several), "queries", *first[0].texts]
    note = "[..]: 95 % bootstrap interval of the mean" if first[0].intervals else ""
    return Table(head, rows, note=note, left_aligned=1 + several)


def query_weights(weights: Mapping[str, float], queries: Ids) -> Floats:
    """Return one weight per query; a query without one is an error."""
    by_id = {str(query): value for query, value in weights.items()}
    missing = [query for query in queries if query not in by_id]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(queries)} queries have no weight: {first_ids(missing)}."
        )
    values = np.array([by_id[query] for query in queries], np.float64)
    check_query_weights(values, len(queries), "weights")
    if not values.sum() > 0:
        raise DataError("the weights of all queries are 0.")
    return values


def effective_queries(weights: Floats) -> float:
    """Return the number of equally weighted queries with the same error (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


Drawing = tuple[str, str]  # an SVG element and its caption


def means_of_measures(evaluation: Evaluation) -> list[Drawing]:
    """Return a chart of the means of one system, if they have intervals."""
    if not evaluation.intervals:
        return []
    rows = [(text, evaluation[text], *evaluation.intervals[text]) for text in evaluation.texts]
    return [(charts.intervals(rows, "means"), "Means with 95 % bootstrap intervals.")]


def means_of_systems(evaluations: Sequence[Evaluation], text: str) -> list[Drawing]:
    """Return a chart of the means of several systems, if all have intervals."""
    if not all(text in e.intervals for e in evaluations):
        return []
    rows = [(e.name, e[text], *e.intervals[text]) for e in evaluations]
    return [(charts.intervals(rows, text), f"{text}: means with 95 % intervals.")]


def distributions(
    evaluations: Sequence[Evaluation], texts: Sequence[str], named: bool
) -> list[Drawing]:
    """Return a histogram over the queries per system and measure."""
    return [
        (
            charts.histogram(e.per_query(text), text),
            f"{text}{f' of {e.name}' if named else ''}: number of queries by value.",
        )
        for e in evaluations
        for text in texts
    ]
