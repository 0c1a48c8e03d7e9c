"""Sensitivity and bias of the methods of interleaving, and of A/B tests, with simulated users.

    python benchmarks/interleaving.py
    python benchmarks/interleaving.py --sessions 20000 --users informational

Both rankings order documents by their grade plus noise, of which the better one has less.  Sessions
are those of a two-sided test with one look (level 5%, power 80%), from the mean and the deviation
of what a session tells: its win, or its difference of credit, as `firstpage experiment analyze`
uses them.  An A/B test compares the sessions with clicks, or the reciprocal rank of the highest
click.

Bias: the same with users who click on random results; far from 0 is biased.

    python benchmarks/interleaving.py --leaving --sessions 20000

checks the claim of Iizuka, Morita and Kato (arXiv 2306.10023): interleaving is more efficient than
an A/B test where users leave depending on the relevance of a document.  Users click alike, and
leave after a click with a probability that grows with the grade, or that is the same for all
grades, or never; or they examine ranks with fixed probabilities, whatever they see.  Team draft (by
wins, and by credit) is compared with an A/B test of the clicks per session.
"""

from __future__ import annotations

import argparse
from statistics import NormalDist
from typing import Any

import numpy as np

import firstpage as fp
from common import show

DOCUMENTS, QUERIES, DEPTH = 20, 60, 10
NOISES = {"small": (1.2, 1.0), "medium": (1.5, 1.0), "large": (2.5, 1.0)}  # of both rankings
METHODS = ("team-draft", "balanced", "probabilistic", "optimized", "pairwise")
BY_WINS = ("team-draft", "balanced")
QUANTILES = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)


def rankings(noises: tuple[float, float], rng: np.random.Generator) -> tuple[Any, Any]:
    """Return grades per query, and both rankings of each query."""
    grades = rng.choice(5, (QUERIES, DOCUMENTS), p=[0.5, 0.2, 0.15, 0.1, 0.05])
    orders = [np.argsort(rng.normal(0, sd, grades.shape) - grades, axis=1) for sd in noises]
    return grades, np.stack(orders, axis=1)


def per_session(
    method: Any, orders: Any, grades: Any, clicks_of: Any, rng: np.random.Generator, count: int
) -> Any:
    """Return what each session tells: above 0 in favor of the second ranking."""
    queries = rng.integers(QUERIES, size=count)
    shown = [
        fp.clicks.interleave(orders[query].tolist(), method, DEPTH, key=str(n))
        for n, query in enumerate(queries.tolist())
    ]
    documents = np.array([each.documents for each in shown])
    clicks = clicks_of(grades[queries[:, None], documents], rng)
    credit = np.array([s.credit(c) for s, c in zip(shown, clicks.astype(float), strict=True)])
    difference = credit[:, 1] - credit[:, 0]
    return np.sign(difference.round(12)) if method in BY_WINS else difference


def of_one(orders: Any, grades: Any, clicks_of: Any, rng: np.random.Generator, count: int) -> Any:
    """Return, per ranking alone, whether sessions have clicks, and the best reciprocal rank."""
    queries = rng.integers(QUERIES, size=count)
    values = []
    for arm in (0, 1):
        clicks = clicks_of(grades[queries[:, None], orders[queries, arm, :DEPTH]], rng)
        reciprocal = (clicks / np.arange(1, DEPTH + 1)).max(axis=1)
        values.append((clicks.any(axis=1).astype(float), reciprocal))
    return values


def sessions_text(z: float, needed: float) -> str:
    """Return the number of sessions; none where the simulation saw no difference."""
    return f"{needed:,.0f}" if abs(z) > 3 else "-"


CLICK = [0.05, 0.2, 0.4, 0.6, 0.8]  # by grade, of an examined document
LEAVING = {
    "leave by relevance": {"stop": [0.0, 0.25, 0.5, 0.75, 1.0]},
    "leave a little by relevance": {"stop": [0.0, 0.1, 0.2, 0.3, 0.4]},
    "leave alike after any click": {"stop": [0.5] * 5},
    "never leave": {"stop": [0.0] * 5},
    "examine by rank only": {"examination": (1.0 / np.arange(1, DEPTH + 1)).tolist()},
}


def needed_sessions(x: Any) -> tuple[float, float]:
    """Return z, and the sessions that a test of the mean needs."""
    return x.mean() / (x.std() / np.sqrt(len(x))), (QUANTILES * x.std() / (x.mean() or 1.0)) ** 2


