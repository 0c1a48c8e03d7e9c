"""Measures of binary relevance: a document counts if its label is at least `level`.

Arguments as in `gain`: ranked labels, tie blocks, offsets.  Ties are exact expectations.
"""

from __future__ import annotations

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.types import Floats, Ints


@subroutine
def relevant_in(labels: Floats, lo: int, hi: int, level: float) -> int:
    count = 0
    for i in range(lo, hi):
        if labels[i] >= level:
            count += 1
    return count


@kernel
def count_relevant(labels: Floats, offsets: Ints, level: float, out: Floats) -> None:
    """Number of labels of at least `level` in each query."""
    for q in range(offsets.size - 1):
        out[q] = relevant_in(labels, offsets[q], offsets[q + 1], level)


@kernel
def hits(
    labels: Floats, block: Ints, offsets: Ints, level: float, cutoffs: Ints, out: Floats
) -> None:
    """Expected number of relevant documents among each query's first cutoffs[q]."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoffs[q])
        total = 0.0
        i = lo
        while i < end:
            size = block[i]
            found = relevant_in(labels, i, i + size, level)
            if i + size <= end:
                total += found
            else:
                total += found * (end - i) / size
            i += size
        out[q] = total


@kernel
def average_precision(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    level: float,
    cutoff: int,
    relevant: Floats,
    out: Floats,
) -> None:
    """Sum of the precision at every relevant document, divided by relevant[q] (0: value 0).

    In a tie of m documents with r relevant, place t is relevant with chance r/m and then
    has (t-1)(r-1)/(m-1) relevant ones before it in the tie, on average.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        before, total = 0.0, 0.0
        i = lo
        while i < end and before < relevant[q]:
            size = block[i]
            if size == 1:
                if labels[i] >= level:
                    before += 1.0
                    total += before / (i - lo + 1)
            else:
                found = relevant_in(labels, i, i + size, level)
                if found > 0:
                    slope = (found - 1.0) / (size - 1.0)
                    for t in range(min(size, end - i)):
                        total += found / size * (before + 1.0 + t * slope) / (i - lo + t + 1)
                    before += found
            i += size
        out[q] = total / relevant[q] if relevant[q] > 0.0 else 0.0


@kernel
def first_hit(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    level: float,
    cutoff: int,
    reciprocal: Floats,
    success: Floats,
) -> None:
    """Expected 1/place of the first relevant document, and the chance that there is one."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        value, none_yet = 0.0, 1.0
        i = lo
        while i < end and none_yet > 0.0:
            size = block[i]
            found = relevant_in(labels, i, i + size, level)
            if found > 0:
                for t in range(min(size - found + 1, end - i)):
                    here = found / (size - t)
                    value += none_yet * here / (i - lo + t + 1)
                    none_yet *= 1.0 - here
                    if t == size - found:
                        none_yet = 0.0
            i += size
        reciprocal[q] = value
        success[q] = 1.0 - none_yet


@kernel
def bpref(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    level: float,
    relevant: Floats,
    nonrelevant: Floats,
    out: Floats,
) -> None:
    """Binary preference: how few judged non-relevant documents stand above relevant ones.

    A relevant document counts 1 - min(above, R) / min(R, N); unjudged ones are not there.
    In a tie with b non-relevant documents, `above` grows by 0..b, each equally likely.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        most = min(relevant[q], nonrelevant[q])
        above, total = 0, 0.0
        i = lo
        while i < hi:
            size = block[i]
            good, bad = 0, 0
            for j in range(i, i + size):
                if labels[j] >= level:
                    good += 1
                elif labels[j] == labels[j]:
                    bad += 1
            if good > 0:
                lost = 0.0
                for extra in range(bad + 1):
                    lost += min(float(above + extra), relevant[q])
                if most > 0.0:
                    total += good * (1.0 - lost / (bad + 1) / most)
                else:
                    total += good
            above += bad
            i += size
        out[q] = total / relevant[q] if relevant[q] > 0.0 else 0.0
