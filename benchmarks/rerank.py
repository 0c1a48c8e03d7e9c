"""Reranking with a language model: quality per call (docs/rerank.md).

    python benchmarks/rerank.py replay --data data
    python benchmarks/rerank.py endpoint --data data --queries 20
    python benchmarks/rerank.py distill --data data --encoder minilm

`replay` reranks the first 100 documents of BM25 on TREC Deep Learning 2019 and 2020 (the judged
passages of each query) with GPT-4o's recorded answers to pairs.  A pair in an order that was not
asked, and every question about more than two documents, is answered by a model of the judge, so
those answers are simulated: P(first preferred) is a logistic function of a difference of utilities
and of an order effect.  The utilities depend on GPT-4's and people's grades, by weights fitted to
the answers about other queries, and on the recorded answers about the query: they are one draw
from the posterior of the query, and every simulated answer is drawn once, as a model at
temperature 0 repeats itself.

The peers: heap sort and bubble sort by pairs (Qin et al. 2024), a knockout tournament, the heap
of the best of several (Zhuang et al. 2024), sliding windows of orders (Sun et al. 2023), and
active selection from noisy pairs (Mohajer et al. 2017).  Each peer has the depth, among 20, 30, 50
and 100 documents, that is best for it at this budget on these queries.  `endpoint` asks a chat
endpoint on this machine, over HTTP, whose bias and noise are known.  `distill` trains linear models
on the answers, and ranks other queries without calls.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import ascii_uppercase

import numpy as np
import scipy

import firstpage as fp
from common import show, versions
from firstpage.core.engine import single_threaded_blas
from firstpage.data.formats import to_run
from firstpage.labeling import ChatListAssessor, FunctionListAssessor, Reranker
from firstpage.labeling.assessors import DocumentText, QueryText
from firstpage.labeling.rerank.reranker import QueryTask, ReplyCache

YEARS, DEPTH, K = ("dl19", "dl20"), 100, 10
BUDGETS = (10, 20, 50, 100, 200)
DEPTHS = (20, 30, 50, 100)
FOLDS = 5
BIAS = 1.0  # of the local endpoint: the logit by which the first shown document gains
MOST = {"pair": 200, "best": 100, "order": 20}  # calls after which little changes
EM_STEPS = 6


@dataclass
class Topic:
    """A query with its candidates, best by BM25 first, and what is known about them."""

    key: str
    text: str
    ids: list[str]
    scores: list[float]
    bodies: dict[str, str]
    grades: dict[str, int]
    machine: dict[str, int]
    answers: dict[tuple[str, str], int]  # (first, second): 1 if the first was preferred
    utilities: dict[str, float] = field(default_factory=dict)
    order_effect: float = 0.0


def rows_of(path: Path) -> Iterator[list[str]]:
    """Yield the fields of a file of tabs or blanks."""
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        if line:
            yield line.split("\t") if "\t" in line else line.split()


def read_topics(folder: Path, year: str) -> list[Topic]:
    """Return the queries of a year with the BM25 order of their judged passages."""
    passages = folder / "passages"
    rows = list(rows_of(passages / f"qrels_text.{year}"))
    bodies = {row[0]: re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", row[1]) for row in rows if len(row) > 1}
    grades: dict[str, dict[str, int]] = {}
    machine: dict[str, dict[str, int]] = {}
    for path, table in (
        (passages / f"qrels.{year}", grades),
        (folder / "judges" / f"umbrela-gpt4.{year}.qrels", machine),
    ):
        for query, _, document, grade in rows_of(path):
            table.setdefault(query, {})[document] = int(grade)
    answers: dict[str, dict[tuple[str, str], int]] = {}
    for query, first, second, preferred in rows_of(folder / "judges/gpt4o-pairs" / f"{year}.tsv"):
        answers.setdefault(query, {})[first, second] = int(preferred == first)
    with tempfile.TemporaryDirectory() as place:
        documents = ({"id": name, "text": text} for name, text in bodies.items())
        index = fp.Index.from_documents(documents, Path(place) / "index")
        texts = {row[0]: row[1] for row in rows_of(passages / f"topics.{year}.txt")}
        topics = []
        for query, text in texts.items():
            if query not in grades or query not in answers:
                continue
            found = [
                (each.id, each.score)
                for each in index.search(text, len(bodies))
                if each.id in grades[query]
            ][:DEPTH]
            names, scores = zip(*found, strict=True)
            topics.append(
                Topic(query, text, list(names), list(scores), {n: bodies[n] for n in names},
                      grades[query], machine[query], answers[query])
            )  # fmt: skip
    return topics


def generator(*parts: object) -> np.random.Generator:
    """Return a generator whose seed is the digest of some values."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


