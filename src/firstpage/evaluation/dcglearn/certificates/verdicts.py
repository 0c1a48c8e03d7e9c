"""Certificates for verdicts: how far does "A beats B" depend on gains and discounts?

A verdict by DCG stands for all gains that increase with the grade and all discounts that decrease
with the position if and only if A shows, on average, at least as many documents of at least every
grade among its first positions as B, at every depth: first-order dominance at all thresholds and
depths.  Where that fails, there is a radius: the factor by which every step of gains and discounts
may change before the verdict flips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, MeasureError, Progress
from firstpage.core.engine import single_threaded_blas
from firstpage.data.preferences import Utility
from firstpage.evaluation.dcglearn.certificates import proofs
from firstpage.evaluation.dcglearn.certificates.problem import SystemContrast, Vary, contrast
from firstpage.evaluation.dcglearn.certificates.proofs import MAX_BOXES, Point, Radius, State
from firstpage.evaluation.dcglearn.measure_coherence import signs
from firstpage.evaluation.dcglearn.system_rankings import BoundDCG, SystemRankings, parse_dcg
from firstpage.evaluation.measures.base import Convention

MAX_NDCG_POSITIONS = 200  # for which bounds are computed quickly


@dataclass(frozen=True, eq=False)
class Witness:
    """Gains and discounts under which the other system is better.

    Attributes
    ----------
    utility : Utility
        The gains and discounts.
    difference : float
        The difference under them, which is negative.
    """

    utility: Utility
    difference: float

    def to_dict(self) -> dict[str, Any]:
        """Return the witness for JSON."""
        plain = {
            "difference": self.difference, "grades": list(self.utility.grades),
            "gains": self.utility.gains.tolist(), "discounts": self.utility.discounts.tolist(),
        }  # fmt: skip
        if self.utility.form == "weights":
            plain["weights"] = self.utility.weights.tolist()
        return plain


@dataclass(frozen=True, eq=False)
class Certificate:
    """Result for a set of gains and discounts: whether a verdict holds for all of them.

    Attributes
    ----------
    state : {"proven", "flips", "undecided"}
        "proven": none of them flips the verdict; "flips": the witness does; "undecided": neither a
        proof nor a witness was found.
    witness : Witness or None
        Gains and discounts that flip the verdict.
    """

    state: State
    witness: Witness | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate for JSON."""
        return {
            "state": self.state,
            "witness": None if self.witness is None else self.witness.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class Verdict:
    """One system is better than another under a measure, and how far that holds.

    Attributes
    ----------
    dcg : BoundDCG
        The measure with its gains and discounts.
    better, worse : str
        The systems; in the given order where they tie.
    difference : float
        Mean of `better` minus that of `worse`; 0 for a tie.
    queries : int
        Number of queries.
    vary : {"gains", "discounts", "both", "weights"}
        What may vary.
    decreasing : bool
        Whether discounts must decrease with the position.
    unrestricted : Certificate
        For all compatible gains, discounts or weights, as `vary` says.
    proven_factor : float
        The verdict is proven to stand for all steps within this factor.
    flip_factor : float
        Factor at which it flips; infinite if no flip is known.
    nearest_witness : Witness or None
        Gains and discounts that flip the verdict at `flip_factor`.
    count_differences : ndarray
        By position and step of the grades: how many more documents of at least this grade `better`
        has in its first positions (at the position, without `decreasing`), on average.
    factor : float or None
        The requested factor.
    within : Certificate or None
        For all steps within the requested factor.
    tie : bool
        Whether the systems tie.
    measure : str
        Name of the measure.
    normalized : bool
        Whether the measure is an NDCG.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = {"q": {"a": 2, "b": 1, "c": 0}}
    >>> runs = {"x": {"q": {"a": 2.0, "c": 1.0}}, "y": {"q": {"b": 2.0, "c": 1.0}}}
    >>> fp.dcglearn.verdicts(runs, qrels, "DCG@2")
    (Verdict(x beats y by +2.0000 in DCG@2; proven),)
    """

    dcg: BoundDCG
    better: str
    worse: str
    difference: float
    queries: int
    vary: Vary
    decreasing: bool
    unrestricted: Certificate
    proven_factor: float
    flip_factor: float
    nearest_witness: Witness | None
    count_differences: Floats
    factor: float | None = None
    within: Certificate | None = None

    def __repr__(self) -> str:
        relation = "ties with" if self.tie else "beats"
        return (
            f"Verdict({self.better} {relation} {self.worse} by {self.difference:+.4f} in "
            f"{self.measure}; {self.unrestricted.state})"
        )

    @property
    def tie(self) -> bool:
        """Whether the systems tie."""
        return self.difference == 0

    @property
    def measure(self) -> str:
        """Name of the measure."""
        return self.dcg.text

    @property
    def normalized(self) -> bool:
        """Whether the measure is an NDCG."""
        return self.dcg.normalized

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict for JSON.

        Returns
        -------
        dict
            Plain values by name; an infinite factor is None.
        """
        nearest = self.nearest_witness
        return {
            "measure": self.measure,
            "better": self.better,
            "worse": self.worse,
            "difference": self.difference,
            "tie": self.tie,
            "queries": self.queries,
            "vary": self.vary,
            "decreasing": self.decreasing,
            "unrestricted": self.unrestricted.to_dict(),
            "proven_factor": _finite(self.proven_factor),
            "flip_factor": _finite(self.flip_factor),
            "nearest_witness": None if nearest is None else nearest.to_dict(),
            "factor": None if self.factor is None else _finite(self.factor),
            "within": None if self.within is None else self.within.to_dict(),
            "count_differences": self.count_differences.tolist(),
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def verdicts(
    systems: Mapping[str, Any],
    truth: Any,
    measure: str | Utility = "NDCG@10",
    *,
    qid: Any = None,
    docid: Any = None,
    baseline: str | None = None,
    vary: Vary | None = None,
    within: float | None = None,
    decreasing: bool = True,
    max_boxes: int = MAX_BOXES,
    convention: str | Convention = "default",
) -> tuple[Verdict, ...]:
    """Compare systems, and certify how far each verdict depends on gains and discounts.

    Gains and discounts are sums of nonnegative steps.  A verdict is certified for all of them
    ("unrestricted"), and for all whose steps differ from those of the measure by at most a factor.

    Parameters
    ----------
    systems : mapping of str to scores or run
        Rankings by name of the system, as `compare` takes them; at least two.
    truth : Dataset, Qrels or array
        Judgments, as `compare` takes them.
    measure : str or Utility, default "NDCG@10"
        DCG or NDCG, a measure file, or a Utility.
    qid : array, optional
        Query of each document, where `truth` is an array.
    docid : array, optional
        Name of each document.
    baseline : str, optional
        Compare every system with this one.  Without it, every pair of systems is compared.
    vary : {"gains", "discounts", "both", "weights"}, optional
        What may vary; "weights" are those of every position and grade.  By default "weights" for a
        measure in the form of weights, and "both" for all others.
    within : float, optional
        Also decide for all steps within this factor of those of the measure; at least 1.
    decreasing : bool, default True
        Whether discounts must decrease with the position; otherwise they may be any positive
        numbers (DCG only).
    max_boxes : int, default 100
        Number of boxes that a proof for NDCG may examine; more take longer and prove more.
    convention : str or Convention, default "default"
        Convention of the measure.

    Returns
    -------
    tuple of Verdict
        A verdict per pair of systems.

    Raises
    ------
    MeasureError
        If the measure is not a DCG or NDCG, its gains or discounts are not monotone, or an option
        is invalid.
    DataError
        If there are fewer than two systems, they share no judged query, or there is no system
        `baseline`.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = {"q": {"a": 2, "b": 1, "c": 0}}
    >>> runs = {
    ...     "good": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}},
    ...     "bad": {"q": {"c": 3.0, "b": 2.0, "a": 1.0}},
    ... }
    >>> (verdict,) = fp.dcglearn.verdicts(runs, qrels, "DCG@2")
    >>> verdict.better, verdict.unrestricted.state
    ('good', 'proven')
    """
    spec = parse_dcg(measure)
    _check_options(within, max_boxes)
    rankings = SystemRankings.from_systems(
        systems, truth, Convention(convention), qid, docid, spec.depth
    )
    dcg = rankings.bind(spec)
    return verdicts_of_rankings(rankings, dcg, baseline, vary, within, decreasing, max_boxes)


def verdicts_of_rankings(
    rankings: SystemRankings,
    dcg: BoundDCG,
    baseline: str | None = None,
    vary: Vary | None = None,
    within: float | None = None,
    decreasing: bool = True,
    max_boxes: int = MAX_BOXES,
    progress: Progress | None = None,
) -> tuple[Verdict, ...]:
    """Return the verdicts on rankings that have been read already.

    `progress` is called with (done, total) before each pair.
    """
    _check_options(within, max_boxes)
    if dcg.normalized and dcg.positions > MAX_NDCG_POSITIONS:
        raise MeasureError(
            f"{dcg.text} counts {dcg.positions} positions; certificates of NDCG are limited to "
            f"{MAX_NDCG_POSITIONS}: use a cutoff, such as NDCG@10."
        )
    names = rankings.names
    if baseline is not None and baseline not in names:
        raise DataError(f"there is no system {baseline!r}; there are {', '.join(names)}.")
    base = None if baseline is None else names.index(baseline)
    pairs = [p for p in combinations(range(len(names)), 2) if base is None or base in p]
    results = []
    for done, pair in enumerate(pairs):
        if progress is not None:
            progress(done, len(pairs))
        with single_threaded_blas():
            results.append(_verdict(rankings, dcg, pair, vary, within, decreasing, max_boxes))
    return tuple(results)


def _check_options(within: float | None, max_boxes: int) -> None:
    if within is not None and not within >= 1:
        raise MeasureError(f"within must be a factor of at least 1, or inf; got {within}.")
    if max_boxes < 1:
        raise MeasureError(f"max_boxes must be at least 1; got {max_boxes}.")


def _verdict(
    rankings: SystemRankings,
    dcg: BoundDCG,
    pair: tuple[int, int],
    vary: Vary | None,
    factor: float | None,
    decreasing: bool,
    max_boxes: int,
) -> Verdict:
    values = rankings.values(dcg).mean(axis=1)
    a, b = pair if values[pair[0]] >= values[pair[1]] else pair[::-1]
    systems = contrast(rankings, dcg, a, b, vary, decreasing)
    difference = float(values[a] - values[b])
    if not signs(np.array([difference]))[0]:
        difference, radius, unrestricted = 0.0, Radius(1.0, 1.0, None), Certificate("undecided")
        nearest, within = None, None if factor is None else Certificate("undecided")
    else:
        certifier = _Certifier(rankings, systems, a, b)
        radius = proofs.radius(systems.problem(), max_boxes)
        nearest = certifier.witness(radius.point)
        unrestricted = certifier.unrestricted(radius, max_boxes)
        within = (
            None if factor is None else certifier.within(factor, radius, unrestricted, max_boxes)
        )
    return Verdict(
        dcg,
        rankings.names[a],
        rankings.names[b],
        difference,
        len(rankings.queries),
        systems.vary,
        decreasing,
        unrestricted,
        radius.proven_factor,
        radius.flip_factor,
        nearest,
        systems.count_differences.sum(axis=0),
        factor,
        within,
    )


@dataclass(frozen=True, eq=False)
class _Certifier:
    """Turns points into certificates, each checked by measuring the rankings again."""

    rankings: SystemRankings
    systems: SystemContrast
    a: int
    b: int

    def witness(self, point: Point | None, free: bool = False) -> Witness | None:
        """Return the measure at a point as a witness, if it really flips the verdict."""
        if point is None:
            return None
        utility = self.systems.utility(*point, free)
        dcg = replace(self.systems.dcg, utility=utility, unit=1.0)
        values = self.rankings.values(dcg).mean(axis=1)
        difference = float(values[self.a] - values[self.b])
        return Witness(utility, difference) if difference < 0 else None

    def certificate(self, state: State, point: Point | None, free: bool = False) -> Certificate:
        """Return the certificate of a state; a flip without a witness is undecided."""
        witness = self.witness(point, free)
        return Certificate("undecided" if state == "flips" and witness is None else state, witness)

    def unrestricted(self, radius: Radius, max_boxes: int) -> Certificate:
        """Certify for any steps; the nearest flip is a witness too, unless some step is zero."""
        systems = self.systems
        positive = all((steps > 0).all() for steps in systems.varied_steps)
        if systems.ideal_counts is not None and radius.point is not None and positive:
            return self.certificate("flips", radius.point)
        if radius.proven_factor == np.inf and positive:
            return Certificate("proven")
        state, point = proofs.decide_unrestricted(systems.problem(free=True), max_boxes)
        return self.certificate(state, point, free=True)

    def within(
        self, factor: float, radius: Radius, unrestricted: Certificate, max_boxes: int
    ) -> Certificate:
        """Certify for all steps within a factor."""
        if factor == np.inf:
            return unrestricted
        if factor <= radius.proven_factor:
            return Certificate("proven")
        if factor >= radius.flip_factor:
            return self.certificate("flips", radius.point)
        return self.certificate(*proofs.decide(self.systems.problem(), factor, max_boxes))
