"""RankLib's model files: Coordinate Ascent, Linear Regression, LambdaMART and MART."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from firstpage.data.io.files import read_all
from firstpage.errors import DataError, location
from firstpage.rankers.model_files import Model
from firstpage.scorers.forest import DEEPEST, Node, Tree, lightgbm_text
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.scorer import Scoring
from firstpage.scorers.trees import TreesScoring

LINEAR, TREES = ("Coordinate Ascent", "Linear Regression"), ("LambdaMART", "MART")
MOST = 1_000_000  # features


def read_ranklib(path: str | os.PathLike[str], n_features: int | None = None) -> Model:
    """A model that predicts as RankLib does.

    Features are numbered from 1 on; without `n_features` the greatest number in the file is the
    last.  How RankLib scaled features (-norm) is not in its files: scale the data alike.
    """
    file = Path(path)
    try:
        lines = [line.strip() for line in read_all(file).decode("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: is no UTF-8 text (byte {error.start}).") from None
    first = next((line for line in lines if line), "")
    kind = first.removeprefix("##").strip() if first.startswith("##") else ""
    if kind not in LINEAR + TREES:
        raise DataError(
            f"{file}: is no model of RankLib that can be read (its first line is {first[:60]!r}); "
            f"those of {', '.join(LINEAR + TREES)} can."
        )
    body = ["" if line.startswith("##") else line for line in lines]  # lines keep their numbers
    try:
        scoring: Scoring = _linear(body, n_features) if kind in LINEAR else _trees(body, n_features)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except ElementTree.ParseError as error:
        said = str(error).partition(":")[0]
        raise DataError(
            f"{location(file, error.position[0])}: damaged or cut short: {said}."
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{file}: damaged: {said}.".replace("..", ".")) from None
    ranker = "Regression" if kind in LINEAR else "LambdaMART"
    return Model(ranker, {}, scoring, None, None, {"imported": f"RankLib {kind}"}, str(file))


def _linear(body: list[str], n_features: int | None) -> LinearScoring:
    pairs = {}
    weights_of = [line for line in body if line]
    if len(weights_of) != 1:
        raise DataError(f"damaged: it has {len(weights_of)} lines of weights; RankLib writes one.")
    for word in weights_of[0].split():
        name, _, weight = word.partition(":")
        if int(name) < 0 or int(name) in pairs:
            raise DataError(f"feature {name} is wrong or there twice.")
        pairs[int(name)] = float(weight)
    intercept = pairs.pop(0, 0.0)
    weights = np.zeros(_count(max(pairs, default=1), n_features))
    for number, value in pairs.items():
        weights[number - 1] = value
    if not np.isfinite(weights).all() or not np.isfinite(intercept):
        raise DataError("a weight is not finite.")
    return LinearScoring(weights, intercept)


def _trees(body: list[str], n_features: int | None) -> TreesScoring:
    text = "\n".join(body)
    if "<!" in text:
        raise DataError("has declarations that models do not have.")
    trees = []
    for tree in ElementTree.fromstring(text):
        nodes: list[Node] = []
        _node(tree[0], float(np.float32(tree.attrib["weight"])), nodes, 0)
        trees.append(Tree.of(nodes))
    if not trees:
        raise DataError("has no trees.")
    count = _count(max(int(tree.feature.max()) for tree in trees) + 1, n_features)
    return TreesScoring("lightgbm", lightgbm_text(trees, count), count)


def _node(node: ElementTree.Element, weight: float, nodes: list[Node], depth: int) -> int:
    """RankLib multiplies a leaf, a float, by the weight of the tree, in double."""
    if depth > DEEPEST:
        raise DataError(f"a tree has more than {DEEPEST} splits one below the other.")
    at = len(nodes)
    if node[0].tag == "output":
        value = float(np.float32(node[0].text)) * weight
        if not np.isfinite(value):
            raise DataError("a leaf is not finite.")
        nodes.append((-1, 0.0, -1, -1, value))
        return at
    if [child.tag for child in node] != ["feature", "threshold", "split", "split"]:
        raise DataError("a split has not one feature, threshold, left and right.")
    feature, threshold = int(node[0].text or "") - 1, float(np.float32(node[1].text))
    sides = {child.attrib["pos"]: child for child in node[2:]}
    if not 0 <= feature < MOST or not np.isfinite(threshold) or set(sides) != {"left", "right"}:
        raise DataError("a split has not one feature, threshold, left and right.")
    nodes.append((0, 0.0, 0, 0, 0.0))
    left = _node(sides["left"], weight, nodes, depth + 1)
    right = _node(sides["right"], weight, nodes, depth + 1)
    nodes[at] = (feature, threshold, left, right, 0.0)
    return at


def _count(least: int, given: int | None) -> int:
    if given is not None and given < least:
        raise DataError(f"it has a feature {least}, and n_features is {given}.")
    count = max(least, 1) if given is None else given
    if count > MOST:
        raise DataError(f"{count} features are too many.")
    return count
