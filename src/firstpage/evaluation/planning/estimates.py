"""estimate(): measures of systems from few human and many machine judgments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from firstpage.core import Bools, DataError, Floats, MeasureError, Table, Tabular, warn
from firstpage.data import Ids, Qrels, Run, match_queries
from firstpage.evaluation.measures.base import Convention, Measure
from firstpage.evaluation.measures.evaluate_systems import EvaluationRequest, evaluate
from firstpage.evaluation.measures.inputs import first_ids
from firstpage.evaluation.measures.registry import MeasureLike, measures_by_text
from firstpage.evaluation.measures.significance import (
    MIN_VARYING,
    Correction,
    adjust_p_values,
    count_varying,
    format_p,
)
from firstpage.evaluation.measures.sources import as_column, is_path, named_systems, read_truth
from firstpage.evaluation.planning.combination import Combination, combine
from firstpage.evaluation.planning.document_sample import (
    DocumentSample,
    document_mean,
    document_values,
    drawn_judgments,
    is_document_sample,
    pool_labels,
)
from firstpage.evaluation.planning.prediction_powered import (
    PoweredMean,
    Target,
    check_request,
    powered_mean,
)
from firstpage.evaluation.planning.query_sample import QuerySample


@dataclass(frozen=True)
class Estimate:
    """A measure of one system, or the difference of two systems.

    Attributes
    ----------
    measure, system : str
        Text of the measure, and name of the system.
    against : str or None
        The system that is subtracted; None for a mean.
    value, low, high : float
        The prediction-powered estimate and its confidence interval, cut to the values that are
        possible.
    p, p_corrected : float or None
        p-value of a difference of 0, and corrected for the comparisons in this measure; None for
        a mean.
    machine_weight : float
        Weight of the machine's values; 0 uses people alone.  With a sample of documents, the
        weight of the machine's values of documents.
    human, human_low, human_high : float
        The estimate from the human judgments of the sample alone, with its interval.
    machine : float
        The mean by machine judgments alone, which is biased by the machine's errors.
    equivalent_queries : float
        Number of queries that people would have to judge for an interval of the same width
        without a machine.

    Examples
    --------
    >>> import firstpage as fp
    >>> human = {f"q{n}": {"a": 1, "b": n % 3} for n in range(60)}
    >>> machine = {query: {"a": 1, "b": n % 2} for n, query in enumerate(human)}
    >>> run = {query: {"a": 1.0, "b": 2.0} for query in human}
    >>> sample = fp.planning.QuerySample.draw(human, 40, seed=1)
    >>> mean = fp.planning.estimate({"x": run}, human, machine, sample, measures="RR").means[0]
    >>> mean.system, mean.machine, mean.low < 0.83 < mean.high
    ('x', 0.75, True)
    """

    measure: str
    system: str
    against: str | None
    value: float
    low: float
    high: float
    p: float | None
    p_corrected: float | None
    machine_weight: float
    human: float
    human_low: float
    human_high: float
    machine: float
    equivalent_queries: float


@dataclass(frozen=True, eq=False)
class Estimates(Tabular):
    """The result of `fp.planning.estimate`: means of systems and their differences.

    Attributes
    ----------
    means : tuple of Estimate
        One per measure and system.
    differences : tuple of Estimate
        One per measure and pair of systems, or per system against the baseline.
    queries, judged : int
        Number of all queries, and of those that people judged.
    documents : int or None
        Number of documents that people judged, for a sample of documents.
    level : float
        Confidence level of the intervals.
    target : {"population", "queries"}
        What the intervals are about.
    combination : Combination or None
        How several sources were combined into the machine; None if there is one.

    Examples
    --------
    >>> import firstpage as fp
    >>> human = {f"q{n}": {"a": 1, "b": n % 3} for n in range(60)}
    >>> machine = {query: {"a": 1, "b": n % 2} for n, query in enumerate(human)}
    >>> run = {query: {"a": 1.0, "b": 2.0} for query in human}
    >>> sample = fp.planning.QuerySample.draw(human, 40, seed=1)
    >>> estimates = fp.planning.estimate([run], human, machine, sample, measures="RR")
    >>> estimates.queries, estimates.judged, len(estimates.means)
    (60, 40, 1)
    """

    means: tuple[Estimate, ...]
    differences: tuple[Estimate, ...]
    queries: int
    judged: int
    level: float
    target: Target
    combination: Combination | None = None
    documents: int | None = None

    def worth(self, estimate: Estimate) -> float:
        """Return how many human judgments of a query one machine judgment of a query is worth.

        Parameters
        ----------
        estimate : Estimate
            A mean or a difference.

        Returns
        -------
        float
            Queries that people need not judge, per query that only the machine judged; NaN if
            people judged all queries, or some documents of each.
        """
        rest = 0 if self.documents is not None else self.queries - self.judged
        return (estimate.equivalent_queries - self.judged) / rest if rest else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as a dictionary.

        Returns
        -------
        dict
            The content of `firstpage estimate --json`.
        """
        combined = {} if self.combination is None else {"combination": self.combination.to_dict()}
        return {
            "queries": self.queries,
            "judged": self.judged,
            **({} if self.documents is None else {"documents": self.documents}),
            "level": self.level,
            "target": self.target,
            **combined,
            "means": [_record(estimate) for estimate in self.means],
            "differences": [_record(estimate) for estimate in self.differences],
        }

    def _frame_columns(self) -> dict[str, Any]:
        rows = [*self.means, *self.differences]
        return {f.name: [getattr(row, f.name) for row in rows] for f in fields(Estimate)}

    def summary_table(self) -> Table:
        head = [
            "system", "measure", "estimate", f"{100 * self.level:g}% interval", "p", "people alone",
            "machine alone", "weight", "as good as",
        ]  # fmt: skip
        rows = [_cells(estimate) for estimate in (*self.means, *self.differences)]
        some = "" if self.documents is None else f"{self.documents} documents of "
        title = f"{some}{self.judged} of {self.queries} queries judged by people"
        about = "the population of queries" if self.target == "population" else "these queries"
        note = (
            f"intervals are about {about}; people alone: judgments of the sample; machine alone: "
            "biased by the machine's errors; weight: of the machine's values; as good as: queries "
            "that people alone would have to judge"
        )
        return Table(head, rows, title, note, left_aligned=2)

    def __str__(self) -> str:
        tables = [] if self.combination is None else [self.combination.summary_table()]
        return "\n\n".join(table.text() for table in (*tables, self.summary_table()))

    __repr__ = __str__


