"""Whether unjudged documents could change the verdict on two runs, and which: `unjudged_effect`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import DataError, FirstpageWarning, Floats, Ints
from firstpage.data import Ids, Qrels, Run, match_queries, sort_groups
from firstpage.evaluation.measures.convention import Convention
from firstpage.evaluation.measures.evaluate_systems import EvaluationRequest
from firstpage.evaluation.measures.registry import MeasureLike
from firstpage.evaluation.measures.registry import measure as parse_measure
from firstpage.evaluation.measures.significance import p_phrase, p_value, paired_differences
from firstpage.evaluation.measures.sources import as_column
from firstpage.evaluation.measures.unjudged import judged_rows, with_best_grade

ALPHA = 0.05
ROUNDS = 100_000  # of the randomization test
DEFAULT_DEPTH = 10  # of measures without a cut-off


@dataclass(frozen=True)
class RunVerdict:
    """The difference of two runs and its significance, under an assumption about documents.

    Attributes
    ----------
    difference : float
        The mean difference of the measure.
    p : float
        The p-value of Fisher's randomization test.
    name : {"better", "worse", "undecided"}
        Whether the difference is significantly above 0, below 0, or neither.
    """

    difference: float
    p: float

    @property
    def name(self) -> str:
        """Whether the difference is significantly above 0, below 0, or neither."""
        if self.p >= ALPHA or not self.difference:
            return "undecided"
        return "better" if self.difference > 0 else "worse"

    def __str__(self) -> str:
        return f"{self.difference:+.4f} ({p_phrase(self.p)}, {self.name})"


@dataclass(frozen=True, eq=False)
class UnjudgedEffect:
    """The result of `fp.planning.unjudged_effect`: what unjudged documents could change.

    Attributes
    ----------
    measure : str
        The measure.
    depth : int
        The number of first ranks that are looked at.
    documents : int
        The number of documents in the first ranks of either run.
    unjudged : int
        The number of these that are not judged.
    observed : RunVerdict
        The verdict, where unjudged documents are not relevant.
    favorable : RunVerdict
        The verdict, where those that help the first run more have the highest grade.
    unfavorable : RunVerdict
        The verdict, where those that help the second run more have the highest grade.
    to_judge : Run
        The documents whose judgments could change the verdict, with their effects as scores: if
        none of them is relevant, no judgment of the others changes it.

    Examples
    --------
    >>> import firstpage as fp
    >>> first, second = {"q": {"a": 2, "x": 1}}, {"q": {"y": 2, "a": 1}}
    >>> effect = fp.planning.unjudged_effect(first, second, {"q": {"a": 1}}, measure="RR@2")
    >>> effect.unjudged, effect.observed.difference, effect.unfavorable.difference
    (2, 0.5, 0.0)
    """

    measure: str
    depth: int
    documents: int
    unjudged: int
    observed: RunVerdict
    favorable: RunVerdict
    unfavorable: RunVerdict
    to_judge: Run

    @property
    def is_settled(self) -> bool:
        """Whether the verdict is the same under all three assumptions."""
        return self.observed.name == self.favorable.name == self.unfavorable.name

    def __str__(self) -> str:
        if self.is_settled:
            need = "no judgment of them changes the verdict"
        else:
            need = f"judge {len(self.to_judge.docids):,} of them to settle the verdict"
        return (
            f"unjudged: {self.unjudged:,} of {self.documents:,} documents in the first "
            f"{self.depth} ranks; {need}\n"
            f"{self.measure} {self.observed} if they are not relevant\n"
            f"{self.measure} {self.favorable} if those are relevant that help\n"
            f"{self.measure} {self.unfavorable} if those are relevant that harm"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the effect as JSON-serializable values.

        Returns
        -------
        dict
            Counts, the three verdicts, and the documents to judge by query.
        """
        verdicts = {
            name: {"difference": verdict.difference, "p": verdict.p, "verdict": verdict.name}
            for name, verdict in (
                ("observed", self.observed),
                ("favorable", self.favorable),
                ("unfavorable", self.unfavorable),
            )
        }
        counts = {"depth": self.depth, "documents": self.documents, "unjudged": self.unjudged}
        return {"measure": self.measure, **counts, **verdicts, "to_judge": self.to_judge.to_dict()}


