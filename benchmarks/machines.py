"""Machines beside people (docs/machines.md): coverage of estimates, and who is asked next.

    python benchmarks/machines.py coverage --data data
    python benchmarks/machines.py routing --data data --topics 8

`coverage` draws samples of the queries of LETOR's MQ2008.  Its labels are the human judgments.  One
machine gives them with errors, one is a regression on features, trained on other folds, one is
right but for 5 % of the queries, which have the values of another query, and one calls 3 % of the
rankings perfect that are bad.

`routing` labels the topics of UKPConvArg1 with recorded votes of people and a machine that is
either a rule (the longer text is better) or simulated.  --json writes the rows to a file.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

import numpy as np

import firstpage as fp
from common import show, versions
from firstpage.evaluation.planning import powered_mean
from firstpage.labeling import Utilities, bradley_terry, pair_gains, utilities

FEATURES = {"BM25": 24, "LMIR.JM": 39}  # of MQ2008, counted from 0
DRAWS, BUDGETS = 1000, (25, 50, 100, 200)
COLLECTION = 400  # queries of a collection, where the target is the population
PERSON, PRIOR_SD = 0.85, 1.2  # accuracy of a person; standard deviation of the utilities
TOPICS_SEEDS, K, PEOPLE_BUDGET = 1, 10, 80


def machine_labels(folder: Path) -> tuple[list[fp.Dataset], dict[str, list[np.ndarray]]]:
    """Return the test folds of MQ2008 and the labels that two machines give to them."""
    rng = np.random.default_rng(0)
    folds, labels = [], {"lenient": [], "regression": []}
    for number in range(1, 6):
        train, test = (
            fp.read_letor(folder / "mq2008" / f"Fold{number}" / f"{name}.txt")
            for name in ("train", "test")
        )
        folds.append(test)
        lenient = np.where(rng.random(test.n_docs) < 0.2, test.y + 1, test.y)
        lenient = np.where(rng.random(test.n_docs) < 0.1, lenient - 1, lenient)
        labels["lenient"].append(np.clip(lenient, 0, 2))
        X = np.column_stack([np.ones(train.n_docs), train.X])
        weights = np.linalg.solve(X.T @ X + 0.1 * np.eye(X.shape[1]), X.T @ train.y)
        scores = X @ weights, np.column_stack([np.ones(test.n_docs), test.X]) @ weights
        limits = np.quantile(scores[0], [np.mean(train.y < 1), np.mean(train.y < 2)])
        labels["regression"].append(np.searchsorted(limits, scores[1]).astype(float))
    return folds, labels


def query_values(folder: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return NDCG@10 per query of BM25, and its difference to LMIR, by people and machines."""
    folds, labels = machine_labels(folder)

    def values(relabeled: list[fp.Dataset]) -> np.ndarray:
        rows = {
            name: np.concatenate(
                [
                    fp.evaluate(data.X[:, column], data, measures="NDCG@10").per_query("NDCG@10")
                    for data in relabeled
                ]
            )
            for name, column in FEATURES.items()
        }
        return np.array([rows["BM25"], rows["BM25"] - rows["LMIR.JM"]])

    machines = {
        name: values([data.with_labels(y) for data, y in zip(folds, rows, strict=True)])
        for name, rows in labels.items()
    }
    human = values(folds)
    rng = np.random.default_rng(2)
    wrong = np.flatnonzero(rng.random(human.shape[1]) < 0.05)
    machines["careless"] = human.copy()
    machines["careless"][:, wrong] = human[:, rng.permutation(human.shape[1])[wrong]]
    machines["optimistic"] = human.copy()
    bad = np.flatnonzero(human[0] < 0.3)
    machines["optimistic"][0, rng.choice(bad, int(0.03 * human.shape[1]), replace=False)] = 1.0
    return human, machines


