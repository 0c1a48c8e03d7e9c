"""Labeling strategies on recorded judgments, at equal numbers of answers.

    python benchmarks/label_rivals.py --data DATA --json rivals.json     # arguments, CAsT, TREC DL
    python benchmarks/label_rivals.py --data DATA --sets cast --queries 20

Sets: `arguments` (UKPConvArg1: five people on every pair), `cast` (TREC CAsT 2019: people prefer
one of two search results) and `dl` (TREC DL 2019 and 2020: GPT-4o prefers one of two passages).

A pair that was judged is answered by one of its votes, drawn at random.  A pair that was not is
answered by a model of the judge: P(first) = expit(b + c1 grade difference + c2 utility difference),
where b is the order effect and the utilities are those of Bradley and Terry, with a ridge penalty,
given the recorded answers of the query.  Cross-fitting: b, c1 and c2 come from other queries, where
they predict pairs by utilities that were fitted without them.  The truth of a query is the order by
the mean probability to win against the other documents.

Held equal: all strategies have the same queries, judge, truth, seeds and number of answers, and
every result is the posterior of the same model given the answers, whatever strategy asked.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.special import expit

import firstpage as fp
from common import show, versions
from firstpage.core import Chart, curves, stacked
from firstpage.labeling import Answer, Compare, TopKTask, strategy
from firstpage.labeling.strategies.adaptive import BeliefState

RATIOS = (1.0, 2.0, 4.0)  # answers per document
FOLDS, RIDGE, SEED = 5, 1.0, 0
K = {"arguments": 10, "cast": 5, "dl": 10}
MIN_DOCUMENTS = {"arguments": 20, "cast": 10, "dl": 20}
MAX_DOCUMENTS = 50  # drawn at random, where a query has more
RUNS = {"arguments": 3, "cast": 3, "dl": 2}
BASELINE = "adaptive"
STRATEGIES = {  # name: (strategy, whether it knows the prior)
    "adaptive": ("adaptive", False),
    "pools": ("pools", False),
    "pools, 3 pairings": ("pools(pairings=3)", False),
    "duels": ("duels", False),
    "duels, alpha .05": ("duels(alpha=0.05)", False),
    "tournament": ("tournament", False),
    "insertion": ("insertion", False),
    "heap-closure": ("heap-closure", False),
    "quick-sort": ("quick-sort", False),
    "adaptive, prior": ("adaptive", True),
    "pools, prior": ("pools(depth=30)", True),
    "insertion, prior": ("insertion", True),
}


@dataclass
class Query:
    """The recorded answers of a query: per pair (smaller document first), who was preferred."""

    name: str
    documents: list[str]
    votes: dict[tuple[int, int], list[int]]
    grade: np.ndarray
    prior: np.ndarray
    shown: list[tuple[int, int, int]] = field(default_factory=list)  # first, second, 1 or -1
    model: np.ndarray | None = None  # P(row, shown first, beats column)

    def subset(self, kept: np.ndarray) -> Query:
        """Return the query with these documents only."""
        new = {int(old): i for i, old in enumerate(kept)}
        votes = {(new[a], new[b]): v for (a, b), v in self.votes.items() if a in new and b in new}
        shown = [(new[a], new[b], o) for a, b, o in self.shown if a in new and b in new]
        documents = [self.documents[i] for i in kept]
        return Query(self.name, documents, votes, self.grade[kept], self.prior[kept], shown)

    def probabilities(self) -> np.ndarray:
        """Return P(row beats column): the mean of the votes, and of the model counted once."""
        n = len(self.documents)
        model = np.full((n, n), 0.5) if self.model is None else (self.model + 1 - self.model.T) / 2
        weight = float(self.model is not None)
        p = model.copy()
        for (a, b), votes in self.votes.items():
            p[a, b] = (sum(0.5 + v / 2 for v in votes) + weight * model[a, b]) / (
                len(votes) + weight
            )
            p[b, a] = 1 - p[a, b]
        np.fill_diagonal(p, 0.0)
        return p


def arguments(folder: Path) -> list[Query]:
    """Return the topics of UKPConvArg1; the prior is the length of the text."""
    with (folder / "ukpconvarg1" / "texts.csv").open(newline="") as file:
        length = {row["arg"]: len(row["text"]) for row in csv.DictReader(file)}
    return [
        Query(
            votes.query,
            list(votes.documents),
            {pair: list(outcomes) for pair, outcomes in votes.outcomes.items()},
            np.zeros(len(votes.documents)),
            np.array([length[d] for d in votes.documents], float),
        )
        for votes in fp.labeling.read_votes(folder / "ukpconvarg1" / "votes.csv")
    ]


def queries_of(
    rows: list[tuple[str, str, str, str]],
    grades: dict[str, dict[str, float]],
    priors: dict[str, dict[str, float]],
) -> list[Query]:
    """Return the queries of rows (query, shown first, shown second, preferred)."""
    by_query = defaultdict(list)
    for name, first, second, preferred in rows:
        if first != second:
            by_query[name].append((first, second, 1 if preferred == first else -1))
    queries = []
    for name, answers in by_query.items():
        documents = sorted({d for first, second, _ in answers for d in (first, second)})
        index = {d: i for i, d in enumerate(documents)}
        shown = [(index[a], index[b], o) for a, b, o in answers]
        votes = defaultdict(list)
        for a, b, outcome in shown:
            votes[min(a, b), max(a, b)].append(outcome if a < b else -outcome)
        arrays = [np.array([g[name].get(d, 0.0) for d in documents]) for g in (grades, priors)]
        queries.append(Query(name, documents, dict(votes), *arrays, shown))
    return queries


def read_grades(path: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    for line in path.read_text().splitlines():
        name, _, document, grade = line.split()
        grades[name][document] = min(float(grade), 4.0)  # above: from the preferences themselves
    return grades


def cast(folder: Path) -> list[Query]:
    """Return TREC CAsT 2019; the prior is the grade of the first assessors."""
    folder = folder / "cast2019"
    lines = (folder / "TREC-CAsT-2019.pref").read_text().splitlines()
    grades = read_grades(folder / "TREC-CAsT-2019.qrels")
    return queries_of([tuple(line.split()) for line in lines], grades, grades)


def dl(folder: Path) -> list[Query]:
    """Return TREC DL; human grades are for the model, grades by a machine are the prior."""
    queries = []
    for year in ("19", "20"):
        path = folder / "judges" / "gpt4o-pairs" / f"dl{year}.tsv"
        rows = [tuple(line.split("\t")) for line in path.read_text().splitlines()[1:]]
        human = read_grades(folder / "passages" / f"qrels.dl{year}")
        machine = read_grades(folder / "judges" / f"umbrela-gpt4.dl{year}.qrels")
        queries += queries_of(rows, human, machine)
    return queries


def ridge_utilities(n: int, answers: list[tuple[int, int, int]]) -> np.ndarray:
    """Return Bradley-Terry utilities with a ridge penalty, by Newton's method."""
    a, b, o = np.array(answers or [(0, 0, 0)]).T
    u = np.zeros(n)
    for _ in range(30):
        p = expit(u[a] - u[b])
        residual = (o + 1) / 2 - p
        gradient = np.bincount(a, residual, n) - np.bincount(b, residual, n) - RIDGE * u
        hessian = RIDGE * np.eye(n)
        for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            np.add.at(hessian, (i, j), sign * p * (1 - p))
        step = np.linalg.solve(hessian, gradient)
        u += step
        if np.abs(step).max() < 1e-6:
            break
    return u


