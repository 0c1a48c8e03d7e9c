"""Random samples of queries for human judgments, with their inclusion probabilities."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstpage.core import Bools, DataError, Floats, csv_line
from firstpage.data.formats import QueryTable
from firstpage.data.io import write_bytes

DRAWN = {"yes": True, "no": False}
SUM_TOLERANCE = 1e-6  # relative error of the sum of the probabilities of a file


@dataclass(frozen=True, eq=False)
class QuerySample:
    """A random sample of queries, with the probability by which each query was drawn.

    `fp.planning.estimate` uses the probabilities as weights (Horvitz and Thompson), so the sample
    must be drawn before anybody judges, and people must judge all drawn queries.

    Parameters
    ----------
    queries : tuple of str
        All queries that could be drawn.
    probabilities : array of float
        Inclusion probability of each query, above 0 and at most 1.
    drawn : array of bool
        Whether each query was drawn.

    Raises
    ------
    DataError
        If the lengths differ, a query occurs twice, or a probability is not in (0, 1].

    Examples
    --------
    >>> import firstpage as fp
    >>> sample = fp.planning.QuerySample.draw(["q1", "q2", "q3", "q4"], 2, seed=1)
    >>> sample.probabilities.tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> len(sample.drawn_queries)
    2
    """

    queries: tuple[str, ...]
    probabilities: Floats
    drawn: Bools

    def __post_init__(self) -> None:
        if not len(self.queries) == len(self.probabilities) == len(self.drawn):
            raise DataError(
                f"a sample has {len(self.queries)} queries, {len(self.probabilities)} "
                f"probabilities and {len(self.drawn)} marks; the three must be equal."
            )
        seen: set[str] = set()
        for query, probability in zip(self.queries, self.probabilities.tolist(), strict=True):
            if query in seen:
                raise DataError(f"the query {query!r} occurs twice in the sample.")
            if not 0 < probability <= 1:
                raise DataError(
                    f"the inclusion probability of query {query!r} must be above 0 and at most 1; "
                    f"got {probability:g}."
                )
            seen.add(query)

    def __repr__(self) -> str:
        return f"QuerySample({len(self.drawn_queries)} of {len(self.queries)} queries)"

    @property
    def drawn_queries(self) -> tuple[str, ...]:
        """The queries that were drawn, which people judge."""
        return tuple(q for q, drawn in zip(self.queries, self.drawn, strict=True) if drawn)

    @classmethod
    def draw(
        cls,
        queries: Iterable[str],
        size: int,
        *,
        sizes: Mapping[str, float] | None = None,
        seed: int = 0,
    ) -> QuerySample:
        """Draw queries at random, without replacement.

        The queries are put into random order, and every query whose interval of the cumulative
        probabilities contains one of `size` equidistant points is drawn.  Without `sizes` this
        is a simple random sample.

        Parameters
        ----------
        queries : iterable of str
            The queries to draw from.
        size : int
            Number of queries to draw.
        sizes : dict of str to float, optional
            A positive number per query; its inclusion probability is proportional to it, and at
            most 1.  Queries on which machines and people may disagree deserve larger ones.
        seed : int, default 0
            Random seed.

        Returns
        -------
        QuerySample
            The sample with its inclusion probabilities.

        Raises
        ------
        DataError
            If there are fewer queries than `size`, or a query lacks a positive size.

        Examples
        --------
        >>> import firstpage as fp
        >>> sizes = {"easy": 1, "hard": 2, "odd": 1}
        >>> fp.planning.QuerySample.draw(sizes, 2, sizes=sizes).probabilities.tolist()
        [0.5, 1.0, 0.5]
        """
        names = tuple(dict.fromkeys(str(query) for query in queries))
        if not 1 <= size <= len(names):
            raise DataError(
                f"the size of a sample must be from 1 to the number of queries, {len(names)}; "
                f"got {size}."
            )
        probabilities = _inclusion_probabilities(_checked_sizes(names, sizes), size)
        rng = np.random.default_rng(seed)
        drawn = _systematic_draw(probabilities, rng)
        return cls(names, probabilities, drawn)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> QuerySample:
        """Read a sample: a table with the columns query, probability and drawn (yes or no).

        Parameters
        ----------
        path : path
            The file that `write` or `firstpage sample` wrote.

        Returns
        -------
        QuerySample
            The sample.

        Raises
        ------
        DataError
            If a column is missing or has another value.

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.planning.QuerySample.draw(["q1", "q2"], 1).write("sample.csv")
        >>> fp.planning.QuerySample.read("sample.csv")
        QuerySample(1 of 2 queries)
        """
        table = QueryTable.read(path)
        probabilities, drawn = table.numbers("probability"), table.column("drawn")
        queries = tuple(probabilities)
        marks = [DRAWN.get(str(drawn[query]).strip().lower()) for query in queries]
        if None in marks:
            query = queries[marks.index(None)]
            raise DataError(
                f"{path}: the column drawn must be yes or no; query {query!r} has {drawn[query]!r}."
            )
        values = np.array([probabilities[query] for query in queries])
        sample = cls(queries, values, np.array(marks, bool))
        if abs(values.sum() - round(values.sum())) > SUM_TOLERANCE * max(1, len(values)):
            raise DataError(
                f"{path}: the probabilities of all queries sum to {values.sum():g}; they must sum "
                "to the number of queries drawn. The file must list all queries, also those that "
                "were not drawn."
            )
        if round(values.sum()) != int(sample.drawn.sum()):
            raise DataError(
                f"{path}: {int(sample.drawn.sum())} queries are drawn, and the probabilities sum "
                f"to {round(values.sum())}; a row is missing or was changed."
            )
        return sample

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the sample as CSV: query, probability, drawn.

        Parameters
        ----------
        path : path
            The file to write.
        """
        lines = [csv_line(["query", "probability", "drawn"])]
        for query, probability, drawn in zip(
            self.queries, self.probabilities.tolist(), self.drawn.tolist(), strict=True
        ):
            lines.append(csv_line([query, repr(probability), "yes" if drawn else "no"]))
        with write_bytes(Path(path)) as out:
            out.write("".join(lines).encode())


