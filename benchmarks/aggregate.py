"""Speed and Kemeny cost of rank aggregation, compared with corankco's KwikSort and BioConsert.

    make bench          or          python benchmarks/aggregate.py [--quick] [--fusion QUERIES]

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

Fusion of 5 runs of 1,000 documents per query, of a pool of 2,000, is compared with ranx's fuse; the
target is 20 times less CPU for 1,000 queries.  Both start from their own run objects in memory and
return such an object; --fusion prints this table alone.

corankco and ranx are compared if they are installed here, or in an environment that PEER_PYTHONS
names.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import firstpage as fp
from aggregate_peers import FUSIONS, corankco_results, ranx_results
from common import cpu_seconds, seconds, show, versions
from firstpage.evaluation.aggregation import METHODS, method

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
        [
            "  of that, ballots (sorting 6 x 100,000 scores)",
            cpu_seconds(lambda: fp.aggregation.Ballots.from_scores(scores, offsets, base)),
            "",
        ],
        ["  of that, votes and quick sort", cpu_seconds(lambda: skr.order(ballots, weights)), ""],
        [
            "Kemeny cost and lower bound, on request",
            cpu_seconds(lambda: fp.aggregation.aggregate(ballots, weights=weights).report),
            "",
        ],
        [
            "all, from 5 runs joined by document id",
            cpu_seconds(lambda: fp.aggregation.aggregate(runs, weights=weights).scores),
            "",
        ],
    ]
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


LENGTH, POOL, RUNS = 1_000, 2_000, 5  # of the fusion benchmark


def fused_lists(queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Return document numbers and scores (runs x queries x documents), best first."""
    rng = np.random.default_rng(0)
    shape = (RUNS, queries, LENGTH)
    documents = np.argsort(rng.random((RUNS, queries, POOL), np.float32), axis=2)[:, :, :LENGTH]
    return documents, -np.sort(-rng.normal(size=shape), axis=2)


def fusion_runs(documents: np.ndarray, scores: np.ndarray) -> list[fp.Run]:
    """Return the lists as runs."""
    queries = np.repeat([f"q{q}" for q in range(documents.shape[1])], LENGTH)
    names = np.array([f"doc{d}" for d in range(POOL)])
    return [
        fp.Run.from_arrays(queries, names[ids.ravel()], values.ravel(), f"r{a}")
        for a, (ids, values) in enumerate(zip(documents, scores, strict=True))
    ]


def compare_fusion(queries: int) -> None:
    """Print CPU of fusion, beside ranx's, and of its steps; and its growth."""
    documents, scores = fused_lists(queries)
    ranx = ranx_results(documents, scores)
    runs = fusion_runs(documents, scores)
    rows = []
    for (name, normalize), (ranx_name, _, _) in FUSIONS.items():
        cpu = fusion_seconds(runs, name, normalize)
        text = name if normalize is None else f"{name}, {normalize}"
        row = [text, seconds(cpu)]
        row += [seconds(ranx[ranx_name]), f"{ranx[ranx_name] / cpu:.1f}"] if ranx else ["", ""]
        rows.append(row)
    hashes = cpu_seconds(lambda: [np.sort(run.docids.hashes.reshape(-1, LENGTH)) for run in runs])
    show(
        f"Fusion of {RUNS} runs x {queries:,} queries x {LENGTH:,} documents",
        ["method", "CPU", "ranx", "ranx / ours"],
        rows,
        note=f"Sorting the hashes of all documents by query, a bound of any join: {seconds(hashes)}"
        + (f"; ranx {ranx['version']}" if ranx else "; ranx is not installed, and not compared"),
    )


def fusion_seconds(runs: list[fp.Run], name: str, normalize: str | None) -> float:
    return cpu_seconds(
        lambda: fp.aggregation.aggregate(runs, name, normalize=normalize).run.values, 3
    )


def fusion_growth(queries: int) -> None:
    """Print CPU per document as the number of queries grows."""
    rows = []
    for factor in (1, 10, 100):
        runs = fusion_runs(*fused_lists(queries * factor // 100))
        entries = sum(len(run.values) for run in runs)
        cpus = [fusion_seconds(runs, *fusion) for fusion in FUSIONS]
        rows.append([f"{factor}x", f"{entries:,}", *(f"{1e9 * c / entries:.0f} ns" for c in cpus)])
    show("CPU per entry of a run", ["", "entries", *(name for name, _ in FUSIONS)], rows)


def main() -> None:
    quick = "--quick" in sys.argv
    print(versions("numpy", "numba", "corankco", "ranx"))
    queries = int(sys.argv[sys.argv.index("--fusion") + 1]) if "--fusion" in sys.argv else 1_000
    compare_fusion(100 if quick else queries)
    fusion_growth(100 if quick else queries)
    if "--fusion" in sys.argv:
        return
    supervised_kemeny()
    for rankers in (3, 5, 10):
        compare_methods(rankers, 20 if quick else 200)
    growth()


if __name__ == "__main__":
    main()
