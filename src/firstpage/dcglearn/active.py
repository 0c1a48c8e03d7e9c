"""Which pair of rankings to show next: the one whose answer teaches most.

simple-margin  the least sure by the measure's own difference (Zhou et al. 2013, section 5.5)
diverse        the likeliest to turn round: the difference in units of how far it may still move,
               where pairs chosen before count as answered, so that a batch is not one pair five
               times
committee      the one that measures learned from resampled pairs quarrel about most
random         any
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.intervals import resampled
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.pairs import Pairs, fingerprints
from firstpage.dcglearn.validation import differences
from firstpage.engine.threads import quiet_blas
from firstpage.errors import DataError
from firstpage.types import Array, Floats

Strategy = Literal["simple-margin", "diverse", "committee", "random"]
STRATEGIES = get_args(Strategy)
MEMBERS = 16  # of a committee
SHORTLIST = 2000  # pairs of the pool that a costly rule looks at, the least sure ones


def choose(
    measure: DCGLearn | Utility, pool: Preferences, count: int = 1,
    strategy: Strategy = "simple-margin", seed: int = 0,
) -> list[int]:  # fmt: skip
    """Rows of the pool to ask next, the most useful first; outcomes in the pool are not looked at.

    Pairs without a difference are never chosen, and of equal ones (or the same turned round) one.
    A `Utility` knows its weights only: simple-margin or random.
    """
    if strategy not in STRATEGIES:
        raise DataError(f"a strategy is one of {', '.join(STRATEGIES)}; got {strategy!r}.")
    if count < 1:
        raise DataError(f"count must be 1 or more; got {count}.")
    table, pairs = _open(measure, pool)
    if strategy == "random":
        chosen = np.random.default_rng(seed).permutation(len(pairs))
    else:
        chosen = np.argsort(np.abs(differences(pairs, table)), kind="stable")
    if strategy in ("diverse", "committee") and len(pairs):
        if not isinstance(measure, DCGLearn):
            raise DataError(f"{strategy} needs the preferences so far, not a measure alone.")
        near = chosen[: max(SHORTLIST, 4 * count)]
        if strategy == "diverse":
            chosen = near[_diverse(measure, pairs[near], count)]
        else:
            chosen = near[_committee(measure, pairs[near], seed)]
    return [int(row) for row in pairs.rows[chosen[:count]]]


def _open(measure: DCGLearn | Utility, pool: Preferences) -> tuple[Floats, Pairs]:
    """The weights, and the pairs that can teach something, one of each kind."""
    if isinstance(measure, DCGLearn):
        grades, table, unjudged = measure.given_.grades, measure.weights_, measure.unjudged_
    else:
        grades, table, unjudged = measure.grades, measure.table(), "worst"
    left, right = pool.with_grades(grades).encode(len(table), unjudged)
    rows = np.flatnonzero((left != right).any(axis=1))
    kind = np.ones(len(rows), np.int8)
    found = Pairs(left[rows], right[rows], kind, np.ones(len(rows)), len(grades), rows)
    keys = fingerprints(found)
    _, first = np.unique(np.minimum(keys, np.uint64(0) - keys), return_index=True)
    return table, found[np.sort(first)]


def _diverse(learner: DCGLearn, pool: Pairs, count: int) -> Array:
    """By |z| / s, where s^2 is what is still unknown of the difference; greedy.

    Near the optimum the objective is a quadratic form in the steps, and its inverse says how far
    each difference may still move.  An answered pair adds a term to the form.
    """
    cone, cost = learner.recipe_.cone, learner.C_
    sums = learner.recipe_.sums(learner.pairs_)
    sums.costs[:] = learner.recipe_.costs(cost)
    sums.move_to(learner.optimum_.table)
    sums.regroup()
    with quiet_blas():
        form = cone.metric + cone.table.T @ sums.normal()[0] @ cone.table
        x = pool.sparse() @ cone.table
        sure = np.abs(x @ learner.optimum_.steps)
        turned = cho_solve(cho_factor(form), x.T).T
        left = np.einsum("ij,ij->i", x, turned)
        chosen = list[int]()
        for _ in range(min(count, len(pool))):
            value = sure / np.sqrt(np.maximum(left, 1e-300))
            value[chosen] = np.inf
            best = int(np.argmin(value))
            chosen.append(best)
            share = turned @ x[best]  # how much of each is known once this one is
            gain = cost / (1.0 + cost * left[best])
            left = left - gain * share**2
            turned = turned - gain * np.outer(share, turned[best])
    return np.array(chosen, np.int64)


def _committee(learner: DCGLearn, pool: Pairs, seed: int) -> Array:
    """The most evenly split votes first; among these the least sure."""
    votes = np.zeros(len(pool))
    for table in resampled(learner, MEMBERS, seed):
        votes += np.sign(differences(pool, table))
    return np.argsort(np.abs(votes), kind="stable")  # the pool comes the least sure first
