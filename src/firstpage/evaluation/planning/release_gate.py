"""A gate for continuous integration: systems must reach a value, and must not get worse."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np

from firstpage.core import DataError, Floats, MeasureError, Table, Tabular, warn
from firstpage.evaluation.measures.base import warn_of_differences
from firstpage.evaluation.measures.evaluation import Evaluation
from firstpage.evaluation.measures.registry import measure
from firstpage.evaluation.measures.significance import (
    adjust_p_values,
    mean_of,
    mean_pseudo_values,
    paired_differences,
)
from firstpage.evaluation.planning.baseline import Baseline
from firstpage.evaluation.planning.bounded_mean import BoundedSample, queries_to_exclude
from firstpage.evaluation.planning.power import MAX_QUERIES, check_probability

POWER = 0.8  # with the number of queries that an undecided check asks for
Verdict = Literal["pass", "fail", "unsure"]


@dataclass(frozen=True)
class Check:
    """One check of a gate.

    Attributes
    ----------
    system, measure : str
        Name of the system, and text of the measure.
    verdict : {"pass", "fail", "unsure"}
        Whether the check passed; "unsure" where the queries decide neither.
    value : float
        Mean of the measure, or difference to the baseline.
    limit : float
        The value that must be reached: a mean, or the negative margin.
    p : float or None
        One-sided p-value of "worse by more than the margin", corrected for the number of such
        checks; None for a mean.
    low : float or None
        Lower confidence limit of the true difference, of confidence 1 - `alpha`; None for a mean.
    queries : int
        Number of queries.
    text : str
        The check and its result in one sentence.
    """

    system: str
    measure: str
    verdict: Verdict
    value: float
    limit: float
    p: float | None
    low: float | None
    queries: int
    text: str


@dataclass(frozen=True)
class Gate(Tabular):
    """The result of `fp.planning.gate`: checks, and whether the systems may pass.

    Attributes
    ----------
    checks : tuple of Check
        The checks, in the order of the request.
    baseline : str
        Name of the baseline; empty without one.
    alpha : float
        Probability of a false alarm, over all checks against the baseline.
    fail_if_unsure : bool
        Whether undecided checks fail.
    passed : bool
        Whether no check failed.

    Examples
    --------
    >>> import firstpage as fp
    >>> system = fp.evaluate([2, 1, 2, 1], [1, 0, 0, 1], qid=[1, 1, 2, 2], measures="RR")
    >>> fp.planning.gate(system, fail_under={"RR": 0.9}).passed
    False
    """

    checks: tuple[Check, ...]
    baseline: str
    alpha: float
    fail_if_unsure: bool

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not any(self.failed(check) for check in self.checks)

    def failed(self, check: Check) -> bool:
        """Return whether a check closes the gate.

        Parameters
        ----------
        check : Check
            One of the checks.

        Returns
        -------
        bool
            True for failed checks, and for undecided ones with `fail_if_unsure`.
        """
        return check.verdict == "fail" or (check.verdict == "unsure" and self.fail_if_unsure)

    def __str__(self) -> str:
        lines = [f"{check.verdict}: {check.text}" for check in self.checks]
        return "\n".join([*lines, f"gate: {'passed' if self.passed else 'failed'}"])

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, Any]:
        names = [name for name in Check.__dataclass_fields__ if name != "text"]
        return {name: [getattr(check, name) for check in self.checks] for name in names}

    def summary_table(self) -> Table:
        head = ["check", "system", "measure", "value", "limit", "p", "at least", "queries"]
        rows = [
            [
                check.verdict,
                check.system,
                check.measure,
                f"{check.value:+.4f}" if check.p is not None else f"{check.value:.4f}",
                f"{check.limit:g}",
                "" if check.p is None else _shown_p(check.p),
                "" if check.low is None else f"{check.low:+.4f}",
                f"{check.queries:,}",
            ]
            for check in self.checks
        ]
        note = ""
        if self.baseline:
            note = (
                f"Differences to {self.baseline}: Gaffke's one-sided test, alpha {self.alpha:g} "
                "over all checks (Holm). at least: lower limit of the true difference, confidence "
                f"{_percent(1 - self.alpha)}."
            )
        return Table(head, rows, f"Gate {'passed' if self.passed else 'failed'}", note, 3)

    def to_markdown(self) -> str:
        """Return the checks as a Markdown table, for the summary of a pull request.

        Returns
        -------
        str
            Title, table and note.
        """
        return self.summary_table().markdown()

    def to_junit(self) -> str:
        """Return the checks as JUnit XML, which CI systems show as tests.

        Returns
        -------
        str
            A `testsuites` document with a test case per check.
        """
        failures = str(sum(map(self.failed, self.checks)))
        counts = {"tests": str(len(self.checks)), "failures": failures}
        root = ElementTree.Element("testsuites", counts)
        suite = ElementTree.SubElement(root, "testsuite", {"name": "firstpage gate", **counts})
        for check in self.checks:
            kind = "mean" if check.p is None else "difference"
            case = ElementTree.SubElement(
                suite, "testcase", {"classname": check.system, "name": f"{check.measure}: {kind}"}
            )
            tag = "failure" if self.failed(check) else "system-out"
            element = ElementTree.SubElement(case, tag)
            element.text = check.text
            if tag == "failure":
                element.set("message", check.text)
        ElementTree.indent(root)
        text = ElementTree.tostring(root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def gate(
    evaluations: Evaluation | Sequence[Evaluation],
    *,
    fail_under: Mapping[str, float] | None = None,
    baseline: Evaluation | Baseline | str | os.PathLike[str] | None = None,
    fail_if_worse: float | Mapping[str, float] | None = None,
    fail_if_unsure: bool = False,
    alpha: float = 0.05,
) -> Gate:
    """Check that systems reach given means, and that they are not worse than a baseline.

    A system fails against the baseline if a paired one-sided test shows a loss of more than the
    margin; the p-values of all such checks are corrected together (Holm), so that the probability
    of a false alarm is at most `alpha`.  It passes if the opposite test shows a loss of less than
    the margin.  Otherwise the check is undecided.  The tests assume nothing but the range of the
    measure, because a sample may lack the few queries that lose everything: even without any
    difference, a pass takes 3 / margin queries (for a range of 1, and alpha .05).  Measures without
    a range are taken to lie between 0 and the extreme values of both systems.

    Parameters
    ----------
    evaluations : Evaluation or sequence of Evaluation
        The systems to check.
    fail_under : dict of str to float, optional
        Least mean of each measure.
    baseline : Evaluation, Baseline or path, optional
        The system to compare with; a path is a file of `Baseline.save`.
    fail_if_worse : float or dict of str to float, optional
        The margin: the greatest loss that is acceptable, for all measures or by measure.
    fail_if_unsure : bool, default False
        Whether undecided checks fail.
    alpha : float, default 0.05
        Level of the tests.

    Returns
    -------
    Gate
        The checks; `passed` says whether none failed.

    Raises
    ------
    MeasureError
        If a measure was not computed, or a limit is not a number.
    DataError
        If system and baseline share no query, or their conventions differ.

    References
    ----------
    Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable, Mathematical Methods of Statistics 2005.
    Learned-Miller and Thomas, A New Confidence Interval for the Mean of a Bounded Random Variable,
    2019.

    Examples
    --------
    >>> import firstpage as fp
    >>> labels, qid = [1, 0, 0, 1, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> old = fp.evaluate([2, 1, 2, 1, 2, 1], labels, qid=qid, measures="RR", name="old")
    >>> new = fp.evaluate([2, 1, 1, 2, 2, 1], labels, qid=qid, measures="RR", name="new")
    >>> fp.planning.gate(new, fail_under={"RR": 0.8}, baseline=old, fail_if_worse=0).passed
    True
    """
    systems = [evaluations] if isinstance(evaluations, Evaluation) else list(evaluations)
    check_probability("alpha", alpha)
    if (baseline is None) != (fail_if_worse is None):
        raise DataError("baseline and fail_if_worse go together; give both.")
    if not fail_under and baseline is None:
        raise DataError("there is nothing to check; give fail_under, or baseline with a margin.")
    checks = [_mean_check(e, text, limit) for e in systems for text, limit in _items(fail_under)]
    name = ""
    if baseline is not None and fail_if_worse is not None:
        stored = _as_baseline(baseline)
        name = stored.name or "the baseline"
        margins = fail_if_worse
        if not isinstance(margins, Mapping):
            margins = dict.fromkeys(systems[0].texts, float(margins))
        pairs = [(e, text, margin) for e in systems for text, margin in margins.items()]
        checks += _loss_checks(pairs, stored, name, alpha)
    return Gate(tuple(checks), name, alpha, fail_if_unsure)


def _items(limits: Mapping[str, float] | None) -> list[tuple[str, float]]:
    return list((limits or {}).items())


def _as_baseline(baseline: Any) -> Baseline:
    if isinstance(baseline, Baseline):
        return baseline
    if isinstance(baseline, Evaluation):
        return Baseline.from_evaluation(baseline)
    return Baseline.read(baseline)


def _row(evaluation: Evaluation, text: str) -> int:
    """Return the row of a measure; an error of a text that names none tells why."""
    measure(text)
    try:
        return evaluation.row(text)
    except KeyError as error:
        raise MeasureError(f"{error.args[0]}.") from None


def _check_limit(name: str, text: str, limit: float) -> None:
    if not np.isfinite(limit):
        raise MeasureError(f"{name} of {text} must be a finite number; got {limit}.")


def _mean_check(evaluation: Evaluation, text: str, limit: float) -> Check:
    row = _row(evaluation, text)
    _check_limit("fail_under", text, limit)
    if evaluation.measures[row].lower_is_better:
        raise MeasureError(f"lower values of {text} are better, so it has no least mean.")
    mean = evaluation[evaluation.texts[row]]
    reached = mean >= limit
    name = evaluation.name or "the system"
    text_line = f"{name}: {text} is {mean:.4f}, {'at least' if reached else 'below'} {limit:g}."
    verdict: Verdict = "pass" if reached else "fail"
    return Check(name, text, verdict, mean, limit, None, None, len(evaluation.queries), text_line)


def _loss_checks(
    pairs: Sequence[tuple[Evaluation, str, float]], stored: Baseline, name: str, alpha: float
) -> list[Check]:
    """Return one check per system and measure; p-values are corrected together."""
    warn_of_differences(measure(text) for _, text, _ in pairs)
    for _, text, margin in pairs:
        _check_limit("the margin", text, margin)
        if margin < 0:
            raise MeasureError(f"the margin of {text} must not be negative; got {margin:g}.")
    samples = [_gains(evaluation, text, stored) for evaluation, text, _ in pairs]
    margins = [margin for _, _, margin in pairs]
    tests = [sample.p_at_least(-m) for sample, m in zip(samples, margins, strict=True)]
    worse = adjust_p_values(np.array(tests), "holm")
    checks = []
    for (evaluation, text, margin), gain, p in zip(pairs, samples, worse.tolist(), strict=True):
        verdict: Verdict = "unsure"
        if p < alpha:
            verdict = "fail"
        elif gain.p_at_most(-margin) < alpha:
            verdict = "pass"
        check = Check(
            evaluation.name or "the system",
            text,
            verdict,
            mean_of(gain.values, gain.weights),
            -margin,
            p,
            gain.lower_limit(alpha),
            len(gain.values),
            "",
        )
        checks.append(replace(check, text=_sentence(check, p, gain, name, alpha)))
    return checks


def _gains(evaluation: Evaluation, text: str, stored: Baseline) -> BoundedSample:
    """Return how much better the system is than the baseline, per shared query."""
    row = _row(evaluation, text)
    stored.check_settings(evaluation)
    key = str(evaluation.measures[row])
    if key not in stored.values:
        raise MeasureError(
            f"{stored.source or 'the baseline'}: has no values of {text}; it has: "
            f"{', '.join(stored.values)}."
        )
    before = stored.values[key]
    queries = list(evaluation.queries)
    shared = [q for q, query in enumerate(queries) if query in before]
    if len(shared) < 2:
        raise DataError("the system and the baseline share fewer than two judged queries.")
    if len(shared) < max(len(queries), len(before)):
        warn(
            f"{stored.source or 'the baseline'}: {len(shared)} queries are shared, of "
            f"{len(before)} of the baseline and {len(queries)} of the system; only these are "
            "compared."
        )
    old = np.array([before[queries[q]] for q in shared])
    new = evaluation.values[row][shared]
    measured = evaluation.measures[row]
    gain = paired_differences(*((old, new) if measured.lower_is_better else (new, old)))
    weights = np.ones(len(gain)) if evaluation.weights is None else evaluation.weights[shared]
    if not weights.any():
        raise DataError("all queries that the system and the baseline share have weight 0.")
    width = _width(measured.value_range, np.concatenate([old, new]))
    return BoundedSample(gain, weights, -width, width)


def _width(possible: tuple[float, float] | None, values: Floats) -> float:
    """Return the width of the range of a measure; without one, of its values and 0."""
    low, high = (0.0, 0.0) if possible is None else possible
    width = max(high, float(values.max())) - min(low, float(values.min()))
    return width if width > 0 else 1.0


def _sentence(check: Check, p: float, gain: BoundedSample, name: str, alpha: float) -> str:
    margin = -check.limit
    results = {
        "pass": f"not worse than {name} by more than {margin:g}",
        "fail": f"worse than {name} by more than {margin:g}",
        "unsure": f"the queries do not decide whether it is worse than {name} by more than "
        f"{margin:g}",
    }
    p_text = f"p {'' if p < 0.0001 else '= '}{_shown_p(p)}"
    text = (
        f"{check.system}: {check.measure} changes by {check.value:+.4f}: "
        f"{results[check.verdict]} ({p_text}, {check.queries:,} queries; the true "
        f"difference is at least {check.low:+.4f} with a confidence of {_percent(1 - alpha)}"
    )
    if check.verdict == "unsure" and margin > 0:
        deviation = float(mean_pseudo_values(gain.values, gain.weights).std(ddof=1))
        needed = queries_to_exclude(margin, deviation, gain.high, alpha, POWER)
        count = f"about {needed:,}" if needed <= MAX_QUERIES else f"more than {MAX_QUERIES:,}"
        text += f"; {count} queries would show a system of equal quality to be safe"
    return text + ")."


def _shown_p(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:g} %"
