"""The most violated ranking under average precision (Yue et al. 2007), exactly.

Relevant and other documents stand in the order of their scores; what is open is how they
interleave.  The j-th other document gains, by going above relevant i, i+1, .. R, a sum with a
closed form in harmonic numbers.  Whatever j, what it gains at each step falls with j: so the best
places are monotone, and halving finds all of them in O((R + N) log N).
"""

from __future__ import annotations

from firstpage.kernels.compiler.decorators import kernel, part
from firstpage.kernels.sorting import sort_down
from firstpage.types import Array, Floats, Ints, Words


@part
def step_gain(
    j: int, i: int, R: int, N: int, harmonic: Floats, tail: Floats, score: float
) -> float:
    """What the j-th other document (from 1) gains above relevant i .. R; i = R + 1: nothing.

    `harmonic[x]` is 1 + 1/2 + .. + 1/x, and `tail[i]` the summed score of relevant i .. R.
    """
    mine = j * (harmonic[j + R] - harmonic[j + i - 1])
    without = (j - 1) * (harmonic[j + R - 1] - harmonic[j + i - 2]) if j > 1 else 0.0
    moved = tail[i] - (R - i + 1) * score
    return (mine - without) / R - 2.0 * moved / (R * N)


@part
def best_places(
    R: int, N: int, harmonic: Floats, tail: Floats, others: Floats, stack: Ints, place: Ints
) -> None:
    """place[j - 1]: the first relevant document (from 1) that the j-th other one goes above."""
    stack[0], stack[1], stack[2], stack[3] = 1, N, 1, R + 1
    depth = 1
    while depth > 0:
        depth -= 1
        at = 4 * depth
        low, high, first, last = stack[at], stack[at + 1], stack[at + 2], stack[at + 3]
        j = (low + high) // 2
        best, found = -1.0, last
        for i in range(last, first - 1, -1):
            gain = step_gain(j, i, R, N, harmonic, tail, others[j - 1])
            if i == last or gain > best:
                best, found = gain, i
        place[j - 1] = found
        if j > low:
            stack[at], stack[at + 1], stack[at + 2], stack[at + 3] = low, j - 1, first, found
            depth += 1
            at += 4
        if j < high:
            stack[at], stack[at + 1], stack[at + 2], stack[at + 3] = j + 1, high, found, last
            depth += 1


@part
def average_precision_cut(
    z: Floats,
    items: Ints,
    size: int,
    relevant: int,
    harmonic: Floats,
    tail: Floats,
    others: Floats,
    who: Ints,
    stack: Ints,
    place: Ints,
    share: float,
    slope: Floats,
) -> float:
    """One cut: the first `relevant` of `size` documents, in true order, are relevant.

    `items` are all of them by falling score.  Adds share * slope, returns share * value.
    """
    R, N = relevant, size - relevant
    rel, non = 0, 0
    for at in range(size):
        if items[at] < relevant:
            who[rel] = items[at]
            rel += 1
        else:
            who[R + non] = items[at]
            others[non] = z[items[at]]
            non += 1
    tail[R + 1] = 0.0
    for i in range(R, 0, -1):
        tail[i] = tail[i + 1] + z[who[i - 1]]
    best_places(R, N, harmonic, tail, others, stack, place)
    value = 1.0
    above = 0  # others above the i-th relevant document
    for i in range(1, R + 1):
        while above < N and place[above] <= i:
            above += 1
        value -= float(i) / float(i + above) / R
        value -= 2.0 * above * z[who[i - 1]] / (R * N)
        slope[who[i - 1]] -= share * 2.0 * above / (R * N)
    for j in range(N):
        beaten = R - place[j] + 1
        value += 2.0 * beaten * others[j] / (R * N)
        slope[who[R + j]] += share * 2.0 * beaten / (R * N)
    return share * max(value, 0.0)


@kernel
def average_precision_hinge(
    scores: Floats,
    order: Array,
    offsets: Ints,
    firsts: Ints,
    levels: Ints,
    end: Ints,
    harmonic: Floats,
    z: Floats,
    bits: Words,
    tail: Floats,
    others: Floats,
    slope: Floats,
    items: Ints,
    who: Ints,
    stack: Ints,
    place: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    values: Floats,
    grad: Floats,
) -> None:
    """max over rankings of 1 - AP + the score it has above the true one's; the mean over cuts.

    Of each query the first `levels` levels take part; every boundary between two of them is a cut,
    relevant above and not below.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        for i in range(lo, hi):
            grad[i] = 0.0
        values[q] = 0.0
        count = levels[q]
        if count < 2:
            continue
        size = end[firsts[q] + count - 1]
        shift = scores[lo + order[lo]]
        for i in range(size):
            z[i] = scores[lo + order[lo + i]] - shift
            slope[i] = 0.0
        sort_down(z, bits, 0, size, items, words, spare_words, spare)
        share = 1.0 / (count - 1)
        for cut in range(count - 1):
            values[q] += average_precision_cut(
                z, items, size, end[firsts[q] + cut], harmonic, tail, others, who, stack, place,
                share, slope,
            )  # fmt: skip
        for i in range(size):
            grad[lo + order[lo + i]] = slope[i]
