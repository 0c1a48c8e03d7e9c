"""Measures of binary relevance: a document is relevant if its label is at least `level`.

Most of these measures depend only on the ties that contain relevant documents.  Such a tie is a row
of `ties`: the number of documents above it, its size, and the number of its relevant documents; a
document without a tie is one of size 1.  Query q has the rows ends[q - 1]:ends[q], from the first
rank on.  They come from ranked labels (`ties_in_lists`) or, where few documents are relevant, from
scores in any order (`ties_by_counting`).  Values are exact expectations over the orders of ties.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Floats, Ints


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
def ties_in_lists(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    level: float,
    judged_only: int,
    ties: Ints,
    ends: Ints,
) -> None:
    """Write the ties of ranked lists that contain relevant documents.

    With `judged_only`, unjudged documents (NaN) are left out of the lists.
    """
    at = 0
    for q in range(offsets.size - 1):
        i, hi, above = offsets[q], offsets[q + 1], 0
        while i < hi:
            after = i + tie_sizes[i]
            relevant, counted = 0, 0
            for j in range(i, after):
                relevant += 1 if labels[j] >= level else 0
                counted += 1 if not judged_only or labels[j] == labels[j] else 0
            if relevant > 0:
                ties[at, 0], ties[at, 1], ties[at, 2] = above, counted, relevant
                at += 1
            above += counted
            i = after
        ends[q] = at


@kernel
def ties_by_counting(
    scores: Floats,
    labels: Floats,
    offsets: Ints,
    level: float,
    judged_only: int,
    relevant_scores: Floats,
    ties: Ints,
    ends: Ints,
) -> None:
    """Write the ties that contain relevant documents, without sorting the other documents.

    Each relevant score is compared with all scores.  `relevant_scores` is workspace, longer than
    the longest query.
    """
    at = 0
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        size = 0
        for i in range(lo, hi):
            relevant_scores[size] = scores[i]
            size += 1 if labels[i] >= level else 0
        for i in range(1, size):  # there are few: they are sorted by insertion
            score = relevant_scores[i]
            j = i - 1
            while j >= 0 and relevant_scores[j] < score:
                relevant_scores[j + 1] = relevant_scores[j]
                j -= 1
            relevant_scores[j + 1] = score
        i = 0
        while i < size:
            score, after = relevant_scores[i], i + 1
            while after < size and relevant_scores[after] == score:
                after += 1
            above, same = 0, 0
            for j in range(lo, hi):
                above += 1 if scores[j] > score else 0
                same += 1 if scores[j] == score else 0
            if judged_only:
                for j in range(lo, hi):
                    above -= 1 if (scores[j] > score) & (labels[j] != labels[j]) else 0
                    same -= 1 if (scores[j] == score) & (labels[j] != labels[j]) else 0
            ties[at, 0], ties[at, 1], ties[at, 2] = above, same, after - i
            at += 1
            i = after
        ends[q] = at


@kernel
def first_ties(
    scores: Floats,
    labels: Floats,
    offsets: Ints,
    level: float,
    listed: Ints,
    listed_ends: Ints,
    ties: Ints,
    ends: Ints,
) -> None:
    """Write the first tie of each query that contains a relevant document.

    `listed` are the ties of the first ranks.  Only a query that has none there is searched.
    """
    at, start = 0, 0
    for q in range(offsets.size - 1):
        if listed_ends[q] > start:
            for column in range(3):
                ties[at, column] = listed[start, column]
            at += 1
        else:
            best, relevant, above, same = -np.inf, 0, 0, 0
            for i in range(offsets[q], offsets[q + 1]):
                if labels[i] >= level:
                    best = max(best, scores[i])
            for i in range(offsets[q], offsets[q + 1]):
                relevant += 1 if (scores[i] == best) & (labels[i] >= level) else 0
                above += 1 if scores[i] > best else 0
                same += 1 if scores[i] == best else 0
            if relevant > 0:
                ties[at, 0], ties[at, 1], ties[at, 2] = above, same, relevant
                at += 1
        start = listed_ends[q]
        ends[q] = at


@kernel
def hits_in_ties(ties: Ints, ends: Ints, cutoffs: Ints, out: Floats) -> None:
    """Write the expected number of relevant documents in the first cutoffs[q] ranks."""
    at = 0
    for q in range(ends.size):
        total = 0.0
        for t in range(at, ends[q]):
            above, size, relevant = ties[t, 0], ties[t, 1], ties[t, 2]
            if above + size <= cutoffs[q]:
                total += relevant
            elif above < cutoffs[q]:
                total += relevant * (cutoffs[q] - above) / size
        out[q] = total
        at = ends[q]


@kernel
def average_precision(ties: Ints, ends: Ints, cutoff: int, relevant: Floats, out: Floats) -> None:
    """Write the sum of the precision at every relevant document, divided by relevant[q].

    The value is 0 where relevant[q] is 0.  In a tie of m documents with r relevant ones, position t
    is relevant with probability r/m and then has (t-1)(r-1)/(m-1) relevant ones before it in the
    tie, in expectation.
    """
    at = 0
    for q in range(ends.size):
        before, total = 0.0, 0.0
        for t in range(at, ends[q]):
            above, size, tied_relevant = ties[t, 0], ties[t, 1], ties[t, 2]
            if above >= cutoff:
                break
            if size == 1:
                before += 1.0
                total += before / (above + 1)
            else:
                increment = (tied_relevant - 1.0) / (size - 1.0)
                for k in range(min(size, cutoff - above)):
                    total += tied_relevant / size * (before + 1.0 + k * increment) / (above + k + 1)
                before += tied_relevant
        out[q] = total / relevant[q] if relevant[q] > 0.0 else 0.0
        at = ends[q]


@kernel
def first_hit(ties: Ints, ends: Ints, cutoff: int, reciprocal: Floats, success: Floats) -> None:
    """Write the expected 1/rank of the first relevant document, and the probability of one."""
    at = 0
    for q in range(ends.size):
        value, no_hit = 0.0, 1.0
        if at < ends[q]:
            above, size, relevant = ties[at, 0], ties[at, 1], ties[at, 2]
            for k in range(min(size - relevant + 1, cutoff - above)):
                hit = relevant / (size - k)
                value += no_hit * hit / (above + k + 1)
                no_hit *= 1.0 - hit
                if k == size - relevant:
                    no_hit = 0.0
        reciprocal[q] = value
        success[q] = 1.0 - no_hit
        at = ends[q]


@kernel
def bpref(ties: Ints, ends: Ints, relevant: Floats, nonrelevant: Floats, out: Floats) -> None:
    """Write the binary preference: few judged non-relevant documents above relevant ones.

    A relevant document contributes 1 - min(above, R) / min(R, N).  In a tie with b non-relevant
    documents, `above` grows by 0..b, each equally likely.  `ties` leave out unjudged documents.
    """
    at = 0
    for q in range(ends.size):
        norm = min(relevant[q], nonrelevant[q])
        before, total = 0, 0.0
        for t in range(at, ends[q]):
            tied_relevant = ties[t, 2]
            above, tied_nonrelevant = ties[t, 0] - before, ties[t, 1] - tied_relevant
            expected_above = 0.0
            for extra in range(tied_nonrelevant + 1):
                expected_above += min(float(above + extra), relevant[q])
            if norm > 0.0:
                total += tied_relevant * (1.0 - expected_above / (tied_nonrelevant + 1) / norm)
            else:
                total += tied_relevant
            before += tied_relevant
        out[q] = total / relevant[q] if relevant[q] > 0.0 else 0.0
        at = ends[q]
