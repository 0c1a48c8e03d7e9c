"""A scorer in one Python file that needs NumPy alone; it computes as `predict` does."""

from __future__ import annotations

import json
import textwrap
from importlib.resources import files
from typing import Any

import numpy as np

from firstpage.interop.export.subject import Files, Subject
from firstpage.scorers.forest import Forest

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


def _held(subject: Subject) -> dict[str, Any]:
    found: dict[str, Any] = {"features": list(subject.features.names), "kind": subject.kind}
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


def forest_arrays(forest: Forest) -> dict[str, Any]:
    """All nodes in one table; a tree begins at its root."""
    roots, parts = [], {n: list[Any]() for n in ("feature", "threshold", "left", "right", "value")}
    for tree in forest.trees:
        start = len(parts["feature"])
        roots.append(start)
        for name in ("feature", "threshold", "value"):
            parts[name] += getattr(tree, name).tolist()
        for name in ("left", "right"):
            parts[name] += (getattr(tree, name) + start).tolist()
    return {"roots": roots, "single": forest.single, **parts}
