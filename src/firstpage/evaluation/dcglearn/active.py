"""Active learning: choose the pairs of rankings whose judgment is most informative.

simple-margin  the smallest difference under the current measure (Zhou et al. 2013, section 5.5)
diverse        the smallest difference relative to its remaining uncertainty; pairs chosen before
               count as answered, so that a batch does not consist of similar pairs
committee      the largest disagreement among measures learned from resampled pairs
random         a random pair
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import scipy  # its modules are loaded when they are first used

from firstpage.core import Array, DataError, Floats
from firstpage.core.engine import single_threaded_blas
from firstpage.data.preferences import Preferences, Utility
from firstpage.evaluation.dcglearn.confidence import resampled_tables
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.evaluation.dcglearn.pairs import Pairs, fingerprints
from firstpage.evaluation.dcglearn.validation import differences

Strategy = Literal["simple-margin", "diverse", "committee", "random"]
STRATEGIES = get_args(Strategy)
COMMITTEE_SIZE = 16
SHORTLIST = 2000  # pairs of smallest difference that an expensive strategy considers


def choose(
    measure: DCGLearn | Utility,
    pool: Preferences,
    count: int = 1,
    strategy: Strategy = "simple-margin",
    seed: int = 0,
) -> list[int]:
    """Choose the pairs of a pool to have judged next.

    Pairs without a difference of grades are never chosen, and of equal or reversed pairs only one.

    Parameters
    ----------
    measure : DCGLearn or Utility
        A fitted learner, or a measure; the latter supports "simple-margin" and "random" only.
    pool : Preferences
        Candidate pairs; their outcomes are not used.
    count : int, default 1
        Number of pairs to choose.
    strategy : {"simple-margin", "diverse", "committee", "random"}, default "simple-margin"
        "simple-margin" takes the smallest difference under the measure; "diverse" the smallest
        difference relative to its uncertainty, counting chosen pairs as answered; "committee" the
        pairs on which measures learned from resampled pairs disagree most.
    seed : int, default 0
        Seed of "committee" and "random".

    Returns
    -------
    list of int
        Rows of the pool, the most informative first; fewer than `count` where the pool has no
        more distinct pairs.

    Raises
    ------
    DataError
        If the strategy is unknown or needs a fitted learner, or `count` is below 1.

    References
    ----------
    .. [1] Zhou et al. 2013 (see `DCGLearn`), section 5.5.

    Examples
    --------
    >>> import firstpage as fp
    >>> dcg = fp.dcglearn.Utility.from_dcg("exp", range(3), 2)
    >>> left, right = [[2, 0], [1, 0], [2, 2]], [[0, 2], [0, 1], [0, 0]]
    >>> pool = fp.dcglearn.Preferences.from_grades(left, right)
    >>> fp.dcglearn.choose(dcg, pool)
    [1]
    """
    if strategy not in STRATEGIES:
        raise DataError(f"strategy must be one of {', '.join(STRATEGIES)}; got {strategy!r}.")
    if count < 1:
        raise DataError(f"count must be at least 1; got {count}.")
    table, pairs = _candidates(measure, pool)
    if strategy == "random":
        chosen = np.random.default_rng(seed).permutation(len(pairs))
    else:
        chosen = np.argsort(np.abs(differences(pairs, table)), kind="stable")
    if strategy in ("diverse", "committee") and len(pairs):
        if not isinstance(measure, DCGLearn):
            raise DataError(
                f"{strategy} needs a learner fitted to the preferences so far, not only a measure."
            )
        shortlist = chosen[: max(SHORTLIST, 4 * count)]
        if strategy == "diverse":
            chosen = shortlist[_diverse(measure, pairs[shortlist], count)]
        else:
            chosen = shortlist[_committee(measure, pairs[shortlist], seed)]
    return [int(row) for row in pairs.rows[chosen[:count]]]


def _candidates(measure: DCGLearn | Utility, pool: Preferences) -> tuple[Floats, Pairs]:
    """Return the weights of the measure, and the distinct pairs of the pool that differ."""
    if isinstance(measure, DCGLearn):
        grades, table, unjudged = measure.preferences_.grades, measure.weights_, measure.unjudged_
    else:
        grades, table, unjudged = measure.grades, measure.table(), "worst"
    left, right = pool.with_grades(grades).encode(len(table), unjudged)
    rows = np.flatnonzero((left != right).any(axis=1))
    kind = np.ones(len(rows), np.int8)
    pairs = Pairs(left[rows], right[rows], kind, np.ones(len(rows)), len(grades), rows)
    keys = fingerprints(pairs)
    _, first = np.unique(np.minimum(keys, np.uint64(0) - keys), return_index=True)
    return table, pairs[np.sort(first)]


def _diverse(learner: DCGLearn, pool: Pairs, count: int) -> Array:
    """Return the pairs with the smallest |z| / s, chosen greedily; s^2 is the variance of z.

    Near the optimum the objective is a quadratic form in the steps, whose inverse acts as a
    covariance.  A pair that is answered adds a rank-one term to the form.
    """
    cone, cost = learner.spec_.cone, learner.C_
    sums = learner.spec_.sums(learner.pairs_)
    sums.costs[:] = learner.spec_.costs(cost)
    sums.move_to(learner.optimum_.table)
    sums.update_active()
    with single_threaded_blas():
        hessian = cone.metric + cone.table.T @ sums.normal_equations()[0] @ cone.table
        x = pool.sparse() @ cone.table
        margins = np.abs(x @ learner.optimum_.steps)
        solved = scipy.linalg.cho_solve(scipy.linalg.cho_factor(hessian), x.T).T
        variance = np.einsum("ij,ij->i", x, solved)
        chosen = list[int]()
        for _ in range(min(count, len(pool))):
            score = margins / np.sqrt(np.maximum(variance, 1e-300))
            score[chosen] = np.inf
            best = int(np.argmin(score))
            chosen.append(best)
            covariance = solved @ x[best]  # of each pair with the chosen one
            gain = cost / (1.0 + cost * variance[best])
            variance = variance - gain * covariance**2
            solved = solved - gain * np.outer(covariance, solved[best])
    return np.array(chosen, np.int64)


def _committee(learner: DCGLearn, pool: Pairs, seed: int) -> Array:
    """Return the pairs in order of the evenness of the votes."""
    votes = np.zeros(len(pool))
    for table in resampled_tables(learner, COMMITTEE_SIZE, seed):
        votes += np.sign(differences(pool, table))
    # the sort is stable: among equal votes the smallest difference comes first
    return np.argsort(np.abs(votes), kind="stable")
