"""Models in which a click is the product of attractiveness and a table of examination.

The examination of an impression depends on its rank, and of the UBM on the last click above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.clicks.models.base import ClickModel
from firstpage.clicks.models.em import Counts, Expected, Values
from firstpage.clicks.models.pages import MAX_RANK, CountedPages, last_clicks, totals
from firstpage.clicks.sessions import Sessions
from firstpage.core import Array, DataError, Floats, Ints, Words
from firstpage.core.kernels import click_models


@dataclass(eq=False, repr=False)
class TableModel(ClickModel):
    """A model of clicks with probability attractiveness times examination."""

    by_rank: ClassVar[bool] = True
    by_click: ClassVar[bool] = False
    fixed: ClassVar[Mapping[str, int]] = {}  # the index of the probability of a family that is 1

    @property
    def examination_(self) -> Floats:
        """The probability of a click or of examination per rank, from rank 1."""
        self._check_fitted()
        return self.parameters_["examination"][1:]

    def _group(self, rank: Array, last: Array, size: int) -> Ints:
        """Return the group of examination of impressions, by rank and rank of the last click."""
        if self.by_click:
            return rank.astype(np.int64) * size + last
        return rank.astype(np.int64) * self.by_rank

    def _anchor(self, pages: CountedPages) -> dict[str, int]:
        """Return the index of the probability of a family that is 1."""
        return dict(self.fixed)

    def _prepare(self, pages: CountedPages) -> tuple[dict[str, int], dict[str, int]]:
        size = pages.n_ranks
        if self.by_click and size > MAX_RANK + 1:
            raise DataError(
                f"the largest rank is {size - 1:,}; {self.name} takes ranks up to {MAX_RANK:,}."
            )
        groups = size**2 if self.by_click else size if self.by_rank else 1
        pairs = pages.n_pairs if self.uses_documents else 1
        return {"attractiveness": pairs, "examination": groups}, self._anchor(pages)

    def _expectation(self, pages: CountedPages) -> Callable[[Values], Expected]:
        """Count equal cells of pair and group, and return the function of expected counts."""
        last = last_clicks(pages.offsets, pages.rank, pages.clicked)
        group = self._group(pages.rank, last, pages.n_ranks)
        groups, sizes = int(group.max()) + 1, self._prepare(pages)[0]
        pairs = sizes["attractiveness"]
        pair = pages.pair if self.uses_documents else np.zeros_like(pages.pair)
        cells, index = np.unique(pair * groups + group, return_inverse=True)
        shown = totals(index, pages.row_weights, len(cells))
        clicks = totals(index, pages.row_weights * pages.clicked, len(cells))
        offsets = np.searchsorted(cells, np.arange(pairs + 1) * groups)
        cell_group, skips = cells % groups, shown - clicks
        trials, hits = (np.add.reduceat(x, offsets[:-1]) for x in (shown, clicks))
        shown_groups = totals(cell_group, shown, sizes["examination"])

        def expect(values: Values) -> Expected:
            of_pairs = np.empty((2, pairs))
            examined = np.zeros(len(values["examination"]))
            total = click_models.table_step(
                offsets=offsets,
                group=cell_group,
                clicks=clicks,
                skips=skips,
                attractiveness=values["attractiveness"],
                examination=values["examination"],
                of_pairs=of_pairs,
                examined=examined,
            )
            counts = {
                "attractiveness": Counts(of_pairs[0], trials),
                "examination": Counts(examined, shown_groups),
            }
            evidence = {"attractiveness": Counts(hits, of_pairs[1])} if self.uses_documents else {}
            return Expected(total, counts, evidence)

        return expect

    def _factors(self, sessions: Sessions) -> tuple[Floats, Floats, Ints]:
        """Return attractiveness, the table of examination, and the rank in it per impression.

        Only the UBM has a table; the others have the product of both in place of attractiveness.
        """
        values, a = self.parameters_["examination"], self.values_of(sessions)
        if self.by_click:
            size = int(np.sqrt(len(values)))
            return a, values.reshape(size, size), self._ranks(sessions, size)
        rank = self._ranks(sessions, len(values)) if self.by_rank else 0
        return a * values[rank], np.ones((2, 2)), np.ones(sessions.n_impressions, np.int64)

    def _probabilities(self, sessions: Sessions, observed: bool) -> Floats:
        a, table, rank = self._factors(sessions)
        if observed or not self.by_click:
            return a * table[rank, last_clicks(sessions.offsets, rank, sessions.clicked)]
        out = np.empty(sessions.n_impressions)
        last = np.empty(int(np.diff(sessions.offsets).max(initial=0)) + 1)
        click_models.table_probabilities(sessions.offsets, rank, a, table, last, out)
        return out

    def _simulated(self, sessions: Sessions, seeds: Words) -> Array:
        a, table, rank = self._factors(sessions)
        out = np.empty(sessions.n_impressions, bool)
        click_models.simulate_table(sessions.offsets, rank, a, table, seeds, out)
        return out


@dataclass(eq=False, repr=False)
class GlobalCTR(TableModel):
    """Every impression is clicked with the same probability, the click-through rate of the log.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "a", "b"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 1, 0])
    >>> model = fp.clicks.GlobalCTR(prior=(1, 1)).fit(sessions)
    >>> model.click_probabilities(sessions).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """

    by_rank: ClassVar[bool] = False
    uses_documents: ClassVar[bool] = False
    fixed: ClassVar[Mapping[str, int]] = {"attractiveness": 0}


@dataclass(eq=False, repr=False)
class RankCTR(GlobalCTR):
    """The probability of a click depends on the rank only.

    Attributes
    ----------
    examination_ : array of float
        The click-through rate per rank, from rank 1.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "a", "b"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 1, 0])
    >>> fp.clicks.RankCTR(prior=(1, 1)).fit(sessions).examination_.tolist()
    [0.75, 0.25]
    """

    by_rank: ClassVar[bool] = True


@dataclass(eq=False, repr=False)
class DocumentCTR(TableModel):
    """The probability of a click depends on query and document only.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 0, 1])
    >>> fp.clicks.DocumentCTR(prior=(1, 1)).fit(sessions).attractiveness_.value.tolist()
    [0.75, 0.25]
    """

    by_rank: ClassVar[bool] = False
    fixed: ClassVar[Mapping[str, int]] = {"examination": 0}


@dataclass(eq=False, repr=False)
class PBM(TableModel):
    """Position-based model: P(click) = attractiveness[query, document] * examination[rank].

    A document is clicked if it is attractive and its rank is examined, independently of the other
    clicks on the page.  Only the product is identified, so that the smallest rank has examination 1
    and attractiveness is the probability of a click there.

    Parameters
    ----------
    anchored : bool, default True
        Whether the examination of the smallest rank is 1.  If False it is estimated too, and only
        the priors determine the scale.

    Attributes
    ----------
    examination_ : array of float
        The probability that a rank is examined, from rank 1.

    References
    ----------
    Craswell, Zoeter, Taylor and Ramsey, "An experimental comparison of click position-bias
    models", WSDM 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 40, document=["a", "b", "b", "a"] * 10, rank=[1, 2] * 20,
    ...     clicked=[1, 0, 1, 1, 0, 0, 1, 0] * 5)
    >>> model = fp.clicks.PBM(prior=(1, 1)).fit(sessions)
    >>> model.examination_.round(2).tolist()
    [1.0, 0.34]
    """

    anchored: bool = True

    def _anchor(self, pages: CountedPages) -> dict[str, int]:
        smallest = self._group(pages.rank.min(keepdims=True), np.zeros(1), pages.n_ranks)
        return {"examination": int(smallest[0])} if self.anchored else {}


@dataclass(eq=False, repr=False)
class UBM(PBM):
    """User browsing model: examination depends on the rank and on the last click above.

    P(click) = attractiveness[query, document] * examination[rank, rank of the last click above].

    Attributes
    ----------
    examination_ : array of float of shape (ranks, ranks)
        The probability that a rank (row, from rank 1) is examined, where the last click above was
        at a rank (column; column 0 where there was none).

    References
    ----------
    Dupret and Piwowarski, "A user browsing model to predict search engine click data from past
    observations", SIGIR 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 40, document=["a", "b", "b", "a"] * 10, rank=[1, 2] * 20,
    ...     clicked=[1, 0, 1, 1, 0, 0, 1, 0] * 5)
    >>> model = fp.clicks.UBM(prior=(1, 1)).fit(sessions)
    >>> model.examination_.shape
    (2, 2)
    """

    by_click: ClassVar[bool] = True

    @property
    def examination_(self) -> Floats:
        """The probability that a rank is examined, per rank of the last click above."""
        self._check_fitted()
        values = self.parameters_["examination"]
        return values.reshape(int(np.sqrt(len(values))), -1)[1:, :-1]
