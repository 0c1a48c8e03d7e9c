"""How often TopSlack's search misses the most violated ranking, at trained weights.

    python benchmarks/slack.py

On lists of at most 10 documents, the search is compared with an enumeration of all rankings: every
interleaving of the grades, without partial rankings that another one dominates in loss and score.

Held equal: data, loss and C for both searches; each search is tested at its own trained weights.
"""

from __future__ import annotations

import warnings

import numpy as np

import firstpage as fp
from common import cpu_seconds, seconds, show, versions
from firstpage.learning.losses import StructuralHinge
from train import real_data

MAX_DOCUMENTS = 10
COSTS = (1.0, 100.0, 10_000.0)
DELTAS = ("NDCG", "NDCG@3", "Precision@3")


def largest_violation(scores: np.ndarray, y: np.ndarray, delta: str) -> float:
    """Return the largest Delta * (1 + score - score of the true ranking) over all rankings."""
    kind, _, depth = delta.partition("@")
    n, k = len(y), int(depth or len(y))
    discounts = 1 / np.log2(np.arange(2.0, n + 2)) if kind == "NDCG" else np.full(n, 1 / k)
    discounts[k:] = 0.0
    gain = np.exp2(y) - 1 if kind == "NDCG" else (y > 0) * 1.0
    ideal = discounts @ np.sort(gain)[::-1]
    if ideal == 0:
        return 0.0
    gains = np.unique(gain)[::-1]
    levels = [np.sort(scores[gain == g])[::-1] for g in gains]
    true_score = discounts @ np.concatenate(levels)
    # by number of documents taken from each level: undominated pairs (Delta, 1 + score difference)
    fronts = {(0,) * len(levels): np.array([[1.0, 1.0 - true_score]])}
    for position in range(n):
        extended: dict[tuple[int, ...], list[np.ndarray]] = {}
        for counts, front in fronts.items():
            for i, level in enumerate(levels):
                if counts[i] < len(level):
                    new_counts = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
                    step = discounts[position] * np.array([-gains[i] / ideal, level[counts[i]]])
                    extended.setdefault(new_counts, []).append(front + step)
        fronts = {counts: undominated(np.concatenate(p)) for counts, p in extended.items()}
    (front,) = fronts.values()
    products = front[front[:, 0] > 1e-12].prod(axis=1)
    return float(products.max(initial=0.0))


def undominated(points: np.ndarray) -> np.ndarray:
    """Return the points that no other point exceeds in both coordinates."""
    points = points[np.lexsort((-points[:, 1], -points[:, 0]))]
    largest_before = np.concatenate([[-np.inf], np.maximum.accumulate(points[:, 1])[:-1]])
    return points[points[:, 1] > largest_before]


def collections() -> dict[str, list[fp.Dataset]]:
    """Return data sets by name."""
    datasets = {}
    if (folder := real_data()) is not None:
        datasets["MQ2008, 5 folds"] = [fold.train for fold in fp.read_folds(folder / "mq2008")]
    for docs in (6, 8, 10):
        datasets[f"synthetic, {docs} documents"] = [
            fp.Synthetic(20, docs, features=5, grades=3, noise=noise, seed=seed).dataset()
            for noise in (0.1, 0.5, 1.0)
            for seed in range(3)
        ]
    return datasets


def count_misses(datasets: list[fp.Dataset], search: str) -> list[str]:
    """Return the number of lists with a loss, of missed rankings, and the largest relative miss."""
    lists, missed, worst = 0, 0, 0.0
    for train in datasets:
        for delta in DELTAS:
            for C in COSTS:
                scores = fp.TopSlack(C=C, delta=delta, search=search).fit(train).predict(train)
                loss = StructuralHinge(delta, "slack", search=search)
                values, _ = loss.value_grad(scores, train.truth)
                for q in np.flatnonzero(train.lengths <= MAX_DOCUMENTS):
                    rows = slice(train.offsets[q], train.offsets[q + 1])
                    exact = largest_violation(np.asarray(scores[rows], float), train.y[rows], delta)
                    lists += exact > 0
                    if values[q] < exact * (1 - 2e-6) - 1e-12:
                        missed, worst = missed + 1, max(worst, 1 - values[q] / exact)
    return [search, str(lists), str(missed), f"{100 * worst:.1f} %"]


def training_times() -> list[list[str]]:
    """Return a row per loss and C with the CPU time of a fit on MQ2008, if it is available."""
    folder = real_data()
    if folder is None:
        return []
    train = fp.read_folds(folder / "mq2008")[0].train
    rows = []
    for delta in ("NDCG", "NDCG@10", "Precision@10"):
        for C in (1.0, 10.0, 100.0):
            ranker = fp.TopSlack(C=C, delta=delta, threads=1)
            cpu = cpu_seconds(lambda r=ranker: r.fit(train), 3, 1)
            rows.append([delta, f"{C:g}", str(ranker.n_iter_), seconds(cpu), f"{ranker.gap_:.1e}"])
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    print(versions("firstpage", "numpy"))
    rows = [
        [name, *count_misses(datasets, search)]
        for name, datasets in collections().items()
        for search in ("chords", "golden")
    ]
    head = ["data", "search", "lists with a loss", "missed", "largest relative miss"]
    show(f"Lists of at most {MAX_DOCUMENTS} documents, at trained weights", head, rows)
    head = ["delta", "C", "iterations", "CPU", "gap"]
    show("Training on MQ2008 Fold1, one thread", head, training_times())


if __name__ == "__main__":
    main()
