"""Coverage of the intervals of propensities and trust bias (docs/clicks.md).

    FIRSTPAGE_DATA=data python benchmarks/propensities.py 400

Sessions are simulated with new grades in every repetition; a 95 % interval should cover the truth
in 95 % of them.  The number is that of the repetitions.  Baidu's curve is read from the data.
Features of regression EM and dual learning are the grades, by which relevance is exactly a function
of them, or the grade with normal noise, by which it is not.
"""

from __future__ import annotations

import csv
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import firstpage as fp

RANKS, DOCUMENTS, QUERIES, SESSIONS = 10, 15, 200, 10_000
GRADES = [0.5, 0.2, 0.15, 0.1, 0.05]  # probability of the grades 0 to 4


def rankings(queries: int, rng: np.random.Generator) -> tuple[fp.Run, fp.Qrels, fp.Dataset]:
    """Return rankings in order of noisy grades, the grades, and these as features."""
    grades = rng.choice(5, (queries, DOCUMENTS), p=GRADES)
    grades[0, 0] = 4  # so that the largest grade is that of the model
    scores = grades + rng.normal(size=grades.shape)
    qid = np.repeat([f"q{n}" for n in range(queries)], DOCUMENTS)
    docid = [f"d{n}" for n in range(grades.size)]
    run = fp.Run.from_arrays(qid, docid, scores.ravel())
    X = (grades.reshape(-1, 1) == np.arange(1, 5)).astype(float)
    features = fp.Dataset.from_arrays(X, grades.ravel(), qid, docid=docid)
    return run, fp.Qrels.from_arrays(qid, docid, grades.ravel()), features


def users(name: str) -> fp.clicks.SimulatedUsers | str:
    """Return the model of a setting."""
    if name != "Baidu":
        return "trust" if name == "trust" else "pbm"
    path = Path(os.environ["FIRSTPAGE_DATA"]) / "clicks/curves/baidu-global_all_pairs.csv"
    with path.open() as lines:
        curve = [float(row["global_all_pairs"]) for row in csv.DictReader(lines)]
    return fp.clicks.SimulatedUsers([0.1, 0.16, 0.28, 0.52, 1.0], curve)


def repetition(setting: dict, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bounds of intervals, and the truth."""
    rng = np.random.default_rng(seed)
    queries = setting.get("queries", QUERIES)
    run, qrels, features = rankings(queries, rng)
    model = users(setting["users"])
    traffic = 1 / np.arange(1, queries + 1) ** setting.get("zipf", 0.0)
    sessions = fp.clicks.simulate(
        run, qrels, model, n_sessions=setting.get("sessions", SESSIONS), seed=seed,
        noise=setting["noise"], traffic=traffic,
    )  # fmt: skip
    if setting["method"].startswith("trust"):
        given = qrels if setting["method"] == "trust, grades" else None
        bias = fp.clicks.trust_bias(sessions, given)
        true = fp.clicks.SimulatedUsers.named("trust")
        minus = true.click[:RANKS, 0] * true.examination[:RANKS]
        slope = true.click[:RANKS, -1] * true.examination[:RANKS] - minus
        if given is None:
            slope, minus = slope / slope[0], minus - minus[0] * slope / slope[0]
        truth = np.concatenate([slope, minus])
        low = np.concatenate([bias.alpha_low, bias.beta_low])
        high = np.concatenate([bias.alpha_high, bias.beta_high])
        return low, high, truth
    options: dict = {"model": "PBM"} if setting["method"] == "model" else {}
    if setting["method"] in fp.clicks.BY_FEATURES:
        noise = setting["inexact"] * rng.normal(size=features.X.shape)
        options["features"] = replace(features, X=features.X + noise)
    result = fp.clicks.estimate_propensities(sessions, setting["method"], **options)
    curve = fp.clicks.SimulatedUsers.named("pbm") if model == "pbm" else model
    return np.array(result.low), np.array(result.high), curve.propensities(RANKS)


SETTINGS = {
    "all pairs, noise 1": {"users": "pbm", "method": "all-pairs", "noise": 1.0},
    "all pairs, noise 0.5": {"users": "pbm", "method": "all-pairs", "noise": 0.5},
    "all pairs, Zipf traffic": {"users": "pbm", "method": "all-pairs", "noise": 1.0, "zipf": 1.0},
    "all pairs, 30 queries": {"users": "pbm", "method": "all-pairs", "noise": 1.0, "queries": 30},
    "all pairs, curve of Baidu": {"users": "Baidu", "method": "all-pairs", "noise": 1.0},
    "adjacent, noise 1": {"users": "pbm", "method": "adjacent", "noise": 1.0},
    "pivot, noise 3": {"users": "pbm", "method": "pivot", "noise": 3.0},
    "random order": {"users": "pbm", "method": "random", "noise": np.inf},
    "trust bias, grades": {"users": "trust", "method": "trust, grades", "noise": 2.0},
    "trust bias, swaps": {
        "users": "trust", "method": "trust, swaps", "noise": 3.0, "sessions": 40_000,
    },
    "model PBM": {"users": "pbm", "method": "model", "noise": 1.0},
    **{
        f"{method}, {kind} features": {
            "users": "pbm", "method": method, "noise": 1.0, "inexact": inexact,
            "queries": 60, "sessions": 3_000,
        }
        for method in ("regression-em", "dual")
        for kind, inexact in (("exact", 0.0), ("inexact", 0.5))
    },
}  # fmt: skip


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    names = [name for name in SETTINGS if not sys.argv[2:] or name in sys.argv[2:]]
    print(f"{'setting':28} covered  least by rank  greatest by rank  without interval")
    for name in names:
        hits, missing = [], 0
        for seed in range(count):
            low, high, truth = repetition(SETTINGS[name], seed)
            varies = ~((low == truth) & (high == truth))  # not those that are 1 or 0 by definition
            covered = np.where(np.isfinite(low), (low <= truth) & (truth <= high), np.nan)
            missing += int(np.isnan(covered[varies]).sum())
            hits.append(np.where(varies, covered, np.nan))
        table = np.array(hits)
        with np.errstate(invalid="ignore"):
            by_rank = np.nanmean(table[:, ~np.isnan(table).all(axis=0)], axis=0)
        rest = missing / max(missing + int((~np.isnan(table)).sum()), 1)
        print(f"{name:28} {np.nanmean(table):7.3f}  {by_rank.min():13.3f}  {by_rank.max():16.3f}"
              f"  {rest:16.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
