"""Models of users who examine one result after the other, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from firstpage.clicks.models.base import LEAST_PROBABILITY, ClickModel
from firstpage.clicks.models.em import Counts, Expected, Values
from firstpage.clicks.models.pages import CountedPages, down_to_last_click, totals
from firstpage.clicks.sessions import Sessions
from firstpage.core import Array, Floats, Words
from firstpage.core.kernels import click_models

SKIPS, UNSATISFIED, SATISFIED = range(3)  # events after which a user may examine the next result


class Continuation(NamedTuple):
    """The satisfaction of pairs, and the probability of examining on per event and rank."""

    satisfaction: Floats
    go: Array

    @classmethod
    def of(
        cls, satisfaction: Floats, ranks: int, skip: float, unsatisfied: Any, satisfied: float = 0.0
    ) -> Continuation:
        """Return the continuation whose probabilities are equal at all ranks, or given by rank."""
        events = [np.broadcast_to(x, ranks) for x in (skip, unsatisfied, satisfied)]
        return cls(satisfaction, np.array(events, np.float64))


def _known_counts(satisfied: Floats, values: Floats) -> Counts:
    """Return the satisfied clicks and clicks of pairs less what is only assumed about them.

    A click whose satisfaction has the posterior z is worth 1 - z (1 - z) / (s (1 - s)) clicks, the
    fraction of its information that is not missing (Orchard and Woodbury 1972).
    """
    assumed = satisfied[2] / np.maximum(values * (1 - values), LEAST_PROBABILITY)
    hits, trials = satisfied[0] - values * assumed, satisfied[1] - assumed
    return Counts(np.maximum(hits, 0.0), np.maximum(trials, 0.0))


@dataclass(eq=False, repr=False)
class ChainModel(ClickModel):
    """A model of users who examine results in order, and end after some click or skip."""

    by_rank: ClassVar[bool] = False

    def _continuation(self, values: Values, never: Floats, ranks: int) -> Continuation:
        """Return the probabilities of examining on; `never` is zero per pair."""
        raise NotImplementedError

    def _continuations(self, pages: CountedPages) -> int:
        """Return the number of probabilities of examining on."""
        return 0

    def _prepare(self, pages: CountedPages) -> tuple[dict[str, int], dict[str, int]]:
        sizes = dict.fromkeys(("attractiveness", *self.hidden), pages.n_pairs)
        count = self._continuations(pages)
        return sizes | ({"continuation": count} if count else {}), {}

    def _counts(self, attracted: Counts, satisfied: Counts, after: Floats) -> dict[str, Counts]:
        """Return the expected counts of the model's families, from those of `chain_step`."""
        return {**self._evidence(attracted, satisfied), **self._further(after)}

    def _further(self, after: Floats) -> dict[str, Counts]:
        """Return the expected counts of examining on, from those by event and rank."""
        return {}

    def _evidence(self, attracted: Counts, known: Counts) -> dict[str, Counts]:
        """Return the counts that the data of pairs are worth; `known` are those of satisfaction."""
        return {"attractiveness": attracted, **dict.fromkeys(self.hidden, known)}

    def _expectation(self, pages: CountedPages) -> Callable[[Values], Expected]:
        space = np.empty((2, pages.longest))
        never = np.zeros(pages.n_pairs)

        def expect(values: Values) -> Expected:
            of_pairs, after = np.zeros((4, pages.n_pairs)), np.zeros((3, 2, pages.n_ranks))
            users = self._continuation(values, never, pages.n_ranks)
            total = click_models.chain_step(
                offsets=pages.offsets,
                pair=pages.pair,
                rank=pages.rank,
                clicked=pages.clicked,
                weights=pages.weights,
                values=np.stack([values["attractiveness"], users.satisfaction]),
                go=users.go,
                space=space,
                counts=of_pairs,
                after=after,
            )
            attracted = Counts(pages.clicks, of_pairs[0])
            counts = self._counts(attracted, Counts(of_pairs[1], of_pairs[2]), after)
            known = _known_counts(of_pairs[1:], users.satisfaction)
            return Expected(total, counts, self._evidence(attracted, known))

        return expect

    def _page_continuation(self, sessions: Sessions) -> tuple[Array, float]:
        """Return attractiveness and going on after a click per impression, and after skips."""
        size = int(sessions.rank.max(initial=0)) + 1
        if self.by_rank:
            size = len(self.parameters_["continuation"])
        values = dict(self.parameters_, attractiveness=self.values_of(sessions))
        if hasattr(self, "satisfaction_"):
            values["satisfaction"] = self.values_of(sessions, "satisfaction")
        s, go = self._continuation(values, np.zeros(sessions.n_impressions), size)
        rank = self._ranks(sessions, size)
        after = (1 - s) * go[UNSATISFIED, rank] + s * go[SATISFIED, rank]
        return np.stack([values["attractiveness"], after]), float(go[SKIPS, 0])

    def _probabilities(self, sessions: Sessions, observed: bool) -> Floats:
        values, skip = self._page_continuation(sessions)
        out = np.empty(sessions.n_impressions)
        click_models.chain_probabilities(
            sessions.offsets, sessions.clicked, int(observed), values, skip, out
        )
        return out

    def _simulated(self, sessions: Sessions, seeds: Words) -> Array:
        values, skip = self._page_continuation(sessions)
        out = np.empty(sessions.n_impressions, bool)
        click_models.simulate_chain(sessions.offsets, values, skip, seeds, out)
        return out


