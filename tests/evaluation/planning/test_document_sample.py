"""Samples of documents within queries: means by hand, coverage by simulation, the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.planning.document_sample import document_mean
from tests.evaluation.planning.test_estimates import lower_bound

ROUNDS = 600
QUERIES = [f"q{n}" for n in range(40)]


def collection(seed: int = 0, rel: float = 0.5) -> tuple[Any, Any, Any]:
    """Return two runs, and judgments of people and of a lenient machine."""
    rng = np.random.default_rng(seed)
    runs: dict[str, dict[str, dict[str, float]]] = {"x": {}, "y": {}}
    human: dict[str, dict[str, int]] = {}
    machine: dict[str, dict[str, int]] = {}
    for query, level in zip(QUERIES, rng.beta(2, 2, len(QUERIES)), strict=True):
        utility = rng.normal(size=25)
        grades = np.clip(np.round(utility + 3 * (level - rel)), 0, 3).astype(int)
        errors = rng.choice([-1, 0, 1, 1], 25) * (rng.random(25) < 0.5)
        names = [f"d{n}" for n in range(25)]
        human[query] = dict(zip(names, grades.tolist(), strict=True))
        machine[query] = dict(zip(names, np.clip(grades + errors, 0, 3).tolist(), strict=True))
        for name, noise in (("x", 0.5), ("y", 1.0)):
            scores = utility + noise * rng.normal(size=25)
            runs[name][query] = dict(zip(names, scores.tolist(), strict=True))
    return runs, human, machine


RUNS, HUMAN, MACHINE = collection()


def only_drawn(sample: fp.planning.DocumentSample) -> dict[str, dict[str, int]]:
    """Return the judgments of people who judge what was drawn, and nothing else."""
    return {
        query: {document: HUMAN[query][document] for document in documents}
        for query, documents in sample.drawn_documents.to_dict().items()
    }


def by_hand(**changes: Any) -> Any:
    """Return the mean of two queries with four documents each, of which two are judged."""
    pool = fp.Run.from_dict({q: dict.fromkeys("abcd", 0.5) for q in ("q", "r", "s")})
    sample = fp.planning.DocumentSample(
        fp.planning.QuerySample(("q", "r", "s"), np.ones(3), np.ones(3, bool)),
        pool,
        np.array([1, 1, 0, 0] * 3, bool),
    )
    human = np.array([0.25, 0.0, 0.25, 0.25, 0.0, 0.0])
    machine = np.array([0.25, 0, 0.25, 0, 0.25, 0, 0, 0, 0, 0, 0, 0.25])
    return document_mean(sample, human, machine, np.full(12, 0.25), **changes)


def test_by_hand() -> None:
    mean = by_hand(machine_weight=1.0, target="queries")
    # machine: 0.5, 0.25, 0.25; its errors on the sample, doubled: 0, +0.5, 0
    assert mean.value == pytest.approx((0.5 + 0.75 + 0.25) / 3)
    # within: only the second query's errors (0, 0.25) differ: 4^2 (1 - 1/2) / 2 * 0.25^2 / 2; of
    # unrelated grades: the first query's values of people, and those of the machine in two queries
    within = 16 * 0.5 / 2 * 0.25**2 / 2
    assert mean.error**2 == pytest.approx((6 * within + 2 * 3 * within) / (6 - 1 + 2) / 9)


def test_all_documents_of_all_queries_judged_are_the_plain_mean() -> None:
    sample = fp.planning.DocumentSample.draw(RUNS, 25, depth=10)
    assert sample.drawn.all()
    human, measures = only_drawn(sample), ["P@10", "DCG@10", "CG@5"]
    result = fp.planning.estimate(
        RUNS, human, MACHINE, sample, measures=measures, target="queries", baseline="x"
    )
    compared = fp.compare(RUNS, HUMAN, measures=measures, baseline="x")
    for mean in result.means:
        expected = compared.values(mean.measure)[compared.systems.index(mean.system)].mean()
        assert (mean.value, mean.low, mean.high) == pytest.approx((expected,) * 3)
        alone = fp.evaluate(RUNS[mean.system], MACHINE, measures=mean.measure)[mean.measure]
        assert mean.machine == pytest.approx(alone)


@pytest.mark.filterwarnings("ignore:the machine's error varies")
def test_ties_at_the_last_rank_can_be_drawn() -> None:
    run = {query: {**dict.fromkeys("abc", 2.0), **dict.fromkeys("de", 1.0)} for query in QUERIES}
    human = {query: dict.fromkeys("abcde", 1) for query in QUERIES}
    sample = fp.planning.DocumentSample.draw([run], 2, depth=2)
    assert sample.pool.to_dict()["q0"] == pytest.approx(dict.fromkeys("abc", 2 / 3))
    result = fp.planning.estimate([run], human, human, sample, measures="P@2")
    assert result.means[0].value == pytest.approx(1.0)


def coverage(size: int | None, target: Any) -> dict[str, float]:
    """Return how often intervals of P@10 and its difference cover, and the naive ones."""
    hits = dict.fromkeys(["tuned", "plain", "people", "difference", "unweighted"], 0)
    population = 20 * len(QUERIES)
    parts = [collection(seed) for seed in range(20)]  # the population that queries come from
    contributions = [[_added(*part, name) for name in RUNS] for part in parts]
    means = np.array([[c["human"].sum() for c in part] for part in contributions]).sum(axis=0)
    means /= population
    rng = np.random.default_rng(5)
    for seed in range(ROUNDS):
        number = int(rng.integers(20)) if target == "queries" else None
        rows = rng.integers(20, size=len(QUERIES)) if number is None else np.full(40, number)
        x, y = (
            {
                key: np.stack([contributions[part][at][key][n] for n, part in enumerate(rows)])
                for key in ("human", "machine", "most")
            }
            for at in range(2)
        )
        pools = {q: dict.fromkeys(map(str, range(25)), 1.0) for q in QUERIES}
        sample = fp.planning.DocumentSample.draw([pools], 4, depth=25, size=size, seed=seed)
        drawn = sample.drawn.reshape(40, 25)
        truths = [values["human"].sum() / 40 for values in (x, y)] if number is not None else means

        def interval(values: dict[str, Any], weight: float | None) -> tuple[float, float]:
            mean = document_mean(
                sample, values["human"][drawn], values["machine"].ravel(), values["most"].ravel(),  # noqa: B023
                weight, target,
            )  # fmt: skip
            return mean.interval(0.95)

        difference = {key: x[key] - y[key] for key in x}
        for name, values, weight, truth in (
            ("tuned", x, None, truths[0]),
            ("plain", x, 1.0, truths[0]),
            ("people", x, 0.0, truths[0]),
            ("difference", difference, None, truths[0] - truths[1]),
        ):
            low, high = interval(values, weight)
            hits[name] += low <= truth <= high
        of_query = np.array([x["human"][q][d].mean() * 10 for q, d in enumerate(drawn) if d.any()])
        half = 2 * of_query.std(ddof=1) / np.sqrt(len(of_query))
        hits["unweighted"] += abs(of_query.mean() - truths[0]) <= half
    return {name: count / ROUNDS for name, count in hits.items()}


def _added(runs: Any, human: Any, machine: Any, name: str) -> dict[str, Any]:
    """Return what each of the 25 documents adds to P@10 of a run."""
    scores = np.array([list(runs[name][q].values()) for q in QUERIES])
    top = np.argsort(np.argsort(-scores, axis=1), axis=1) < 10
    grades = {
        key: np.array([list(table[q].values()) for q in QUERIES])
        for key, table in (("human", human), ("machine", machine))
    }
    return {**{key: (g > 0) * top / 10 for key, g in grades.items()}, "most": top / 10}


@pytest.mark.parametrize("target", ["population", "queries"])
@pytest.mark.parametrize("size", [None, 20])
def test_intervals_cover(size: int | None, target: str) -> None:
    """Valid intervals pass the binomial bound; the mean of drawn documents fails it."""
    covered = coverage(size, target)
    for name in ("tuned", "plain", "people", "difference"):
        level = 0.94 if name == "people" else 0.95  # few documents, with a weight of six
        assert lower_bound(level, ROUNDS) <= covered[name] <= 0.985, covered
    assert covered["unweighted"] < 0.85, covered


@pytest.mark.parametrize("depth", [10, 15])
def test_inclusion_probabilities_are_those_of_the_draw(depth: int) -> None:
    counts, rounds = np.zeros(1), 800
    for seed in range(rounds):
        sample = fp.planning.DocumentSample.draw(RUNS, 3, depth=depth, size=10, seed=seed)
        counts = counts + sample.drawn
    p = sample.pool.values * 10 / 40
    assert np.abs(counts / rounds - p).max() < 5 * np.sqrt(0.25 / rounds)
    assert np.mean((counts / rounds - p) ** 2 / (p * (1 - p) / rounds)) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("NDCG@10", "NDCG@10 is not a sum over documents"),
        ("RR@10", "RR@10 is not a sum over documents"),
        ("AP@10", "AP@10 is not a sum over documents"),
        ("Recall@10", "Recall@10 is not a sum over documents"),
        ("Judged@10", "Judged@10 is not a sum over documents"),
        ("P@11", r"x has documents in the ranks of P@11 that could not be drawn \(query 'q"),
        ("P(condensed=true)@10", "condensed lists leave out documents that were not drawn"),
    ],
)
def test_refused_measures(measure: str, message: str) -> None:
    sample = fp.planning.DocumentSample.draw({"x": RUNS["x"]}, 4)
    with pytest.raises(fp.FirstpageError, match=message):
        fp.planning.estimate({"x": RUNS["x"]}, HUMAN, MACHINE, sample, measures=measure)


def test_refused_inputs() -> None:
    sample = fp.planning.DocumentSample.draw({"x": RUNS["x"]}, 4)
    few = {query: {"d1": 1} for query in QUERIES}
    with pytest.raises(fp.DataError, match=r"drawn documents have no human judgments, such as 'd"):
        fp.planning.estimate(RUNS, few, MACHINE, sample, measures="P@10")
    with pytest.raises(fp.DataError, match=r"y has documents in the ranks of P@10 that could not"):
        fp.planning.estimate({"y": RUNS["y"]}, HUMAN, MACHINE, sample, measures="P@10")
    with pytest.raises(fp.DataError, match="at least 2 documents per query"):
        fp.planning.DocumentSample.draw(RUNS, 1)
    with pytest.warns(fp.FirstpageWarning, match="have no machine judgments, and count as not"):
        fp.planning.estimate([RUNS["x"]], HUMAN, few, sample, measures="P@10")
    part = {query: RUNS["x"][query] for query in QUERIES[:30]}
    with pytest.warns(fp.FirstpageWarning, match="10 of 40 queries count 0, as the run lacks them"):
        fp.planning.estimate([part], HUMAN, MACHINE, sample, measures="P@10")


HEAD = "query,document,query_probability,probability,drawn\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "q,a,1,1,maybe\n", "sample.csv:2: must have query, document, two probabilities"),
        (HEAD + "q,a,1,1\n", "sample.csv:2: must have query, document, two probabilities"),
        ("query,document,drawn\nq,a,yes\n", "there is no column 'query_probability'"),
        (HEAD + "q,a,1,1,yes\nq,a,1,1,yes\n", "sample.csv:3: document 'a' of query 'q' occurs"),
        (HEAD + "q,a,1,0.5,yes\n", "query 'q' has 1 drawn documents, and their probabilities sum"),
        (HEAD + "q,a,.5,1,yes\n", "documents of 1 queries are drawn, and the probabilities"),
        (HEAD + "q,a,1,0,yes\n", "the inclusion probability of a document must be above 0"),
        (HEAD + "q,a,1,.5,yes\nq,b,1,.5,no\n", "sum to 1: draw at least 2"),
    ],
)
def test_files_of_samples_are_checked(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sample.csv").write_text(text)
    with pytest.raises(fp.DataError, match=message):
        fp.planning.DocumentSample.read(tmp_path / "sample.csv")
