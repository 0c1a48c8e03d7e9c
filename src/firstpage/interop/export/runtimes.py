"""Models for programs of one's own: ONNX runtimes, NumPy alone, the library that grew the trees.

ONNX: one graph from a query's candidates to their scores, scaling inside.  All is computed in
float64, whatever the input, in the order of `predict`; scaled features are rounded to the type of
the input, as `predict` does.  NumPy: one Python file, which computes as `predict` does.
"""

from __future__ import annotations

import json
import textwrap
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.errors import DataError, missing_dependency
from firstpage.interop.export.export_model import ExportFiles, ExportModel
from firstpage.interop.export.float32 import single_leaves
from firstpage.scorers.forest import Forest
from firstpage.scorers.scorer import JsonObject
from firstpage.types import Array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


SUFFIX = {"lightgbm": "txt", "xgboost": "json"}
CALL = {
    "lightgbm": "lightgbm.Booster(model_file='model.txt').predict(X, raw_score=True)",
    "xgboost": (
        "booster = xgboost.Booster(); booster.load_model('model.json'); "
        "booster.predict(xgboost.DMatrix(X), output_margin=True)"
    ),
}


def export_library(subject: ExportModel) -> ExportFiles:
    model = subject.scoring.library_model
    assert model is not None, f"{subject.kind} is no model of a library"
    file = f"model.{SUFFIX[model.library]}"
    columns = json.dumps(list(subject.features.names), indent=1).encode() + b"\n"
    contents = {file: model.text.encode(), "columns.json": columns}
    how = f"In Python: `{CALL[model.library]}`. `columns.json` names the columns of X, in order."
    return ExportFiles(file, contents, how)


HOW_NUMPY = """\
`from model import score` (or whatever the file is called): `score(X)` takes the features
of one query's candidates, a row a document, and returns one score each; `score(X, qid)` those of
many queries. On the command line: `python model.py < features.txt`, numbers with blanks between."""
WIDE = 96


def export_numpy(subject: ExportModel) -> ExportFiles:
    held = json.dumps(_held(subject), separators=(",", ":"))
    lines = [repr(held[at : at + WIDE]) for at in range(0, len(held), WIDE)]
    body = files("firstpage.interop.export").joinpath("scorer.txt").read_text("utf-8")
    text = body.replace("@MODEL@", textwrap.indent("\n".join(lines), "    "))
    text = text.replace("@ABOUT@", f"{_plain(subject.ranker)}, {len(subject.features.names)}")
    return ExportFiles("model.py", {"model.py": text.encode()}, HOW_NUMPY)


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isascii() and (c.isalnum() or c in " ._()=,'+-"))


def _held(subject: ExportModel) -> JsonObject:
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


Untyped: TypeAlias = Any
"""A node, tensor, attribute or model of ONNX, which is optional."""
HOW_ONNX = """\
The input `features` has one row for each candidate of ONE query, the output `scores` one
number each:

    import onnxruntime
    session = onnxruntime.InferenceSession('model.onnx')
    scores = session.run(['scores'], {'features': X})[0]

The names of the columns are in the metadata of the model (`features`). Numbers must be finite."""
OPSET, TREES_OPSET, FORMAT = 17, 3, 8  # read by ONNX Runtime from 1.14 on


def export_onnx(subject: ExportModel) -> ExportFiles:
    return ExportFiles("model.onnx", {"model.onnx": graph_of(subject, "documents")}, HOW_ONNX)


def graph_of(subject: ExportModel, rows: str | int) -> bytes:
    """The file: an input of so many rows, or of any number that has a name."""
    if subject.dtype not in ("float32", "float64"):
        raise DataError(f"dtype must be float32 or float64; got {subject.dtype!r}.")
    graph = _Graph(subject.dtype == "float32")
    at = graph.node("Cast", ["features"], to=graph.double) if graph.single else "features"
    if subject.transform is not None:
        at = _scaled(graph, at, subject)
    _scores(graph, at, subject)
    held: bytes = graph.model(subject, rows).SerializeToString()
    return held


class _Graph:
    """Nodes and constants as they come."""

    def __init__(self, single: bool) -> None:
        try:
            import onnx
        except ImportError as error:
            raise missing_dependency("onnx", "onnx", "export to onnx") from error
        self.onnx, self.single = onnx, single
        self.double, self.float = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT
        self.nodes: list[Untyped] = []
        self.constants: list[Untyped] = []

    def constant(self, value: ArrayLike, dtype: type[np.generic] = np.float64) -> str:
        name = f"c{len(self.constants)}"
        array = np.asarray(value, dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, inputs: list[str], output: str = "", **attributes: Untyped) -> str:
        name = output or f"n{len(self.nodes)}"
        made = self.onnx.helper.make_node(kind, inputs, [name], **attributes)
        self.nodes.append(made)
        return name

    def model(self, subject: ExportModel, rows: str | int) -> Untyped:
        helper = self.onnx.helper
        kind, width = (self.float if self.single else self.double), len(subject.features.names)
        graph = helper.make_graph(
            self.nodes, "firstpage",
            [helper.make_tensor_value_info("features", kind, [rows, width])],
            [helper.make_tensor_value_info("scores", self.double, [rows])],
            self.constants,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_OPSET)]
        made = helper.make_model(graph, opset_imports=opsets, producer_name="firstpage")
        made.ir_version = FORMAT
        names = json.dumps(list(subject.features.names))
        helper.set_model_props(made, {"features": names, "ranker": subject.ranker})
        self.onnx.checker.check_model(made)
        return made