def _record(estimate: Estimate) -> dict[str, Any]:
    """Return the fields for JSON, without NaN."""
    return {
        name: None if isinstance(value, float) and np.isnan(value) else value
        for name, value in vars(estimate).items()
    }


def _name(estimate: Estimate) -> str:
    against = "" if estimate.against is None else f" - {estimate.against}"
    return estimate.system + against


def _cells(estimate: Estimate) -> list[str]:
    sign = "" if estimate.against is None else "+"
    return [
        _name(estimate),
        estimate.measure,
        f"{estimate.value:{sign}.4f}",
        f"[{estimate.low:{sign}.4f}, {estimate.high:{sign}.4f}]",
        "" if estimate.p_corrected is None else format_p(estimate.p_corrected),
        f"{estimate.human:{sign}.4f} [{estimate.human_low:{sign}.4f}, "
        f"{estimate.human_high:{sign}.4f}]",
        f"{estimate.machine:{sign}.4f}",
        f"{estimate.machine_weight:.2f}",
        f"{estimate.equivalent_queries:.0f}",
    ]


def estimate(
    systems: Mapping[str, Any] | Iterable[Any],
    human: Any,
    machine: Any,
    sample: Any,
    *,
    measures: MeasureLike | Iterable[MeasureLike] = "NDCG@10",
    baseline: str | None = None,
    machine_weight: float | None = None,
    target: Target = "population",
    level: float = 0.95,
    correction: Correction = "holm",
    convention: str | Convention = "default",
) -> Estimates:
    """Estimate measures of systems from few human and many machine judgments.

    People judge a random sample of the queries, the machine judges all of them.  The machine's
    errors on the sample correct its mean over all queries, so the intervals are valid however
    wrong the machine is; a good machine makes them narrower.  Each mean and each difference is
    estimated by itself, so a difference need not be that of the two means.

    Human judgments of queries that were not drawn are ignored: somebody chose them.

    Parameters
    ----------
    systems : dict, iterable or str
        Runs, as in `compare`; one is enough.
    human : Qrels, dict, data frame or path
        The judgments of people, for every drawn query.
    machine : Qrels, dict, data frame or path, or list of these
        The judgments of the machine, for every query of the sample's file.  Several sources, such
        as machines and clicks, are combined (`combine`) with weights learned on the drawn queries;
        those of a query come from the human judgments of other queries.
    sample : QuerySample, DocumentSample or path
        The sample, drawn before people judged.  With a sample of documents, measures must be sums
        over documents, such as P, DCG, CG and RBP.
    measures : str, Measure or iterable of these, default "NDCG@10"
        Measures to estimate.
    baseline : str, optional
        Name of the system that all others are compared with; None compares every pair.
    machine_weight : float, optional
        Weight of the machine's values; None chooses the weight with the smallest estimated
        variance (power tuning), 1 is the original prediction-powered estimate, 0 uses people
        alone.
    target : {"population", "queries"}, default "population"
        What the intervals are about: the population that the queries were drawn from, as in
        `compare`, or the mean over these queries.
    level : float, default 0.95
        Confidence level.
    correction : {"holm", "bh", "none"}, default "holm"
        Correction for multiple comparisons within a measure.
    convention : str or Convention, default "default"
        How rankings and judgments are interpreted.  A query that a run lacks counts 0 in any case.

    Returns
    -------
    Estimates
        Means and differences with their intervals.

    Raises
    ------
    DataError
        If a drawn query has no human judgments, or a query no machine judgments.
    MeasureError
        If a measure or the convention is invalid.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Prediction-Powered Inference, Science 2023.
    Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference, 2023 (power
    tuning).
    Horvitz and Thompson, A Generalization of Sampling Without Replacement From a Finite Universe,
    JASA 1952.

    Examples
    --------
    >>> import firstpage as fp
    >>> human = {f"q{n}": {"a": n % 5 // 4, "b": n % 3} for n in range(90)}
    >>> machine = {query: {"a": 1, "b": n % 2} for n, query in enumerate(human)}
    >>> systems = {"x": {q: {"a": 2.0, "b": 1.0} for q in human},
    ...            "y": {q: {"a": 1.0, "b": 2.0} for q in human}}
    >>> sample = fp.planning.QuerySample.draw(human, 60, seed=1)
    >>> estimates = fp.planning.estimate(systems, human, machine, sample, measures="RR")
    >>> difference = estimates.differences[0]
    >>> truth = fp.compare(systems, human, measures="RR").differences[0].difference
    >>> difference.machine, difference.low < truth < difference.high
    (-0.25, True)
    """
    if is_path(sample):
        sample = (DocumentSample if is_document_sample(sample) else QuerySample).read(sample)
    documents = sample if isinstance(sample, DocumentSample) else None
    sample = sample if documents is None else documents.queries
    check_request(int(sample.drawn.sum()), machine_weight, target, level)
    adjust_p_values(np.ones(2), correction)  # rejects an unknown correction before the work starts
    # A query that a run lacks counts 0: without it the sample would not be random.
    resolved = Convention(convention, queries="judged")
    if resolved.without_relevant == "skip":
        raise MeasureError(
            "without_relevant='skip' leaves out queries by their judgments, so the sample would "
            "not be random; take zero or one."
        )
    named = {name: as_column(run, Run) for name, run in named_systems(systems).items()}
    if baseline is not None and baseline not in named:
        raise DataError(f"there is no system {baseline!r}; there are {', '.join(named)}.")
    requested = measures_by_text(measures)
    for text, measure in requested.items():
        if not measure.is_mean:
            raise MeasureError(
                f"{text} is not a mean over queries, so it cannot be estimated from a sample."
            )
    people = as_column(read_truth(human), Qrels)
    if documents is not None:
        people = drawn_judgments(documents, people)
    combination = None
    if _are_sources(machine) and len(machine) > 1:
        drawn = match_queries(Ids.from_values(sample.drawn_queries), people.queries)
        combination = combine(people.select_queries(drawn[drawn >= 0]), machine)
        machine = combination.predicted
    elif _are_sources(machine):
        machine = machine[0]
    judged = as_column(read_truth(machine), Qrels)
    settings = (machine_weight, target, level, [m.value_range for m in requested.values()])
    if documents is None:
        judges = {
            "human": (people, sample.drawn_queries), "machine": (judged, sample.queries)
        }  # fmt: skip
        values = {
            judge: {
                name: _values(run, name, judge, qrels, queries, requested, resolved)
                for name, run in named.items()
            }
            for judge, (qrels, queries) in judges.items()
        }
        job = _Job(sample, sample.drawn, values["human"], values["machine"], *settings)
    else:
        request = EvaluationRequest(requested, resolved)
        job = _document_job(documents, named, people, judged, request, settings)
    rows = {text: row for row, text in enumerate(requested)}
    means = [job.estimate(row, text, name) for text, row in rows.items() for name in named]
    differences = [
        difference
        for text, row in rows.items()
        for difference in job.differences(row, text, _pairs(list(named), baseline), correction)
    ]
    _warn_of_few(job, [*means, *differences], rows)
    return Estimates(
        tuple(means),
        tuple(differences),
        len(sample.queries),
        int(sample.drawn.sum()),
        level,
        target,
        combination,
        None if documents is None else int(documents.drawn.sum()),
    )


