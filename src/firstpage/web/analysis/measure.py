"""The measure that a project's judgments of lists teach, kept at hand until there are new ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.advice import FEWEST, Advice, DCGComparison, advice, against_dcg
from firstpage.dcglearn.intervals import Intervals, intervals
from firstpage.dcglearn.learn import FALLBACK, DCGLearn
from firstpage.dcglearn.pairs import places_cut, places_unjudged
from firstpage.errors import DataError
from firstpage.web.analysis.compared import (
    Compared,
    Kept,
    Lists,
    compared,
    lists_of,
    log_mark,
    texts_mark,
)
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project

PLACES = 10  # that count at most
ROUNDS = 100  # of the resampling behind the intervals
SOURCE = "the judgments"
NO_LISTS = "this project compares no lists; take the tool 'lists' for it."
NOBODY = "nobody has compared lists yet."
NO_GRADES = (
    "no item of the lists has a grade; import qrels for them, or give the items a 'grade'."
)  # fmt: skip


class Learner(DCGLearn):
    """Keeps what it has to say for the page: warnings would be printed beside the server."""

    def _say(self, note: str, above: int = 4) -> None:
        self.notes_.append(note)

    @cached_property
    def notes_(self) -> list[str]:
        return []


@dataclass(frozen=True, eq=False)
class Learned:
    """What the judgments teach; `why` says in a line why there is no measure, where there is none.

    `judgments`: all that stand.  Those whose lists differ in no grade teach nothing.
    """

    judgments: int
    why: str | None = None
    learner: Learner | None = None

    @property
    def pairs(self) -> int:
        """Judgments that teach."""
        return 0 if self.learner is None else len(self.learner.pairs_)

    @cached_property
    def utility(self) -> Utility | None:
        """The measure; it says of itself how it compares with DCG."""
        if self.learner is None or self.comparison is None:
            return None
        made = self.learner.utility_
        about = {**made.about, "against_dcg": self.comparison.to_dict()}
        return replace(made, about=about)

    @cached_property
    def comparison(self) -> DCGComparison | None:
        """How it and DCG agree with judgments that neither learned from."""
        return None if self.learner is None else against_dcg(self.learner)

    @cached_property
    def advice(self) -> Advice | None:
        """Whether more judgments would pay."""
        return None if self.learner is None else advice(self.learner, repeats=1)

    @cached_property
    def intervals(self) -> Intervals | None:
        """How sure gains and discounts are; None where all judgments are of one query."""
        if self.learner is None or len(set(self.learner.groups_.tolist())) < 2:
            return None
        return intervals(self.learner, ROUNDS)

    def known(self) -> Utility:
        """The measure, or the reason why there is none."""
        if self.utility is None:
            raise DataError(f"there is no measure yet: {self.why}")
        return self.utility


_LEARNED: Kept[Learned] = Kept()


def learned(tx: Tx, project: Project) -> Learned:
    """Learned anew only if judgments, texts or grades have come since."""
    if "lists" not in project.tools:
        return Learned(0, NO_LISTS)
    mark = log_mark(tx, project), texts_mark(tx, project)
    return _LEARNED.get(
        tx, project, mark, lambda: learn(list(compared(tx, project)), lists_of(tx, project))
    )


def learn(found: list[Compared], lists: Lists) -> Learned:
    """Learn from judgments, with the grades that any list of the project has.

    Discounts must not grow with the place: without that, few judgments can make a place come out
    as worth a thousand times the first one.
    """
    if not found:
        return Learned(0, NOBODY)
    every = [grades for mine in lists.values() for grades in mine.values()]
    if all(grade is None for grades in every for grade in grades):
        return Learned(len(found), NO_GRADES)
    try:
        grades = Preferences.of(every, every, source=SOURCE).grades
        given = preferences(found, grades)
        places = min(PLACES, given.places)
        enough = len(found) >= FEWEST
        learner = Learner(places, C="cv" if enough else FALLBACK, threads=1, decreasing=True)
        learner.fit(given)
        learner.notes_.extend(places_cut(given, places))
        learner.notes_.extend(places_unjudged(given, places, learner.unjudged))
    except DataError as error:
        return Learned(len(found), str(error))
    return Learned(len(found), None, learner)


def preferences(found: list[Compared], grades: tuple[int, ...] | None = None) -> Preferences:
    """Judgments as the learner takes them: each counts one, those of a query stay together."""
    return Preferences.of(
        [c.left for c in found], [c.right for c in found], [c.outcome for c in found],
        query=[c.query for c in found], grades=grades, source=SOURCE,
    )  # fmt: skip