def compare_leaving(count: int) -> None:
    """Print sessions by interleaving and by A/B, for users who leave and users who do not."""
    rows = []
    for kind, behavior in LEAVING.items():
        users = fp.clicks.SimulatedUsers(click=CLICK, **behavior)
        for name, noises in NOISES.items():
            rng = np.random.default_rng(1)
            grades, orders = rankings(noises, rng)
            queries = rng.integers(QUERIES, size=count)
            shown = [fp.clicks.interleave(orders[query].tolist(), "team-draft", DEPTH, key=str(n))
                     for n, query in enumerate(queries.tolist())]  # fmt: skip
            documents = np.array([each.documents for each in shown])
            clicks = users.clicks(grades[queries[:, None], documents], rng).astype(float)
            credit = np.array([s.credit(c) for s, c in zip(shown, clicks, strict=True)])
            difference = credit[:, 1] - credit[:, 0]
            wins, by_credit = needed_sessions(np.sign(difference)), needed_sessions(difference)
            queries = rng.integers(QUERIES, size=10 * count)
            both = [
                users.clicks(grades[queries[:, None], orders[queries, arm, :DEPTH]], rng).sum(
                    axis=1
                )
                for arm in (0, 1)
            ]
            lead, variance = both[1].mean() - both[0].mean(), both[0].var() + both[1].var()
            ab = (lead / np.sqrt(variance / len(queries)),
                  2 * variance * (QUANTILES / (lead or 1.0)) ** 2)  # fmt: skip
            wrong = " (the worse wins)" if ab[0] < -3 else ""
            texts = [sessions_text(*each) for each in (wins, by_credit, ab)]
            rows.append([kind, name, *texts[:2], texts[2] + wrong])
    head = ["users", "difference", "team draft, wins", "team draft, credit", "A/B, clicks"]
    show("sessions for power 80%, by how users leave", head, rows, f"{count:,} sessions each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=6000)
    parser.add_argument("--users", default="navigational")
    parser.add_argument("--leaving", action="store_true")
    options = parser.parse_args()
    if options.leaving:
        return compare_leaving(options.sessions)
    users, count = fp.clicks.SimulatedUsers.named(options.users), options.sessions
    table: dict[str, list[str]] = {}
    for noises in NOISES.values():
        for method in METHODS:
            rng = np.random.default_rng(1)
            grades, orders = rankings(noises, rng)
            x = per_session(method, orders, grades, users.clicks, rng, count)
            z = x.mean() / (x.std() / np.sqrt(count))
            needed = (QUANTILES * x.std() / (x.mean() or 1.0)) ** 2
            table.setdefault(method, []).append(sessions_text(z, needed))
        rng = np.random.default_rng(1)
        grades, orders = rankings(noises, rng)
        both = of_one(orders, grades, users.clicks, rng, 10 * count)
        for n, name in enumerate(("A/B, sessions with clicks", "A/B, reciprocal rank")):
            first, second = both[0][n], both[1][n]
            difference, variance = second.mean() - first.mean(), first.var() + second.var()
            z = difference / np.sqrt(variance / len(first))
            needed = 2 * variance * (QUANTILES / difference) ** 2
            table.setdefault(name, []).append(sessions_text(z, needed))

    def random_clicks(shown: Any, rng: np.random.Generator) -> Any:
        return rng.random(shown.shape) < 0.5 / np.arange(1, shown.shape[1] + 1)

    for method in METHODS:  # the second ranking moves the first document down
        rng = np.random.default_rng(2)
        first = np.tile(np.arange(DOCUMENTS), (QUERIES, 1))
        orders = np.stack([first, np.roll(first, -1, axis=1)], axis=1)
        x = per_session(method, orders, first, random_clicks, rng, count)
        z = x.mean() / (x.std() / np.sqrt(count))
        table[method].append(f"{x.mean() / x.std():+.3f} (z = {z:+.1f})")
    head = ["design", *(f"{name} difference" for name in NOISES), "bias, random clicks"]
    rows = [[name, *cells, *([""] * (len(head) - 1 - len(cells)))] for name, cells in table.items()]
    show(f"sessions for power 80%, {options.users} users", head, rows, f"{count:,} sessions each")


if __name__ == "__main__":
    main()
