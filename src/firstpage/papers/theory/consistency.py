"""Do the scores of least risk put the right objects on top?  Theorem 6 of Xia et al., tried out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from firstpage.losses.loss import Loss
from firstpage.papers.theory.minimizer import Least, by_planes, least, looks_convex
from firstpage.papers.theory.sensitivity import Sensitivity, kink, order_sensitive
from firstpage.papers.theory.spaces import Pair, Space, depth, orders, random_space, theorem_6_pairs
from firstpage.papers.theory.surrogates import Phi, Surrogate, surrogate

CLEAR = 1e-7  # a lead of scores below this is a tie
SURE = 1e-5  # of slopes and of gaps


@dataclass(frozen=True)
class Agreement:
    """On how many spaces the scores of least risk have the Bayes ranker's top k.

    lead   the least lead of an object of the top over the next, where they agree
    slope  the greatest norm of the risk's slope at what was taken as the least point; for losses
           with corners, the most by which its risk may be above the least
    unsure spaces in which no point is certified as a least one: the risk falls without end, or
           the loss has corners and is not convex
    """

    loss: str
    n: int
    k: int
    spaces: int
    agree: int
    lead: float
    slope: float
    unsure: int = 0
    example: str = ""

    @property
    def holds(self) -> bool:
        return self.agree == self.spaces

    @property
    def wrong(self) -> int:
        return self.spaces - self.agree - self.unsure


@dataclass(frozen=True)
class Consistency:
    """A loss under the definition, and under the test that the definition is meant for."""

    sensitivity: Sensitivity
    agreement: Agreement

    @property
    def holds(self) -> bool:
        """Sensitive, so that Theorem 6 applies, and no space found in which it goes wrong."""
        return self.sensitivity.holds and self.agreement.holds

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return f"Consistency({self.sensitivity.loss}: {self.verdict})"

    @property
    def verdict(self) -> str:
        k, found = self.sensitivity.k, self.agreement
        if found.wrong:
            return f"not consistent with the top-{k} true loss: there is a counter-example"
        if not self.sensitivity.holds:
            return (
                f"not top-{k} order sensitive, so that no theorem speaks for it; no "
                f"counter-example in {found.spaces - found.unsure} spaces"
            )
        if found.unsure:
            return (
                f"undecided: in {found.unsure} of {found.spaces} spaces no least risk was certified"
            )
        return f"consistent with the top-{k} true loss, as far as enumeration can tell"

    def to_dict(self) -> dict[str, Any]:
        return {
            "holds": self.holds, "verdict": self.verdict, **self.sensitivity.to_dict(),
            "agreement": {**vars(self.agreement), "holds": self.agreement.holds},
        }  # fmt: skip


def spaces_for(
    rng: np.random.Generator, n: int, k: int, count: int
) -> Iterator[tuple[Space, list[Pair]]]:
    """Spaces that fulfil what Theorem 6 asks, every other one a harsh one; and the pairs."""
    for number in range(count):
        order = rng.permutation(n).tolist()
        pairs = theorem_6_pairs(order, k, rng)
        yield random_space(rng, n, k, pairs, harsh=number % 2 == 0), pairs


def agreement(
    loss: Loss | Phi | Surrogate | str, n: int = 4, k: int = 1, spaces: int = 20, seed: int = 0
) -> Agreement:
    """Least points on random spaces that are order preserving for Theorem 6's n - 1 pairs."""
    phi = surrogate(loss, n)
    depth(k, n)
    rng = np.random.default_rng(seed)
    smooth = kink(phi, rng) is None
    convex = phi.convex or (not smooth and looks_convex(phi, rng))
    agree, unsure, lead, slope, example = 0, 0, np.inf, 0.0, ""
    for space, _ in spaces_for(rng, n, k, spaces):
        top = space.bayes(k)[0]
        found = least(phi, space, rng, smooth=smooth, convex=convex)
        worst = min(found, key=lambda each: each.lead(top))
        sure = certified(worst, smooth)
        right = sure and worst.lead(top) > CLEAR and not tied(phi, space, worst, top)
        agree, unsure = agree + right, unsure + (not sure)
        lead = min(lead, worst.lead(top)) if right else lead
        slope = max(slope, *(each.slope if each.gap is None else each.gap for each in found))
        if sure and not right and not example:
            example = told(space, worst, k)
    return Agreement(phi.name, n, k, spaces, agree, float(lead), slope, unsure, example)


def certified(found: Least, smooth: bool) -> bool:
    """Whether the point is shown to be a least one: its slope is 0, or planes have met it."""
    if found.gap is not None:
        return found.gap <= SURE
    return smooth and found.slope <= SURE


def tied(phi: Surrogate, space: Space, found: Least, top: Sequence[int]) -> bool:
    """Whether scores with another top, or one that is not clear, are as good.

    Planes end at one of many least points; the others count as well.
    """
    if found.gap is None:
        return False
    rest = [o for o in range(space.n) if o not in top]
    pairs = [*pairwise(top), *((top[-1], o) for o in rest)]
    off = 1e-8 if phi.exact else 3e-6
    return any(by_planes(phi, space, pair).risk <= found.risk + off for pair in pairs)


def told(space: Space, found: Least, k: int) -> str:
    """A space and where the risk is least in it."""
    by_chance, count = np.argsort(-space.chances, kind="stable"), np.count_nonzero(space.chances)
    shown = [
        f"{''.join(str(o + 1) for o in orders(space.n)[row])}: {space.chances[row]:.3f}"
        for row in by_chance[: min(6, count)]
    ]
    more = " .." if count > 6 else ""
    top = "".join(str(o + 1) for o in space.bayes(k)[0])
    scores = ", ".join(f"{x:.3f}" for x in found.scores - found.scores.mean())
    return (
        f"chances {', '.join(shown)}{more}; the likeliest top is {top}, the risk is least at "
        f"({scores})"
    )


def consistency(
    loss: Loss | Phi | Surrogate | str, n: int = 4, k: int = 1, samples: int = 40,
    spaces: int = 20, seed: int = 0,
) -> Consistency:  # fmt: skip
    """Is a loss consistent with the top-k true loss?  The definition, and a test of what follows.

    loss  a name such as "ListMLE(k=2)", a Loss, or phi(scores, order) with the best object first
    """
    phi = surrogate(loss, n)
    return Consistency(
        order_sensitive(phi, n, k, samples, seed), agreement(phi, n, k, spaces, seed)
    )