def coverage(folder: Path, _: int | None) -> dict[str, list[list[str]]]:
    """Print and return the coverage of intervals about these queries, and about a population."""
    human, machines = query_values(folder)
    tables = {}
    rng = np.random.default_rng(1)
    for target, size in (("queries", human.shape[1]), ("population", COLLECTION)):
        rows = []
        for name, machine in machines.items():
            for row, quantity in enumerate(("NDCG@10", "difference")):
                correlation = np.corrcoef(human[row], machine[row])[0, 1]
                for count in BUDGETS:
                    cells = one_budget(rng, human[row], machine[row], size, count, target)
                    rows.append([name, quantity, f"{correlation:.2f}", str(count), *cells])
        head = [
            "machine", "of", "correlation", "judged", "tuned", "width", "weight 1", "width",
            "people alone", "width", "machine alone", "width",
        ]  # fmt: skip
        title = f"coverage of 95 % intervals, {DRAWS} draws, about the {target} ({size} queries)"
        show(title, head, rows, versions("numpy"))
        tables[target] = rows
    return tables


def one_budget(
    rng: np.random.Generator,
    human: np.ndarray,
    machine: np.ndarray,
    size: int,
    count: int,
    target: str,
) -> list[str]:
    """Return coverage and mean width of each kind of interval, with `count` queries judged."""
    hits, widths = np.zeros(4), np.zeros(4)
    truth = human.mean()
    for _ in range(DRAWS):
        drawn_queries = (
            np.arange(size) if target == "queries" else rng.integers(len(human), size=size)
        )
        y, f = human[drawn_queries], machine[drawn_queries]
        drawn = np.zeros(size, bool)
        drawn[rng.choice(size, count, replace=False)] = True
        p = np.full(size, count / size)
        estimates = [powered_mean(y[drawn], f, p, drawn, m, target) for m in (None, 1.0, 0.0)]
        estimates.append(powered_mean(f, f, np.full(size, 1e-6), p > 0, 0.0, "queries"))
        bounds = np.array([estimate.interval(0.95) for estimate in estimates])
        hits += (bounds[:, 0] <= truth) & (truth <= bounds[:, 1])
        widths += bounds[:, 1] - bounds[:, 0]
    return [
        text
        for hit, width in zip(hits / DRAWS, widths / DRAWS, strict=True)
        for text in (f"{hit:.3f}", f"{width:.3f}")
    ]


class Topic:
    """The votes of people on a topic, the true order, and the opinions of machines."""

    def __init__(self, votes: fp.labeling.Votes, lengths: dict[str, int], seed: int) -> None:
        self.votes, self.n = votes, len(votes.documents)
        self.rng = np.random.default_rng(seed)
        self.best = set(np.argsort(-votes.merit)[:K].tolist())
        rows = [(i, j, o) for (i, j), out in votes.outcomes.items() for o in out]
        truth = bradley_terry(self.n, *np.array(rows).T)
        truth = (truth - truth.mean()) / truth.std()
        noise = np.random.default_rng(seed + 1000).standard_normal(self.n)
        self.machines = {
            "longer text": np.array([lengths[name] for name in votes.documents], float),
            "simulated": truth + 0.7 * noise,
        }

    def person(self, i: int, j: int) -> int:
        """Return a random vote on the pair."""
        votes = self.votes.outcomes.get((min(i, j), max(i, j)), (0,))
        outcome = votes[int(self.rng.integers(len(votes)))]
        return outcome if i < j else -outcome

    def recall(self, belief: Utilities) -> float:
        return len(self.best & set(np.argsort(-belief.mean)[:K].tolist())) / K


def start(topic: Topic, prior: np.ndarray | None, accuracy: float) -> Utilities:
    """Return the belief before people are asked; the correlation of two normal orders is known."""
    if prior is None:
        return utilities.prior(topic.n, PRIOR_SD)
    correlation = float(np.clip(np.sin(np.pi * (accuracy - 0.5)), 0.0, 0.95))
    return utilities.prior(topic.n, PRIOR_SD, tuple(prior.tolist()), prior_correlation=correlation)


def best_pair(belief: Utilities, excluded: np.ndarray) -> tuple[float, int, int]:
    """Return the largest gain of an allowed pair, and the pair."""
    candidates, gain = pair_gains(belief, K)
    gain = gain * ~excluded[np.ix_(candidates, candidates)]
    at = int(np.argmax(gain))
    row, column = divmod(at, len(candidates))
    return float(gain[row, column]), int(candidates[row]), int(candidates[column])


