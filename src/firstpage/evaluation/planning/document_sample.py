"""Random samples of the documents of queries, with their inclusion probabilities, and means.

A query has a pool: the documents that were in the first ranks of a run when the sample was drawn.
People judge some documents of the pool.  A measure that is a sum over documents, such as P or DCG,
is estimated per query by inverse inclusion probability (Horvitz and Thompson), corrected by a
regression on what the machine's grade adds, and on what the greatest grade would add (Särndal,
Swensson and Wretman 1992, chapter 6); its variance is that of sampling within queries.  The totals
of the queries then are the human values of `powered_mean`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import (
    Bools,
    DataError,
    FirstpageWarning,
    Floats,
    Ints,
    MeasureError,
    csv_line,
    location,
    unescape_formula,
    warn,
)
from firstpage.data import Qrels, Run, join_documents, match_queries
from firstpage.data.formats import read_file_cells
from firstpage.data.io import write_bytes
from firstpage.evaluation.measures.evaluate_systems import EvaluationRequest
from firstpage.evaluation.measures.graded import with_scale
from firstpage.evaluation.measures.inputs import first_ids
from firstpage.evaluation.measures.sources import as_column, named_systems
from firstpage.evaluation.measures.unjudged import with_relevant
from firstpage.evaluation.planning.prediction_powered import (
    GUARD_QUERIES,
    PoweredMean,
    Target,
    powered_mean,
)
from firstpage.evaluation.planning.query_sample import DRAWN, SUM_TOLERANCE, QuerySample

COLUMNS = ("query", "document", "query_probability", "probability", "drawn")
GUARD_DOCUMENTS = GUARD_QUERIES  # documents on which the machine is taken to know nothing
MIN_DOCUMENTS = 2  # with one document of a query there is no variance within it
SUM_ERROR = 1e-9  # relative rounding error of a sum over documents


@dataclass(frozen=True, eq=False)
class DocumentSample:
    """A random sample of the documents of queries, with the probabilities by which they were drawn.

    `fp.planning.estimate` takes it in place of a `QuerySample`, for measures that are sums over
    documents, such as P, DCG and RBP.  People judge all drawn documents, and no others count.

    Parameters
    ----------
    queries : QuerySample
        The queries of which documents are judged: all of them, or a sample.
    pool : Run
        The documents that could be drawn, in the order of `queries`; their values are the inclusion
        probabilities if the query is drawn.
    drawn : array of bool
        Whether each document of the pool was drawn.

    Raises
    ------
    DataError
        If a probability is not in (0, 1], or the drawn documents do not fit the probabilities.

    Examples
    --------
    >>> import firstpage as fp
    >>> run = {f"q{n}": {"a": 3, "b": 2, "c": 1} for n in range(4)}
    >>> sample = fp.planning.DocumentSample.draw([run], 2, depth=3, seed=1)
    >>> sample
    DocumentSample(8 of 12 documents, 4 of 4 queries)
    """

    queries: QuerySample
    pool: Run
    drawn: Bools

    def __post_init__(self) -> None:
        p = self.pool.values
        if not ((p > 0) & (p <= 1)).all():
            raise DataError("the inclusion probability of a document must be above 0, at most 1.")
        counts, expected = (np.bincount(self.query, x, len(self.pool)) for x in (self.drawn, p))
        expected = np.where(self.queries.drawn, expected, 0.0)
        wrong = np.abs(counts - expected) > SUM_TOLERANCE * np.maximum(1, expected)
        single = (counts < MIN_DOCUMENTS) & (np.bincount(self.query, p < 1) > 0)
        for at in np.flatnonzero(wrong | (single & self.queries.drawn))[:1].tolist():
            reason = (
                "a row is missing or was changed; the file must list all documents, also those "
                "that were not drawn"
                if wrong[at]
                else f"draw at least {MIN_DOCUMENTS}"
            )
            raise DataError(
                f"query {self.pool.queries[at]!r} has {counts[at]:g} drawn documents, and their "
                f"probabilities sum to {expected[at]:g}: {reason}."
            )

    def __repr__(self) -> str:
        drawn, queries = len(self.queries.drawn_queries), len(self.queries.queries)
        return (
            f"DocumentSample({self.drawn.sum()} of {len(self.drawn)} documents, {drawn} of "
            f"{queries} queries)"
        )

    @property
    def query(self) -> Ints:
        """The index of the query of each document of the pool."""
        return np.repeat(np.arange(len(self.pool)), np.diff(self.pool.offsets))

    @property
    def drawn_documents(self) -> Run:
        """The documents that people judge, in random order; scores are equal: no prior order."""
        drawn = self.pool.select_rows(self.drawn).select_queries(np.flatnonzero(self.queries.drawn))
        query = np.repeat(np.arange(len(drawn)), np.diff(drawn.offsets))
        order = np.lexsort((np.random.default_rng(len(query)).random(len(query)), query))
        return replace(drawn, docids=drawn.docids[order], values=np.ones(len(query)))

    @classmethod
    def draw(
        cls,
        systems: Mapping[str, Any] | Iterable[Any],
        documents: int,
        *,
        depth: int = 10,
        size: int | None = None,
        seed: int = 0,
    ) -> DocumentSample:
        """Draw documents at random from the first ranks of runs, query by query.

        Parameters
        ----------
        systems : dict, iterable or str
            All runs that will be estimated.
        documents : int
            Number of documents per query, at least 2; all, where the pool has no more.
        depth : int, default 10
            Number of first ranks of each run that are in the pool, with documents of equal score;
            the cut-off of the measure that will be estimated, or more.
        size : int, optional
            Number of queries to draw first; by default all queries have judged documents.
        seed : int, default 0
            Random seed.

        Returns
        -------
        DocumentSample
            The sample with its inclusion probabilities.

        Raises
        ------
        DataError
            If a number is too small, or there are fewer queries than `size`.
        """
        if documents < MIN_DOCUMENTS or depth < 1:
            raise DataError(
                f"a sample needs at least {MIN_DOCUMENTS} documents per query and a depth of at "
                f"least 1; got {documents} and {depth}."
            )
        pools: dict[str, dict[str, float]] = {}
        for run in named_systems(systems).values():
            for query, scores in as_column(run, Run).to_dict().items():
                lowest = sorted(scores.values(), reverse=True)[:depth][-1:]
                pool = pools.setdefault(query, {})
                pool.update((d, 0.0) for d, score in scores.items() if [score] >= lowest)
        queries = QuerySample.draw(pools, len(pools) if size is None else size, seed=seed)
        rng, drawn = np.random.default_rng([seed, documents]), []
        for pool, is_drawn in zip(pools.values(), queries.drawn.tolist(), strict=True):
            count = min(documents, len(pool))
            pools_drawn = rng.permutation(len(pool)) < (count if is_drawn else 0)
            pool.update(dict.fromkeys(pool, count / max(len(pool), 1)))
            drawn.append(pools_drawn)
        return cls(queries, Run.from_dict(pools, "pool"), np.concatenate(drawn))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> DocumentSample:
        """Read a sample: a table with the columns that `write` writes.

        Parameters
        ----------
        path : path
            The file that `write` or `firstpage sample --documents` wrote.

        Returns
        -------
        DocumentSample
            The sample.

        Raises
        ------
        DataError
            If a column is missing or has another value, or a row is missing.
        """
        (_, head), *rows = [*read_file_cells(Path(path))] or [(1, [])]
        at = {name.strip(): number for number, name in enumerate(head)}
        if missing := [name for name in COLUMNS if name not in at]:
            raise DataError(f"{path}: there is no column {missing[0]!r}; it has {', '.join(at)}.")
        pools: dict[str, dict[str, float]] = {}
        by_query: dict[str, tuple[float, list[bool]]] = {}
        for line, cells in rows:
            try:
                query, document, *numbers = (cells[at[name]].strip() for name in COLUMNS)
                of_query, probability = map(float, numbers[:2])
                is_drawn = DRAWN[numbers[2].lower()]
            except (IndexError, KeyError, ValueError):
                raise DataError(
                    f"{location(path, line)}: must have query, document, two probabilities and "
                    f"drawn (yes or no); got {', '.join(cells)}."
                ) from None
            query, document = unescape_formula(query), unescape_formula(document)
            first, marks = by_query.setdefault(query, (of_query, []))
            if document in pools.setdefault(query, {}) or first != of_query:
                raise DataError(
                    f"{location(path, line)}: document {document!r} of query {query!r} occurs "
                    "twice, or the query has two probabilities."
                )
            pools[query][document] = probability
            marks.append(is_drawn)
        p = np.array([probability for probability, _ in by_query.values()])
        is_drawn_query = np.array([any(marks) for _, marks in by_query.values()], bool)
        if abs(p.sum() - is_drawn_query.sum()) > SUM_TOLERANCE * max(1, len(p)):
            raise DataError(
                f"{path}: documents of {is_drawn_query.sum()} queries are drawn, and the "
                f"probabilities of the queries sum to {p.sum():g}; a row is missing or was changed."
            )
        drawn = np.array([mark for _, marks in by_query.values() for mark in marks], bool)
        queries = QuerySample(tuple(by_query), p, is_drawn_query)
        try:
            return cls(queries, Run.from_dict(pools, "pool"), drawn)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the sample as CSV: query, document, query_probability, probability, drawn.

        Parameters
        ----------
        path : path
            The file to write.

        Examples
        --------
        >>> import firstpage as fp
        >>> run = {f"q{n}": {"a": 3, "b": 2, "c": 1} for n in range(4)}
        >>> fp.planning.DocumentSample.draw([run], 2, depth=3).write("sample.csv")
        >>> fp.planning.DocumentSample.read("sample.csv")
        DocumentSample(8 of 12 documents, 4 of 4 queries)
        """
        of_query, marks = self.queries.probabilities[self.query], self.drawn.tolist()
        names = self.pool.queries.repeat(np.diff(self.pool.offsets)), self.pool.docids
        numbers = of_query.tolist(), self.pool.values.tolist()
        with write_bytes(Path(path)) as out:
            out.write(csv_line(COLUMNS).encode())
            for query, document, first, second, mark in zip(*names, *numbers, marks, strict=True):
                cells = [query, document, repr(first), repr(second), "yes" if mark else "no"]
                out.write(csv_line(cells).encode())


