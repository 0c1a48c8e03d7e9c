"""Fusion by score: sums, means, medians and extremes of the rankers' normalized scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.core import Floats
from firstpage.core.kernels import fusion as kernel
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.fusion import Fusion
from firstpage.evaluation.aggregation.normalization import normalized_scores, parse_normalization


@dataclass(frozen=True)
class ScoreFusion(Fusion):
    """Base class of the methods that combine normalized scores.

    Documents that a ranker does not list have no score of it, and do not count in a minimum, mean
    or median.

    Parameters
    ----------
    normalize : str, default "min-max"
        How the scores of each list are made comparable: "min-max" (from 0 to 1), "max" (divided
        by the maximum), "sum" (from 0, with the sum 1), "z" (mean 0, variance 1), "rank"
        (1 - (rank - 1) / length), "borda" (the same among all candidates; those that are not
        listed share the rest) or "none".
    """

    normalize: str = "min-max"
    reads_scores: ClassVar[bool] = True
    kind: ClassVar[int]
    tuned: ClassVar[dict[str, tuple[str, ...]]] = {
        "normalize": ("min-max", "sum", "z", "rank", "borda")
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalize", parse_normalization(self.normalize))

    def _points(self, ballots: Ballots, weights: Floats) -> Floats:
        table = normalized_scores(ballots, self.normalize, type(self).__name__)
        points = np.empty(table.shape[1])
        if self.kind in (kernel.COMB_MAX, kernel.COMB_MIN, kernel.COMB_MED):
            kernel.choose_scores(table, weights, self.kind, np.empty(len(weights)), points)
        else:
            kernel.add_scores(table, weights, self.kind, np.empty(len(points)), points)
        return points


@dataclass(frozen=True)
class CombSUM(ScoreFusion):
    """CombSUM: the sum of a document's normalized scores, weighted if there are weights.

    Parameters
    ----------
    normalize : str, default "min-max"
        The normalization of each list's scores: "min-max", "max", "sum", "z", "rank", "borda" or
        "none".

    Raises
    ------
    ParameterError
        If there is no such normalization.

    References
    ----------
    .. [1] E. A. Fox, J. A. Shaw, "Combination of Multiple Searches", TREC-2, 1993.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"q": {"a": 9, "b": 6, "c": 5}}, {"q": {"a": 1, "c": 3}}]
    >>> fp.aggregation.aggregate(runs, "CombSUM").run.to_dict()
    {'q': {'a': 1.0, 'c': 1.0, 'b': 0.25}}
    """

    kind: ClassVar[int] = kernel.COMB_SUM


@dataclass(frozen=True)
class CombMNZ(ScoreFusion):
    """CombMNZ: CombSUM times the number of lists with the document.

    Parameters
    ----------
    normalize : str, default "min-max"
        The normalization of each list's scores: "min-max", "max", "sum", "z", "rank", "borda" or
        "none".

    Raises
    ------
    ParameterError
        If there is no such normalization.

    References
    ----------
    .. [1] E. A. Fox, J. A. Shaw, "Combination of Multiple Searches", TREC-2, 1993.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"q": {"a": 9, "b": 6, "c": 5}}, {"q": {"a": 1, "c": 3}}]
    >>> fp.aggregation.aggregate(runs, "CombMNZ").run.to_dict()
    {'q': {'a': 2.0, 'c': 2.0, 'b': 0.25}}
    """

    kind: ClassVar[int] = kernel.COMB_MNZ


@dataclass(frozen=True)
class CombANZ(ScoreFusion):
    """CombANZ: the mean of a document's normalized scores.

    Parameters
    ----------
    normalize : str, default "min-max"
        The normalization of each list's scores: "min-max", "max", "sum", "z", "rank", "borda" or
        "none".

    Raises
    ------
    ParameterError
        If there is no such normalization.

    References
    ----------
    .. [1] E. A. Fox, J. A. Shaw, "Combination of Multiple Searches", TREC-2, 1993.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"q": {"a": 9, "b": 6, "c": 5}}, {"q": {"a": 1, "c": 3}}]
    >>> fp.aggregation.aggregate(runs, "CombANZ").run.to_dict()
    {'q': {'a': 0.5, 'c': 0.5, 'b': 0.25}}
    """

    kind: ClassVar[int] = kernel.COMB_ANZ


@dataclass(frozen=True)
class CombMAX(ScoreFusion):
    """CombMAX: the greatest of a document's normalized scores.

    Parameters
    ----------
    normalize : str, default "min-max"
        The normalization of each list's scores: "min-max", "max", "sum", "z", "rank", "borda" or
        "none".

    Raises
    ------
    ParameterError
        If there is no such normalization.

    References
    ----------
    .. [1] E. A. Fox, J. A. Shaw, "Combination of Multiple Searches", TREC-2, 1993.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"q": {"a": 9, "b": 6, "c": 5}}, {"q": {"a": 1, "c": 3}}]
    >>> fp.aggregation.aggregate(runs, "CombMAX").run.to_dict()
    {'q': {'a': 1.0, 'c': 1.0, 'b': 0.25}}
    """

    kind: ClassVar[int] = kernel.COMB_MAX


@dataclass(frozen=True)
class CombMIN(ScoreFusion):
    """CombMIN: the least of a document's normalized scores.

    Parameters
    ----------
    normalize : str, default "min-max"
        The normalization of each list's scores: "min-max", "max", "sum", "z", "rank", "borda" or
        "none".

    Raises
    ------
    ParameterError
        If there is no such normalization.

    References
    ----------
    .. [1] E. A. Fox, J. A. Shaw, "Combination of Multiple Searches", TREC-2, 1993.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"q": {"a": 9, "b": 6, "c": 5}}, {"q": {"a": 1, "c": 3}}]
    >>> fp.aggregation.aggregate(runs, "CombMIN").run.to_dict()
    {'q': {'b': 0.25, 'a': 0.0, 'c': 0.0}}
    """

    kind: ClassVar[int] = kernel.COMB_MIN


@dataclass(frozen=True)
class CombMED(ScoreFusion):
    """CombMED: the median of a document's normalized scores.

    Parameters
    ----------
    normalize : str, default "min-max"
        The normalization of each list's scores: "min-max", "max", "sum", "z", "rank", "borda" or
        "none".

    Raises
    ------
    ParameterError
        If there is no such normalization.

    References
    ----------
    .. [1] E. A. Fox, J. A. Shaw, "Combination of Multiple Searches", TREC-2, 1993.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"q": {"a": 9, "b": 6, "c": 5}}, {"q": {"a": 1, "c": 3}}]
    >>> fp.aggregation.aggregate(runs, "CombMED").run.to_dict()
    {'q': {'a': 0.5, 'c': 0.5, 'b': 0.25}}
    """

    kind: ClassVar[int] = kernel.COMB_MED
