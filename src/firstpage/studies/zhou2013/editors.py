"""Simulated editors in place of the news data of section 5.4, which nobody outside has.

A query has 20 documents with grades 1 to 4, mixed as the query will have it.  Two rankers see
the grade with noise, some of it common to both, and the second sees a little better; each shows
its five best.  What editors like is neither of the usual measures: a document is worth something
from "good" on, and the first three places count nearly alike.  An editor feels the difference of
the two lists with some doubt; a small one is "the same", a great one "much better".  The two
thresholds and the doubt are set so that the counts of Table 1 come out about right:
13, 108, 473, 148, 24 of 766.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.data.preferences import Preferences
from firstpage.data.utility import Utility
from firstpage.types import Array, Floats

GRADES = (1, 2, 3, 4)
QUERIES, PLACES = 766, 5
COUNTS = {1: 13, 2: 108, 3: 473, 4: 148, 5: 24}  # Table 1
OUTCOMES = {1: 2, 2: 1, 3: 0, 4: -1, 5: -2}  # labels as outcomes: set one is left


@dataclass(frozen=True)
class Editors:
    """The numbers of the simulation; see the head of this file."""

    documents: int = 20
    mix: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)  # of the grades, upward
    alike: float = 4.0  # the greater, the more alike are queries in their mix
    common: float = 1.0  # noise that both rankers share
    noise: tuple[float, float] = (1.65, 1.2)  # their own
    gains: tuple[float, ...] = (0.0, 0.05, 0.9, 1.0)
    discounts: tuple[float, ...] = (1.0, 0.9, 0.8, 0.2, 0.1)
    doubt: float = 0.8
    same: float = 0.887
    much: float = 2.033

    @property
    def truth(self) -> Utility:
        return Utility.of(self.gains, self.discounts, GRADES)

    def judged(self, rng: np.random.Generator, queries: int = QUERIES) -> Preferences:
        """Two lists a query, and what an editor says: 2, 1, 0, -1, -2 for the labels 1 to 5."""
        grades = self._grades(rng, queries)
        both = self.common * rng.normal(size=grades.shape)
        one, two = (
            _shown(grades, grades + both + s * rng.normal(size=grades.shape)) for s in self.noise
        )
        felt = self._worth(one) - self._worth(two) + self.doubt * rng.normal(size=queries)
        outcome = np.sign(felt) * (
            (np.abs(felt) > self.same).astype(int) + (np.abs(felt) > self.much)
        )
        return Preferences.of(one, two, outcome, grades=GRADES, source="simulated editors")

    def _grades(self, rng: np.random.Generator, queries: int) -> Array:
        shares = rng.dirichlet(np.array(self.mix) * self.alike, queries).cumsum(axis=1)
        drawn = rng.random((queries, self.documents, 1))
        found: Array = 1 + (drawn > shares[:, None, :-1]).sum(axis=2)
        return found

    def _worth(self, lists: Array) -> Floats:
        found: Floats = self.truth.weights[np.arange(PLACES), lists - 1].sum(axis=1)
        return found


def _shown(grades: Array, scores: Floats) -> Array:
    """Grades of the documents with the highest scores, in this order."""
    best = np.argsort(-scores, axis=1)[:, :PLACES]
    return np.take_along_axis(grades, best, axis=1)