def unjudged_effect(
    run: Any, other: Any, truth: Any, measure: MeasureLike = "NDCG@10", seed: int = 0
) -> UnjudgedEffect:
    """Return whether unjudged documents could change the verdict on two runs, and which ones.

    The verdict is that of Fisher's randomization test.  It is repeated with the highest grade for
    the unjudged documents that one run ranks higher than the other, down to the cut-off of the
    measure.  For measures that divide by an ideal, such as NDCG, the two results are no strict
    bounds, since a relevant document changes the ideal too.

    Parameters
    ----------
    run, other : Run, dict or data frame
        The two runs.
    truth : Qrels, dict or data frame
        The judgments.
    measure : str or Measure, default "NDCG@10"
        A measure that is better when higher.
    seed : int, default 0
        The seed of the test.

    Returns
    -------
    UnjudgedEffect
        The verdicts, and the documents to judge.

    Raises
    ------
    DataError
        If the measure is better when lower, or a run shares no query with the judgments.

    References
    ----------
    .. [1] A. Moffat, J. Zobel, "Rank-Biased Precision for Measurement of Retrieval Effectiveness",
       ACM Transactions on Information Systems 27, 2008 (bounds for unjudged documents).
    .. [2] B. Carterette, J. Allan, R. Sitaraman, "Minimal Test Collections for Retrieval
       Evaluation", SIGIR 2006.

    Examples
    --------
    >>> import firstpage as fp
    >>> first, second = {"q": {"a": 2, "x": 1}}, {"q": {"x": 2, "a": 1}}
    >>> print(fp.planning.unjudged_effect(first, second, {"q": {"a": 1, "x": 0}}, "RR@2"))
    unjudged: 0 of 2 documents in the first 2 ranks; no judgment of them changes the verdict
    RR@2 +0.5000 (p = 1.0000, undecided) if they are not relevant
    RR@2 +0.5000 (p = 1.0000, undecided) if those are relevant that help
    RR@2 +0.5000 (p = 1.0000, undecided) if those are relevant that harm
    """
    value = parse_measure(measure)
    if value.lower_is_better:
        raise DataError(f"{value} is better when lower; give a measure that is better when higher.")
    runs = (as_column(run, Run), as_column(other, Run))
    qrels = as_column(truth, Qrels)
    depth = getattr(value, "cutoff", None) or DEFAULT_DEPTH
    comparison = _RunPair(runs, qrels, EvaluationRequest({str(value): value}, Convention()), seed)
    documents, candidates = _unjudged(runs, qrels, depth)
    effects = _effects(candidates, qrels)
    order = np.argsort(-np.abs(effects), kind="stable")
    order = order[effects[order] != 0]
    keys, effects = [list(candidates)[row] for row in order], effects[order]
    observed = comparison.verdict([])
    favorable, unfavorable = comparison.extremes(keys, effects, 0)
    needed = 0
    if not observed.name == favorable.name == unfavorable.name:
        needed = _smallest(
            len(keys),
            lambda n: {v.name for v in comparison.extremes(keys, effects, n)} == {observed.name},
        )
    to_judge: dict[str, dict[str, float]] = {}
    for (query, document), effect in zip(keys[:needed], effects, strict=False):
        to_judge.setdefault(qrels.queries[query], {})[document] = abs(float(effect))
    return UnjudgedEffect(
        str(value),
        depth,
        documents,
        len(candidates),
        observed,
        favorable,
        unfavorable,
        Run.from_dict(to_judge, "undecided"),
    )


Key = tuple[int, str]  # a query of the judgments, and a document


@dataclass(frozen=True)
class _RunPair:
    """Two runs, whose verdict depends on the grades of unjudged documents."""

    runs: tuple[Run, Run]
    qrels: Qrels
    request: EvaluationRequest
    seed: int

    def verdict(self, relevant: Sequence[Key]) -> RunVerdict:
        """Return the verdict with the highest grade for these documents."""
        qrels = self.qrels
        if relevant:
            queries = np.array([query for query, _ in relevant], np.int64)
            docids = Ids.from_values([document for _, document in relevant])
            qrels = with_best_grade(qrels, queries, docids)
        with warnings.catch_warnings():  # the effect itself tells of unjudged documents
            warnings.simplefilter("ignore", FirstpageWarning)
            values = [self.request.evaluate(run, qrels).values[0] for run in self.runs]
        differences = paired_differences(*values)
        p = p_value(differences, "randomization", ROUNDS, self.seed)
        return RunVerdict(float(differences.mean()), p)

    def extremes(
        self, keys: Sequence[Key], effects: Floats, judged: int
    ) -> tuple[RunVerdict, RunVerdict]:
        """Return the verdicts at best and at worst, where so many documents are not relevant."""
        rest = list(zip(keys, effects.tolist(), strict=True))[judged:]
        helps = [key for key, effect in rest if effect > 0]
        harms = [key for key, effect in rest if effect < 0]
        return self.verdict(helps), self.verdict(harms)


def _smallest(most: int, is_enough: Any) -> int:
    """Return the smallest number up to `most` that is enough, by bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low


def _unjudged(runs: Sequence[Run], qrels: Qrels, depth: int) -> tuple[int, dict[Key, Floats]]:
    """Return the number of documents in the first ranks, and the ranks of those not judged.

    A document has a rank per run, infinite where it is not in the run's first ranks.
    """
    documents: set[Key] = set()
    ranks: dict[Key, Floats] = {}
    for number, run in enumerate(runs):
        partner = match_queries(run.queries, qrels.queries)
        order: Ints = sort_groups(run.values, run.offsets)[0]
        query = np.repeat(partner, np.diff(run.offsets))
        position = np.arange(len(order)) - np.repeat(run.offsets[:-1], np.diff(run.offsets))
        judged = judged_rows(run, qrels) >= 0
        for place in np.flatnonzero((position < depth) & (query >= 0)).tolist():
            row = int(order[place])
            key = int(query[place]), run.docids[row]
            documents.add(key)
            if not judged[row]:
                ranks.setdefault(key, np.full(len(runs), np.inf))[number] = position[place] + 1
    return len(documents), ranks


def _effects(candidates: dict[Key, Floats], qrels: Qrels) -> Floats:
    """Return about how much a relevant document helps the first run more than the second.

    It is the difference of the discounts of DCG, divided by the number of relevant documents.
    """
    if not candidates:
        return np.empty(0)
    discounts = 1.0 / np.log2(1.0 + np.array(list(candidates.values())))
    relevant = np.add.reduceat(np.append(qrels.values > 0, 0), qrels.offsets)[:-1]
    relevant[np.diff(qrels.offsets) == 0] = 0
    queries = np.array([query for query, _ in candidates])
    return np.asarray((discounts[:, 0] - discounts[:, 1]) / (1.0 + relevant[queries]))