def label(
    topic: Topic, machine: str, policy: str, price: float, accuracy: float
) -> list[tuple[float, float]]:
    """Return (cost, recall) after each person's answer.

    `people` asks people only.  `prior` lets the machine order all documents first.  `routed` asks
    the machine or a person, whichever has more expected gain per cost; the gain of a machine's
    answer is multiplied by its worth, as is its weight, and no pair is put to it twice.
    """
    opinion = topic.machines[machine]
    n, worth = topic.n, min(1.0, information(accuracy) / information(PERSON))
    cost = price * n * (n - 1) / 2 if policy == "prior" else 0.0
    belief = start(topic, opinion if policy == "prior" else None, accuracy)
    asked, nothing = np.eye(n, dtype=bool), np.zeros((n, n), bool)
    curve, answers = [(cost, topic.recall(belief))], 0
    while answers < PEOPLE_BUDGET and cost < PEOPLE_BUDGET:
        gain, i, j = best_pair(belief, nothing)
        if policy == "routed":
            machine_gain, a, b = best_pair(belief, asked)
            if machine_gain * worth / price > gain:
                asked[a, b] = asked[b, a] = True
                outcome = int(np.sign(opinion[a] - opinion[b]))
                belief = belief.updated(a, b, outcome, worth)
                cost += price
                continue
        belief = belief.updated(i, j, topic.person(i, j))
        cost, answers = cost + 1, answers + 1
        curve.append((cost, topic.recall(belief)))
    return curve


def routing(folder: Path, n_topics: int | None) -> dict[str, list[list[str]]]:
    """Print and return the recall by cost of each policy."""
    with (folder / "ukpconvarg1" / "texts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lengths = {row["arg"]: len(row["text"]) for row in rows}
    topics = [
        Topic(votes, lengths, seed)
        for seed in range(TOPICS_SEEDS)
        for votes in fp.labeling.read_votes(folder / "ukpconvarg1" / "votes.csv")
    ]
    costs = (20, 40, 60, 80)
    topics = topics[:n_topics]
    people = mean_curve(topics, "longer text", "people", 1.0, PERSON, costs)
    table = [["people alone", "", "", *(f"{value:.3f}" for value in people)]]
    for machine in topics[0].machines:
        agreement = np.mean([agreement_of(topic, machine) for topic in topics])
        accuracy = float(np.clip((agreement - (1 - PERSON)) / (2 * PERSON - 1), 0.51, 0.99))
        for price in (0.01, 0.1):
            for policy in ("prior", "routed"):
                values = mean_curve(topics, machine, policy, price, accuracy, costs)
                name = f"{machine} ({agreement:.2f})"
                table.append([name, policy, f"{price:g}", *(f"{v:.3f}" for v in values)])
                print(*table[-1], file=sys.stderr, flush=True)
    head = ["machine (agreement)", "policy", "price", *(f"cost {cost}" for cost in costs)]
    show(f"recall of the top {K} by cost in human judgments", head, table, versions("numpy"))
    return {"recall": table}


def information(p: float) -> float:
    return 1 + p * np.log2(p) + (1 - p) * np.log2(1 - p)


def agreement_of(topic: Topic, machine: str) -> float:
    """Return how often the machine agrees with a vote that prefers one text."""
    opinion = topic.machines[machine]
    pairs = [
        (np.sign(opinion[i] - opinion[j]) == vote)
        for (i, j), votes in topic.votes.outcomes.items()
        for vote in votes
        if vote
    ]
    return float(np.mean(pairs))


def mean_curve(
    topics: list[Topic],
    machine: str,
    policy: str,
    price: float,
    accuracy: float,
    costs: tuple[int, ...],
) -> list[float]:
    """Return the mean recall at each cost: the last value that the cost allows."""
    totals = np.zeros(len(costs))
    for topic in topics:
        curve = label(topic, machine, policy, price, accuracy)
        for column, limit in enumerate(costs):
            affordable = [recall for cost, recall in curve if cost <= limit]
            totals[column] += affordable[-1] if affordable else K / topic.n
    return (totals / len(topics)).tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark", choices=["coverage", "routing"])
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder of the sets")
    parser.add_argument("--topics", type=int, help="number of topics (routing)")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    chosen = parser.parse_args()
    tables = (coverage if chosen.benchmark == "coverage" else routing)(chosen.data, chosen.topics)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(tables))