def _scaled(graph: _Graph, at: str, subject: ExportModel) -> str:
    """Scaled as in training, and rounded to the type of the input."""
    transform = subject.transform
    assert transform is not None
    if transform.per == "global":
        shift, scale = map(graph.constant, subject.scaling())
        moved = graph.node("Sub", [at, shift])
    elif transform.name == "minmax":
        shift = graph.node("ReduceMin", [at], axes=[0], keepdims=1)
        high = graph.node("ReduceMax", [at], axes=[0], keepdims=1)
        moved = graph.node("Sub", [at, shift])
        scale = _no_zero(graph, graph.node("Sub", [high, shift]))
    else:
        shift = graph.node("ReduceMean", [at], axes=[0], keepdims=1)
        moved = graph.node("Sub", [at, shift])
        square = graph.node("Mul", [moved, moved])
        spread = graph.node("Sqrt", [graph.node("ReduceMean", [square], axes=[0], keepdims=1)])
        scale = _no_zero(graph, spread)
    found = graph.node("Div", [moved, scale])
    if graph.single:
        found = graph.node("Cast", [found], to=graph.float)
        found = graph.node("Cast", [found], to=graph.double)
    return found


def _no_zero(graph: _Graph, spread: str) -> str:
    """Divisors: a feature without spread is only shifted."""
    positive = graph.node("Greater", [spread, graph.constant(0.0)])
    return graph.node("Where", [positive, spread, graph.constant(1.0)])


def _scores(graph: _Graph, at: str, subject: ExportModel) -> None:
    if subject.kind == "linear":
        weights, intercept = subject.coefficients()
        product = graph.node("MatMul", [at, graph.constant(weights)])
        graph.node("Add", [product, graph.constant(intercept)], "scores")
    elif subject.kind == "network":
        network, constant = subject.network(), graph.constant
        moved = graph.node("Sub", [at, constant(network.mean)])
        scaled = graph.node("Div", [moved, constant(network.deviation)])
        inner = graph.node("MatMul", [scaled, constant(network.W)])
        hidden = graph.node("Relu", [graph.node("Add", [inner, constant(network.b)])])
        outer = graph.node("MatMul", [hidden, constant(network.v)])
        graph.node("Add", [outer, constant(network.c)], "scores")
    else:
        forest = subject.own_forest()
        single_leaves(forest, subject.source)  # the sum is handed out as float32
        if forest.single and not graph.single:  # XGBoost looks at float32 numbers
            rounded = graph.node("Cast", [at], to=graph.float)
            at = graph.node("Cast", [rounded], to=graph.double)
        summed = _summed(graph, _forest(graph, at, forest), forest)
        wide = graph.node("Cast", [summed], to=graph.double)
        graph.node("Squeeze", [wide, graph.constant([1], np.int64)], "scores")


def _summed(graph: _Graph, found: str, forest: Forest) -> str:
    """A column of sums.  The runtime adds trees up in float64; XGBoost in float32, one after the
    other, and with hundreds of trees that shows: so they come one by one, and are added so."""
    if not forest.single:
        return found
    sums = graph.node("CumSum", [found, graph.constant(1, np.int64)])
    return graph.node("Gather", [sums, graph.constant([len(forest.trees) - 1], np.int64)], axis=1)


def _forest(graph: _Graph, at: str, forest: Forest) -> str:
    """The sum of all trees; where leaves are added in float32, a column a tree."""
    helper, double = graph.onnx.helper, graph.double
    columns: dict[str, list[Untyped]] = {
        n: [] for n in (
            "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes",
            "nodes_truenodeids", "nodes_falsenodeids", "target_treeids", "target_nodeids",
        )
    }  # fmt: skip
    values, weights = [], []
    for number, tree in enumerate(forest.trees):
        leaf = tree.feature < 0
        size = len(leaf)
        columns["nodes_treeids"] += [number] * size
        columns["nodes_nodeids"] += range(size)
        columns["nodes_featureids"] += np.where(leaf, 0, tree.feature).tolist()
        columns["nodes_modes"] += np.where(leaf, "LEAF", "BRANCH_LEQ").tolist()
        columns["nodes_truenodeids"] += np.where(leaf, 0, tree.left).tolist()
        columns["nodes_falsenodeids"] += np.where(leaf, 0, tree.right).tolist()
        columns["target_treeids"] += [number] * int(leaf.sum())
        columns["target_nodeids"] += np.flatnonzero(leaf).tolist()
        values += tree.threshold.tolist()
        weights += tree.value[leaf].tolist()
    given = dict[str, Untyped](columns)
    targets = given["target_treeids"] if forest.single else [0] * len(weights)
    return graph.node(
        "TreeEnsembleRegressor", [at], domain="ai.onnx.ml",
        n_targets=len(forest.trees) if forest.single else 1,
        aggregate_function="SUM", post_transform="NONE", target_ids=targets,
        nodes_values_as_tensor=helper.make_tensor("v", double, [len(values)], values),
        target_weights_as_tensor=helper.make_tensor("w", double, [len(weights)], weights),
        **given,
    )  # fmt: skip
