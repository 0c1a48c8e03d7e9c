"""Reference implementations of all losses: one query at a time, by their formulas, slow."""

from __future__ import annotations

import itertools
from math import exp, inf, log, log1p

import numpy as np


def top_probabilities(y: np.ndarray, k: int | None, w: np.ndarray) -> np.ndarray:
    """Return the probability of every document to be among the first k, averaged over ties."""
    if k is None:
        return np.ones(len(y))
    out = np.zeros(len(y))
    for i in range(len(y)):
        above, same = w[y > y[i]].sum(), w[y == y[i]].sum()
        out[i] = min(max(k - above, 0.0), same) / same if same > 0 else 0.0
    return out


def top_labels(y: np.ndarray, k: int | None, w: np.ndarray) -> np.ndarray:
    """Return k + 1 - rank, at least 0, averaged over the ranks of ties."""
    if k is None:
        return y
    out = np.zeros(len(y))
    for i in range(len(y)):
        above, same = w[y > y[i]].sum(), w[y == y[i]].sum()
        if same > 0:
            steps = np.linspace(above, above + same, round(same) + 1)[:-1]
            out[i] = np.mean([max(k - rank, 0) for rank in steps])
    return out


def pairs(y, k, w, which):
    """Yield (better, worse, weight) of every pair."""
    inside = top_probabilities(y, k, w)
    if which == "cross" and k is None:
        y, inside = (y > 0).astype(float), np.ones(len(y))
    for u, v in itertools.permutations(range(len(y)), 2):
        if y[u] > y[v]:
            lower = 1.0 - inside[v] if which == "cross" and k is not None else 1.0
            yield u, v, inside[u] * lower * w[u] * w[v]


def pairwise(s, y, w, phi, k=None, which="all", average=False, label_margin=False):
    weighted = list(pairs(y, k, w, which))
    total = sum(weight for *_, weight in weighted)
    labels = top_labels(y, k, w)
    margin = {(u, v): labels[u] - labels[v] if label_margin else 1.0 for u, v, _ in weighted}
    value = sum(weight * phi(margin[u, v] * (s[u] - s[v])) for u, v, weight in weighted if weight)
    return value / total if average and total else value


def logistic(t):
    return log1p(exp(-t)) if t > 0 else -t + log1p(exp(t))


def plackett_luce(s, y, w, k=None, average=False):
    inside = top_probabilities(y, k, w)
    positive = y[w > 0]
    lowest = positive.min() if len(positive) else inf
    value, ranks = 0.0, 0.0
    for i in range(len(y)):
        if y[i] > lowest and w[i] * inside[i] > 0:
            remaining = y <= y[i]
            top = s[remaining].max()
            rest = top + log(sum(w[remaining] * np.exp(s[remaining] - top)))
            value += w[i] * inside[i] * (rest - s[i])
            ranks += w[i] * inside[i]
    return value / ranks if average and ranks else value


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
    """Return log P(order) under the Plackett-Luce model."""
    z = s[list(order)]
    return sum(z[i] - float(np.logaddexp.reduce(z[i:])) for i in range(len(z)))


def permutations(s, y, w, k=None, temperature=1.0):
    psi = top_labels(y, k, w) / temperature
    return -sum(exp(luce(psi, o)) * luce(s, o) for o in itertools.permutations(range(len(s))))


def focused_net(s, y, w, k, beta):
    """Return the loss of FocusedNet on strict top-k truths."""
    order = np.argsort(-y, kind="stable")
    top, rest = order[:k], order[k:]
    target = np.arange(len(top), 0, -1.0)
    list_loss = 0.0
    if len(top) > 1:
        orders = list(itertools.permutations(range(len(top))))
        entropy = -sum(exp(luce(target, o)) * luce(target, o) for o in orders)
        value = -sum(exp(luce(target, o)) * luce(s[top], o) for o in orders)
        list_loss = (value - entropy) / (log(len(orders)) - entropy)
    cross = [logistic(s[u] - s[v]) for u in top for v in rest]
    return beta * list_loss + (1 - beta) * (np.mean(cross) / log(2) if cross else 0.0)