@dataclass(frozen=True)
class _Job:
    """The values per query of all systems by people and machine, and what is asked of them."""

    sample: QuerySample
    drawn: Bools  # queries, or documents of a sample of documents
    human: Mapping[str, Floats]
    machine: Mapping[str, Floats]
    machine_weight: float | None
    target: Target
    level: float
    ranges: Sequence[tuple[float, float] | None]  # of the measures

    def powered(
        self, row: int, system: str, against: str | None, machine_weight: float | None
    ) -> PoweredMean:
        """Return the prediction-powered mean of a measure of one system, or of a difference."""
        human, machine = self.values(row, system, against)
        sample = self.sample
        return powered_mean(
            human, machine, sample.probabilities, sample.drawn, machine_weight, self.target
        )

    def values(self, row: int, system: str, against: str | None) -> tuple[Floats, Floats]:
        """Return the values of people and machine in one measure, or differences."""
        return tuple(_difference(v, row, system, against) for v in (self.human, self.machine))  # type: ignore[return-value]

    def estimate(self, row: int, text: str, system: str, against: str | None = None) -> Estimate:
        """Return the estimate of a system's mean, or of a difference."""
        human, machine = self.values(row, system, against)
        powered = self.powered(row, system, against, self.machine_weight)
        alone = self.powered(row, system, against, 0.0)
        p = None if against is None else powered.p_value()
        limits = self._range(row, against, human, machine)
        value, low, high = self._cut(powered, *limits)
        human_value, human_low, human_high = self._cut(alone, *limits)
        return Estimate(
            text,
            system,
            against,
            value,
            low,
            high,
            p,
            p,
            powered.machine_weight,
            human_value,
            human_low,
            human_high,
            float(machine.sum()) / len(self.sample.queries),
            powered.equivalent_queries,
        )

    def _cut(self, mean: PoweredMean, low: float, high: float) -> list[float]:
        """Return an estimate and its interval, cut to a range."""
        estimates = [mean.value, *mean.interval(self.level)]
        return [float(min(max(x, low), high)) for x in estimates]

    def _range(self, row: int, against: str | None, *values: Floats) -> tuple[float, float]:
        """Return the range of a measure or a difference; none if values are outside of it."""
        possible = self.ranges[row]
        if possible is None:
            return -np.inf, np.inf
        low, high = (
            possible if against is None else (possible[0] - possible[1], possible[1] - possible[0])
        )
        inside = all(low <= part.min() and part.max() <= high for part in values)
        return (low, high) if inside else (-np.inf, np.inf)

    def differences(
        self, row: int, text: str, pairs: list[tuple[str, str]], correction: Correction
    ) -> list[Estimate]:
        """Return the estimates of the differences in one measure, with corrected p-values."""
        rows = [self.estimate(row, text, system, against) for system, against in pairs]
        adjusted = adjust_p_values(np.array([estimate.p for estimate in rows]), correction)
        return [
            replace(estimate, p_corrected=float(p))
            for estimate, p in zip(rows, adjusted, strict=True)
        ]


