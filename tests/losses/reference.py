"""Every loss again, one query at a time, as its formula reads; slow and plain."""

from __future__ import annotations

import itertools
from math import exp, inf, log, log1p

import numpy as np


def chances(y: np.ndarray, k: int | None, w: np.ndarray) -> np.ndarray:
    """The chance of every document to be among the first k places, equals sharing."""
    if k is None:
        return np.ones(len(y))
    out = np.zeros(len(y))
    for i in range(len(y)):
        above, same = w[y > y[i]].sum(), w[y == y[i]].sum()
        out[i] = min(max(k - above, 0.0), same) / same if same > 0 else 0.0
    return out


def top_labels(y: np.ndarray, k: int | None, w: np.ndarray) -> np.ndarray:
    """k + 1 - place, at least 0, averaged over the places that equals share."""
    if k is None:
        return y
    out = np.zeros(len(y))
    for i in range(len(y)):
        above, same = w[y > y[i]].sum(), w[y == y[i]].sum()
        if same > 0:
            steps = np.linspace(above, above + same, round(same) + 1)[:-1]
            out[i] = np.mean([max(k - place, 0) for place in steps])
    return out


def pairs(y, k, w, which):
    """(better, worse, weight) of every pair."""
    inside = chances(y, k, w)
    if which == "cross" and k is None:
        y, inside = (y > 0).astype(float), np.ones(len(y))
    for u, v in itertools.permutations(range(len(y)), 2):
        if y[u] > y[v]:
            lower = 1.0 - inside[v] if which == "cross" and k is not None else 1.0
            yield u, v, inside[u] * lower * w[u] * w[v]


def pairwise(s, y, w, phi, k=None, which="all", average=False):
    found = list(pairs(y, k, w, which))
    total = sum(weight for *_, weight in found)
    value = sum(weight * phi(s[u] - s[v]) for u, v, weight in found if weight)
    return value / total if average and total else value


def logistic(t):
    return log1p(exp(-t)) if t > 0 else -t + log1p(exp(t))


def plackett_luce(s, y, w, k=None, average=False):
    inside = chances(y, k, w)
    heavy = y[w > 0]
    lowest = heavy.min() if len(heavy) else inf
    value, places = 0.0, 0.0
    for i in range(len(y)):
        if y[i] > lowest and w[i] * inside[i] > 0:
            left = y <= y[i]
            top = s[left].max()
            rest = top + log(sum(w[left] * np.exp(s[left] - top)))
            value += w[i] * inside[i] * (rest - s[i])
            places += w[i] * inside[i]
    return value / places if average and places else value


def softmax(x, w):
    e = w * np.exp(x - x.max())
    return e / e.sum()


def cross_entropy(s, y, w, k=None, temperature=1.0):
    if not w.sum():
        return 0.0
    p = softmax(top_labels(y, k, w) / temperature, w)
    top = s[w > 0].max()
    return float(-(p * (s - top - log((w * np.exp(s - top)).sum()))).sum())


def cosine(s, y, w, k=None):
    psi = top_labels(y, k, w)
    if not (w * psi**2).sum():
        return 0.0
    return 0.5 * (1 - (w * psi * s).sum() / np.sqrt((w * psi**2).sum() * (w * s**2).sum()))


def squared(s, y, w, k=None, average=True):
    value = 0.5 * (w * (s - top_labels(y, k, w)) ** 2).sum()
    return value / w.sum() if average and w.sum() else value


def luce(s, order):
    """log P(order)."""
    z = s[list(order)]
    return sum(z[i] - log(np.exp(z[i:]).sum()) for i in range(len(z)))


def permutations(s, y, w, k=None, temperature=1.0):
    psi = top_labels(y, k, w) / temperature
    return -sum(exp(luce(psi, o)) * luce(s, o) for o in itertools.permutations(range(len(s))))


def focused_net(s, y, w, k, beta):
    """On strict top-k truths, as SPEC 3.7 has it."""
    order = np.argsort(-y, kind="stable")
    top, rest = order[:k], order[k:]
    target = np.arange(len(top), 0, -1.0)
    listed = 0.0
    if len(top) > 1:
        orders = list(itertools.permutations(range(len(top))))
        entropy = -sum(exp(luce(target, o)) * luce(target, o) for o in orders)
        value = -sum(exp(luce(target, o)) * luce(s[top], o) for o in orders)
        listed = (value - entropy) / (log(len(orders)) - entropy)
    cross = [logistic(s[u] - s[v]) for u in top for v in rest]
    return beta * listed + (1 - beta) * (np.mean(cross) / log(2) if cross else 0.0)