def logistic(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    w = np.zeros(X.shape[1])
    for _ in range(30):
        p = expit(X @ w)
        w += np.linalg.solve((X.T * (p * (1 - p))) @ X + 1e-6 * np.eye(len(w)), X.T @ (y - p))
    return w


def fit_judge(queries: list[Query], order_effect: bool) -> dict[str, float]:
    """Set the model of every query; return how well it predicts answers that it did not see."""
    rng = np.random.default_rng(SEED)
    blocks = []
    for query in queries:
        fold = {pair: int(rng.integers(FOLDS)) for pair in query.votes}
        folds = np.array([fold[min(a, b), max(a, b)] for a, b, _ in query.shown])
        rows = np.zeros((len(folds), 3))
        a, b, o = np.array(query.shown).T
        for number in range(FOLDS):
            training = [row for row, at in zip(query.shown, folds, strict=True) if at != number]
            u = ridge_utilities(len(query.documents), training)
            mine = folds == number
            grade = query.grade[a[mine]] - query.grade[b[mine]]
            rows[mine] = np.column_stack(
                [np.full(mine.sum(), float(order_effect)), grade, u[a[mine]] - u[b[mine]]]
            )
        blocks.append((rows, (o + 1) / 2))
    group = rng.integers(FOLDS, size=len(queries))
    loss, hits, total, weights = 0.0, 0, 0, []
    for number in range(FOLDS):
        training = [block for block, g in zip(blocks, group, strict=True) if g != number]
        w = logistic(np.vstack([X for X, _ in training]), np.concatenate([y for _, y in training]))
        weights.append(w)
        for query, (X, y), g in zip(queries, blocks, group, strict=True):
            if g == number:
                p = np.clip(expit(X @ w), 1e-9, 1 - 1e-9)
                loss -= float((y * np.log(p) + (1 - y) * np.log(1 - p)).sum())
                hits, total = hits + int(((p > 0.5) == (y > 0.5)).sum()), total + len(y)
                u = ridge_utilities(len(query.documents), query.shown)
                difference = np.subtract.outer
                query.model = expit(
                    w[0] + w[1] * difference(query.grade, query.grade) + w[2] * difference(u, u)
                )
    order, grade, utility = np.mean(weights, axis=0)
    return {
        "answers": total, "accuracy": hits / total, "log loss": loss / total,
        "order": order, "grade": grade, "utility": utility,
    }  # fmt: skip


class Judge:
    """Answers questions about a query, and counts those answered by recorded votes."""

    def __init__(self, query: Query, rng: np.random.Generator) -> None:
        self.query, self.rng = query, rng
        self.answers = self.recorded = 0

    def __call__(self, question: Compare) -> Answer:
        self.answers += 1
        votes = self.query.votes.get(question.pair)
        if votes is not None:
            self.recorded += 1
            vote = votes[int(self.rng.integers(len(votes)))]
            return Answer(vote if question.first < question.second else -vote)
        first, second = question.first, question.second
        if self.query.model is None:
            return Answer(0)
        p = self.query.model[first, second]
        if self.rng.random() < 0.5:  # the side is random, as in the application
            p = 1 - self.query.model[second, first]
        return Answer(1 if self.rng.random() < p else -1)


def replay(query: Query, k: int, text: str, known: bool, seed: int) -> Iterator[list[float]]:
    """Yield recall, kappa-NDCG, agreement, answers and recorded answers at each budget."""
    n = len(query.documents)
    budgets = [max(round(ratio * n), 1) for ratio in RATIOS]
    chosen = strategy(text)
    if hasattr(chosen, "budget"):
        changes = {"confidence": None} if hasattr(chosen, "confidence") else {}
        chosen = replace(chosen, budget=budgets[-1], **changes)
    prior = tuple(query.prior.tolist()) if known and np.ptp(query.prior) > 0 else None
    task = TopKTask(n, k, seed, prior)
    judge = Judge(query, np.random.default_rng([SEED, seed]))
    wins = query.probabilities().sum(axis=1)
    truth = np.lexsort((np.arange(n), -wins))
    questions, state, finished = chosen.questions(task), BeliefState.from_task(task), False
    question = next(questions)
    for budget in budgets:
        while judge.answers < budget and not finished:
            answer = judge(question)
            state.learn(question, answer)
            try:
                question = questions.send(answer)
            except StopIteration:
                finished = True
        order = np.lexsort((state.tie_break, -state.belief.mean))
        recall = len(set(truth[:k]) & set(order[:k])) / k
        yield [
            recall, kappa_ndcg(truth, order, k), agreement(query, order, k),
            judge.answers, judge.recorded,
        ]  # fmt: skip


def kappa_ndcg(truth: np.ndarray, order: np.ndarray, k: int) -> float:
    """Return kNDCG@k: the best document has the label k, the next k - 1, and so on."""
    gains = np.zeros(len(truth))
    gains[truth[:k]] = 2.0 ** (k - np.arange(k)) - 1
    discounts = 1 / np.log2(np.arange(2, k + 2))
    return float(gains[order[:k]] @ discounts / (gains[truth[:k]] @ discounts))


def agreement(query: Query, order: np.ndarray, k: int) -> float:
    """Return how often recorded votes about a document of the top k agree with the order."""
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    signs = [
        vote * (1 if rank[a] < rank[b] else -1)
        for (a, b), votes in query.votes.items()
        if min(rank[a], rank[b]) < k
        for vote in votes
        if vote
    ]
    return float(np.mean(np.array(signs) > 0)) if signs else np.nan


def dense_part(query: Query, least: int) -> Query | None:
    """Return documents of which all pairs were recorded, found greedily, or None if too few."""
    linked = defaultdict(set)
    for a, b in query.votes:
        linked[a].add(b)
        linked[b].add(a)
    best: list[int] = []
    for start in sorted(linked):
        clique, near = [start], set(linked[start])
        while near:
            new = max(sorted(near), key=lambda d: len(linked[d] & near))
            clique.append(new)
            near &= linked[new]
        best = max(best, clique, key=len)
    return query.subset(np.array(sorted(best))) if len(best) >= least else None


def compare(
    name: str, queries: list[Query], k: int, runs: int, names: list[str]
) -> dict[str, np.ndarray]:
    """Return, per strategy, an array of (queries, budgets, 5): means over runs."""
    results = {}
    for label in names:
        text, known = STRATEGIES[label]
        rows = []
        for number, query in enumerate(queries):
            seeds = range(number * runs, (number + 1) * runs)
            rows.append(
                np.mean([list(replay(query, k, text, known, seed)) for seed in seeds], axis=0)
            )
        results[label] = np.array(rows)
        print(f"{name}: {label}", file=sys.stderr, flush=True)
    return results


def table(results: dict[str, np.ndarray]) -> list[dict[str, object]]:
    """Return a row per strategy and budget, with 95 % intervals over queries.

    Differences are from `adaptive`, with the prior for strategies that know it.
    """
    rows = []
    for label, values in results.items():
        for column, ratio in enumerate(RATIOS):
            at = values[:, column]
            row: dict[str, object] = {"strategy": label, "ratio": ratio}
            row |= {"answers": at[:, 3].mean(), "recorded": at[:, 4].sum() / at[:, 3].sum()}
            for measure, name in enumerate(("recall", "kNDCG", "agreement")):
                baseline = results[BASELINE + ", prior" * label.endswith("prior")]
                difference = at[:, measure] - baseline[:, column, measure]
                difference = difference[np.isfinite(difference)]
                half = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
                row |= {name: np.nanmean(at[:, measure]), f"{name} difference": difference.mean()}
                row |= {f"{name} half": half}
            rows.append(
                {key: v if isinstance(v, str) else round(float(v), 4) for key, v in row.items()}
            )
    return rows


def printed(rows: list[dict[str, object]]) -> tuple[list[str], list[list[str]]]:
    head = ["strategy", "answers", "recorded"]
    for ratio in RATIOS:
        head += [f"recall {ratio:g}n", "kNDCG", "difference"]
    head += ["agreement"]
    lines = []
    for label in dict.fromkeys(row["strategy"] for row in rows):
        mine = [row for row in rows if row["strategy"] == label]
        cells = [label, f"{mine[-1]['answers']:.0f}", f"{mine[-1]['recorded']:.0%}"]
        for row in mine:
            difference = f"{row['kNDCG difference']:+.3f} ± {row['kNDCG half']:.3f}"
            cells += [f"{row['recall']:.3f}", f"{row['kNDCG']:.3f}", difference]
        lines.append([*cells, f"{mine[-1]['agreement']:.3f}"])
    return head, lines


DRAWN = (
    "adaptive", "pools, 3 pairings", "duels, alpha .05", "tournament", "insertion",
    "adaptive, prior",
)  # fmt: skip


def picture(report: dict[str, dict]) -> Chart:
    """Return kNDCG by the number of answers, one drawing per set."""
    drawings = []
    for title, values in report.items():
        series = {
            name: [(r["ratio"], r["kNDCG"]) for r in values["rows"] if r["strategy"] == name]
            for name in DRAWN
        }
        series = {name: points for name, points in series.items() if points}
        name = f"kNDCG@{values['k']}"
        caption = f"{title}: {name} by answers per document"
        drawings.append((curves(series, caption, "answers per document", name), caption))
    return stacked(drawings, "Labeling strategies on recorded judgments")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(K), choices=list(K))
    parser.add_argument("--queries", type=int, help="only the first queries of each set")
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), metavar="NAME")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--svg", type=Path, help="draw kNDCG by answers to this file")
    chosen = parser.parse_args()
    names = list(dict.fromkeys([BASELINE, f"{BASELINE}, prior", *chosen.strategies]))
    report: dict[str, dict] = {}
    for name in chosen.sets:
        queries = {"arguments": arguments, "cast": cast, "dl": dl}[name](chosen.data)
        fitted = fit_judge(queries, name == "dl") if name != "arguments" else {}
        rng = np.random.default_rng(SEED)
        selected = []
        for query in queries:
            n = len(query.documents)
            if n > MAX_DOCUMENTS:
                kept = np.sort(rng.choice(n, MAX_DOCUMENTS, replace=False))
                model = None if query.model is None else query.model[np.ix_(kept, kept)]
                query = replace(query.subset(kept), model=model)
            if n >= MIN_DOCUMENTS[name]:
                selected.append(query)
        parts = [(name, selected, K[name])]
        if name != "arguments":
            dense = [part for query in queries if (part := dense_part(query, 6)) is not None]
            parts.append((f"{name}, all pairs recorded", dense, 3))
        for title, part, k in parts:
            part = part[: chosen.queries]
            rows = table(compare(title, part, k, RUNS[name], names))
            sizes = [len(query.documents) for query in part]
            report[title] = {
                "k": k, "queries": len(part), "documents": float(np.mean(sizes)),
                "judge": fitted, "rows": rows,
            }  # fmt: skip
            note = f"{len(part)} queries, {np.mean(sizes):.1f} documents on average; "
            note += ", ".join(f"{key} {value:.3g}" for key, value in fitted.items())
            show(f"{title}: top {k}", *printed(rows), f"{note}; {versions('numpy')}")
    if chosen.svg is not None:
        picture(report).save(chosen.svg)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(report))


if __name__ == "__main__":
    main()
