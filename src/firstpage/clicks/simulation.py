"""Simulated users: sessions from rankings and grades, whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from firstpage.clicks.sessions import Sessions, assemble
from firstpage.core import Array, Bools, DataError, Floats
from firstpage.data import Qrels, Run

CURVE = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)
CLICK = (0.10, 0.16, 0.28, 0.52, 1.0)  # of examined documents with the grades 0 to 4
BLOCK = 50_000  # pages that are simulated at a time
NOISE_REACH = 4.0  # standard deviations by which noise may move a document


@dataclass(frozen=True, eq=False)
class SimulatedUsers:
    """How simulated users examine ranks and click.

    Parameters
    ----------
    click : array of shape (grades,) or (ranks, grades)
        Probability of a click on an examined document by its grade, and by rank where trust in the
        ranking matters; lower ranks than those of the table are as its last one.
    examination : sequence of float, optional
        Probability that each rank is examined, independently of the others; lower ranks are not.
        By default users go down the list until they stop.
    stop : sequence of float, optional
        Probability to stop after a click, by grade of the document; without `examination`.

    Raises
    ------
    DataError
        If a value is not a probability, or both or neither of `examination` and `stop` are there.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.clicks.SimulatedUsers(click=[0.1, 1.0], examination=[1.0, 0.5]).propensities(2).tolist()
    [1.0, 0.5]
    """

    click: Any
    examination: Any = None
    stop: Any = None

    def __post_init__(self) -> None:
        if (self.examination is None) == (self.stop is None):
            raise DataError("simulated users have either examination or stop.")
        for name in ("click", "stop" if self.examination is None else "examination"):
            values = np.asarray(getattr(self, name), np.float64)
            if not values.size or not ((values >= 0) & (values <= 1)).all():
                raise DataError(f"{name} of simulated users must be probabilities.")
            object.__setattr__(self, name, values)
        if self.stop is not None and len(self.stop) != self.click.shape[-1]:
            raise DataError("click and stop of simulated users need one value per grade.")

    def propensities(self, ranks: int) -> Floats:
        """Return the probability that ranks are examined, relative to rank 1.

        Parameters
        ----------
        ranks : int
            The number of ranks.

        Returns
        -------
        array of float
            One value per rank.

        Raises
        ------
        DataError
            If examination depends on the documents above.
        """
        if self.examination is None:
            raise DataError("examination of users who go down the list depends on the documents.")
        known = self.examination[:ranks] / self.examination[0]
        return np.asarray(np.pad(known, (0, ranks - len(known))))

    def clicks(self, grades: Array, rng: np.random.Generator) -> Bools:
        """Return simulated clicks on pages: a row per page with the grades by rank, -1 for none.

        Parameters
        ----------
        grades : array of int of shape (pages, ranks)
            Grades, as numbers of the columns of `click`.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        array of bool
            Whether each document was clicked.
        """
        table = np.atleast_2d(self.click)
        rank = np.arange(grades.shape[1])
        wanted = rng.random(grades.shape) < table[np.minimum(rank, len(table) - 1), grades]
        wanted &= grades >= 0
        if self.examination is not None:
            examined = np.pad(self.examination, (0, grades.shape[1]))[: grades.shape[1]]
            return np.asarray(wanted & (rng.random(grades.shape) < examined))
        stops = wanted & (rng.random(grades.shape) < self.stop[grades])
        return np.asarray(wanted & (np.cumsum(stops, axis=1) - stops == 0))

    @staticmethod
    def named(name: str) -> SimulatedUsers:
        """Return users with published settings.

        Parameters
        ----------
        name : {"pbm", "trust", "perfect", "navigational", "informational"}
            The name, as in `simulate`.

        Returns
        -------
        SimulatedUsers
            The users.

        Raises
        ------
        DataError
            If there are none of this name.
        """
        if name not in USERS:
            raise DataError(f"users are one of {', '.join(USERS)}; got {name!r}.")
        return USERS[name]


def _trusting(ranks: int = 50) -> SimulatedUsers:
    """Return users with trust bias: they click on what is higher, also if it is irrelevant."""
    below, relevance = np.arange(ranks), np.arange(5) / 4
    relevant, irrelevant = 1 / (1 + 0.005 * below), 0.65 / (below + 1)
    click = np.outer(relevant, relevance) + np.outer(irrelevant, 1 - relevance)
    return SimulatedUsers(click, 0.35 / (below + 1) + 0.65 / (1 + 0.05 * below))


USERS: Mapping[str, SimulatedUsers] = {
    "pbm": SimulatedUsers(CLICK, CURVE),
    "trust": _trusting(),
    "perfect": SimulatedUsers((0.0, 0.2, 0.4, 0.8, 1.0), stop=(0.0,) * 5),
    "navigational": SimulatedUsers((0.05, 0.3, 0.5, 0.7, 0.95), stop=(0.2, 0.3, 0.5, 0.7, 0.9)),
    "informational": SimulatedUsers((0.4, 0.6, 0.7, 0.8, 0.9), stop=(0.1, 0.2, 0.3, 0.4, 0.5)),
}


def simulate(
    run: Any,
    qrels: Any,
    model: str | SimulatedUsers = "pbm",
    *,
    n_sessions: int = 1000,
    seed: int = 0,
    noise: float = 0.0,
    depth: int = 10,
    traffic: Sequence[float] | None = None,
) -> Sessions:
    """Simulate users who see rankings and click, so that the truth is known.

    Parameters
    ----------
    run : Run or mapping
        The ranking shown for each query: {query: {document: score}}.  For an A/B test, join the
        sessions of two rankings by `concatenate`.
    qrels : Qrels or mapping
        Grades of documents; unjudged ones have grade 0.  Grades are spread over those of the model,
        so that the largest grade is its largest one.
    model : SimulatedUsers or str, default "pbm"
        "pbm" is position-based (curve of an eye-tracking study); "trust" has position and trust
        bias; "perfect", "navigational" and "informational" go down the list (cascade).
    n_sessions : int, default 1000
        The number of sessions, of one page each.
    seed : int, default 0
        The random seed.
    noise : float, default 0
        Ranks are shuffled by adding normal noise of this standard deviation, for each page anew;
        without noise no document changes its rank.  `math.inf` shows the first
        documents in random order, and logs the propensity of each to be displayed at its rank.
    depth : int, default 10
        Documents per page.
    traffic : sequence of float, optional
        Relative frequencies of the queries of the ranking; by default all are equal.

    Returns
    -------
    Sessions
        Pages with clicks.

    Raises
    ------
    DataError
        If a number is out of range, or the model is not known.

    References
    ----------
    Joachims et al., "Accurately interpreting clickthrough data as implicit feedback", SIGIR 2005
    (curve); Ai et al., "Unbiased learning to rank with unbiased propensity estimation", SIGIR 2018
    (clicks by grade); Hofmann et
    al., "Balancing exploration and exploitation in listwise and pairwise online learning to rank",
    2013 (cascade); Oosterhuis, "Doubly robust estimation for correcting position bias", TOIS 2023
    (trust).

    Examples
    --------
    >>> import firstpage as fp
    >>> run = {"fox": {"a": 3.0, "b": 2.0, "c": 1.0}}
    >>> fp.clicks.simulate(run, {"fox": {"b": 1}}, n_sessions=100, noise=1.0)
    Sessions(100 pages, 300 impressions, 72 clicks, 1 query, 3 documents)
    """
    users = SimulatedUsers.named(model) if isinstance(model, str) else model
    if n_sessions < 1 or depth < 1 or not noise >= 0:
        raise DataError("simulated sessions need n_sessions and depth of at least 1, noise >= 0.")
    ranking = run if isinstance(run, Run) else Run.from_dict(run)
    queries, documents = list(ranking.queries), dict[str, int]()
    reach = depth + (int(np.ceil(NOISE_REACH * noise)) if noise < np.inf else 0)
    candidates = _candidates(ranking, reach, documents)
    grades = _grades(candidates, queries, list(documents), qrels, users.click.shape[-1])
    weights = np.ones(len(queries)) if traffic is None else np.asarray(traffic, np.float64)
    if len(weights) != len(queries) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise DataError("traffic needs one non-negative number per query.")
    rng = np.random.default_rng(seed)
    page_query = rng.choice(len(queries), n_sessions, p=weights / weights.sum())
    blocks = []
    for start in range(0, n_sessions, BLOCK):
        rows = page_query[start : start + BLOCK]
        order = _order(candidates[rows], noise, rng)[:, :depth]
        shown = np.take_along_axis(candidates[rows], order, axis=1)
        page_grades = np.where(shown >= 0, np.take_along_axis(grades[rows], order, axis=1), -1)
        blocks.append((shown, users.clicks(page_grades, rng)))
    shown, clicked = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    page, place = np.nonzero(shown >= 0)
    columns = {
        "query": page_query[page], "page": page, "document": shown[page, place],
        "rank": place + 1, "clicks": clicked[page, place],
    }  # fmt: skip
    if noise == np.inf:
        columns["propensity"] = 1.0 / (shown >= 0).sum(axis=1)[page]
    return assemble(columns, {"query": queries, "document": list(documents)}, source="simulation")


def _order(candidates: Array, noise: float, rng: np.random.Generator) -> Array:
    """Return the order in which the candidates of each page are shown; absent ones are last."""
    key = rng.standard_normal(candidates.shape)
    if noise < np.inf:
        key = np.arange(candidates.shape[1]) + noise * key
    return np.argsort(np.where(candidates >= 0, key, np.inf), axis=1, kind="stable")


def _candidates(run: Run, reach: int, documents: dict[str, int]) -> Array:
    """Return the first documents of each query by descending score, -1 where there are no more."""
    table = np.full((len(run), reach), -1, np.int32)
    for query, (first, end) in enumerate(pairwise(run.offsets.tolist())):
        order = first + np.argsort(-run.scores[first:end], kind="stable")[:reach]
        names = (run.docids[row] for row in order.tolist())
        table[query, : len(order)] = [documents.setdefault(name, len(documents)) for name in names]
    return table


def _grades(
    candidates: Array, queries: Sequence[str], documents: Sequence[str], qrels: Any, count: int
) -> Array:
    """Return the grade of each candidate, as a column of the model's table."""
    judged = qrels.to_dict() if isinstance(qrels, Qrels) else qrels
    largest = max((max(row.values()) for row in judged.values() if row), default=0)
    if largest <= 0:
        raise DataError("simulated users need a document with a grade above 0.")
    grades = np.zeros(candidates.shape, np.float64)
    for number, query in enumerate(queries):
        row = judged.get(query, {})
        there = candidates[number] >= 0
        grades[number, there] = [row.get(documents[d], 0) for d in candidates[number, there]]
    return np.round(np.maximum(grades, 0) / largest * (count - 1)).astype(np.int8)
