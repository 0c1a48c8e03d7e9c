"""How often searches for the most violated ranking miss it: TopSlack's, and that of the paper.

    python benchmarks/slack.py

On lists of at most 10 documents, the search is compared with an enumeration of all rankings: every
interleaving of the grades, without partial rankings that another one dominates in loss and score.

Held equal: data, loss, C and weights for both searches; the weights are those of TopSlack.
"""

from __future__ import annotations

import warnings

import numpy as np

import firstpage as fp
from common import cpu_seconds, seconds, show, versions
from firstpage.learning.losses import StructuralHinge
from firstpage.papers.cheng2014.golden_section import greatest_product
from train import real_data

MAX_DOCUMENTS = 10
COSTS = (1.0, 100.0, 10_000.0)
DELTAS = ("NDCG", "NDCG@3", "Precision@3")


def gains_and_discounts(y: np.ndarray, delta: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the gain of each document and the discount of each rank."""
    kind, _, depth = delta.partition("@")
    n, k = len(y), int(depth or len(y))
    discounts = 1 / np.log2(np.arange(2.0, n + 2)) if kind == "NDCG" else np.full(n, 1 / k)
    discounts[k:] = 0.0
    return np.exp2(y) - 1 if kind == "NDCG" else (y > 0) * 1.0, discounts


def largest_violation(scores: np.ndarray, gain: np.ndarray, discounts: np.ndarray) -> float:
    """Return the largest Delta * (1 + score - score of the true ranking) over all rankings."""
    ideal = discounts @ np.sort(gain)[::-1]
    if ideal == 0:
        return 0.0
    gains = np.unique(gain)[::-1]
    levels = [np.sort(scores[gain == g])[::-1] for g in gains]
    true_score = discounts @ np.concatenate(levels)
    # by number of documents taken from each level: undominated pairs (Delta, 1 + score difference)
    fronts = {(0,) * len(levels): np.array([[1.0, 1.0 - true_score]])}
    for discount in discounts:
        extended: dict[tuple[int, ...], list[np.ndarray]] = {}
        for counts, front in fronts.items():
            for i, level in enumerate(levels):
                if counts[i] < len(level):
                    new_counts = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
                    step = discount * np.array([-gains[i] / ideal, level[counts[i]]])
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


def count_misses(datasets: list[fp.Dataset]) -> list[list[str]]:
    """Return lists with a loss, missed rankings and the largest relative miss of each search."""
    lists = 0
    missed: dict[str, list[float]] = {"chords": [], "golden section": []}
    for train in datasets:
        for delta in DELTAS:
            for C in COSTS:
                scores = fp.TopSlack(C=C, delta=delta).fit(train).predict(train)
                values, _ = StructuralHinge(delta, "slack").value_grad(scores, train.truth)
                for q in np.flatnonzero(train.lengths <= MAX_DOCUMENTS):
                    rows = slice(train.offsets[q], train.offsets[q + 1])
                    gain, discounts = gains_and_discounts(train.y[rows], delta)
                    query = np.asarray(scores[rows], float), gain, discounts
                    exact = largest_violation(*query)
                    lists += exact > 0
                    products = {"chords": values[q], "golden section": greatest_product(*query)}
                    for search, product in products.items():
                        if product < exact * (1 - 2e-6) - 1e-12:
                            missed[search].append(1 - product / exact)
    return [
        [search, str(lists), str(len(misses)), f"{100 * max(misses, default=0.0):.1f} %"]
        for search, misses in missed.items()
    ]


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
        [name, *row] for name, datasets in collections().items() for row in count_misses(datasets)
    ]
    head = ["data", "search", "lists with a loss", "missed", "largest relative miss"]
    show(f"Lists of at most {MAX_DOCUMENTS} documents, at trained weights", head, rows)
    head = ["delta", "C", "iterations", "CPU", "gap"]
    show("Training on MQ2008 Fold1, one thread", head, training_times())


if __name__ == "__main__":
    main()