@dataclass(eq=False, repr=False)
class Cascade(ChainModel):
    """Cascade model: a user examines results in order until the first click.

    The model has no second click.  A fit reads clicks down to the first one of a page; further
    clicks have the least probability in likelihoods, 1e-9.

    References
    ----------
    Craswell, Zoeter, Taylor and Ramsey, "An experimental comparison of click position-bias
    models", WSDM 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 0, 1])
    >>> fp.clicks.Cascade(prior=(1, 1)).fit(sessions).attractiveness_.value.tolist()
    [0.75, 0.3333333333333333]
    """

    first_click_only: ClassVar[bool] = True

    def _continuation(self, values: Values, never: Floats, ranks: int) -> Continuation:
        return Continuation.of(never, ranks, skip=1.0, unsatisfied=0.0)


@dataclass(eq=False, repr=False)
class CountingModel(ChainModel):
    """A chain model that examines on after every skip.

    Parameters
    ----------
    counting : bool, default False
        Estimate by counting, as if the user ended at the last click of a page (as published for
        large logs).  By default the exact likelihood is maximized, in which the user may also have
        examined further results without a click.
    """

    counting: bool = False

    def _iterations(self) -> int | None:
        return 1 if self.counting else self.iterations

    def _expectation(self, pages: CountedPages) -> Callable[[Values], Expected]:
        exact = super()._expectation(pages)
        if not self.counting:
            return exact
        examined, last = down_to_last_click(pages.offsets, pages.clicked)
        w, after = pages.row_weights, np.zeros((3, 2, pages.n_ranks))
        clicks = totals(pages.rank, w * pages.clicked, pages.n_ranks)
        after[UNSATISFIED] = clicks - totals(pages.rank, w * last, pages.n_ranks), clicks
        attracted = Counts(pages.clicks, totals(pages.pair, w * examined, pages.n_pairs))
        final = Counts(totals(pages.pair, w * last, pages.n_pairs), pages.clicks)
        counts = self._counts(attracted, final, after)
        evidence = self._evidence(attracted, final)

        def expect(values: Values) -> Expected:
            return Expected(exact(values).log_likelihood, counts, evidence)

        return expect


@dataclass(eq=False, repr=False)
class DCM(CountingModel):
    """Dependent click model: a cascade that goes on after a click, with a probability per rank.

    Attributes
    ----------
    continuation_ : array of float
        The probability of examining the next result after a click, per rank, from rank 1.

    References
    ----------
    Guo, Liu and Wang, "Efficient multiple-click models in web search", WSDM 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 1, 1])
    >>> model = fp.clicks.DCM(prior=(1, 1), counting=True).fit(sessions)
    >>> model.continuation_.round(3).tolist()
    [0.5, 0.333]
    """

    by_rank: ClassVar[bool] = True

    def _continuations(self, pages: CountedPages) -> int:
        return pages.n_ranks

    def _continuation(self, values: Values, never: Floats, ranks: int) -> Continuation:
        return Continuation.of(never, ranks, skip=1.0, unsatisfied=values["continuation"])

    def _further(self, after: Floats) -> dict[str, Counts]:
        return {"continuation": Counts(*after[UNSATISFIED])}

    @property
    def continuation_(self) -> Floats:
        """The probability of examining the next result after a click, per rank, from rank 1."""
        self._check_fitted()
        return self.parameters_["continuation"][1:]


