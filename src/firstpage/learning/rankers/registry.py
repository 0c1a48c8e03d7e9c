"""All rankers by name."""

from __future__ import annotations

import os
from typing import Any

from firstpage.core import DataError, FirstpageError, ParameterError, canonical_name, register
from firstpage.learning.models.model_files import parse_parameter, read_model
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.inputs import remember_features
from firstpage.learning.rankers.fit.run import set_fitted
from firstpage.learning.rankers.methods import METHODS, create_ranker
from firstpage.learning.rankers.toprank import TopRank

RANKERS: dict[str, type[Ranker]] = {**METHODS, "TopRank": TopRank}


def ranker(text: str, **parameters: Any) -> Ranker:
    """Return the ranker that a text names.

    Parameters
    ----------
    text : str
        A name, possibly with parameters: "ListMLE", "ListMLE(k=10)", "top-k ListMLE",
        "AdaRank.MAP".  Case, hyphens, underscores, periods and blanks are ignored.
    **parameters : object
        Parameters of the ranker; they override those of the text.

    Returns
    -------
    Ranker
        The ranker, not fitted.

    Raises
    ------
    DataError
        If the ranker or a parameter is unknown.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.ranker("top-k listmle", k=5)
    ListMLE(k=5)
    """
    return create_ranker(text, RANKERS, **parameters)


def register_ranker(ranker_class: type[Ranker], name: str | None = None) -> type[Ranker]:
    """Give a ranker of your own a name, by which `fp.ranker` and the commands find it.

    Parameters
    ----------
    ranker_class : type
        A dataclass derived from `fp.Ranker`, or from a ranker such as `fp.LossRanker`.
    name : str, optional
        The name; that of the class if None.

    Returns
    -------
    type
        The class, so that this can be used as a decorator.

    Raises
    ------
    ParameterError
        If it is not such a class, or if another ranker has the name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import firstpage as fp
    >>> @fp.extend.register_ranker
    ... @dataclass(eq=False, repr=False)
    ... class LogisticRanker(fp.LossRanker):
    ...     loss: object = "PairwiseLogistic(average=True)"
    >>> fp.ranker("LogisticRanker", k=5)
    LogisticRanker(k=5)
    """
    if not isinstance(ranker_class, type) or not issubclass(ranker_class, Ranker):
        raise ParameterError(
            f"register_ranker takes a class derived from fp.Ranker; got {ranker_class!r}."
        )
    listed = ranker_class.__name__ if name is None else name
    if canonical_name(listed) not in map(canonical_name, RANKERS):
        _check_not_an_alias(listed)
    register(ranker_class, name, "ranker", METHODS, RANKERS)
    return ranker_class


def _check_not_an_alias(name: str) -> None:
    """Raise an error if the name stands for a ranker with certain parameters."""
    try:
        known = ranker(name)
    except FirstpageError:
        return
    raise ParameterError(
        f"there is already a ranker {name!r}: {known}; register yours by another name=."
    )


def describe_rankers() -> list[tuple[str, str, str]]:
    """Return the name, a one-line description and the paper of every ranker."""
    return [(name, cls._about, cls._paper) for name, cls in RANKERS.items()]


def load(path: str | os.PathLike[str]) -> Ranker:
    """Read a model file as a fitted ranker.

    Parameters
    ----------
    path : path
        A file that `Ranker.save` or `firstpage train` wrote.

    Returns
    -------
    Ranker
        The ranker with its parameters and fitted attributes.

    Raises
    ------
    DataError
        If the file is missing, damaged, or written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> import firstpage as fp
    >>> ranker = fp.Regression(k=1).fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranker.save(f"{folder}/model.json")
    ...     fp.load(f"{folder}/model.json")
    Regression(k=1)
    """
    model = read_model(path)
    parameters = {
        key: parse_parameter(value, model.source) for key, value in model.parameters.items()
    }
    try:
        fitted = ranker(model.ranker, **parameters)
        if any(":" in str(value) for value in parameters.values()):  # a loss of the user's own
            fitted.check_parameters()
    except ParameterError as error:
        raise DataError(
            f"{model.source}: {error} `firstpage rank` and `serve` do not need it."
            if ":" in str(error).partition(" ")[0]
            else f"{model.source}: {error}"
        ) from None
    remember_features(fitted, model)
    try:
        set_fitted(fitted, model.scoring, model.training, model.transform)
    except (TypeError, ValueError) as error:
        raise DataError(f"{model.source}: damaged: its training record ({error}).") from None
    return fitted