def is_document_sample(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a sample of documents, not of queries."""
    _, head = next(read_file_cells(Path(path)), (1, []))
    return "document" in [name.strip() for name in head]


def drawn_judgments(sample: DocumentSample, qrels: Qrels) -> Qrels:
    """Return the judgments of the drawn documents; raise if one has none."""
    drawn = sample.drawn_documents
    rows = join_documents(drawn, qrels, match_queries(drawn.queries, qrels.queries))
    for row in np.flatnonzero(rows < 0)[:1].tolist():
        query = drawn.queries[int(np.searchsorted(drawn.offsets, row, side="right")) - 1]
        raise DataError(
            f"{(rows < 0).sum()} of {len(rows)} drawn documents have no human judgments, such "
            f"as {drawn.docids[row]!r} of query {query!r}; people judge every drawn document."
        )
    return Qrels(drawn.queries, drawn.offsets, drawn.docids, qrels.values[rows])


def pool_labels(pool: Run, qrels: Qrels) -> Floats:
    """Return the label of each document of the pool; NaN where there is none."""
    rows = join_documents(pool, qrels, match_queries(pool.queries, qrels.queries))
    return np.where(rows < 0, np.nan, qrels.values[rows])


def document_values(
    run: Run, name: str, sample: DocumentSample, labels: list[Floats], request: EvaluationRequest
) -> list[Floats]:
    """Return what each document of the pool adds to each measure, for several lists of labels.

    The first labels are the greatest grade.  They show whether a measure is a sum, and whether a
    document that could not be drawn would count.
    """
    pool, texts = sample.pool, list(request.measures)
    measures = {text: with_scale(request.measures[text], labels[0][0]) for text in texts}
    request = replace(request, measures=measures)
    if request.convention.condensed or any(measure.condensed for measure in measures.values()):
        raise MeasureError("condensed lists leave out documents that were not drawn; omit them.")
    ranked = match_queries(pool.queries, run.queries)
    if (ranked < 0).any():
        absent = first_ids(pool.queries[np.flatnonzero(ranked < 0)])
        warn(f"{name}: {(ranked < 0).sum()} of {len(pool)} queries count 0, as the run lacks them: "
             f"{absent}.")  # fmt: skip
    run = run.select_queries(ranked[ranked >= 0])

    def values(qrels: Qrels) -> Floats:
        """Return a column per query of these judgments."""
        with warnings.catch_warnings():  # unjudged documents are not drawn, by design
            warnings.simplefilter("ignore", FirstpageWarning)
            evaluation = request.evaluate(run, qrels)
        return evaluation.values[:, match_queries(qrels.queries, evaluation.queries)]

    def judged(grades: Floats) -> Qrels:
        return Qrels(pool.queries, pool.offsets, pool.docids, grades)

    lengths = np.diff(pool.offsets)
    added = [np.zeros((len(request.measures), len(pool.values))) for _ in labels]
    for number in range(int(lengths.max(initial=0))):
        has = np.flatnonzero(lengths > number)
        rows = pool.offsets[has] + number
        for grades, array in zip(labels, added, strict=True):
            if grades[rows].any():
                only = judged(grades).select_queries(has)
                one = only.select_rows(
                    np.isin(np.arange(len(only.values)), only.offsets[:-1] + number)
                )
                array[:, rows] = values(one)
    best = judged(labels[0])
    sums = np.stack([np.bincount(sample.query, row, len(pool)) for row in added[0]])
    complete, nothing = values(best), values(judged(np.zeros(len(pool.values))))
    covered = values(with_relevant(run, best, max(1, len(run.values))))
    for at, text in enumerate(texts):
        near = SUM_ERROR * max(1.0, float(np.abs(complete[at]).max()))
        if (np.abs(complete[at] - sums[at]) > near).any() or nothing[at].any():
            raise MeasureError(
                f"{text} is not a sum over documents, so some documents of a query cannot estimate "
                "it; take P, DCG, CG or RBP, or draw whole queries."
            )
        outside = np.flatnonzero(np.abs(covered[at] - complete[at]) > near)
        if len(outside):
            raise DataError(
                f"{name} has documents in the ranks of {text} that could not be drawn (query "
                f"{pool.queries[int(outside[0])]!r}); draw from all runs, and as deep as {text}."
            )
    return added


def document_mean(
    sample: DocumentSample,
    human: Floats,
    machine: Floats,
    most: Floats,
    machine_weight: float | None,
    target: Target,
) -> PoweredMean:
    """Return the prediction-powered mean over queries of sums over documents.

    `human` has what each drawn document adds, `machine` and `most` what each document of the pool
    adds by the machine's grade and by the greatest one.
    """
    p, queries, of_pool = sample.pool.values[sample.drawn], sample.queries, sample.query
    number = np.cumsum(queries.drawn) - 1  # of each query among the drawn ones
    group, count = number[of_pool[sample.drawn]], int(queries.drawn.sum())

    def per_query(values: Floats, rows: Ints = group, length: int = count) -> Floats:
        return np.bincount(rows, values, length).astype(np.float64, copy=False)

    sizes = per_query(np.ones(len(p)))
    factors = np.sqrt((1 - p) * (sizes / np.maximum(sizes - 1, 1))[group])
    rest = np.maximum(per_query(1 - p), 1e-300)

    def deviations(values: Floats) -> Floats:
        """Return deviations whose squares sum to the variances of the totals of the queries."""
        center = per_query((1 - p) * values / p) / rest
        return np.asarray(factors * (values / p - center[group]))

    y, f, best = (deviations(x) for x in (human, machine[sample.drawn], most[sample.drawn]))
    fixed = 0.0 if machine_weight is None else machine_weight
    known = [most] if machine_weight is not None else [most, machine]
    inverse = np.linalg.pinv(np.stack([best, f][: len(known)], axis=1))
    weights = inverse @ (y - fixed * f)
    weight = float(weights[1]) if machine_weight is None else machine_weight
    predicted = weights[0] * most + weight * machine
    is_drawn = queries.drawn[of_pool]
    gaps = [x[is_drawn].sum() - (x[sample.drawn] / p).sum() for x in known]
    factor = 1 + factors * (gaps @ inverse)  # by the error of the weights (g-weights)
    residual = factor * (human - predicted[sample.drawn]) / p
    totals = per_query(predicted, of_pool, len(sample.pool))[queries.drawn]
    totals = totals + per_query(residual)
    uncertain = int((p < 1).sum())
    alone = (factor * (y - weights[0] * best)) ** 2  # with a machine that knows nothing
    within = per_query((factor * (y - weights[0] * best - weight * f)) ** 2)
    unrelated = per_query(alone + (weight * f) ** 2)
    freedom = uncertain - len(np.unique(group[p < 1])) - len(known)
    if uncertain and freedom < 1:
        raise DataError(f"{uncertain} drawn documents are too few; draw more of each query.")
    terms = max(uncertain - len(known), 0) + GUARD_DOCUMENTS
    within = (uncertain * within + GUARD_DOCUMENTS * unrelated) / terms
    sums = per_query(machine, of_pool, len(sample.pool))
    mean = powered_mean(
        totals, sums, queries.probabilities, queries.drawn, machine_weight, target,
        (within, max(freedom, 1)),
    )  # fmt: skip
    return replace(mean, machine_weight=weight)
