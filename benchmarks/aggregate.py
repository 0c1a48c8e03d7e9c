"""Speed and Kemeny cost of rank aggregation, compared with corankco's KwikSort and BioConsert.

    make bench          or          python benchmarks/aggregate.py [--quick]

Targets: Supervised Kemeny takes less than 0.2 s for 1,000 queries x 100 candidates x 5 rankers, and
is 50 times faster than KwikSort at no higher Kemeny cost.  For that comparison it gives credit for
the whole list, as KwikSort does; its default, credit for half of the list, has another objective.
Local search is 20 times faster than BioConsert at no higher cost.

Scores are the utility of the document plus an error of the ranker, both standard normal.  The base
order is that of one more such ranker, which does not vote.  On these lists BioConsert has 1.108 and
1.014 times the cost of the plain lower bound (the minority of every pair) with 3 and 10 rankers; on
random permutations it has 1.14 and 1.035 times.

Held equal: the lists, equal weights, and the definition of the cost.  Not equal: the methods of
Firstpage also get the base order, which corankco does not use.

corankco is compared if it is installed here, or in an environment that PEER_PYTHONS names.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import firstpage as fp
from aggregate_peers import corankco_results
from common import cpu_seconds, seconds, show, versions
from firstpage.aggregation.methods import METHODS, method

DOCS = 100
CORANKCO_METHODS = ("KwikSort", "BioConsert")


def rankings(queries: int, rankers: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return scores (rankers x documents), those of the base ranker, and offsets."""
    rng = np.random.default_rng(seed)
    utility = rng.normal(size=queries * DOCS)
    scores = utility + rng.normal(size=(rankers + 1, queries * DOCS))
    return scores[1:], scores[0], np.arange(0, queries * DOCS + 1, DOCS)


def supervised_kemeny() -> None:
    """Print the CPU time of Supervised Kemeny, from scores to scores."""
    scores, base, offsets = rankings(1_000, 5)
    weights = [0.25, 0.22, 0.2, 0.18, 0.15]

    def aggregate_all() -> np.ndarray:
        return fp.aggregation.aggregate(
            fp.aggregation.Ballots.from_scores(scores, offsets, base), weights=weights
        ).scores

    ballots = fp.aggregation.Ballots.from_scores(scores, offsets, base)
    skr = method("skr")
    runs = [make_run(row, f"r{a}") for a, row in enumerate(scores)]
    rows = [
        ["all, from the scores of 5 rankers to scores", cpu_seconds(aggregate_all), "200 ms"],
        ["  of that, ballots (sorting 6 x 100,000 scores)",
         cpu_seconds(lambda: fp.aggregation.Ballots.from_scores(scores, offsets, base)), ""],
        ["  of that, votes and quick sort", cpu_seconds(lambda: skr.order(ballots, weights)), ""],
        ["Kemeny cost and lower bound, on request",
         cpu_seconds(lambda: fp.aggregation.aggregate(ballots, weights=weights).report), ""],
        ["all, from 5 runs joined by document id",
         cpu_seconds(lambda: fp.aggregation.aggregate(runs, weights=weights).scores), ""],
    ]  # fmt: skip
    show(
        "Supervised Kemeny, 1,000 queries x 100 candidates x 5 rankers",
        ["step", "CPU", "target"],
        [[name, seconds(cpu), target] for name, cpu, target in rows],
    )


def make_run(scores: np.ndarray, name: str) -> fp.Run:
    """Return a run with these scores."""
    qid = np.repeat(np.arange(len(scores) // DOCS), DOCS)
    docid = np.char.add("doc", np.tile(np.arange(DOCS), len(scores) // DOCS).astype(str))
    return fp.Run.from_arrays(qid, docid, scores, name)


def compare_methods(rankers: int, queries: int) -> None:
    """Print time per query and cost of every method on the same lists."""
    scores, base, offsets = rankings(queries, rankers)
    # Without a base order, candidates are numbered as in the lists of corankco.
    ballots = fp.aggregation.Ballots.from_scores(scores, offsets)
    with_base = fp.aggregation.Ballots.from_scores(scores, offsets, base)
    bound = fp.aggregation.lower_bound(ballots, cycles=False).sum()
    lists = np.argsort(-scores.reshape(rankers, queries, DOCS), axis=2, kind="stable")
    corankco = corankco_results(np.ascontiguousarray(lists.transpose(1, 0, 2)))
    corankco_times, rows = {}, []
    for name in CORANKCO_METHODS if corankco is not None else ():
        corankco_times[name] = corankco[name]["cpu"]
        orders = np.concatenate(corankco[name]["orders"])
        cost = fp.aggregation.kemeny_cost(orders, ballots).sum() / bound
        rows.append([f"corankco {name}", seconds(corankco_times[name]), f"{cost:.4f}", "", ""])
    texts = ["skr", f"skr(k_agg={DOCS})", *list(METHODS)[1:]]
    for text in texts:
        aggregator = method(text + "(larger=search)" if text == "ExactKemeny" else text)
        cpu = cpu_seconds(lambda m=aggregator: m.order(with_base)) / queries
        cost = fp.aggregation.kemeny_cost(aggregator.order(with_base), with_base).sum() / bound
        ratios = [
            f"{corankco_times[name] / cpu:.0f}" if name in corankco_times else ""
            for name in CORANKCO_METHODS
        ]
        rows.append([str(aggregator), f"{1e6 * cpu:.0f} us", f"{cost:.4f}", *ratios])
    cycle_bound = fp.aggregation.lower_bound(ballots).sum() / bound
    show(
        f"{queries} queries x {DOCS} candidates x {rankers} rankers, equal weights",
        ["method", "CPU per query", "cost / bound", "KwikSort / ours", "BioConsert / ours"],
        rows,
        note=f"The lower bound with majority cycles is {cycle_bound:.4f} times the plain one; "
        + (
            "corankco " + corankco["version"]
            if corankco
            else "corankco is not installed, and not compared"
        ),
    )


def growth() -> None:
    """Print CPU time per query as the number of queries grows."""
    rows = []
    for factor in (1, 10, 100):
        scores, base, offsets = rankings(100 * factor, 5)
        ballots = fp.aggregation.Ballots.from_scores(scores, offsets, base)
        jobs = (
            lambda s=scores, o=offsets, b=base: fp.aggregation.Ballots.from_scores(s, o, b),
            lambda b=ballots: method("skr").order(b),
            lambda b=ballots: method("BestInsertion").order(b),
        )
        per_query = [1e6 * cpu_seconds(job, 3) / (100 * factor) for job in jobs]
        rows.append([f"{factor}x", f"{100 * factor:,}", *(f"{cpu:.1f} us" for cpu in per_query)])
    show(
        "CPU per query of 100 candidates and 5 rankers, by number of queries",
        ["", "queries", "ballots", "skr", "BestInsertion"],
        rows,
    )


def main() -> None:
    quick = "--quick" in sys.argv
    print(versions("numpy", "numba", "corankco"))
    supervised_kemeny()
    for rankers in (3, 5, 10):
        compare_methods(rankers, 20 if quick else 200)
    growth()


if __name__ == "__main__":
    main()
