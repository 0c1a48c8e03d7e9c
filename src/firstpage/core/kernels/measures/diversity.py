"""Measures of novelty and diversity: a document is relevant for some of a query's subtopics.

`documents` holds the row of each ranked document in the judgments, -1 where it is unjudged.  Row d
is relevant for the subtopics subtopics[starts[d]:starts[d + 1]].  Values are exact expectations
over the orders of ties.
"""

from __future__ import annotations

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Floats, Ints


@subroutine
def count_subtopics(
    documents: Ints, lo: int, hi: int, starts: Ints, subtopics: Ints, counts: Ints
) -> None:
    """Write the number of documents[lo:hi] that are relevant for each subtopic."""
    for s in range(counts.size):
        counts[s] = 0
    for i in range(lo, hi):
        d = documents[i]
        if d >= 0:
            for j in range(starts[d], starts[d + 1]):
                counts[subtopics[j]] += 1


@subroutine
def tie_gain(
    relevant: int,
    size: int,
    depth: int,
    alpha: float,
    discount: Floats,
    first: int,
    pass_means: Floats,
) -> float:
    """Return the expected discounted gain of one subtopic in the first `depth` ranks of a tie.

    The gain of a relevant document is (1 - alpha) to the number of relevant ones above it in the
    tie.  pass_means[t] is the mean of (1 - alpha)^(relevant documents) over all choices of t
    documents.
    """
    total = 0.0
    if alpha == 0.0:
        for t in range(depth):
            total += discount[first + t] * relevant / size
        return total
    for t in range(depth + 1):
        pass_means[t] = 0.0
    pass_means[0] = 1.0
    for count in range(1, size + 1):
        a = 1.0 - alpha if count <= relevant else 1.0
        for t in range(min(count, depth), 0, -1):
            fraction = t / count  # of the choices of t documents that contain the new one
            pass_means[t] = (1.0 - fraction) * pass_means[t] + fraction * a * pass_means[t - 1]
    for t in range(depth):
        total += discount[first + t] * (pass_means[t] - pass_means[t + 1]) / alpha
    return total


@kernel
def novelty_gain(
    documents: Ints,
    tie_sizes: Ints,
    offsets: Ints,
    starts: Ints,
    subtopics: Ints,
    alpha: float,
    discount: Floats,
    cutoff: int,
    counts: Ints,
    weights: Floats,
    pass_means: Floats,
    out: Floats,
) -> None:
    """Write the sum over ranks of the discount times the gain of each relevant subtopic.

    The gain of a subtopic is (1 - alpha) to the number of documents above that are relevant for
    it.  `counts`, `weights` (a number per subtopic) and `pass_means` are workspace.
    """
    for q in range(offsets.size - 1):
        lo, end = offsets[q], min(offsets[q + 1], offsets[q] + cutoff)
        for s in range(weights.size):
            weights[s] = 1.0
        total = 0.0
        i = lo
        while i < end:
            size = tie_sizes[i]
            if size == 1:
                d = documents[i]
                if d >= 0:
                    for j in range(starts[d], starts[d + 1]):
                        total += discount[i - lo] * weights[subtopics[j]]
                        weights[subtopics[j]] *= 1.0 - alpha
            else:
                depth = min(size, end - i)
                count_subtopics(documents, i, i + size, starts, subtopics, counts)
                for s in range(counts.size):
                    if counts[s] > 0:
                        total += weights[s] * tie_gain(
                            relevant=counts[s],
                            size=size,
                            depth=depth,
                            alpha=alpha,
                            discount=discount,
                            first=i - lo,
                            pass_means=pass_means,
                        )
                        weights[s] *= (1.0 - alpha) ** counts[s]
            i += size
        out[q] = total


@kernel
def ideal_novelty_gain(
    offsets: Ints,
    order: Ints,
    starts: Ints,
    subtopics: Ints,
    alpha: float,
    discount: Floats,
    cutoff: int,
    used: Ints,
    weights: Floats,
    out: Floats,
) -> None:
    """Write the gain of the list that takes the document of greatest gain at each rank.

    Of equal gains, the first document in `order` is taken.  `used` (a number per judged document)
    and `weights` are workspace.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        for s in range(weights.size):
            weights[s] = 1.0
        for i in range(lo, hi):
            used[order[i]] = 0
        total = 0.0
        for rank in range(min(hi - lo, cutoff)):
            best, best_gain = -1, 0.0
            for i in range(lo, hi):
                d = order[i]
                if used[d] == 0:
                    gain = 0.0
                    for j in range(starts[d], starts[d + 1]):
                        gain += weights[subtopics[j]]
                    if gain > best_gain:
                        best, best_gain = d, gain
            if best < 0:
                break
            used[best] = 1
            for j in range(starts[best], starts[best + 1]):
                weights[subtopics[j]] *= 1.0 - alpha
            total += discount[rank] * best_gain
        out[q] = total


@kernel
def subtopic_average_precision(
    documents: Ints,
    tie_sizes: Ints,
    offsets: Ints,
    starts: Ints,
    subtopics: Ints,
    relevant: Ints,
    counts: Ints,
    before: Floats,
    out: Floats,
) -> None:
    """Write the average precision, summed over the subtopics.

    relevant[q, s] is the number of judged documents that are relevant for subtopic s; `counts` and
    `before` (a number per subtopic) are workspace.
    """
    for q in range(offsets.size - 1):
        lo = offsets[q]
        for s in range(before.size):
            before[s] = 0.0
        total = 0.0
        i = lo
        while i < offsets[q + 1]:
            size = tie_sizes[i]
            count_subtopics(documents, i, i + size, starts, subtopics, counts)
            for s in range(counts.size):
                r = counts[s]
                if r > 0:
                    step = (r - 1.0) / (size - 1.0) if size > 1 else 0.0
                    for k in range(size):
                        precision = (before[s] + 1.0 + k * step) / (i - lo + k + 1)
                        total += r / size * precision / relevant[q, s]
                    before[s] += r
            i += size
        out[q] = total
