"""Interleaving: several rankings shown as one list, and the credit of its clicks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, get_args

import numpy as np

from firstpage.core import Array, DataError, Floats

Method = Literal["team-draft", "balanced", "probabilistic", "optimized", "pairwise"]
INTERLEAVING: tuple[Method, ...] = get_args(Method)
OF_TWO = ("balanced", "optimized")  # rankings
SOFTMAX_TAU = 3.0  # of probabilistic interleaving: a document has the weight rank**-tau
OPTIMIZED_RANKS = 10  # there are up to 2**10 lists of so many ranks
BIAS_TOLERANCE = 1e-7
ABSENT = object()


@dataclass(frozen=True)
class Interleaved:
    """One list of several rankings; `interleave` makes it.

    Attributes
    ----------
    documents : tuple
        The documents in the order in which they are shown.
    teams : tuple of int
        The ranking of which each document was drawn; -1 where it does not matter or is unknown.
    method : str
        The method of interleaving.
    evidence : dict of str to list
        What credit is computed from, per document, besides the teams: credits (of each ranking for
        a click), or ranks in each ranking (0 where it lacks the document) and weights.
    n_rankings : int
        The number of rankings.

    Examples
    --------
    >>> import firstpage as fp
    >>> shown = fp.clicks.interleave([["a", "b", "c"], ["b", "c", "a"]], key="user 7, fox")
    >>> shown.documents, shown.teams
    (('a', 'b', 'c'), (0, 1, 1))
    >>> shown.credit([1, 0, 1]).tolist()
    [1.0, 1.0]
    """

    documents: tuple[Any, ...]
    teams: tuple[int, ...]
    method: str = "team-draft"
    evidence: Mapping[str, list[Any]] = field(default_factory=dict)
    n_rankings: int = 2

    def page(self, number: int, size: int = 10) -> Interleaved:
        """Return a page of the list, from 1; pages neither repeat nor skip documents.

        Parameters
        ----------
        number : int
            The number of the page.
        size : int, default 10
            Documents per page.

        Returns
        -------
        Interleaved
            The documents of the page; it is empty after the last one.
        """
        if number < 1 or size < 1:
            raise DataError("a page of an interleaved list has a number and a size from 1.")
        part = slice((number - 1) * size, number * size)
        evidence = {name: values[part] for name, values in self.evidence.items()}
        if "weights" in evidence:
            evidence["weights"] = [row[part] for row in evidence["weights"]]
        return Interleaved(
            self.documents[part], self.teams[part], self.method, evidence, self.n_rankings
        )

    def credit(self, clicks: Sequence[float]) -> Floats:
        """Return the credit of each ranking for the clicks on a page.

        Parameters
        ----------
        clicks : sequence of float
            Per document: how often it was clicked, or another value of what people did; 0 for none.

        Returns
        -------
        array of float
            One value per ranking; only their differences matter.
        """
        record = {"method": self.method, "teams": self.teams, **self.evidence}
        return credit_of(record, clicks, self.n_rankings)

    def to_dict(self) -> dict[str, Any]:
        """Return what a log must keep to compute credit, as JSON data."""
        return {"method": self.method, "teams": list(self.teams), **self.evidence}


def interleave(
    rankings: Sequence[Sequence[Any]],
    method: Method = "team-draft",
    length: int | None = None,
    *,
    key: str = "",
    seed: int = 0,
) -> Interleaved:
    """Interleave two or more rankings of the same query.

    Parameters
    ----------
    rankings : sequence of sequences
        The documents of each ranking, best first.
    method : {"team-draft", "balanced", "probabilistic", "optimized", "pairwise"}
        By default rankings take turns in random order and each adds its best document that is not
        there yet (team draft).  "balanced" and "optimized" are for two rankings; "pairwise" is
        pairwise preference multileaving.
    length : int, optional
        Documents of the list; by default all.
    key : str, default ""
        What gets its own list, such as session and query; the same key gets the same list.
    seed : int, default 0
        The random seed.

    Returns
    -------
    Interleaved
        The list, from which pages are cut, with what credits of clicks are computed from.

    Raises
    ------
    DataError
        If there are not enough rankings, or a ranking repeats a document.

    References
    ----------
    Joachims, "Evaluating retrieval performance using clickthrough data", 2003 (balanced);
    Radlinski et al., "How does clickthrough data reflect retrieval quality?", CIKM 2008 (team
    draft); Hofmann et al., "A probabilistic method for inferring preferences from clicks", CIKM
    2011; Radlinski and Craswell, "Optimized interleaving for online retrieval evaluation", WSDM
    2013; Schuth et al., "Multileaved comparisons for fast online evaluation", CIKM 2014;
    Oosterhuis and de Rijke, "Sensitive and scalable online evaluation with theoretical
    guarantees", CIKM 2017 (pairwise preference).

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.clicks.interleave([["a", "b"], ["b", "a"]], "balanced", key="user 1, fox").documents
    ('a', 'b')
    """
    lists = [list(ranking) for ranking in rankings]
    if method not in INTERLEAVING:
        raise DataError(f"unknown interleaving {method!r}; there are {', '.join(INTERLEAVING)}.")
    if len(lists) < 2 or (method in OF_TWO and len(lists) != 2):
        count = "two" if method in OF_TWO else "two or more"
        raise DataError(f"{method} interleaving needs {count} rankings; got {len(lists)}.")
    ranks = [{document: rank for rank, document in enumerate(row, 1)} for row in lists]
    for number, (row, rank) in enumerate(zip(lists, ranks, strict=True), 1):
        if len(row) != len(rank):
            raise DataError(f"ranking {number} contains a document twice.")
    distinct = len(set().union(*ranks))
    size = distinct if length is None else min(length, distinct)
    if size < 0:
        raise DataError(f"the length of an interleaved list is not negative; got {length}.")
    words = sha256(f"{seed}\x00{key}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(words, np.uint32))
    documents, teams, evidence = DRAWS[method](lists, ranks, size, rng)
    return Interleaved(tuple(documents), tuple(teams), method, evidence, len(lists))


Drawn = tuple[list[Any], list[int], dict[str, list[Any]]]


def _team_draft(lists: Any, ranks: Any, size: int, rng: np.random.Generator) -> Drawn:
    """Draw a list in rounds in which each ranking adds one document, in random order.

    A round in which a ranking may come to its end gives no credit.
    """
    documents, teams = dict[Any, None](), list[int]()
    rest, shortest, total = list(map(iter, lists)), min(map(len, lists)), len(set().union(*ranks))
    while len(documents) < size:
        fair = shortest - len(documents) >= len(lists)
        if not fair:
            left = min(sum(d not in documents for d in row) for row in lists)
            fair = left >= min(len(lists), total - len(documents))
        for arm in rng.permutation(len(lists)).tolist():
            best = next((d for d in rest[arm] if d not in documents), ABSENT)
            if best is not ABSENT and len(documents) < size:
                documents[best] = None
                teams.append(arm if fair else -1)
    return list(documents), teams, {}


def _balanced(lists: Any, ranks: Any, size: int, rng: np.random.Generator) -> Drawn:
    """Draw a list whose beginnings have equally much of the beginnings of both rankings."""
    first = int(rng.integers(2))
    documents, place = dict[Any, None](), [0, 0]
    while len(documents) < size:
        arm = first if place[first] <= place[1 - first] else 1 - first
        if place[arm] == len(lists[arm]):
            arm = 1 - arm
        documents.setdefault(lists[arm][place[arm]])
        place[arm] += 1
    shown = list(documents)
    return shown, [-1] * size, {"ranks": _ranks_of(shown, ranks)}


def _probabilistic(lists: Any, ranks: Any, size: int, rng: np.random.Generator) -> Drawn:
    """Draw each document from the softmax of a random ranking without those drawn before.

    The credit of a click is the probability, given the list, that a ranking added the document.
    """
    pool = list(dict.fromkeys(d for row in lists for d in row))
    weights = np.array([[rank.get(d, np.inf) for d in pool] for rank in ranks]) ** -SOFTMAX_TAU
    documents, teams, credits = [], [], []
    for _ in range(size):
        totals = weights.sum(axis=1)
        arms = np.flatnonzero(totals > 0)
        arm = int(arms[rng.integers(len(arms))])
        p = weights / np.where(totals > 0, totals, 1.0)[:, None]
        chosen = int(rng.choice(len(pool), p=p[arm]))
        fair = len(arms) == len(lists)
        documents.append(pool[chosen])
        teams.append(arm if fair else -1)
        credits.append((p[:, chosen] / p[:, chosen].sum() * fair).tolist())
        weights[:, chosen] = 0.0
    return documents, teams, {"credits": credits}


def _optimized(lists: Any, ranks: Any, size: int, rng: np.random.Generator) -> Drawn:
    """Draw one of the allowed lists with its optimal probability; credits are inverse ranks.

    Ranks beyond the optimized ones continue both rankings in turn, without credit.
    """
    pool = {d: n for n, d in enumerate(dict.fromkeys(d for row in lists for d in row))}
    shortest = min(map(len, lists))
    top = min(size, OPTIMIZED_RANKS, shortest)
    reach = [tuple(pool[d] for d in row[:top]) for row in lists]
    names, beyond = list(pool), shortest + 1
    inverse = tuple(tuple(1.0 / min(r.get(d, beyond), beyond) for r in ranks) for d in pool)
    allowed, probability = optimal_lists(reach[0], reach[1], top, inverse)
    shown = [names[n] for n in allowed[int(rng.choice(len(allowed), p=probability))]]
    credits = [list(inverse[pool[d]]) for d in shown]
    rest, _, _ = _balanced(lists, ranks, len(pool), rng)
    shown += [d for d in rest if d not in set(shown)][: size - len(shown)]
    credits += [[0.0, 0.0]] * (size - len(credits))
    return shown, [-1] * size, {"credits": credits}


@lru_cache(maxsize=1024)
def optimal_lists(
    first: tuple[int, ...], second: tuple[int, ...], size: int, credits: tuple[Any, ...]
) -> tuple[tuple[tuple[int, ...], ...], Floats]:
    """Return the lists that continue one of two rankings at every rank, and their probabilities.

    At every rank, the expected credit of the documents down to it is equal for both rankings; of
    such probabilities, those with the largest expected entropy of credit are optimal.
    """
    from scipy.optimize import linprog

    lists: list[tuple[int, ...]] = [()]
    for _ in range(size):
        following = []
        for row in lists:
            ends = [next((d for d in ranking if d not in row), None) for ranking in (first, second)]
            following += [(*row, d) for d in dict.fromkeys(ends) if d is not None]
        lists = following
    table = np.array(lists, np.int64).reshape(len(lists), size)
    values = np.array(credits)
    gain = (values[:, 0] - values[:, 1])[table]
    viewed = 1.0 / np.arange(1, size + 1)
    shares = np.stack([viewed * (gain > 0), viewed * (gain < 0), viewed * (gain == 0)])
    shares = shares.sum(axis=2) / max(viewed.sum(), 1.0)
    entropy = -(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=0)
    equal = np.vstack([np.cumsum(gain, axis=1).T, np.ones(len(lists))])
    solution = linprog(-entropy, A_eq=equal, b_eq=np.r_[np.zeros(size), 1.0], method="highs")
    if not solution.success:
        raise DataError("optimized interleaving of these rankings has no fair distribution.")
    probability = np.maximum(np.asarray(solution.x), 0.0)
    probability /= probability.sum()
    assert np.abs(equal[:-1] @ probability).max(initial=0.0) < BIAS_TOLERANCE
    return tuple(lists), probability


def _pairwise(lists: Any, ranks: Any, size: int, rng: np.random.Generator) -> Drawn:
    """Draw at rank k one of the first k documents of any ranking, all with equal probability.

    The weight of a pair is the inverse probability that neither was drawn before both could be;
    it is 0 where one was, since their order is then not random.
    """
    least: dict[Any, int] = {}
    for rank in ranks:
        for d, r in rank.items():
            least[d] = min(r, least.get(d, r))
    pool = sorted(least, key=lambda d: least[d])
    place: dict[Any, int] = {}
    waiting = np.ones(size + 1)  # probability of a document that is there to be drawn later
    for k in range(1, size + 1):
        candidates = [d for d in pool if least[d] <= k and d not in place]
        place[candidates[int(rng.integers(len(candidates)))]] = k
        waiting[k] = 1.0 - 1.0 / len(candidates)
    shown, weights = list(place), np.zeros((size, size))
    for i, one in enumerate(shown):
        for j, other in enumerate(shown):
            low, both = sorted((least[one], least[other]))
            if i != j and min(i, j) + 1 >= both:
                weights[i, j] = 1.0 / np.prod(waiting[low:both])
    return shown, [-1] * size, {"ranks": _ranks_of(shown, ranks), "weights": weights.tolist()}


def _ranks_of(documents: Sequence[Any], ranks: Sequence[Mapping[Any, int]]) -> list[list[int]]:
    """Return the rank of each document in each ranking; 0 where it is not in it."""
    return [[rank.get(d, 0) for rank in ranks] for d in documents]


DRAWS: dict[str, Any] = {
    "team-draft": _team_draft,
    "balanced": _balanced,
    "probabilistic": _probabilistic,
    "optimized": _optimized,
    "pairwise": _pairwise,
}


def credit_of(record: Mapping[str, Any], clicks: Any, arms: int) -> Floats:
    """Return the credit of each ranking for clicks, from what a log keeps of the list."""
    values = np.asarray(clicks, np.float64)
    used = {"optimized": "credits", "probabilistic": "credits", "balanced": "ranks"}
    used |= {"pairwise": "weights", "team-draft": "teams"}
    method = record.get("method", "")
    per_document = record.get(used.get(method, ""))
    if per_document is None or len(per_document) != len(values):
        shown = json.dumps({name: record.get(name) for name in ("method", "teams")})
        raise DataError(f"no credit can be computed for {len(values)} documents from {shown}.")
    if method == "team-draft":
        teams = np.asarray(per_document, np.int64)
        return np.bincount(teams[teams >= 0], values[teams >= 0], arms)[:arms].astype(np.float64)
    if method in ("optimized", "probabilistic"):
        return np.asarray(values @ np.asarray(per_document, np.float64).reshape(-1, arms))
    ranks = np.asarray(record["ranks"], np.float64).reshape(-1, arms)
    ranks[ranks == 0] = np.inf
    if method == "balanced":
        return _balanced_credit(ranks, values)
    return _pairwise_credit(ranks, np.asarray(per_document, np.float64), values)


def _balanced_credit(ranks: Array, clicks: Floats) -> Floats:
    """Return the clicks among the first k of each ranking, which the lowest click tells."""
    clicked = np.flatnonzero(clicks > 0)
    if not len(clicked):
        return np.zeros(2)
    depth = ranks[clicked[-1]].min()
    return np.asarray(clicks @ (ranks <= depth))


def _pairwise_credit(ranks: Array, weights: Floats, clicks: Floats) -> Floats:
    """Return by how much each ranking agrees with preferences of clicked over skipped documents.

    A clicked document is preferred to all skipped ones above it and to the next one below.
    """
    clicked = clicks > 0
    credit = np.zeros(ranks.shape[1])
    for i in np.flatnonzero(clicked).tolist():
        below = i + np.flatnonzero(~clicked[i:])[:1]
        for j in [*np.flatnonzero(~clicked[:i]), *below]:
            agreed = (ranks[i] < ranks[j]).astype(np.float64) - (ranks[i] > ranks[j])
            credit += clicks[i] * weights[i, j] * agreed
    return credit