@dataclass(frozen=True)
class _DocumentJob(_Job):
    """What each document adds to the measures of all systems, where some documents are judged."""

    documents: DocumentSample
    most: Mapping[str, Floats]  # what documents of the greatest grade add

    def powered(
        self, row: int, system: str, against: str | None, machine_weight: float | None
    ) -> PoweredMean:
        """Return the prediction-powered mean of a measure of one system, or of a difference."""
        most = _difference(self.most, row, system, against)
        values = self.values(row, system, against)
        return document_mean(self.documents, *values, most, machine_weight, self.target)


def _difference(values: Mapping[str, Floats], row: int, system: str, against: str | None) -> Floats:
    return np.asarray(values[system][row] - (0.0 if against is None else values[against][row]))


def _document_job(
    sample: DocumentSample,
    runs: Mapping[str, Run],
    people: Qrels,
    machine: Qrels,
    request: EvaluationRequest,
    settings: Any,
) -> _DocumentJob:
    """Return what each document of the pool adds by its grades, and what is asked of it."""
    labels = [pool_labels(sample.pool, qrels) for qrels in (people, machine)]
    if missing := int(np.isnan(labels[1]).sum()):
        warn(
            f"{missing} of {len(labels[1])} documents have no machine judgments, and count as not "
            "relevant; that costs precision, not validity."
        )
    human, judged = (np.nan_to_num(grades) for grades in labels)
    greatest = np.full(len(human), max(1.0, float(human.max()), float(judged.max())))
    values = {
        name: document_values(run, name, sample, [greatest, human, judged], request)
        for name, run in runs.items()
    }
    most, by_people, by_machine = ({name: v[at] for name, v in values.items()} for at in range(3))
    by_people = {name: v[:, sample.drawn] for name, v in by_people.items()}
    return _DocumentJob(
        sample.queries,
        sample.drawn,
        by_people,
        by_machine,
        *settings,
        sample,
        most,  # type: ignore[call-arg]
    )


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is not None:
        return [(name, baseline) for name in names if name != baseline]
    return [(later, name) for i, name in enumerate(names) for later in names[i + 1 :]]


