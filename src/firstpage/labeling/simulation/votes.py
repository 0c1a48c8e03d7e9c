"""Recorded votes of people: a strategy asks, and a random vote on the pair answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.data.preferences import read_vote_rows
from firstpage.labeling.belief.utilities import bradley_terry
from firstpage.labeling.strategies.strategy import Answer, Compare, Question

Responder = Callable[[Question], Answer]


@dataclass(frozen=True)
class Votes:
    """All votes on the pairs of one query.

    Parameters
    ----------
    query : str
        The query.
    documents : tuple of str
        Names of the documents.
    outcomes : mapping of (int, int) to tuple of int
        The votes per pair of document indices, the smaller one first: 1 if it is better, -1 if
        the other one is, 0 if neither is.

    Examples
    --------
    >>> from firstpage.labeling.simulation.votes import Votes
    >>> votes = Votes("q", ("a", "b", "c"), {(0, 1): (1, 1), (0, 2): (1, 0), (1, 2): (-1,)})
    >>> votes.merit.tolist()
    [2.0, 0.0, 1.0]
    """

    query: str
    documents: tuple[str, ...]
    outcomes: Mapping[tuple[int, int], tuple[int, ...]]

    @property
    def merit(self) -> Floats:
        """Ranks from 0 (worst) by Bradley-Terry utilities of all votes: the truth of simulations.

        "equal" is half a win for each; documents of equal utility are ordered by name.
        """
        rows = [(i, j, o) for (i, j), votes in self.outcomes.items() for o in votes]
        left, right, outcome = np.array(rows).T
        utilities = np.round(bradley_terry(len(self.documents), left, right, outcome), 9)
        merit = np.empty(len(utilities))
        merit[np.argsort(-utilities, kind="stable")] = np.arange(len(utilities))[::-1]
        return merit

    def responder(self, rng: np.random.Generator, equal_votes: str = "tie") -> Responder:
        """Return an assessor who answers with a random vote on the pair, with replacement.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.
        equal_votes : {"tie", "random"}, default "tie"
            Whether an "equal" vote answers a tie or a random winner. A pair without votes
            counts as "equal".

        Returns
        -------
        callable
            Function of a question that returns an answer.
        """

        def respond(question: Question) -> Answer:
            if not isinstance(question, Compare):
                raise DataError(
                    "votes on pairs cannot answer questions for grades; choose another strategy."
                )
            votes = self.outcomes.get(question.pair, (0,))
            outcome = votes[int(rng.integers(len(votes)))]
            if outcome == 0 and equal_votes == "random":
                outcome = 1 if rng.random() < 0.5 else -1
            return Answer(outcome if question.first < question.second else -outcome)

        return respond


def read_votes(path: Path | str) -> list[Votes]:
    """Read recorded votes from a CSV file.

    Parameters
    ----------
    path : path or str
        CSV file with a header and the columns topic (or query, qid), arg1 (left, a), arg2 (right,
        b) and vote (outcome, label). A vote is a1 (left, 1), a2 (right, -1, 2) or equal (tie, 0).

    Returns
    -------
    list of Votes
        The votes per query, in the order of the file.

    Raises
    ------
    DataError
        If a column is missing, a row is invalid, or the file has no votes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from firstpage.labeling.simulation.votes import read_votes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.csv"
    ...     _ = path.write_text("topic,arg1,arg2,vote\\ntea,x,y,a1\\ntea,y,x,equal\\n")
    ...     [votes] = read_votes(path)
    >>> votes.documents, votes.outcomes
    (('x', 'y'), {(0, 1): (1, 0)})
    """
    queries: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for query, left, right, outcome, weight, _ in read_vote_rows(Path(path)):
        if weight != 1:
            raise DataError(
                f"{path}: a vote on {left!r} and {right!r} has weight {weight:g}; simulations "
                "draw single votes, so that each must have weight 1."
            )
        if right < left:
            left, right, outcome = right, left, -outcome
        queries[query][left, right].append(outcome)
    if not queries:
        raise DataError(f"{path}: there are no votes.")
    return [_votes(query, pairs) for query, pairs in queries.items()]


def _votes(query: str, pairs: Mapping[tuple[str, str], list[int]]) -> Votes:
    documents = sorted({name for pair in pairs for name in pair})
    index = {name: i for i, name in enumerate(documents)}
    outcomes = {(index[a], index[b]): tuple(votes) for (a, b), votes in pairs.items()}
    return Votes(query, tuple(documents), outcomes)
