"""The set of features to train on: few judged queries do not determine the weights of all."""

from __future__ import annotations

import fnmatch
import warnings
from dataclasses import replace

import numpy as np

from firstpage.core import DataError, FirstpageWarning, Floats, Ints, warn
from firstpage.data import Dataset
from firstpage.evaluation.measures import evaluate
from firstpage.learning.rankers import ListNet
from firstpage.search.features import SHORT
from firstpage.search.own_features import own_name

MAX_QUERIES = 300  # judged ones, on which the sets are compared
FOLDS = 5
MEASURE = "NDCG@10"


def choose_features(data: Dataset) -> Dataset:
    """Return labeled features of texts, without those that do not help to rank these labels.

    Compared are all features, and the short set with the numbers, dates and features of one's own.
    ListNet is cross-validated with both.  All features stay if their mean NDCG@10 is better by more
    than the standard error of the difference (the one-standard-error rule [1]_), and with fewer
    than two queries with different labels the short set is taken.  A warning says what was chosen,
    and why.  The same data always give the same choice.

    Parameters
    ----------
    data : Dataset
        The data of `TextFeatures(index).dataset(..)`, with labels.

    Returns
    -------
    Dataset
        The same documents, with the chosen features.

    Raises
    ------
    DataError
        If the data do not record how their features were computed.

    References
    ----------
    .. [1] Breiman, Friedman, Olshen, Stone.  Classification and Regression Trees.  1984.

    Examples
    --------
    >>> import os, tempfile, warnings
    >>> import firstpage as fp
    >>> rows = [{"id": "d1", "title": "Red shoes"}, {"id": "d2", "title": "Red coat"}]
    >>> queries, qrels = [("q1", "red shoe")], fp.Qrels.from_dict({"q1": {"d1": 1, "d2": 0}})
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     index = fp.Index.from_documents(rows, os.path.join(folder, "shop.index"))
    ...     data = fp.TextFeatures(index).dataset(queries, index.candidates(queries), qrels)
    ...     print(data.n_features, fp.choose_features(data).n_features)
    56 13
    """
    columns = _short_columns(data)
    if len(columns) == data.n_features:
        return data
    short = _with_columns(data, columns)
    sizes = f"{short.n_features} features (short, values) of {data.n_features}"
    sample = _sample(data)
    if len(sample) < 2:
        _note(
            f"{data.source}: chose {sizes}, since fewer than two queries have different labels, "
            "which do not determine the weights of all."
        )
        return short
    of_all, of_short = _validated(data[sample]), _validated(short[sample])
    difference = of_all - of_short
    error = float(difference.std(ddof=1)) / len(sample) ** 0.5
    chosen, name = (data, "all") if difference.mean() > error else (short, "short")
    what = f"all {data.n_features} features, not {short.n_features}" if name == "all" else sizes
    _note(
        f"{data.source}: chose {what}: cross-validated ListNet has {MEASURE} {of_all.mean():.3f} "
        f"with all and {of_short.mean():.3f} with short, values on {len(sample)} judged queries, "
        f"and all must be better by more than the standard error, {error:.3f}."
    )
    return chosen


def _short_columns(data: Dataset) -> list[int]:
    """Return the columns of the short set, numbers, dates and features of one's own."""
    recipe = data.recipe
    if recipe is None or data.feature_names is None:
        raise DataError(
            f"{data.source}: does not record how its features were computed; give the data of "
            "TextFeatures(index).dataset(..)."
        )
    values = {*recipe["schema"]["number"], *recipe["schema"]["date"]}
    others = {own_name(text) for text in recipe["own"]}
    return [
        column
        for column, name in enumerate(data.feature_names)
        if name in others
        or name.rpartition(".")[0] in values
        or any(fnmatch.fnmatchcase(name, pattern) for pattern in SHORT)
    ]


def _with_columns(data: Dataset, columns: list[int]) -> Dataset:
    """Return the data with some of the features, and the recipe of these."""
    assert data.feature_names is not None
    assert data.recipe is not None
    names = tuple(data.feature_names[column] for column in columns)
    recipe = {**data.recipe, "features": list(names)}
    return replace(data.with_features(data.X[:, columns], names), recipe=recipe)


def _sample(data: Dataset) -> Ints:
    """Return at most `MAX_QUERIES` random queries with different labels."""
    informative = [q for q, each in enumerate(data) if each.n_docs and np.ptp(each.y) > 0]
    chosen = np.random.default_rng(0).permutation(np.array(informative, np.int64))
    return np.sort(chosen[:MAX_QUERIES])


def _validated(data: Dataset) -> Floats:
    """Return the measure of each query by ListNet that was trained on other folds."""
    n_folds = min(FOLDS, len(data))
    fold = np.random.default_rng(0).permutation(len(data)) % n_folds
    values = np.empty(len(data))
    for number in range(n_folds):
        test = data[fold == number]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FirstpageWarning)
            scores = ListNet(normalize="standard").fit(data[fold != number]).predict(test)
            evaluation = evaluate(scores, test, measures=MEASURE)
        values[fold == number] = evaluation.per_query(MEASURE)
    return values


def _note(message: str) -> None:
    warn(message)
