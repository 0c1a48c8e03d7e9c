"""Listwise losses of labels that are read once, as in batches of a training loop.

The kernels of `listwise` read levels that are prepared once per fit.  Where every call has other
labels, preparing them costs more than the loss: here both are one pass.  Query q has the rows
offsets[q]:offsets[q + 1].  With k > 0 only the first k ranks are sorted, in O(n + k log k) for most
lists: a heap holds the greatest k labels so far.

Of every query, the documents above the boundary are sorted.  The boundary is the label at rank k;
without k it is the lowest label, which is preferred to nothing.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.sorting import heap_sift, sort_down
from firstpage.core.types import Floats, Ints, Words

MAX_EXP_RANGE = 600.0  # of scores; above, sums of exponentials would have to be those of logarithms


@subroutine
def select_top(labels: Floats, lo: int, n: int, k: int, items: Ints, negated: Floats) -> None:
    """Write the rows of the greatest k labels, in descending order, to items[:k]; 0 < k <= n."""
    for i in range(lo, lo + n):
        negated[i] = -labels[i]
    for x in range(k):
        items[x] = lo + x
    for at in range(k // 2 - 1, -1, -1):
        heap_sift(items, negated, 0, at, k)
    for i in range(lo + k, lo + n):
        if labels[i] > labels[items[0]]:
            items[0] = i
            heap_sift(items, negated, 0, 0, k)
    for end in range(k - 1, 0, -1):
        items[0], items[end] = items[end], items[0]
        heap_sift(items, negated, 0, 0, end)


@subroutine
def count_above(labels: Floats, items: Ints, size: int, boundary: float) -> int:
    """Return how many of the sorted documents have a label above the boundary."""
    above = 0
    while above < size and labels[items[above]] > boundary:
        above += 1
    return above


@subroutine
def level_end(labels: Floats, items: Ints, start: int, size: int) -> int:
    """Return the end of the level that begins at the sorted document `start`."""
    end = start + 1
    while end < size and labels[items[end]] == labels[items[start]]:
        end += 1
    return end


@kernel
def plackett_luce(
    scores: Floats,
    labels: Floats,
    bits: Words,
    offsets: Ints,
    k: int,
    average: int,
    items: Ints,
    words: Words,
    floats: Floats,
    values: Floats,
    grad: Floats,
) -> int:
    """Write the negative log-likelihood of the order under the Plackett-Luce model.

    `bits` are the labels as words.  `items` has two rows and `words` two, as long as the longest
    query; `floats` is as long as the scores.  Returns 0, or 1 if the scores of a query are too far
    apart: then nothing is complete.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        values[q] = 0.0
        if n == 0:
            continue
        top, low, lowest = scores[lo], scores[lo], labels[lo]
        for i in range(lo, hi):
            top, low = max(top, scores[i]), min(low, scores[i])
            lowest = min(lowest, labels[i])
        if top - low > MAX_EXP_RANGE:
            return 1
        size, boundary = n, lowest
        if 0 < k < n:
            select_top(labels, lo, n, k, items[0], floats)
            size, boundary = k, labels[items[0, k - 1]]
        else:
            sort_down(labels, bits, lo, hi, items[0], words[0], words[1], items[1])
        above = count_above(labels, items[0], size, boundary)
        count, total, tied_score = 0, 0.0, 0.0
        for i in range(lo, hi):
            grad[i] = np.exp(scores[i] - top)
            if labels[i] <= boundary:
                total += grad[i]
                if labels[i] == boundary:
                    count += 1
                    tied_score += scores[i] - top
        ranked = 0.0  # the fraction of the documents at the boundary that are ranked
        value, rest = 0.0, 0.0
        if boundary > lowest:
            ranked = (size - above) / count
            value = ranked * (count * np.log(total) - tied_score)
            rest = ranked * count / total
        factor = 1.0
        if average == 1:
            factor = 1.0 / max(above + ranked * count, 1.0)
        end = above
        while end > 0:  # upward, level by level
            start = end
            while start > 0 and labels[items[0, start - 1]] == labels[items[0, end - 1]]:
                start -= 1
                total += grad[items[0, start]]
                value -= scores[items[0, start]] - top
            value += (end - start) * np.log(total)
            floats[lo + start] = (end - start) / total
            end = start
        reach, start = 0.0, 0
        while start < above:
            end = level_end(labels, items[0], start, above)
            reach += floats[lo + start]
            for x in range(start, end):
                grad[items[0, x]] = factor * (grad[items[0, x]] * reach - 1.0)
            start = end
        reach += rest
        for i in range(lo, hi):
            if labels[i] <= boundary:
                grad[i] = factor * (grad[i] * reach - (ranked if labels[i] == boundary else 0.0))
        values[q] = factor * value
    return 0


@subroutine
def label_relevance(labels: Floats, lo: int, n: int, k: int, items: Ints, out: Floats) -> None:
    """Write the labels, or the top-k labels if k > 0; there is at least one document.

    Top-k labels are k, k-1, .., 1, 0, .., 0, and equal labels share theirs.
    """
    if k == 0:
        for i in range(lo, lo + n):
            out[i] = labels[i]
        return
    size = min(k, n)
    select_top(labels, lo, n, size, items, out)
    boundary = labels[items[size - 1]]
    above = count_above(labels, items, size, boundary)
    count = 0
    for i in range(lo, lo + n):
        count += labels[i] == boundary
    remaining = float(k - above)
    after = max(remaining - count, 0.0)
    tied = (remaining * (remaining + 1.0) - after * (after + 1.0)) / (2.0 * max(count, 1))
    for i in range(lo, lo + n):
        out[i] = tied if labels[i] == boundary else 0.0
    start = 0
    while start < above:
        end = level_end(labels, items, start, above)
        for x in range(start, end):
            out[items[x]] = k - 0.5 * (start + end - 1)
        start = end