@dataclass
class PairTable:
    """The recorded answers about a query: documents, grades and outcomes."""

    topic: Topic
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        topic = self.topic
        judged = [pair for pair in topic.answers if all(d in topic.grades for d in pair)]
        self.names = list(dict.fromkeys([*topic.ids, *(d for pair in judged for d in pair)]))
        at = {name: place for place, name in enumerate(self.names)}
        self.first = np.array([at[a] for a, _ in judged], np.int64)
        self.second = np.array([at[b] for _, b in judged], np.int64)
        self.won = np.array([topic.answers[pair] for pair in judged], np.float64)
        grades = [[topic.machine.get(n, 0), topic.grades[n]] for n in self.names]
        self.features = np.array(grades, np.float64)
        pairs = [generator("fold", topic.key, *sorted(pair)).integers(FOLDS) for pair in judged]
        self.fold = np.array(pairs, np.int64)

    def posterior(
        self, weights: np.ndarray, sd: float, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance of the utilities, given some of the answers."""
        center, order_effect = self.features @ weights[:-1], weights[-1]
        first, second, won = self.first[rows], self.second[rows], self.won[rows]
        mode, n = center.copy(), len(center)
        for _ in range(25):
            p = scipy.special.expit(mode[first] - mode[second] + order_effect)
            gradient = (center - mode) / sd**2
            np.add.at(gradient, first, won - p)
            np.add.at(gradient, second, p - won)
            hessian = np.eye(n) / sd**2
            for a, b, sign in ((first, first, 1), (second, second, 1), (first, second, -1),
                               (second, first, -1)):  # fmt: skip
                np.add.at(hessian, (a, b), sign * p * (1 - p))
            step = np.linalg.solve(hessian, gradient)
            mode = mode + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-9))
            if np.abs(step).max() < 1e-3:
                break
        return mode, np.linalg.inv(hessian)

    def predicted(
        self, mean: np.ndarray, covariance: np.ndarray, order_effect: float, rows: np.ndarray
    ) -> np.ndarray:
        """Return the probabilities that the first document is preferred."""
        first, second = self.first[rows], self.second[rows]
        variance = covariance[first, first] + covariance[second, second]
        variance = variance - 2 * covariance[first, second]
        logit = mean[first] - mean[second] + order_effect
        return scipy.special.expit(logit / np.sqrt(1 + np.pi * variance / 8))


def fit_judge(tables: Sequence[PairTable]) -> tuple[np.ndarray, float]:
    """Return the weights of both grades, the order effect, and the deviation of the residuals.

    By logistic regression on the grades first, then by expectation maximization over the
    utilities, whose means are linear in the grades.
    """
    X = np.concatenate([t.features[t.first] - t.features[t.second] for t in tables])
    X, y = np.column_stack([X, np.ones(len(X))]), np.concatenate([t.won for t in tables])
    weights = np.zeros(X.shape[1])
    for _ in range(20):
        p = scipy.special.expit(X @ weights)
        hessian = X.T @ (X * (p * (1 - p))[:, None]) + 1e-6 * np.eye(len(weights))
        weights = weights + np.linalg.solve(hessian, X.T @ (y - p))
    sd = 1.0
    for _ in range(EM_STEPS):
        centered, means, variances = [], [], []
        for table in tables:
            mean, covariance = table.posterior(weights, sd, np.ones(len(table.won), bool))
            met = np.unique(np.concatenate([table.first, table.second]))
            centered.append(table.features[met] - table.features[met].mean(axis=0))
            means.append(mean[met] - mean[met].mean())
            variances.append(np.diagonal(covariance)[met])
        F, u = np.concatenate(centered), np.concatenate(means)
        weights[:-1] = np.linalg.lstsq(F, u, rcond=None)[0]
        residual = (u - F @ weights[:-1]) ** 2
        sd = float(np.sqrt(np.mean(residual + np.concatenate(variances))))
    return weights, sd


def complete(topics: Sequence[Topic], seed: int = 0) -> list[list[str]]:
    """Set the utilities and the order effect of a judge per topic; return how well they predict."""
    tables = [PairTable(topic) for topic in topics]
    groups = [int(generator("group", topic.key).integers(FOLDS)) for topic in topics]
    fits = [
        fit_judge([t for t, g in zip(tables, groups, strict=True) if g != group])
        for group in range(FOLDS)
    ]
    values: dict[str, list[np.ndarray]] = {"grades alone": [], "grades and other answers": []}
    for topic, table, group in zip(topics, tables, groups, strict=True):
        weights, sd = fits[group]
        for fold in range(FOLDS):
            test = table.fold == fold
            for name, known in zip(values, (np.zeros(len(test), bool), ~test), strict=True):
                fitted = table.posterior(weights, sd, known)
                p = table.predicted(*fitted, weights[-1], test)
                correct = np.where(table.won[test] > 0, p, 1 - p)
                values[name].append(np.stack([-np.log(np.maximum(correct, 1e-12)), correct > 0.5]))
        mean, covariance = table.posterior(weights, sd, np.ones(len(table.won), bool))
        draw = generator("utilities", seed, topic.key).multivariate_normal(mean, covariance)
        topic.utilities = dict(zip(table.names, draw.tolist(), strict=True))
        topic.order_effect = float(weights[-1])
    print("weights, residual sd of the first fold:", fits[0], file=sys.stderr)
    means = {name: np.concatenate(rows, axis=1).mean(axis=1) for name, rows in values.items()}
    return [[name, f"{loss:.4f}", f"{right:.3f}"] for name, (loss, right) in means.items()]


@dataclass
class Judge:
    """Answers questions about a topic; counts how many answers were recorded."""

    topic: Topic
    seed: int = 0
    recorded: int = 0
    asked: int = 0

    def __call__(self, shown: Sequence[str], best_only: bool) -> list[str]:
        """Return the shown documents, best first, or the best one."""
        self.asked += 1
        topic = self.topic
        if len(shown) == 2 and tuple(shown) in topic.answers:
            self.recorded += 1
            order = list(shown) if topic.answers[shown[0], shown[1]] else list(reversed(shown))
        else:
            noise = generator("answer", self.seed, topic.key, *shown).gumbel(size=len(shown))
            places = np.linspace(0.5, -0.5, len(shown))
            utility = np.array([topic.utilities[each] for each in shown])
            utility = utility + topic.order_effect * places + noise
            order = [shown[at] for at in np.argsort(-utility)]
        return order[:1] if best_only else order


Ask = Callable[[Sequence[str], bool], list[str]]


class Spent(Exception):
    """The budget of a peer is used up."""


class Budgeted:
    """Asks at most so many questions; documents are shown in random order."""

    def __init__(self, ask: Ask, calls: int, key: str) -> None:
        self.ask, self.left, self.rng = ask, calls, generator("shown", key)

    def best(self, documents: Sequence[str], again: bool = False) -> str:
        """Return the best of some documents; `again` shows a pair in the other order."""
        return self._ask(documents, True, again)[0]

    def order(self, documents: Sequence[str]) -> list[str]:
        """Return the documents, best first, shown in their present order, as in the paper."""
        if not self.left:
            raise Spent
        self.left -= 1
        return self.ask(documents, False)

    def _ask(self, documents: Sequence[str], best_only: bool, again: bool) -> list[str]:
        if not self.left:
            raise Spent
        self.left -= 1
        flip = generator("pair", *sorted(documents)).random() < 0.5
        shown = sorted(documents, reverse=bool(flip) != again)
        if len(shown) > 2:
            shown = [shown[at] for at in self.rng.permutation(len(shown))]
        return self.ask(shown, best_only)


def heap(asked: Budgeted, ids: list[str], k: int, children: int = 2) -> list[str]:
    """Heap sort, whose nodes have so many children, by the best of a node and its children."""
    order, top = list(ids), []

    def sift(at: int) -> None:
        while children * at + 1 < len(order):
            below = range(children * at + 1, min(children * at + children + 1, len(order)))
            if children == 2:  # by pairs
                large = below[0]
                if (
                    len(below) == 2
                    and asked.best([order[below[0]], order[below[1]]]) != order[large]
                ):
                    large = below[1]
                winner = asked.best([order[at], order[large]])
            else:
                winner = asked.best([order[at], *(order[each] for each in below)])
            if winner == order[at]:
                return
            place = order.index(winner)
            order[at], order[place], at = order[place], order[at], place

    try:
        for at in reversed(range((len(order) - 2) // children + 1)):
            sift(at)
        while len(top) < k and order:
            top.append(order[0])
            order[0] = order[-1]
            order.pop()
            if order:
                sift(0)
    except Spent:
        pass
    return [*top, *(each for each in order if each not in top)]


def bubble(asked: Budgeted, ids: list[str], k: int) -> list[str]:
    """k passes from the bottom to the top, which swap neighbors (sliding windows of pairs)."""
    order = list(ids)
    try:
        for first in range(k):
            for at in range(len(order) - 1, first, -1):
                if asked.best(order[at - 1 : at + 1]) == order[at]:
                    order[at - 1 : at + 1] = [order[at], order[at - 1]]
    except Spent:
        pass
    return order


def tournament(asked: Budgeted, ids: list[str], k: int) -> list[str]:
    """A knockout whose losers to each winner play again for the next rank."""
    top: list[str] = []
    beaten: dict[str, list[str]] = {each: [] for each in ids}

    def knockout(players: list[str]) -> str:
        while len(players) > 1:
            winners = []
            half = (len(players) + 1) // 2
            for a, b in zip(players[:half], [*reversed(players[half:]), None], strict=False):
                winner = a if b is None else asked.best([a, b])
                if b is not None:
                    beaten[winner].append(b if winner == a else a)
                winners.append(winner)
            players = winners
        return players[0]

    try:
        players = list(ids)
        while len(top) < k and players:
            winner = knockout(players)
            top.append(winner)
            lost = beaten[winner]
            players = [each for each in [*lost] if each not in top]
            others = {each for each in beaten if each not in top}
            roots = others - {loser for each in others for loser in beaten[each]}
            players = [each for each in ids if each in roots]
    except Spent:
        pass
    rest = [each for each in ids if each not in top]
    return [*top, *sorted(rest, key=lambda each: -len(beaten[each]))]


def windows(asked: Budgeted, ids: list[str], k: int, size: int = 20) -> list[str]:
    """Orders of sliding windows from the bottom to the top, in passes until the budget ends."""
    order = list(ids)
    try:
        while True:
            end = len(order)
            while True:
                start = max(end - size, 0)
                order[start:end] = asked.order(order[start:end])
                if not start:
                    break
                end -= size // 2
    except Spent:
        return order


def active(asked: Budgeted, ids: list[str], k: int, repeats: int = 1) -> list[str]:
    """Top-k selection from noisy pairs: knockouts in k groups, and a heap of the group's winners.

    With `repeats` 2 a pair is asked in both orders, and a contradiction keeps the prior order.
    """
    prior = {each: at for at, each in enumerate(ids)}

    def better(a: str, b: str) -> str:
        first = asked.best([a, b])
        if repeats > 1 and asked.best([a, b], again=True) != first:
            return min(a, b, key=prior.__getitem__)
        return first

    groups = [ids[at::k] for at in range(min(k, len(ids)))]
    trees: list[dict[str, list[str]]] = [{each: [] for each in group} for group in groups]

    def winner_of(tree: dict[str, list[str]], gone: list[str]) -> str | None:
        players = [each for each in tree if each not in gone]
        lost = {loser for each in players for loser in tree[each]}
        players = [each for each in players if each not in lost]
        while len(players) > 1:
            winners = []
            for a, b in zip(players[::2], [*players[1::2], None], strict=False):
                winner = a if b is None else better(a, b)
                if b is not None:
                    tree[winner].append(b if winner == a else a)
                winners.append(winner)
            players = winners
        return players[0] if players else None

    top: list[str] = []
    try:
        leaders = [winner_of(tree, top) for tree in trees]
        beats: dict[str, set[str]] = {}
        while len(top) < k:
            running = [each for each in leaders if each is not None]
            lost = {b for a in running for b in beats.get(a, ()) if b in running}
            players = [each for each in running if each not in lost]
            while len(players) > 1:
                winner = better(players[0], players[1])
                loser = players[1] if winner == players[0] else players[0]
                beats.setdefault(winner, set()).add(loser)
                players.remove(loser)
            top.append(players[0])
            at = leaders.index(players[0])
            leaders[at] = winner_of(trees[at], top)
    except Spent:
        pass
    rest = [each for each in ids if each not in top]
    wins = {each: sum(len(tree.get(each, ())) for tree in trees) for each in rest}
    return [*top, *sorted(rest, key=lambda each: -wins[each])]


PEERS: dict[str, Callable[[Budgeted, list[str], int], list[str]]] = {
    "heap, pairs": heap,
    "bubble, pairs": bubble,
    "tournament, pairs": tournament,
    "active selection, pairs": active,
    "active selection, both orders": lambda *task: active(*task, repeats=2),
    "heap, best of 4": lambda *task: heap(*task, children=3),
    "heap, best of 8": lambda *task: heap(*task, children=7),
    "sliding windows, orders of 20": windows,
}
OURS = {"ours, pairs": "pair", "ours, best of 8": "best", "ours, orders of 20": "order"}


def ndcg(topic: Topic, order: Sequence[str]) -> float:
    """Return NDCG@10 with linear gains, as trec_eval's ndcg_cut, over all judged documents."""
    discounts = 1 / np.log2(np.arange(2, K + 2))
    ideal = np.sort(list(topic.grades.values()))[::-1][:K]
    gains = np.array([topic.grades[each] for each in order[:K]], np.float64)
    best = float(ideal @ discounts[: len(ideal)])
    return float(gains @ discounts[: len(gains)]) / best if best else 0.0


def ours(topic: Topic, ask: Ask, kind: str, budgets: Sequence[int]) -> list[tuple[float, float]]:
    """Return NDCG@10 and confidence of the reranker at several budgets."""

    def answer(query: str, documents: Sequence[DocumentText]) -> list[str]:
        return ask([each.key for each in documents], kind != "order")

    reranker = Reranker(FunctionListAssessor(answer), K, DEPTH, kind, calls=max(budgets), sure=1.0)
    documents = [DocumentText(each, "") for each in topic.ids]
    query = QueryText(topic.key, topic.text)
    task = QueryTask(reranker, ReplyCache(None), query, documents, np.array(topic.scores))
    results = []
    for budget in budgets:
        while task.report.calls < budget and task.step():
            pass
        results.append((ndcg(topic, [topic.ids[at] for at in task.order]), task.report.sure))
    return results


def replay(topics: Sequence[Topic], judges: Callable[[Topic], Ask], budgets: Sequence[int]):
    """Return NDCG@10 per method, budget and topic, and the depth that is best for each peer."""
    values: dict[str, dict[int, np.ndarray]] = {}
    depths: dict[tuple[str, int], int] = {}
    asked: dict[str, list[Ask]] = {}
    for name, kind in OURS.items():
        asked[name] = [judges(topic) for topic in topics]
        rows = [
            ours(topic, judge, kind, [b for b in budgets if b <= MOST[kind]])
            for topic, judge in zip(topics, asked[name], strict=True)
        ]
        rows = [[*row, *[row[-1]] * (len(budgets) - len(row))] for row in rows]
        table = np.array([[value for value, _ in row] for row in rows])
        values[name] = dict(zip(budgets, table.T, strict=True))
        sure = np.array([[value for _, value in row] for row in rows]).mean(axis=0)
        print(name, table.mean(axis=0).round(4), "sure", sure.round(3), file=sys.stderr, flush=True)
    for name, method in PEERS.items():
        values[name], asked[name] = {}, [judges(topic) for topic in topics]
        for budget in budgets:
            by_depth = {
                depth: np.array(
                    [
                        ndcg(
                            topic, method(Budgeted(judge, budget, topic.key), topic.ids[:depth], K)
                        )
                        for topic, judge in zip(topics, asked[name], strict=True)
                    ]
                )
                for depth in DEPTHS
            }
            best = max(by_depth, key=lambda depth: by_depth[depth].mean())
            values[name][budget], depths[name, budget] = by_depth[best], best
    return values, depths, asked


def compared(values, depths, asked, budgets: Sequence[int], title: str) -> list[dict]:
    """Print NDCG@10 and the difference of the best of ours for each kind of question."""
    rows, record = [], []
    for name, by_budget in values.items():
        kind = name.rpartition(", ")[2]
        own = next(each for each in OURS if name in OURS or _same(each, kind))
        judges = asked[name]
        share = "-"
        if hasattr(judges[0], "recorded"):
            share = f"{sum(j.recorded for j in judges) / sum(j.asked for j in judges):.2f}"
        row = [name]
        for budget in budgets:
            text = f"{by_budget[budget].mean():.3f}"
            if name not in OURS:
                difference = values[own][budget] - by_budget[budget]
                half = 1.985 * difference.std(ddof=1) / np.sqrt(len(difference))
                text += f" ({difference.mean():+.3f} ± {half:.3f})"
                record.append(
                    {"method": name, "budget": budget, "depth": depths[name, budget],
                     "ndcg": by_budget[budget].mean(), "ours": values[own][budget].mean(),
                     "difference": difference.mean(), "half": half}
                )  # fmt: skip
            else:
                record.append({"method": name, "budget": budget, "ndcg": by_budget[budget].mean()})
            row.append(text)
        rows.append([*row, share])
    show(title, ["NDCG@10", *(f"{b} calls" for b in budgets), "recorded"], rows,
         "in parentheses: ours with such questions minus the peer, 95 % interval")  # fmt: skip
    return record


def _same(own: str, kind: str) -> bool:
    """Return whether a method of ours asks this kind of question."""
    words = {"pairs": "pairs", "both orders": "pairs", "orders of 20": "orders of 20"}
    return own.endswith(words.get(kind, "best of 8"))


class LocalEndpoint(BaseHTTPRequestHandler):
    """A chat endpoint that orders documents by known utilities, with bias and noise."""

    def do_POST(self) -> None:
        """Answer a question; the texts are the ids of the documents."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        system, content = (message["content"] for message in body["messages"])
        question = json.loads(content)
        topic = self.server.topics[question.pop("query")]
        utility = np.array([2.0 * topic.grades[row["text"]] for row in question.values()])
        noise = generator("endpoint", content).gumbel(size=len(utility))
        utility = utility + BIAS * np.linspace(0.5, -0.5, len(utility)) + noise
        order = [ascii_uppercase[at] for at in np.argsort(-utility)]
        answer = json.dumps({"best": order[0]} if '{"best"' in system else {"order": order})
        reply = {"choices": [{"message": {"content": answer}, "finish_reason": "stop"}]}
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class AskOverHttp:
    """Asks an endpoint about the documents of a topic, as a peer does."""

    def __init__(self, assessor: ChatListAssessor, topic: Topic) -> None:
        self.assessor, self.topic = assessor, topic

    def __call__(self, shown: Sequence[str], best_only: bool) -> list[str]:
        """Return the shown documents, best first, or the best one."""
        documents = [DocumentText(each, each) for each in shown]
        request = self.assessor.request(self.topic.key, documents, best_only, False)
        reply = self.assessor.reply(request, self.topic.key, documents)
        return [shown[at] for at in reply.ranking]


def endpoint(topics: Sequence[Topic], budgets: Sequence[int]) -> list[dict]:
    """Compare the methods on an endpoint of this machine whose bias and noise are known."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), LocalEndpoint)
    server.topics = {topic.key: topic for topic in topics}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    values = replay(topics, lambda t: AskOverHttp(ChatListAssessor(url, "local"), t), budgets)
    server.shutdown()
    return compared(*values, budgets, "NDCG@10, an endpoint with known bias and noise")


def distill(folder: Path, calls: int, encoder: str | None) -> None:
    """Train linear models on the answers, and rank other queries without calls (5 folds).

    The same features with the grades of people show how much their model can gain at most.
    """
    topics = [topic for year in YEARS for topic in read_topics(folder, year)]
    complete(topics)
    judges = {topic.key: Judge(topic) for topic in topics}
    assessor = FunctionListAssessor(
        lambda query, documents: judges[query.key]([each.key for each in documents], False)
    )
    run = fp.Run.from_dict({t.key: dict(zip(t.ids, t.scores, strict=True)) for t in topics})
    queries = {topic.key: topic.text for topic in topics}
    bodies = {name: text for topic in topics for name, text in topic.bodies.items()}
    result = Reranker(assessor, calls=calls).rerank(run, queries, bodies)
    with tempfile.TemporaryDirectory() as place:
        rows = ({"id": name, "text": text} for name, text in bodies.items())
        index = fp.Index.from_documents(rows, Path(place) / "index", vectors=encoder)
        data = fp.TextFeatures(index).dataset(list(queries.items()), run)
    people = data.with_qrels(
        fp.Qrels.from_dict({t.key: {name: t.grades[name] for name in t.ids} for t in topics})
    )
    tables = {"BM25": run.to_dict(), "reranked": result.run.to_dict()}
    tables |= {name: {} for name in ("trained on the answers", "trained on people's grades")}
    fold = np.random.default_rng(0).permutation(len(data)) % FOLDS
    for number in range(FOLDS):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        votes = result.pairs().of_queries(data[train].queries)
        fits = (
            fp.RankNet(normalize="standard").fit(data[train], pairs=votes),
            fp.ListMLE(k=K, normalize="standard").fit(people[train]),
        )
        for table, ranker in zip(list(tables.values())[2:], fits, strict=True):
            table |= to_run(data[test], ranker.predict(data[test]), "learned").to_dict()
    values = {
        name: np.array(
            [ndcg(t, sorted(t.ids, key=lambda d, t=t: -table[t.key][d])) for t in topics]
        )
        for name, table in tables.items()
    }
    gain = values["reranked"].mean() - values["BM25"].mean()
    rows = [
        [name, f"{each.mean():.3f}", f"{(each.mean() - values['BM25'].mean()) / gain:.0%}"]
        for name, each in values.items()
    ]
    title = f"{calls} calls per query, {len(topics)} queries, features of words"
    show(title + (f" and {encoder}" if encoder else ""), ["ranking", "NDCG@10", "gain"], rows)


def main() -> None:
    """Run a study."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", choices=("replay", "endpoint", "distill"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="take every n-th query")
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    parser.add_argument("--encoder", help="distill: also features of this encoder's vectors")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    settings = parser.parse_args()
    print(versions("numpy", "scipy", "firstpage"))
    if settings.study == "distill":
        distill(settings.data, 10, settings.encoder)
        return
    topics = [topic for year in YEARS for topic in read_topics(settings.data, year)]
    if settings.study == "replay":
        show("The judge's model on held-out answers", ["knows", "log loss", "accuracy"],
             complete(topics))  # fmt: skip
        topics = topics[:: settings.every]
        values = replay(topics, Judge, settings.budgets)
        record = compared(*values, settings.budgets, "NDCG@10, GPT-4o's answers completed")
    else:
        record = endpoint(topics[:: settings.every], settings.budgets)
    print(f"{len(topics)} queries; BM25 {np.mean([ndcg(t, t.ids) for t in topics]):.3f}")
    if settings.json is not None:
        settings.json.write_text(json.dumps(record, indent=2))


if __name__ == "__main__":
    with single_threaded_blas():
        main()
