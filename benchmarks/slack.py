"""What the search for the most violated ranking of TopSlack misses at trained weights.

    python benchmarks/slack.py

On lists of at most 10 documents the search is compared with all rankings: every interleaving of the
levels, of which those with less loss and less score than another are dropped on the way.
"""

from __future__ import annotations

import warnings

import numpy as np

import firstpage as fp
from common import cpu_seconds, seconds, show, versions
from firstpage.losses.structural import StructuralHinge
from train import real_data

SHORT = 10
COSTS = (1.0, 100.0, 10_000.0)
DELTAS = ("NDCG", "NDCG@3", "Precision@3")


def greatest(scores: np.ndarray, y: np.ndarray, delta: str) -> float:
    """The greatest Delta * (1 + score - that of the true ranking), over all rankings."""
    kind, _, depth = delta.partition("@")
    n, k = len(y), int(depth or len(y))
    a = 1 / np.log2(np.arange(2.0, n + 2)) if kind == "NDCG" else np.full(n, 1 / k)
    a[k:] = 0.0
    gain = np.exp2(y) - 1 if kind == "NDCG" else (y > 0) * 1.0
    ideal = a @ np.sort(gain)[::-1]
    if ideal == 0:
        return 0.0
    worths = np.unique(gain)[::-1]
    levels = [np.sort(scores[gain == g])[::-1] for g in worths]
    own = a @ np.concatenate(levels)
    fronts = {(0,) * len(levels): np.array([[1.0, 1.0 - own]])}
    for p in range(n):
        longer: dict[tuple[int, ...], list[np.ndarray]] = {}
        for counts, front in fronts.items():
            for i, level in enumerate(levels):
                if counts[i] < len(level):
                    after = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
                    step = a[p] * np.array([-worths[i] / ideal, level[counts[i]]])
                    longer.setdefault(after, []).append(front + step)
        fronts = {counts: undominated(np.concatenate(found)) for counts, found in longer.items()}
    (front,) = fronts.values()
    products = front[front[:, 0] > 1e-12].prod(axis=1)
    return float(products.max(initial=0.0))


def undominated(points: np.ndarray) -> np.ndarray:
    points = points[np.lexsort((-points[:, 1], -points[:, 0]))]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(points[:, 1])[:-1]])
    return points[points[:, 1] > before]


def collections() -> dict[str, list[fp.Dataset]]:
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


def misses(data: list[fp.Dataset], search: str) -> list[str]:
    lists, missed, worst = 0, 0, 0.0
    for train in data:
        for delta in DELTAS:
            for C in COSTS:
                scores = fp.TopSlack(C=C, delta=delta, search=search).fit(train).predict(train)
                loss = StructuralHinge(delta, "slack", search=search)
                values, _ = loss.value_grad(scores, train.truth)
                for q in np.flatnonzero(train.lengths <= SHORT):
                    here = slice(train.offsets[q], train.offsets[q + 1])
                    exact = greatest(np.asarray(scores[here], float), train.y[here], delta)
                    lists += exact > 0
                    if values[q] < exact * (1 - 2e-6) - 1e-12:
                        missed, worst = missed + 1, max(worst, 1 - values[q] / exact)
    return [search, str(lists), str(missed), f"{100 * worst:.1f} %"]


def times() -> list[list[str]]:
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
    rows = [[name, *misses(data, how)] for name, data in collections().items()
            for how in ("chords", "golden")]  # fmt: skip
    head = ["data", "search", "lists with a loss", "missed", "by at most, of the loss"]
    show(f"Lists of at most {SHORT} documents, at trained weights", head, rows)
    head = ["delta", "C", "iterations", "CPU", "gap"]
    show("Training on MQ2008 Fold1, one thread", head, times())


if __name__ == "__main__":
    main()
