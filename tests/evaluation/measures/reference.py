"""Reference implementations: every measure of one query in one strict order, by its definition.

`ranked` are the labels in ranked order, None where a document is unjudged; `pool` are the labels of
all judged documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, groupby, permutations, product
from math import log2

Ranked = Sequence[float | None]
Pool = Sequence[float]


def gain(label: float | None) -> float:
    return 2.0**label - 1 if label is not None and label > 0 else 0.0


def linear(label: float | None) -> float:
    return label if label is not None and label > 0 else 0.0


def discount(rank: int) -> float:
    return 1 / log2(1 + rank)


def dcg(ranked: Ranked, k: int, g: Callable[[float | None], float] = gain) -> float:
    return sum(g(label) * discount(j) for j, label in enumerate(ranked[:k], 1))


def ndcg(ranked: Ranked, pool: Pool, k: int, g: Callable[[float | None], float] = gain) -> float:
    best = dcg(sorted(pool, reverse=True), k, g)
    return dcg(ranked, k, g) / best if best else 0.0


def mean_ndcg(ranked: Ranked, pool: Pool) -> float:
    return sum(ndcg(ranked, pool, k) for k in range(1, len(ranked) + 1)) / len(ranked)


def err(ranked: Ranked, max_label: float, k: int) -> float:
    value, continue_probability = 0.0, 1.0
    for rank, label in enumerate(ranked[:k], 1):
        stop = gain(label) / 2**max_label
        value += continue_probability * stop / rank
        continue_probability *= 1 - stop
    return value


def is_relevant(label: float | None, level: float) -> bool:
    return label is not None and label >= level


def hits(ranked: Ranked, k: int, level: float = 1) -> int:
    return sum(is_relevant(label, level) for label in ranked[:k])


def relevant(pool: Pool, level: float = 1) -> int:
    return sum(label >= level for label in pool)


def ap(ranked: Ranked, pool: Pool, k: int, level: float = 1) -> float:
    precisions = [
        hits(ranked, j, level) / j
        for j in range(1, min(k, len(ranked)) + 1)
        if is_relevant(ranked[j - 1], level)
    ]
    return sum(precisions) / relevant(pool, level) if relevant(pool, level) else 0.0


def rr(ranked: Ranked, k: int, level: float = 1) -> float:
    for rank, label in enumerate(ranked[:k], 1):
        if is_relevant(label, level):
            return 1 / rank
    return 0.0


def bpref(ranked: Ranked, pool: Pool, level: float = 1) -> float:
    r = relevant(pool, level)
    n = len(pool) - r
    value, above = 0.0, 0
    for label in ranked:
        if label is None:
            continue
        if label >= level:
            value += 1 - min(above, r) / min(r, n) if above else 1
        else:
            above += 1
    return value / r if r else 0.0


def rbp(ranked: Ranked, p: float, level: float = 1) -> float:
    return (1 - p) * sum(p**j for j, label in enumerate(ranked) if is_relevant(label, level))


def cg(ranked: Ranked, k: int) -> float:
    return sum(gain(label) for label in ranked[:k])


def q_measure(ranked: Ranked, pool: Pool, beta: float) -> float:
    ideal = sorted(pool, reverse=True)
    value = 0.0
    for j, label in enumerate(ranked, 1):
        if gain(label):
            blended = beta * cg(ranked, j) + sum(gain(x) > 0 for x in ranked[:j])
            value += blended / (beta * cg(ideal, j) + j)
    count = sum(label > 0 for label in pool)
    return value / count if count else 0.0


def ndcg_at_relevant(ranked: Ranked, pool: Pool) -> float:
    count = sum(label > 0 for label in pool)
    ranks = [j for j, label in enumerate(ranked, 1) if gain(label)]
    values = [ndcg(ranked, pool, j) for j in ranks]
    values += [ndcg(ranked, pool, 999)] * (count - len(ranks))
    return sum(values) / count if count else 0.0


def ndcg_at_levels(ranked: Ranked, pool: Pool) -> float:
    positive = sorted((label for label in pool if label > 0), reverse=True)
    ranks = [j for j, label in enumerate(positive, 1) if positive[j : j + 1] != [label]]
    if ranks and len(ranked) > len(positive) + 1:
        ranks.append(len(ranked))
    return sum(ndcg(ranked, pool, j) for j in ranks) / len(ranks) if ranks else 0.0


def bin_g(ranked: Ranked, pool: Pool) -> float:
    value, others = 0.0, 0
    for label in ranked:
        if is_relevant(label, 1):
            value += 1 / log2(2 + others)
        else:
            others += 1
    return value / relevant(pool) if relevant(pool) else 0.0


def accuracy(ranked: Ranked, k: int) -> float:
    pairs = [(is_relevant(a, 1), is_relevant(b, 1)) for a, b in combinations(ranked[:k], 2)]
    decided = [first for first, second in pairs if first != second]
    return sum(decided) / len(decided) if decided else 0.0


def inferred_ap(ranked: Ranked, pool: Pool) -> float:
    """Return inferred AP; labels below 0 were in the pool and not judged."""
    epsilon, value = 0.00001, 0.0
    for j, label in enumerate(ranked, 1):
        if is_relevant(label, 1):
            above = [x for x in ranked[: j - 1] if x is not None]
            judged = [x for x in above if x >= 0]
            rate = (relevant(judged) + epsilon) / (len(judged) + 2 * epsilon)
            value += 1 / j + len(above) * rate / j
    return value / relevant(pool) if relevant(pool) else 0.0


# --- measures of order, over judged documents only


def pair_accuracy(ranked: Sequence[float]) -> float:
    pairs = [(a, b) for a, b in combinations(ranked, 2) if a != b]
    return sum(a > b for a, b in pairs) / len(pairs) if pairs else 0.0


def wkt(ranked: Sequence[float], k: int, weights: Sequence[float] | None = None) -> float:
    """Return the mean over all orders of the truth that break its ties."""
    n = len(ranked)
    indices = sorted(range(n), key=lambda i: -ranked[i])
    blocks = [list(b) for _, b in groupby(indices, key=lambda i: ranked[i])]
    values = []
    for blocks_order in product(*(permutations(b) for b in blocks)):
        truth = [i for block in blocks_order for i in block]
        value = 0.0
        for j, doc in enumerate(truth[:k], 1):
            above = sum(ranked[other] < ranked[doc] for other in range(doc))
            weight = gain(ranked[doc]) * discount(j) if weights is None else weights[j - 1]
            value += weight * above
        values.append(value)
    return sum(values) / len(values)


def top_mismatch(ranked: Sequence[float], k: int) -> float:
    best = sorted(ranked, reverse=True)
    return float(list(ranked[:k]) != best[:k])


def preference_sums(
    ranked: Sequence[float], k: int, weight: Callable[[int], float]
) -> tuple[float, float]:
    """Return the weights of the correct and of all preferences with a document in the first k."""
    correct = decided = 0.0
    for i, j in combinations(range(len(ranked)), 2):
        if i < k and ranked[i] != ranked[j]:
            decided += weight(i + 1)
            correct += weight(i + 1) * (ranked[i] > ranked[j])
    return correct, decided


def rbo(ranked: Ranked, pool: Pool, p: float, k: int, level: float = 1) -> float:
    """Return the compatibility: ties of the ideal order are broken in the order of the ranking.

    All depths up to k count, also those below the ends of the lists (Clarke et al. 2020: 1,000).
    """
    relevant_labels = sorted((label for label in pool if label >= level), reverse=True)
    run_labels = [label if is_relevant(label, level) else None for label in ranked]
    # The ideal list of documents: within a label, ranked documents first, then the others.
    ideal: list[object] = []
    for label, group in groupby(relevant_labels):
        positions = [i for i, overlap in enumerate(run_labels) if overlap == label]
        size = len(list(group))
        ideal += [*positions, *(("missing", label, i) for i in range(size - len(positions)))]
    overlap = ideal_overlap = 0.0
    for d in range(1, k + 1):
        shared = len(set(range(min(d, len(ranked)))) & set(ideal[:d]))
        overlap += p ** (d - 1) * shared / d
        ideal_overlap += p ** (d - 1) * min(d, len(ideal)) / d
    return overlap / ideal_overlap if ideal_overlap else 0.0


def orders(scores: Sequence[float]) -> list[list[int]]:
    """Return all orders of the documents that the scores allow."""
    by_score = sorted(range(len(scores)), key=lambda i: -scores[i])
    blocks = [list(b) for _, b in groupby(by_score, key=lambda i: scores[i])]
    return [
        [i for block in arrangement for i in block]
        for arrangement in product(*(permutations(b) for b in blocks))
    ]