def _warn_of_few(job: _Job, estimates: Iterable[Estimate], rows: Mapping[str, int]) -> None:
    """Warn where the machine errs alike on nearly all sampled queries: an interval may be short."""
    few = []
    for estimate in estimates:
        human, machine = job.values(rows[estimate.measure], estimate.system, estimate.against)
        if count_varying(human - machine[job.drawn]) < min(MIN_VARYING, len(human) // 2):
            few.append(f"{_name(estimate)} ({estimate.measure})")
    if few:
        unit = "documents" if isinstance(job, _DocumentJob) else "queries"
        warn(
            f"the machine's error varies on fewer than {MIN_VARYING} sampled {unit} in "
            f"{first_ids(few)}; the interval may be too narrow. Draw more {unit}; judgments of "
            "the machine must not contain those of people, as a file of --combined does."
        )


def _are_sources(machine: Any) -> bool:
    """Return whether judgments are a list of sources, not a list of records."""
    return isinstance(machine, (list, tuple)) and all(
        isinstance(source, Qrels) or is_path(source) for source in machine
    )


def _values(
    run: Run,
    name: str,
    judge: str,
    qrels: Qrels,
    queries: tuple[str, ...],
    measures: Mapping[str, Measure],
    convention: Convention,
) -> Floats:
    """Return the values of a run by the judgments of these queries, a row per measure."""
    ids = Ids.from_values(queries)
    judged = match_queries(ids, qrels.queries)
    missing = [queries[i] for i in np.flatnonzero(judged < 0)]
    if missing:
        which = "drawn queries" if judge == "human" else "queries"
        raise DataError(
            f"{len(missing)} of {len(queries)} {which} have no {judge} judgments: "
            f"{first_ids(missing)}."
        )
    ranked = match_queries(ids, run.queries)
    evaluation = evaluate(
        run.select_queries(ranked[ranked >= 0]),
        qrels.select_queries(judged),
        measures=list(measures.values()),
        convention=convention,
        name=f"{name} ({judge} judgments)",
    )
    position = match_queries(ids, evaluation.queries)
    return evaluation.values[:, position]
