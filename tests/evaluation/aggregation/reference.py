"""Plain Python for every method: lists and dictionaries of one query, no arrays.

A ballot is a list of document numbers, best first; documents 0..n-1 are in base order.  `ignore`
omits votes on documents that a ballot does not list.
"""

from __future__ import annotations

from itertools import permutations

TOLERANCE = 1e-12


def votes(ballots, weights, n, top=None, limit=None, ignore=False):
    """Return a table: [x][y] is the weight of the ballots that put x before y.

    Only documents in the first `top` positions win, only those in the first `limit` lose.
    """
    table = [[0.0] * n for _ in range(n)]
    for ballot, weight in zip(ballots, weights, strict=True):
        rest = [] if ignore else [d for d in range(n) if d not in ballot]
        for i, x in enumerate(ballot[:top]):
            for j, y in enumerate(ballot):
                if i < j and (limit is None or j < limit):
                    table[x][y] += weight
            if limit is None:
                for y in rest:
                    table[x][y] += weight
    return table


def majority_sort(base, m):
    """Return the quick sort whose pivot is the first document of each list in base order."""
    if len(base) < 2:
        return list(base)
    pivot, rest = base[0], base[1:]
    before = [x for x in rest if m[x][pivot] - m[pivot][x] > TOLERANCE]
    after = [x for x in rest if x not in before]
    return [*majority_sort(before, m), pivot, *majority_sort(after, m)]


def supervised_kemeny(ballots, weights, n, credit="extended", k=None, ignore=False):
    k = (n + 1) // 2 if k is None else min(k, n)
    limit = k if credit == "paper" else None
    return majority_sort(list(range(n)), votes(ballots, weights, n, k, limit, ignore))


def kemeny(ballots, weights, n, ignore=False):
    return majority_sort(list(range(n)), votes(ballots, weights, n, ignore=ignore))


def cost(order, m):
    return sum(m[y][x] for i, x in enumerate(order) for y in order[i + 1 :])


def cheapest(m):
    return min(cost(order, m) for order in permutations(range(len(m))))


def bound(m):
    n = len(m)
    return sum(min(m[x][y], m[y][x]) for x in range(n) for y in range(x))


def by_points(points):
    return sorted(range(len(points)), key=lambda x: (-round(points[x], 9), x))


def borda(ballots, weights, n, ignore=False):
    m = votes(ballots, weights, n, ignore=ignore)
    return by_points([sum(m[x]) - sum(row[x] for row in m) for x in range(n)])


def rrf(ballots, weights, n, c=60):
    points = [0.0] * n
    for ballot, weight in zip(ballots, weights, strict=True):
        for rank, x in enumerate(ballot, 1):
            points[x] += weight / (c + rank)
    return sorted(range(n), key=lambda x: (-round(points[x], 12), x))


def duel(m, x, y):
    lead = m[x][y] - m[y][x]
    return (lead > TOLERANCE) - (lead < -TOLERANCE)


def copeland(ballots, weights, n, ignore=False):
    m = votes(ballots, weights, n, ignore=ignore)
    return by_points([sum(duel(m, x, y) for y in range(n)) for x in range(n)])


def local_kemeny(order, m):
    order = list(order)
    for i in range(1, len(order)):
        j = i
        while j and duel(m, order[j], order[j - 1]) > 0:
            order[j], order[j - 1] = order[j - 1], order[j]
            j -= 1
    return order


def insertions(order):
    """Yield all orders that differ by moving one document."""
    for i, x in enumerate(order):
        rest = [*order[:i], *order[i + 1 :]]
        for j in range(len(order)):
            yield [*rest[:j], x, *rest[j:]]


def partial_votes(ballots, weights, n, k=None, c=60):
    """Return a table of votes that are weighted by rank in lists without some candidates."""
    table = [[0.0] * n for _ in range(n)]
    for ballot, weight in zip(ballots, weights, strict=True):
        complete = len(ballot) == n
        top = min(k, n) if k is not None else (n + 1) // 2 if complete else n
        discount = [(c + 1) / (c + 1 + i) for i in range(n)]
        for i, x in enumerate(ballot[:top]):
            for y in range(n):
                j = ballot.index(y) if y in ballot else None
                if y == x or (j is not None and j < i):
                    continue
                if complete:
                    vote = 1.0
                elif j is None:
                    vote = discount[i]
                else:
                    vote = max(discount[i] - discount[j], discount[i] / len(ballots))
                table[x][y] += weight * vote
    return table
