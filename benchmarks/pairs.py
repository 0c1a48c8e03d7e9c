"""Training on votes on pairs against training on the order that the votes give (docs/pairs.md).

    FIRSTPAGE_DATA=data python benchmarks/pairs.py
    FIRSTPAGE_DATA=data python benchmarks/pairs.py RankSVM --fraction 1

Data: UKPConvArg1, 41,750 votes of about 2,400 people on which of two arguments is more convincing,
523 arguments of 16 topics.  Features: statistics of the texts.  Each topic is a test topic once; of
the other topics three choose the penalty and all train.  Both methods get the same votes: "pairs"
trains on them as they are, "order" on the order of the Bradley-Terry utilities that they give.
The test is the fraction of all votes on the test topic that the scores agree with.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import sys
import warnings
from pathlib import Path

import numpy as np

import firstpage as fp
from common import show, versions
from firstpage.labeling import bradley_terry

AMOUNTS = [  # fraction of the pairs, votes per pair
    (0.02, 1), (0.02, 5), (0.1, 1), (0.1, 5), (1.0, 1), (1.0, 3), (1.0, 5),
]  # fmt: skip
RANKERS = {
    "RankNet": ("RankNet(average=True)", "l2", (1e-3, 1e-2, 1e-1)),
    "RankSVM": ("RankSVM(average=True)", "C", (1.0, 10.0, 100.0)),
    "RankNet, trees": (
        "RankNet(average=True, threads=1, scorer='trees(count=60, leaves=7)')",
        "l2",
        (0.01,),
    ),
}
DRAWS, VALIDATION, RESAMPLES = 5, 3, 10_000


def text_features(text: str, frequency: dict[str, int], documents: int) -> list[float]:
    """Return statistics of a text."""
    words = re.findall(r"[a-z']+", text.lower())
    sentences = max(1, len(re.findall(r"[.!?]+", text)))
    count, letters = max(1, len(words)), max(1, sum(c.isalpha() for c in text))
    rarity = [np.log(documents / frequency[w]) for w in words] or [0.0]
    return [
        np.log1p(len(words)),
        np.log1p(sentences),
        len(words) / sentences,
        sum(map(len, words)) / count,
        len(set(words)) / count,
        sum(len(w) > 7 for w in words) / count,
        float(np.mean(rarity)),
        float(np.max(rarity)),
        sum(c.isupper() for c in text) / letters,
        *(text.count(mark) / count for mark in ",!?\"'("),
        float("http" in text),
        sum(w in ("i", "my", "me") for w in words) / count,
        sum(w in ("because", "therefore", "thus", "so", "since") for w in words) / count,
        sum(w in ("not", "no", "never", "n't") for w in words) / count,
    ]


def read_texts(path: Path) -> fp.Dataset:
    """Return the arguments with their features, by topic, without labels."""
    with path.open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["topic"], row["arg"]))
    frequency: dict[str, int] = {}
    for row in rows:
        for word in set(re.findall(r"[a-z']+", row["text"].lower())):
            frequency[word] = frequency.get(word, 0) + 1
    X = np.array([text_features(row["text"], frequency, len(rows)) for row in rows])
    topics, names = [row["topic"] for row in rows], [row["arg"] for row in rows]
    return fp.Dataset.from_arrays(X, np.zeros(len(rows)), topics, names)


def sample_votes(pairs: fp.PreferencePairs, fraction: float, votes: int, seed: int):
    """Return at most so many votes per pair, on a fraction of the pairs."""
    rng = np.random.default_rng(seed)
    key = np.minimum(pairs.preferred, pairs.other) * len(pairs.docids)
    key += np.maximum(pairs.preferred, pairs.other)
    _, pair = np.unique(key, return_inverse=True)
    chosen = rng.random(pair.max() + 1) < fraction
    order = rng.permutation(len(pairs))
    number = np.empty(len(pairs), np.int64)  # of the vote among those on its pair
    seen: dict[int, int] = {}
    for vote in order.tolist():
        number[vote] = seen.get(int(pair[vote]), 0)
        seen[int(pair[vote])] = int(number[vote]) + 1
    return pairs[chosen[pair] & (number < votes)]


def ordered(data: fp.Dataset, pairs: fp.PreferencePairs) -> fp.Dataset:
    """Return the data with the order of the Bradley-Terry utilities as labels, per topic."""
    first, second = pairs.rows_in(data)
    labels = np.zeros(data.n_docs)
    for lo, hi in zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True):
        votes = np.flatnonzero((first >= lo) & (first < hi))
        outcome = np.where(pairs.tied[votes], 0, 1)
        utilities = bradley_terry(hi - lo, first[votes] - lo, second[votes] - lo, outcome)
        labels[lo:hi] = np.unique(np.round(utilities, 9), return_inverse=True)[1]
    return data.with_labels(labels)


def best_fit(method: str, text: str, name: str, grid: tuple, train: fp.Dataset, votes):
    """Return the ranker of a method; the first topics of the training data choose the penalty."""

    def fit(value: float, data: fp.Dataset) -> fp.Ranker:
        ranker = fp.ranker(text, normalize="global standard", **{name: value})
        own = votes.of_queries(data.queries)
        return ranker.fit(data, pairs=own) if method == "pairs" else ranker.fit(data)

    if len(grid) == 1:
        return fit(grid[0], train)
    valid, rest = train[:VALIDATION], train[VALIDATION:]
    judges = votes.of_queries(valid.queries)
    scores = [fit(value, rest).score(valid, pairs=judges) for value in grid]
    return fit(grid[int(np.argmax(scores))], train)


def accuracies(data, pairs, votes, ranker: tuple, seed: int) -> dict[str, np.ndarray]:
    """Return the test accuracy of both methods, one value per topic."""
    labeled = ordered(data, votes)
    rng = np.random.default_rng(seed)
    values = {"pairs": np.empty(len(data)), "order": np.empty(len(data))}
    for topic in range(len(data)):
        others = rng.permutation([q for q in range(len(data)) if q != topic])
        test = data[topic]
        judged = pairs.of_queries(test.queries)
        for method, source in (("pairs", data), ("order", labeled)):
            fitted = best_fit(method, *ranker, source[others], votes)
            values[method][topic] = fitted.score(test, pairs=judged)
    return values


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over topics."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(differences), (RESAMPLES, len(differences)))
    low, high = np.percentile(differences[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def main() -> None:
    folder = Path(os.environ.get("FIRSTPAGE_DATA", "data")) / "ukpconvarg1"
    data, pairs = read_texts(folder / "texts.csv"), fp.read_pairs(folder / "votes.csv")
    pairs = pairs[pairs.to_rows(data)[1]]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rankers", nargs="*", default=list(RANKERS), help=" or ".join(RANKERS))
    parser.add_argument("--fraction", type=float, help="only rows with this fraction of the pairs")
    chosen = parser.parse_args()
    print(versions("firstpage", "numpy", "lightgbm"))
    rows = []
    for name in chosen.rankers:
        for fraction, count in AMOUNTS:
            if chosen.fraction not in (None, fraction):
                continue
            runs = []
            for seed in range(1 if (fraction, count) == (1.0, 5) else DRAWS):
                votes = sample_votes(pairs, fraction, count, seed)
                runs.append(accuracies(data, pairs, votes, RANKERS[name], seed))
            mean = {m: np.mean([run[m] for run in runs], axis=0) for m in ("pairs", "order")}
            difference = mean["pairs"] - mean["order"]
            low, high = interval(difference)
            rows.append(
                [
                    name,
                    f"{fraction:.0%}",
                    str(count),
                    f"{len(votes):,}",
                    f"{mean['pairs'].mean():.4f}",
                    f"{mean['order'].mean():.4f}",
                    f"{difference.mean():+.4f}",
                    f"{low:+.4f} to {high:+.4f}",
                ]
            )
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    show(
        "Accuracy on the votes of the test topic",
        [
            "ranker",
            "pairs",
            "votes per pair",
            "votes",
            "on pairs",
            "on the order",
            "difference",
            "95 % interval",
        ],
        rows,
        note="Mean over 16 topics; the interval is a bootstrap over topics.",
    )


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)
        main()
