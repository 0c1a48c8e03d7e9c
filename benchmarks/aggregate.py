"""Rank aggregation: ours against corankco's KwikSort and BioConsert.

    make bench          or          python benchmarks/aggregate.py [--quick]

Bars: Supervised Kemeny for 1,000 queries x 100 candidates x 5 rankers under 0.2 s, 50 times faster
than KwikSort at no greater Kemeny cost (with credit for the whole list, as KwikSort has it; half of
it, the default, is another aim); local search at BioConsert's cost, 20 times faster.

Lists are noisy views of one truth: a document's score is its utility plus the ranker's error,
both standard normal.  On such lists of 100 BioConsert's cost is 1.108 and 1.014 of the lower bound
(the lesser side of every pair) with 3 and 10 rankers; on random permutations it is 1.14 and 1.035.
Base order is one more such ranker, which does not vote.

corankco is compared where it is installed, here or in an environment that PEER_PYTHONS names.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import firstpage as fp
from aggregate_peers import peers
from common import cpu_seconds, seconds, show, versions
from firstpage.aggregation.methods import METHODS, method

DOCS = 100
PEERS = ("KwikSort", "BioConsert")  # of corankco


def rankings(queries: int, rankers: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Any]:
    """Scores (rankers x documents), those of the base ranker, and offsets."""
    rng = np.random.default_rng(seed)
    utility = rng.normal(size=queries * DOCS)
    scores = utility + rng.normal(size=(rankers + 1, queries * DOCS))
    return scores[1:], scores[0], np.arange(0, queries * DOCS + 1, DOCS)


def supervised_kemeny() -> None:
    """The first bar: the whole way from scores to scores."""
    scores, mu, offsets = rankings(1_000, 5)
    weights = [0.25, 0.22, 0.2, 0.18, 0.15]

    def whole() -> np.ndarray:
        return fp.aggregation.aggregate(
            fp.aggregation.Ballots.from_scores(scores, offsets, mu), weights=weights
        ).scores

    ballots = fp.aggregation.Ballots.from_scores(scores, offsets, mu)
    skr = method("skr")
    runs = [run_of(row, f"r{a}") for a, row in enumerate(scores)]
    rows = [
        ["all: scores of 5 rankers to scores", cpu_seconds(whole), "200 ms"],
        ["  of that, ballots (6 x 100,000 scores sorted)",
         cpu_seconds(lambda: fp.aggregation.Ballots.from_scores(scores, offsets, mu)), ""],
        ["  of that, votes and quick sort", cpu_seconds(lambda: skr.order(ballots, weights)), ""],
        ["its cost and lower bound, if asked for",
         cpu_seconds(lambda: fp.aggregation.aggregate(ballots, weights=weights).report), ""],
        ["all, from 5 runs joined by document id",
         cpu_seconds(lambda: fp.aggregation.aggregate(runs, weights=weights).scores), ""],
    ]  # fmt: skip
    show(
        "Supervised Kemeny, 1,000 queries x 100 candidates x 5 rankers",
        ["", "CPU", "bar"],
        [[name, seconds(took), bar] for name, took, bar in rows],
    )


def run_of(scores: np.ndarray, name: str) -> fp.Run:
    qid = np.repeat(np.arange(len(scores) // DOCS), DOCS)
    docid = np.char.add("doc", np.tile(np.arange(DOCS), len(scores) // DOCS).astype(str))
    return fp.Run.from_arrays(qid, docid, scores, name)


def against_peers(rankers: int, queries: int) -> None:
    """Every method: time a query, and cost over the plain lower bound, on the same lists."""
    scores, mu, offsets = rankings(queries, rankers)
    # Candidates are documents, for the peer's sake.
    ballots = fp.aggregation.Ballots.from_scores(scores, offsets)
    based = fp.aggregation.Ballots.from_scores(scores, offsets, mu)
    bound = fp.aggregation.lower_bound(ballots, cycles=False).sum()
    lists = np.argsort(-scores.reshape(rankers, queries, DOCS), axis=2, kind="stable")
    found = peers(np.ascontiguousarray(lists.transpose(1, 0, 2)))
    theirs, rows = {}, []
    for name in PEERS if found is not None else ():
        theirs[name] = found[name]["cpu"]
        cost = (
            fp.aggregation.kemeny_cost(np.concatenate(found[name]["orders"]), ballots).sum() / bound
        )
        rows.append([f"corankco {name}", seconds(theirs[name]), f"{cost:.4f}", "", ""])
    texts = ["skr", f"skr(k_agg={DOCS})", *list(METHODS)[1:]]
    for text in texts:
        chosen = method(text + "(larger=search)" if text == "ExactKemeny" else text)
        took = cpu_seconds(lambda m=chosen: m.order(based)) / queries
        cost = fp.aggregation.kemeny_cost(chosen.order(based), based).sum() / bound
        times = [f"{theirs[name] / took:.0f}" if name in theirs else "" for name in PEERS]
        rows.append([str(chosen), f"{1e6 * took:.0f} us", f"{cost:.4f}", *times])
    circles = fp.aggregation.lower_bound(ballots).sum() / bound
    show(
        f"{queries} queries x {DOCS} candidates x {rankers} rankers, equal weights",
        ["", "CPU a query", "cost / bound", "KwikSort /", "BioConsert /"],
        rows,
        note=f"With circles the lower bound is {circles:.4f} of the plain one; "
        + (
            "corankco " + found["version"]
            if found
            else "corankco is not installed, and not compared"
        ),
    )


def growth() -> None:
    rows = []
    for times in (1, 10, 100):
        scores, mu, offsets = rankings(100 * times, 5)
        ballots = fp.aggregation.Ballots.from_scores(scores, offsets, mu)
        jobs = (
            lambda s=scores, o=offsets, m=mu: fp.aggregation.Ballots.from_scores(s, o, m),
            lambda b=ballots: method("skr").order(b),
            lambda b=ballots: method("BestInsertion").order(b),
        )
        each = [1e6 * cpu_seconds(job, 3) / (100 * times) for job in jobs]
        rows.append([f"{times}x", f"{100 * times:,}", *(f"{took:.1f} us" for took in each)])
    show(
        "Growth, CPU a query of 100 candidates and 5 rankers",
        ["", "queries", "ballots", "skr", "BestInsertion"],
        rows,
    )


def main() -> None:
    quick = "--quick" in sys.argv
    print(versions("numpy", "numba", "corankco"))
    supervised_kemeny()
    for rankers in (3, 5, 10):
        against_peers(rankers, 20 if quick else 200)
    growth()


if __name__ == "__main__":
    main()
