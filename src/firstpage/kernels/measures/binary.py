"""Measures of binary relevance: a document is relevant if its label is at least `level`.

Common arguments are those of `graded`: ranked labels, sizes of ties, offsets.  Values are exact
expectations over the orders of ties.
"""

from __future__ import annotations

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.types import Floats, Ints


@subroutine
def relevant_in(labels: Floats, lo: int, hi: int, level: float) -> int:
    """Return the number of relevant labels in labels[lo:hi]."""
    count = 0
    for i in range(lo, hi):
        if labels[i] >= level:
            count += 1
    return count


@kernel
def count_relevant(labels: Floats, offsets: Ints, level: float, out: Floats) -> None:
    """Write the number of relevant labels of each query."""
    for q in range(offsets.size - 1):
        out[q] = relevant_in(labels, offsets[q], offsets[q + 1], level)


@kernel
def hits(
    labels: Floats, tie_sizes: Ints, offsets: Ints, level: float, cutoffs: Ints, out: Floats
) -> None:
    """Write the expected number of relevant documents in the first cutoffs[q] ranks."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoffs[q])
        total = 0.0
        i = lo
        while i < end:
            size = tie_sizes[i]
            relevant = relevant_in(labels, i, i + size, level)
            if i + size <= end:
                total += relevant
            else:
                total += relevant * (end - i) / size
            i += size
        out[q] = total


@kernel
def average_precision(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    level: float,
    cutoff: int,
    relevant: Floats,
    out: Floats,
) -> None:
    """Write the sum of the precision at every relevant document, divided by relevant[q].

    The value is 0 where relevant[q] is 0.  In a tie of m documents with r relevant ones, position t
    is relevant with probability r/m and then has (t-1)(r-1)/(m-1) relevant ones before it in the
    tie, in expectation.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        before, total = 0.0, 0.0
        i = lo
        while i < end and before < relevant[q]:
            size = tie_sizes[i]
            if size == 1:
                if labels[i] >= level:
                    before += 1.0
                    total += before / (i - lo + 1)
            else:
                tied_relevant = relevant_in(labels, i, i + size, level)
                if tied_relevant > 0:
                    increment = (tied_relevant - 1.0) / (size - 1.0)
                    for t in range(min(size, end - i)):
                        total += (
                            tied_relevant / size * (before + 1.0 + t * increment) / (i - lo + t + 1)
                        )
                    before += tied_relevant
            i += size
        out[q] = total / relevant[q] if relevant[q] > 0.0 else 0.0


@kernel
def first_hit(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    level: float,
    cutoff: int,
    reciprocal: Floats,
    success: Floats,
) -> None:
    """Write the expected 1/rank of the first relevant document, and the probability of one."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        value, no_hit = 0.0, 1.0
        i = lo
        while i < end and no_hit > 0.0:
            size = tie_sizes[i]
            tied_relevant = relevant_in(labels, i, i + size, level)
            if tied_relevant > 0:
                for t in range(min(size - tied_relevant + 1, end - i)):
                    hit = tied_relevant / (size - t)
                    value += no_hit * hit / (i - lo + t + 1)
                    no_hit *= 1.0 - hit
                    if t == size - tied_relevant:
                        no_hit = 0.0
            i += size
        reciprocal[q] = value
        success[q] = 1.0 - no_hit


@kernel
def bpref(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    level: float,
    relevant: Floats,
    nonrelevant: Floats,
    out: Floats,
) -> None:
    """Write the binary preference: few judged non-relevant documents above relevant ones.

    A relevant document contributes 1 - min(above, R) / min(R, N); unjudged ones are ignored.  In a
    tie with b non-relevant documents, `above` grows by 0..b, each equally likely.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        norm = min(relevant[q], nonrelevant[q])
        above, total = 0, 0.0
        i = lo
        while i < hi:
            size = tie_sizes[i]
            tied_relevant, tied_nonrelevant = 0, 0
            for j in range(i, i + size):
                if labels[j] >= level:
                    tied_relevant += 1
                elif labels[j] == labels[j]:
                    tied_nonrelevant += 1
            if tied_relevant > 0:
                expected_above = 0.0
                for extra in range(tied_nonrelevant + 1):
                    expected_above += min(float(above + extra), relevant[q])
                if norm > 0.0:
                    total += tied_relevant * (1.0 - expected_above / (tied_nonrelevant + 1) / norm)
                else:
                    total += tied_relevant
            above += tied_nonrelevant
            i += size
        out[q] = total / relevant[q] if relevant[q] > 0.0 else 0.0
