"""Click models: expected counts, probabilities of clicks, and simulation, over pages of results.

Page p has the impressions offsets[p]:offsets[p + 1], from top to bottom.  Two families cover all
models.  In table models an impression is clicked with probability a * table[rank, last], where
`last` is the rank of the last click above on the page (0: none).  In chain models a user examines
one impression after the other: an examined one is clicked with probability a, and the next one is
examined with a probability that depends on whether there was a click.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import inlined_subroutine, kernel, subroutine
from firstpage.core.kernels.hashing import STEP, mix
from firstpage.core.types import Array, Bools, Floats, Ints, Words

S11 = np.uint64(11)
UNIT = 2.0**-53  # random words have 53 bits as fractions
SMALL = 1e-200  # products of probabilities below this are moved to their logarithm
TINY = 1e-300


@kernel
def hash_pages(offsets: Ints, pair: Ints, rank: Array, clicked: Bools, out: Words) -> None:
    """Write a hash of the pairs, ranks and clicks of each page."""
    for p in range(offsets.size - 1):
        state = STEP
        for i in range(offsets[p], offsets[p + 1]):
            word = np.uint64(pair[i]) * STEP + np.uint64(rank[i]) * np.uint64(2)
            state = mix((state + STEP) ^ mix(word + np.uint64(clicked[i])))
        out[p] = state


@kernel
def last_clicks(offsets: Ints, rank: Array, clicked: Bools, out: Ints) -> None:
    """Write the rank of the last click above each impression on its page; 0 if there is none."""
    for p in range(offsets.size - 1):
        last = 0
        for i in range(offsets[p], offsets[p + 1]):
            out[i] = last
            if clicked[i]:
                last = np.int64(rank[i])


@kernel
def table_step(
    offsets: Ints,
    group: Ints,
    clicks: Floats,
    skips: Floats,
    attractiveness: Floats,
    examination: Floats,
    of_pairs: Array,
    examined: Floats,
) -> float:
    """Return the log-likelihood of clicks of probability a * e, and write expected counts.

    Pair p has the cells offsets[p]:offsets[p + 1], each with a group of examination and its counts.
    `of_pairs` receives the expected attractions of each pair, and the sum of examination over its
    impressions; `examined` the expected examinations of each group, which are zero at first.
    """
    total = 0.0
    for p in range(offsets.size - 1):
        a = attractiveness[p]
        hits, seen = 0.0, 0.0
        for i in range(offsets[p], offsets[p + 1]):
            e = examination[group[i]]
            probability = a * e
            none = max(1.0 - probability, TINY)
            if clicks[i] > 0.0:
                total += clicks[i] * np.log(max(probability, TINY))
            if skips[i] > 0.0:
                total += skips[i] * np.log(none)
            hits += clicks[i] + skips[i] * a * (1.0 - e) / none
            seen += (clicks[i] + skips[i]) * e
            examined[group[i]] += clicks[i] + skips[i] * e * (1.0 - a) / none
        of_pairs[0, p], of_pairs[1, p] = hits, seen
    return total


@inlined_subroutine
def below(start: int, lo: int, hi: int, pair: Ints, attractiveness: Array, space: Array) -> float:
    """Return the probability of no clicks below the examined impression `start`.

    `space[0]` has, per impression of the page, the probability of examining on; `space[1]` receives
    it given that there are no clicks below.
    """
    nothing = 1.0
    for step in range(hi - 1 - start):
        i = hi - 2 - step
        go = space[0, i - lo] * (1.0 - attractiveness[pair[i + 1]]) * nothing
        nothing = max(1.0 - space[0, i - lo] + go, TINY)
        space[1, i - lo] = go / nothing
    return nothing


@kernel
def chain_step(
    offsets: Ints,
    pair: Ints,
    rank: Array,
    clicked: Bools,
    weights: Floats,
    values: Array,
    go: Array,
    space: Array,
    counts: Array,
    after: Array,
) -> float:
    """Return the log-likelihood of a chain model, and write expected counts.

    `values` has attractiveness and satisfaction, per pair.  The next impression is examined with
    probability go[0, rank] after a skip; after a click with go[2, rank] where the user is
    satisfied, else with go[1, rank].  `counts` has, per pair: examinations, satisfied clicks,
    clicks that are not the last impression of a page, and the variance of satisfaction given the
    clicks.  `after[event, 0 or 1, rank]` counts continuations and trials, of events as in `go`.
    Counts are zero at first.  `space` has two rows of the length of the longest page.
    """
    total = 0.0
    for p in range(offsets.size - 1):
        lo, hi, weight = offsets[p], offsets[p + 1], weights[p]
        start, product = lo, 1.0
        for i in range(lo, hi):
            space[0, i - lo] = go[0, rank[i]]
            if clicked[i]:
                x = values[1, pair[i]]
                space[0, i - lo] = (1.0 - x) * go[1, rank[i]] + x * go[2, rank[i]]
                start = i
        for i in range(lo, start + 1):
            a = values[0, pair[i]]
            product *= (a if clicked[i] else 1.0 - a) * (space[0, i - lo] if i < start else 1.0)
            if product < SMALL:
                total += weight * np.log(max(product, TINY))
                product = 1.0
        product *= below(start, lo, hi, pair, values[0], space)
        total += weight * np.log(max(product, TINY))
        seen = 1.0
        for i in range(lo, hi):
            counts[0, pair[i]] += weight * seen
            if i == hi - 1:
                break
            reached = 1.0 if i < start else seen * space[1, i - lo]
            r = rank[i]
            if clicked[i]:
                x, further = values[1, pair[i]], space[0, i - lo]
                both = reached * x * go[2, r] / max(further, TINY)
                other = reached * (1.0 - x) * go[1, r] / max(further, TINY)
                content = both + (1.0 - reached) * x * (1.0 - go[2, r]) / max(1.0 - further, TINY)
                counts[1, pair[i]] += weight * content
                counts[2, pair[i]] += weight
                counts[3, pair[i]] += weight * content * (1.0 - content)
                after[1, 0, r] += weight * other
                after[1, 1, r] += weight * (1.0 - content)
                after[2, 0, r] += weight * both
                after[2, 1, r] += weight * content
            else:
                after[0, 0, r] += weight * reached
                after[0, 1, r] += weight * seen
            seen = reached
    return total


@kernel
def chain_probabilities(
    offsets: Ints, clicked: Bools, observed: int, values: Array, skip: float, out: Floats
) -> None:
    """Write the probability of a click per impression, given those above if `observed` is 1.

    `values` has attractiveness, and the probability of examining on after a click, per impression.
    """
    for p in range(offsets.size - 1):
        seen = 1.0
        for i in range(offsets[p], offsets[p + 1]):
            a = values[0, i]
            out[i] = seen * a
            if not observed:
                seen *= (1.0 - a) * skip + a * values[1, i]
            elif clicked[i]:
                seen = values[1, i]
            else:
                seen *= (1.0 - a) * skip / max(1.0 - seen * a, TINY)


@kernel
def table_probabilities(
    offsets: Ints, rank: Array, attractiveness: Floats, table: Floats, last: Floats, out: Floats
) -> None:
    """Write the probability of a click per impression, over all clicks above.

    `last` has one number more than the longest page: the probability that impression k - 1 of the
    page has the last click so far (k = 0: no click).
    """
    for p in range(offsets.size - 1):
        lo = offsets[p]
        last[0] = 1.0
        for i in range(lo, offsets[p + 1]):
            total = 0.0
            for k in range(i - lo + 1):
                above = 0 if k == 0 else np.int64(rank[lo + k - 1])
                click = last[k] * attractiveness[i] * table[rank[i], above]
                last[k] -= click
                total += click
            last[i - lo + 1] = total
            out[i] = total


@subroutine
def fraction(state: np.uint64) -> float:
    """Return a random number between 0 and 1."""
    return np.float64(mix(state) >> S11) * UNIT


@kernel
def simulate_chain(offsets: Ints, values: Array, skip: float, seeds: Words, out: Bools) -> None:
    """Write simulated clicks of a chain model, of `values` as above; each page has its own seed."""
    for p in range(offsets.size - 1):
        state = seeds[p]
        seen = True
        for i in range(offsets[p], offsets[p + 1]):
            state = state + STEP
            out[i] = seen and fraction(state) < values[0, i]
            state = state + STEP
            seen = seen and fraction(state) < (values[1, i] if out[i] else skip)


@kernel
def simulate_table(
    offsets: Ints, rank: Array, attractiveness: Floats, table: Floats, seeds: Words, out: Bools
) -> None:
    """Write simulated clicks of a table model; each page has its own seed."""
    for p in range(offsets.size - 1):
        state = seeds[p]
        last = 0
        for i in range(offsets[p], offsets[p + 1]):
            state = state + STEP
            out[i] = fraction(state) < attractiveness[i] * table[rank[i], last]
            if out[i]:
                last = np.int64(rank[i])
