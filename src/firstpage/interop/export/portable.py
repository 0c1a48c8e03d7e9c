"""A scorer in one Python file that needs NumPy alone; it computes as `predict` does."""

from __future__ import annotations

import json
import textwrap
from importlib.resources import files

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.interop.export.subject import Files, Subject
from firstpage.scorers.forest import Forest
from firstpage.scorers.scorer import JsonObject
from firstpage.types import Array

HOW = """`from model import score` (or whatever the file is called): `score(X)` takes the features
of one query's candidates, a row a document, and returns one score each; `score(X, qid)` those of
many queries. On the command line: `python model.py < features.txt`, numbers with blanks between."""
WIDE = 96


def export(subject: Subject) -> Files:
    held = json.dumps(_held(subject), separators=(",", ":"))
    lines = [repr(held[at : at + WIDE]) for at in range(0, len(held), WIDE)]
    body = files("firstpage.interop.export").joinpath("scorer.txt").read_text("utf-8")
    text = body.replace("@MODEL@", textwrap.indent("\n".join(lines), "    "))
    text = text.replace("@ABOUT@", f"{_plain(subject.ranker)}, {len(subject.features.names)}")
    return Files("model.py", {"model.py": text.encode()}, HOW)


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isascii() and (c.isalnum() or c in " ._()=,'+-"))


def _held(subject: Subject) -> JsonObject:
    found: JsonObject = {"features": list(subject.features.names), "kind": subject.kind}
    if subject.transform is not None:
        found["scaling"] = subject.transform.to_dict()
    if subject.kind == "linear":
        weights, intercept = subject.coefficients()
        found |= {"weights": weights.tolist(), "intercept": float(intercept)}
    elif subject.kind == "network":
        layers = subject.network()._asdict()
        found |= {name: np.asarray(layer, np.float64).tolist() for name, layer in layers.items()}
    else:
        found |= forest_arrays(subject.own_forest())
    return found


def forest_arrays(forest: Forest) -> JsonObject:
    """All nodes in one table; a tree begins at its root."""
    trees = forest.trees
    roots = offsets_from_lengths([len(tree.feature) for tree in trees])[:-1].tolist()
    columns: dict[str, list[Array]] = {
        "feature": [tree.feature for tree in trees],
        "threshold": [tree.threshold for tree in trees],
        "left": [tree.left + root for tree, root in zip(trees, roots, strict=True)],
        "right": [tree.right + root for tree, root in zip(trees, roots, strict=True)],
        "value": [tree.value for tree in trees],
    }
    parts = {name: np.concatenate(column).tolist() for name, column in columns.items()}
    return {"roots": roots, "single": forest.single, **parts}