def _checked_sizes(queries: tuple[str, ...], sizes: Mapping[str, float] | None) -> Floats:
    if sizes is None:
        return np.ones(len(queries))
    missing = [query for query in queries if query not in sizes]
    if missing:
        raise DataError(f"{len(missing)} of {len(queries)} queries have no size: {missing[0]!r}.")
    values = np.array([float(sizes[query]) for query in queries])
    for query, value in zip(queries, values.tolist(), strict=True):
        if not 0 < value < math.inf:
            raise DataError(f"the size of query {query!r} must be a positive number; got {value}.")
    return values


def _inclusion_probabilities(sizes: Floats, count: int) -> Floats:
    """Return probabilities proportional to the sizes, at most 1, that sum to `count`."""
    probabilities = np.ones(len(sizes))
    below = np.ones(len(sizes), bool)  # queries that are not certain to be drawn
    while below.any():
        scaled = sizes * ((count - (~below).sum()) / sizes[below].sum())
        certain = below & (scaled >= 1)
        if not certain.any():
            probabilities[below] = scaled[below]
            break
        below &= ~certain
    return probabilities


def _systematic_draw(probabilities: Floats, rng: np.random.Generator) -> Bools:
    """Return which queries are drawn: systematic sampling in random order."""
    drawn = probabilities >= 1
    rest = rng.permutation(np.flatnonzero(~drawn))
    ends = np.cumsum(probabilities[rest])
    count = round(float(ends[-1])) if len(rest) else 0
    if count:
        ends *= count / ends[-1]  # the last interval ends exactly at `count`
        points = np.minimum(rng.random() + np.arange(count), np.nextafter(ends[-1], 0))
        drawn[rest[np.searchsorted(ends, points, side="right")]] = True
    return drawn
