"""Judgments from simulated clicks against the grades that the clicks were simulated from.

python benchmarks/click_judgments.py S1.txt S2.txt .. --feature 25

Users see the ranking of one feature (such as BM25), shuffled a little on each page, and click by
the grades of LETOR's assessors.  Queries have a head and a tail.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import firstpage as fp

METHODS = ("ctr", "coec", "sdbn", "pbm", "ubm", "propensities")


def simulated(files: list[Path], feature: int, users: str, pages: int, noise: float):
    """Return sessions and the grades."""
    run: dict[str, dict[str, float]] = {}
    grades: dict[str, dict[str, float]] = {}
    for data in map(fp.read_letor, files):
        queries = data.queries.repeat(np.diff(data.offsets))
        rows = zip(
            queries, data.docids, data.X[:, feature - 1].tolist(), data.y.tolist(), strict=True
        )
        for query, document, score, grade in rows:
            run.setdefault(query, {})[document] = score
            grades.setdefault(query, {})[document] = grade
    traffic = 1 / np.arange(1, len(run) + 1)
    order = np.random.default_rng(0).permutation(len(run))
    sessions = fp.clicks.simulate(
        run, grades, users, n_sessions=pages, noise=noise, traffic=traffic[order], seed=1
    )
    return sessions, grades


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--feature", type=int, required=True)
    parser.add_argument("--pages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--users", nargs="+", default=["pbm", "trust", "navigational"])
    parser.add_argument("--noise", type=float, default=2.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("users pages method kappa tau NDCG@10 random decided seconds", flush=True)
    for users in options.users:
        for pages in options.pages:
            sessions, grades = simulated(
                options.files, options.feature, users, pages, options.noise
            )
            for method in METHODS:
                start = time.process_time()
                rate = method
                if method == "propensities":
                    rate = fp.clicks.estimate_propensities(sessions)
                judged = fp.clicks.judge(sessions, rate)
                seconds = time.process_time() - start
                found = judged.agreement(grades)
                values = (
                    f"{value:.3f} [{low:.3f}, {high:.3f}]"
                    for value, low, high in (found.kappa, found.tau, found.ndcg)
                )
                decided = f"{(judged.more_pages == 0).mean():.0%}"
                row = (users, pages, method, *values, f"{found.random_ndcg:.3f}", decided)
                print(*row, f"{seconds:.1f}", sep=" | ", flush=True)


if __name__ == "__main__":
    main()
