"""Plain references: every measure of one query in one strict order, as the books write it.

`ranked` are the labels down the list, None where a document is unjudged; `pool` are the labels
of all judged documents.
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


def discount(place: int) -> float:
    return 1 / log2(1 + place)


def dcg(ranked: Ranked, k: int, g: Callable[[float | None], float] = gain) -> float:
    return sum(g(label) * discount(j) for j, label in enumerate(ranked[:k], 1))


def ndcg(ranked: Ranked, pool: Pool, k: int, g: Callable[[float | None], float] = gain) -> float:
    best = dcg(sorted(pool, reverse=True), k, g)
    return dcg(ranked, k, g) / best if best else 0.0


def mean_ndcg(ranked: Ranked, pool: Pool) -> float:
    return sum(ndcg(ranked, pool, k) for k in range(1, len(ranked) + 1)) / len(ranked)


def err(ranked: Ranked, top: float, k: int) -> float:
    value, reach = 0.0, 1.0
    for place, label in enumerate(ranked[:k], 1):
        stop = gain(label) / 2**top
        value += reach * stop / place
        reach *= 1 - stop
    return value


def is_relevant(label: float | None, level: float) -> bool:
    return label is not None and label >= level


def hits(ranked: Ranked, k: int, level: float = 1) -> int:
    return sum(is_relevant(label, level) for label in ranked[:k])


def relevant(pool: Pool, level: float = 1) -> int:
    return sum(label >= level for label in pool)


def ap(ranked: Ranked, pool: Pool, k: int, level: float = 1) -> float:
    found = [
        hits(ranked, j, level) / j
        for j in range(1, min(k, len(ranked)) + 1)
        if is_relevant(ranked[j - 1], level)
    ]
    return sum(found) / relevant(pool, level) if relevant(pool, level) else 0.0


def rr(ranked: Ranked, k: int, level: float = 1) -> float:
    for place, label in enumerate(ranked[:k], 1):
        if is_relevant(label, level):
            return 1 / place
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


# --- measures of order, over judged documents only


def pair_accuracy(ranked: Sequence[float]) -> float:
    pairs = [(a, b) for a, b in combinations(ranked, 2) if a != b]
    return sum(a > b for a, b in pairs) / len(pairs) if pairs else 0.0


def wkt(ranked: Sequence[float], k: int) -> float:
    """Mean over the orders of the truth that break its ties, as the formula wants one."""
    n = len(ranked)
    indices = sorted(range(n), key=lambda i: -ranked[i])
    blocks = [list(b) for _, b in groupby(indices, key=lambda i: ranked[i])]
    values = []
    for parts in product(*(permutations(b) for b in blocks)):
        truth = [i for part in parts for i in part]
        value = 0.0
        for j, doc in enumerate(truth[:k], 1):
            above = sum(ranked[other] < ranked[doc] for other in range(doc))
            value += gain(ranked[doc]) * discount(j) * above
        values.append(value)
    return sum(values) / len(values)


def top_wrong(ranked: Sequence[float], k: int) -> float:
    best = sorted(ranked, reverse=True)
    return float(list(ranked[:k]) != best[:k])


def preference_sums(
    ranked: Sequence[float], k: int, weight: Callable[[int], float]
) -> tuple[float, float]:
    """(kept, decided) preferences among pairs with one document in the first k."""
    kept = decided = 0.0
    for i, j in combinations(range(len(ranked)), 2):
        if i < k and ranked[i] != ranked[j]:
            decided += weight(i + 1)
            kept += weight(i + 1) * (ranked[i] > ranked[j])
    return kept, decided


def rbo(ranked: Ranked, pool: Pool, p: float, k: int, level: float = 1) -> float:
    """Compatibility: the ideal breaks its ties in the order of the ranking."""
    wanted = sorted((label for label in pool if label >= level), reverse=True)
    found = [label if is_relevant(label, level) else None for label in ranked]
    # An ideal list of documents: ranked ones first inside a label, then the ones not ranked.
    ideal: list[object] = []
    for label, group in groupby(wanted):
        places = [i for i, got in enumerate(found) if got == label]
        size = len(list(group))
        ideal += [*places, *(("missing", label, i) for i in range(size - len(places)))]
    depth = min(max(len(ranked), len(ideal)), k)
    got = most = 0.0
    for d in range(1, depth + 1):
        shared = len(set(range(min(d, len(ranked)))) & set(ideal[:d]))
        got += p ** (d - 1) * shared / d
        most += p ** (d - 1) * min(d, len(ideal)) / d
    return got / most if most else 0.0


def orders(scores: Sequence[float]) -> list[list[int]]:
    """All orders of the documents that the scores allow."""
    by_score = sorted(range(len(scores)), key=lambda i: -scores[i])
    blocks = [list(b) for _, b in groupby(by_score, key=lambda i: scores[i])]
    return [
        [i for part in parts for i in part] for parts in product(*(permutations(b) for b in blocks))
    ]