@subroutine
def label_weights(
    labels: Floats, lo: int, n: int, k: int, temperature: float, items: Ints, out: Floats
) -> None:
    """Write exp((label - greatest) / temperature), of top-k labels if k > 0."""
    label_relevance(labels, lo, n, k, items, out)
    greatest = out[lo]
    for i in range(lo, lo + n):
        greatest = max(greatest, out[i])
    of_zero = np.exp(-greatest / temperature)
    for i in range(lo, lo + n):
        out[i] = of_zero if out[i] == 0.0 else np.exp((out[i] - greatest) / temperature)


@subroutine
def list_softmax_cross_entropy(
    scores: Floats,
    labels: Floats,
    lo: int,
    n: int,
    k: int,
    temperature: float,
    factor: float,
    items: Ints,
    target: Floats,
    exps: Floats,
    grad: Floats,
) -> float:
    """Write the gradient of one list times a factor; return the value.

    `exps` is workspace, and may be `grad`.
    """
    label_weights(labels, lo, n, k, temperature, items, target)
    top, label_sum = np.float64(scores[lo]), 0.0
    for i in range(lo, lo + n):
        top = max(top, np.float64(scores[i]))
        label_sum += labels[i]
    total, label_total, inner = 0.0, 0.0, 0.0
    for i in range(lo, lo + n):
        exps[i] = np.exp(scores[i] - top)
        total += exps[i]
        label_total += target[i]
        inner += target[i] * (scores[i] - top)
    for i in range(lo, lo + n):
        grad[i] = factor * (exps[i] / total - target[i] / label_total)
    return np.log(total) - inner / label_total + 0.0 * label_sum


@kernel
def softmax_cross_entropy(
    scores: Floats,
    labels: Floats,
    offsets: Ints,
    k: int,
    temperature: float,
    items: Ints,
    target: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Write minus the sum of softmax(labels / temperature) * log softmax(scores).

    `items` is as long as the longest query, `target` as the scores.
    """
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        values[q] = 0.0
        if n > 0:
            values[q] = list_softmax_cross_entropy(
                scores, labels, lo, n, k, temperature, 1.0, items, target, grad, grad
            )


@kernel
def softmax_cross_entropy_of_rows(
    scores: Floats,
    labels: Floats,
    k: int,
    temperature: float,
    factor: float,
    items: Ints,
    rows: Floats,
    grad: Floats,
) -> float:
    """Return the sum over the rows of two-dimensional scores; write its gradient.

    Both are multiplied by a factor.  Scores and labels may be float32.  `items` and the two `rows`
    are workspace, as long as a row of scores.
    """
    total = 0.0
    for q in range(scores.shape[0]):
        total += list_softmax_cross_entropy(
            scores[q],
            labels[q],
            0,
            scores.shape[1],
            k,
            temperature,
            factor,
            items,
            rows[0],
            rows[1],
            grad[q],
        )
    return factor * total


@kernel
def cosine(
    scores: Floats,
    labels: Floats,
    offsets: Ints,
    k: int,
    floor: float,
    items: Ints,
    target: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Write (1 - cosine of scores and labels) / 2; norms of scores are at least `floor`.

    `items` is as long as the longest query, `target` as the scores.  Vectors are divided by their
    greatest number before they are squared: nothing overflows.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        values[q] = 0.0
        if lo == hi:
            continue
        label_relevance(labels, lo, hi - lo, k, items, target)
        largest, max_score = 0.0, 0.0
        for i in range(lo, hi):
            largest, max_score = max(largest, abs(target[i])), max(max_score, abs(scores[i]))
            grad[i] = 0.0
        if largest == 0.0:
            continue
        scale = max_score if max_score > 0.0 else 1.0
        label_square, square, inner = 0.0, 0.0, 0.0
        for i in range(lo, hi):
            label, score = target[i] / largest, scores[i] / scale
            label_square += label * label
            square += score * score
            inner += label * score
        label_norm = np.sqrt(label_square)
        norm = max(np.sqrt(square) * scale, floor)
        cosine_value = inner / label_norm * (scale / norm)
        radial = cosine_value if norm > floor else 0.0  # below the floor the loss is linear
        values[q] = 0.5 * (1.0 - cosine_value)
        for i in range(lo, hi):
            unit = target[i] / largest / label_norm
            grad[i] = -0.5 * (unit - radial * (scores[i] / norm)) / norm


@kernel
def squared_error(
    scores: Floats,
    labels: Floats,
    offsets: Ints,
    k: int,
    average: int,
    items: Ints,
    target: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Write half the squared differences of scores and labels: their mean, or their sum.

    `items` is as long as the longest query, `target` as the scores.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        values[q] = 0.0
        if lo == hi:
            continue
        label_relevance(labels, lo, hi - lo, k, items, target)
        factor = 1.0 / (hi - lo) if average == 1 else 1.0
        total = 0.0
        for i in range(lo, hi):
            error = scores[i] - target[i]
            total += error * error
            grad[i] = factor * error
        values[q] = 0.5 * factor * total
