"""Reader of RankLib model files: Coordinate Ascent, Linear Regression, LambdaMART and MART."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from firstpage.core import DataError, location
from firstpage.data.io import read_all
from firstpage.learning.models import Model
from firstpage.learning.scorers import (
    MAX_TREE_DEPTH,
    LinearScoring,
    Node,
    Scoring,
    Tree,
    TreesScoring,
    lightgbm_text,
)

LINEAR, TREES = ("Coordinate Ascent", "Linear Regression"), ("LambdaMART", "MART")
MAX_FEATURES = 1_000_000


def read_ranklib(path: str | os.PathLike[str], n_features: int | None = None) -> Model:
    """Read a RankLib model, which predicts as RankLib does.

    RankLib's files do not contain the feature normalization (-norm): normalize the data likewise.

    Parameters
    ----------
    path : path
        A model file of Coordinate Ascent, Linear Regression, LambdaMART or MART.
    n_features : int, optional
        The number of features; by default the largest number in the file.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    DataError
        If the file is of another kind or damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.txt")
    ...     _ = path.write_text("## Linear Regression\\n## Lambda = 0.0\\n0:1.0 1:2.0 2:0.5\\n")
    ...     model = fp.interop.read_ranklib(path)
    >>> model.n_features
    2
    """
    file = Path(path)
    try:
        lines = [line.strip() for line in read_all(file).decode("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: is not UTF-8 text (byte {error.start}).") from None
    first = next((line for line in lines if line), "")
    kind = first.removeprefix("##").strip() if first.startswith("##") else ""
    if kind not in LINEAR + TREES:
        raise DataError(
            f"{file}: is not a RankLib model of {', '.join(LINEAR + TREES)} (its first line "
            f"is {first[:60]!r})."
        )
    body = ["" if line.startswith("##") else line for line in lines]  # which keeps the line numbers
    try:
        scoring: Scoring = _linear(body, n_features) if kind in LINEAR else _trees(body, n_features)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except ElementTree.ParseError as error:
        reason = str(error).partition(":")[0]
        raise DataError(
            f"{location(file, error.position[0])}: damaged or truncated: {reason}."
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{file}: damaged: {reason}.".replace("..", ".")) from None
    ranker = "Regression" if kind in LINEAR else "LambdaMART"
    return Model(ranker, {}, scoring, None, None, {"imported": f"RankLib {kind}"}, str(file))


def _linear(body: list[str], n_features: int | None) -> LinearScoring:
    """Return a linear model."""
    pairs = {}
    weight_lines = [line for line in body if line]
    if len(weight_lines) != 1:
        raise DataError(
            f"damaged: it has {len(weight_lines)} lines of weights; RankLib writes one."
        )
    for word in weight_lines[0].split():
        name, _, weight = word.partition(":")
        if int(name) < 0 or int(name) in pairs:
            raise DataError(f"feature {name} is invalid or occurs twice.")
        pairs[int(name)] = float(weight)
    intercept = pairs.pop(0, 0.0)
    weights = np.zeros(_count(max(pairs, default=1), n_features))
    for number, value in pairs.items():
        weights[number - 1] = value
    if not np.isfinite(weights).all() or not np.isfinite(intercept):
        raise DataError("a weight is not finite.")
    return LinearScoring(weights, intercept)


def _trees(body: list[str], n_features: int | None) -> TreesScoring:
    """Return an ensemble of trees."""
    text = "\n".join(body)
    if "<!" in text:
        raise DataError("has XML declarations, which models do not have.")
    trees = []
    for tree in ElementTree.fromstring(text):
        nodes: list[Node] = []
        _node(tree[0], float(np.float32(tree.attrib["weight"])), nodes, 0)
        trees.append(Tree.from_nodes(nodes))
    if not trees:
        raise DataError("has no trees.")
    count = _count(max(int(tree.feature.max()) for tree in trees) + 1, n_features)
    return TreesScoring("lightgbm", lightgbm_text(trees, count), count)


def _node(node: ElementTree.Element, weight: float, nodes: list[Node], depth: int) -> int:
    """Append a node and its children; return its index.

    RankLib multiplies a leaf, a float, by the weight of the tree in double precision.
    """
    if depth > MAX_TREE_DEPTH:
        raise DataError(f"a tree is deeper than {MAX_TREE_DEPTH} splits.")
    index = len(nodes)
    if node[0].tag == "output":
        value = float(np.float32(node[0].text)) * weight
        if not np.isfinite(value):
            raise DataError("a leaf is not finite.")
        nodes.append((-1, 0.0, -1, -1, value))
        return index
    if [child.tag for child in node] != ["feature", "threshold", "split", "split"]:
        raise DataError("a split must have one feature, one threshold, a left and a right child.")
    feature, threshold = int(node[0].text or "") - 1, float(np.float32(node[1].text))
    sides = {child.attrib["pos"]: child for child in node[2:]}
    valid = 0 <= feature < MAX_FEATURES and np.isfinite(threshold)
    if not valid or set(sides) != {"left", "right"}:
        raise DataError("a split must have one feature, one threshold, a left and a right child.")
    nodes.append((0, 0.0, 0, 0, 0.0))
    left = _node(sides["left"], weight, nodes, depth + 1)
    right = _node(sides["right"], weight, nodes, depth + 1)
    nodes[index] = (feature, threshold, left, right, 0.0)
    return index


def _count(largest: int, n_features: int | None) -> int:
    """Return the number of features; raise an error if `n_features` is too small."""
    if n_features is not None and n_features < largest:
        raise DataError(f"it has a feature {largest}, and n_features is {n_features}.")
    count = max(largest, 1) if n_features is None else n_features
    if count > MAX_FEATURES:
        raise DataError(f"{count} features are too many.")
    return count