@dataclass(eq=False, repr=False)
class SimplifiedDBN(CountingModel):
    """Simplified dynamic Bayesian network: a user ends only when a clicked document satisfies.

    Attributes
    ----------
    satisfaction_ : PairValues
        The probability that a clicked document satisfies, per query and document.

    References
    ----------
    Chapelle and Zhang, "A dynamic Bayesian network click model for web search ranking", WWW 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 1, 1])
    >>> model = fp.clicks.SimplifiedDBN(prior=(1, 1), counting=True).fit(sessions)
    >>> model.satisfaction_.value.round(3).tolist()
    [0.75, 0.333]
    """

    hidden: ClassVar[tuple[str, ...]] = ("satisfaction",)

    def _continuation(self, values: Values, never: Floats, ranks: int) -> Continuation:
        return Continuation.of(values["satisfaction"], ranks, skip=1.0, unsatisfied=1.0)


@dataclass(eq=False, repr=False)
class DBN(ChainModel):
    """Dynamic Bayesian network: a user ends when satisfied, and may give up after any result.

    Attributes
    ----------
    satisfaction_ : PairValues
        The probability that a clicked document satisfies, per query and document.
    continuation_ : float
        The probability of examining the next result if not satisfied, gamma.

    References
    ----------
    Chapelle and Zhang, "A dynamic Bayesian network click model for web search ranking", WWW 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 1, 1])
    >>> model = fp.clicks.DBN(prior=(1, 1)).fit(sessions)
    >>> 0 < model.continuation_ < 1
    True
    """

    hidden: ClassVar[tuple[str, ...]] = ("satisfaction",)

    def _continuations(self, pages: CountedPages) -> int:
        return 1

    def _continuation(self, values: Values, never: Floats, ranks: int) -> Continuation:
        gamma = float(values["continuation"][0])
        return Continuation.of(values["satisfaction"], ranks, skip=gamma, unsatisfied=gamma)

    def _further(self, after: Floats) -> dict[str, Counts]:
        further, examined = after[SKIPS].sum(axis=1) + after[UNSATISFIED].sum(axis=1)
        return {"continuation": Counts(further[None], examined[None])}

    @property
    def continuation_(self) -> float:
        """The probability of examining the next result if not satisfied."""
        self._check_fitted()
        return float(self.parameters_["continuation"][0])


@dataclass(eq=False, repr=False)
class CCM(ChainModel):
    """Click chain model: a user goes on after a skip, an unsatisfying or a satisfying click.

    A clicked document satisfies with the probability of its attractiveness.

    Attributes
    ----------
    continuation_ : array of float of shape (3,)
        The probability of examining the next result after a skip, after a click that does not
        satisfy, and after one that satisfies.

    References
    ----------
    Guo, Liu, Kannan, Minka, Taylor, Wang and Faloutsos, "Click chain model in web search",
    WWW 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 1, 1])
    >>> fp.clicks.CCM(prior=(1, 1)).fit(sessions).continuation_.shape
    (3,)
    """

    def _continuations(self, pages: CountedPages) -> int:
        return 3

    def _continuation(self, values: Values, never: Floats, ranks: int) -> Continuation:
        return Continuation.of(values["attractiveness"], ranks, *values["continuation"].tolist())

    def _further(self, after: Floats) -> dict[str, Counts]:
        return {"continuation": Counts(*after.sum(axis=2).T)}

    def _evidence(self, attracted: Counts, known: Counts) -> dict[str, Counts]:
        hits, trials = (one + other for one, other in zip(attracted, known, strict=True))
        return {"attractiveness": Counts(hits, trials)}

    @property
    def continuation_(self) -> Floats:
        """The probability of examining on after a skip, an unsatisfying and a satisfying click."""
        self._check_fitted()
        return self.parameters_["continuation"]
