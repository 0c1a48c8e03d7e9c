"""CPU time of click models, propensities and judgments on simulated logs of three sizes.

    python benchmarks/click_models.py --models UBM propensities judgments

Queries have a Zipf distribution, 20 documents each, of which a page shows 10 in an order that
varies from page to page; the clicks are those of a user browsing model.  The last column is the
greatest error of the UBM's examination after no click, whose true values are 1 / rank^0.7.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import common
import firstpage as fp

LENGTH, DOCUMENTS = 10, 20
MODELS = ("PBM", "DCM", "DBN", "UBM", "CCM")
OTHERS = {"propensities": fp.clicks.estimate_propensities, "judgments": fp.clicks.judge}


def log_of(pages: int, seed: int = 0) -> fp.Sessions:
    """Return simulated pages; the number of queries grows with the root of the pages."""
    rng = np.random.default_rng(seed)
    queries = int(20 * pages**0.5)
    weights = 1.0 / np.arange(1, queries + 1)
    query = np.sort(rng.choice(queries, pages, p=weights / weights.sum()).astype(np.int32))
    noise = rng.normal(0, 4, (pages, DOCUMENTS)) + np.arange(DOCUMENTS)
    shown = np.argsort(noise, axis=1)[:, :LENGTH].astype(np.int32)
    attractiveness = rng.beta(1, 4, queries * DOCUMENTS)
    a = attractiveness[query[:, None] * DOCUMENTS + shown]
    last, clicks = np.zeros(pages), np.empty((pages, LENGTH), np.int32)
    for r in range(LENGTH):
        clicks[:, r] = rng.random(pages) < a[:, r] / (r + 1 - last) ** 0.7
        last = np.where(clicks[:, r] > 0, r + 1.0, last)
    return fp.Sessions(
        tuple(f"q{i}" for i in range(queries)),
        tuple(f"d{i}" for i in range(DOCUMENTS)),
        query,
        np.arange(pages + 1, dtype=np.int64) * LENGTH,
        shown.ravel(),
        np.tile(np.arange(1, LENGTH + 1, dtype=np.int32), pages),
        clicks.ravel(),
        np.arange(pages, dtype=np.int32),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--models", nargs="*", default=[*MODELS, *OTHERS])
    arguments = parser.parse_args()
    tasks = {n: OTHERS.get(n) or fp.clicks.click_model(n).fit for n in arguments.models}
    for run in tasks.values():
        run(log_of(5000))  # compiles the kernels
    rows = []
    for pages in arguments.pages:
        sessions = log_of(pages)
        pairs = len(sessions.pairs.query)  # numbered once for all models, and not timed
        for name, run in tasks.items():
            start = time.process_time()
            result = run(sessions)
            taken = time.process_time() - start
            error = ""
            if name == "UBM":
                true = np.arange(1, LENGTH + 1) ** -0.7
                estimate = result.parameters_["examination"].reshape(LENGTH + 1, -1)[1:, 0]
                error = f"{np.abs(estimate - true).max():.3f}"
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            rows.append(
                [f"{10 * pages:,}", f"{pairs:,}", name,
                 str(getattr(result, "iterations_", "")),
                 common.seconds(taken), f"{memory:.1f} GiB", error]
            )  # fmt: skip
    head = ["impressions", "pairs", "model", "steps", "CPU", "memory so far", "error"]
    common.show("fit", head, rows)


if __name__ == "__main__":
    main()
