"""Export to ONNX, to a Python file that needs NumPy alone, and to the library that grew the trees.

ONNX: one graph from the candidates of a query to their scores, scaling included.  It computes in
float64 for any input, in the order of `predict`; scaled features are rounded to the type of the
input, as `predict` does.  NumPy: one Python file that computes as `predict` does.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections import defaultdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from firstpage.core import Array, DataError, missing_dependency
from firstpage.data import offsets_from_lengths
from firstpage.interop.export.export_model import ExportFiles, ExportModel, json_bytes, usage
from firstpage.interop.export.float32 import check_leaves
from firstpage.interop.export.onnx_network import add_network
from firstpage.learning.scorers import Forest, JsonObject, Tree, forward

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


def export_library(exported: ExportModel) -> ExportFiles:
    """Return the model file of LightGBM or XGBoost."""
    model = exported.scoring.library_model
    assert model is not None, f"{exported.kind} is not a model of a library"
    file = f"model.{SUFFIX[model.library]}"
    columns = json_bytes(list(exported.features.names))
    contents = {file: model.text.encode(), "columns.json": columns}
    if exported.categories:
        contents["categories.json"] = json_bytes(category_lists(exported))
    usage = f"In Python: `{CALL[model.library]}`. `columns.json` names the columns of X, in order."
    return ExportFiles(file, contents, usage)


def category_lists(exported: ExportModel) -> dict[str, list[str]]:
    """Return the categories by the name of the feature, in the order of their indices."""
    names = exported.features.names
    return {names[column]: list(known) for column, known in exported.categories.items()}


LINE_WIDTH = 96


def export_numpy(exported: ExportModel) -> ExportFiles:
    """Return a Python file that scores with NumPy alone."""
    text = json.dumps(_model_dict(exported), separators=(",", ":"))
    lines = [repr(text[i : i + LINE_WIDTH]) for i in range(0, len(text), LINE_WIDTH)]
    body = files("firstpage.interop.export").joinpath("scorer.txt").read_text("utf-8")
    text = body.replace("@MODEL@", textwrap.indent("\n".join(lines), "    "))
    source = _network_source() if exported.scoring.network is not None else ""
    text = text.replace("@NETWORK@\n", source)
    text = text.replace("@ABOUT@", f"{_safe(exported.ranker)}, {len(exported.features.names)}")
    return ExportFiles("model.py", {"model.py": text.encode()}, usage("numpy"))


def _network_source() -> str:
    """Return the functions that score a network, from our own source."""
    functions = (forward.forward, forward.NumpyOperations)
    return "\n\n".join(inspect.getsource(function) for function in functions) + "\n\n"


def _safe(text: str) -> str:
    """Return a text without characters that could end a docstring."""
    return "".join(c for c in text if c.isascii() and (c.isalnum() or c in " ._()=,'+-"))


def _model_dict(exported: ExportModel) -> JsonObject:
    """Return the model as JSON."""
    model: JsonObject = {"features": list(exported.features.names), "kind": exported.kind}
    model["missing"] = exported.accepts_missing
    if exported.categories:
        model["categories"] = category_lists(exported)
    if exported.transform is not None:
        model["scaling"] = exported.transform.to_dict()
    if exported.kind == "linear":
        weights, intercept = exported.coefficients()
        model |= {"weights": weights.tolist(), "intercept": float(intercept)}
    elif exported.scoring.network is not None:
        model |= exported.network().to_dict() | {"kind": exported.kind}
        model["shapes"] = exported.network().architecture.shapes
    else:
        model |= forest_arrays(exported.own_forest())
    return model


def forest_arrays(forest: Forest) -> JsonObject:
    """Return the nodes of all trees in one table, with the indices of the roots."""
    trees = forest.trees
    roots = offsets_from_lengths([len(tree.feature) for tree in trees])[:-1].tolist()
    columns: dict[str, list[Array]] = {
        "feature": [tree.feature for tree in trees],
        "threshold": [tree.threshold for tree in trees],
        "left": [tree.left + root for tree, root in zip(trees, roots, strict=True)],
        "right": [tree.right + root for tree, root in zip(trees, roots, strict=True)],
        "value": [tree.value for tree in trees],
        "missing_left": [tree.missing_left.astype(int) for tree in trees],
    }
    firsts = offsets_from_lengths([len(tree.subsets) for tree in trees])[:-1].tolist()
    if forest.categories:
        columns["subset"] = [
            np.where(tree.subset < 0, -1, tree.subset + first)
            for tree, first in zip(trees, firsts, strict=True)
        ]
    arrays = {name: np.concatenate(column).tolist() for name, column in columns.items()}
    subsets = [codes.tolist() for tree in trees for codes in tree.subsets]
    return {"roots": roots, "single": forest.single, "subsets": subsets, **arrays}


Untyped: TypeAlias = Any
"""A node, tensor, attribute or model of ONNX, which is optional."""
OPSET, TREES_OPSET, FORMAT = 17, 3, 8  # for ONNX Runtime 1.14 and later


def export_onnx(exported: ExportModel) -> ExportFiles:
    """Return a model as an ONNX graph."""
    return ExportFiles("model.onnx", {"model.onnx": graph_of(exported, "documents")}, usage("onnx"))


def graph_of(exported: ExportModel, rows: str | int) -> bytes:
    """Return the ONNX file, for this number of rows, or for any number with this name."""
    if exported.dtype not in ("float32", "float64"):
        raise DataError(f"dtype must be float32 or float64; got {exported.dtype!r}.")
    graph = _Graph(exported.dtype == "float32")
    node = graph.node("Cast", ["features"], to=graph.double) if graph.single else "features"
    if exported.transform is not None:
        node = _scaled(graph, node, exported)
    _scores(graph, node, exported)
    serialized: bytes = graph.model(exported, rows).SerializeToString()
    return serialized


class _Graph:
    """An ONNX graph under construction."""

    def __init__(self, single: bool) -> None:
        try:
            import onnx
        except ImportError as error:
            raise missing_dependency("onnx", "onnx", "Export to ONNX") from error
        self.onnx, self.single = onnx, single
        self.double, self.float = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT
        self.nodes: list[Untyped] = []
        self.constants: list[Untyped] = []

    def constant(self, value: ArrayLike, dtype: type[np.generic] = np.float64) -> str:
        """Add a constant and return its name."""
        name = f"c{len(self.constants)}"
        array = np.asarray(value, dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, inputs: list[str], output: str = "", **attributes: Untyped) -> str:
        """Add a node and return the name of its output."""
        name = output or f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def model(self, exported: ExportModel, rows: str | int) -> Untyped:
        """Return the checked model."""
        helper = self.onnx.helper
        kind, width = (self.float if self.single else self.double), len(exported.features.names)
        graph = helper.make_graph(
            self.nodes,
            "firstpage",
            [helper.make_tensor_value_info("features", kind, [rows, width])],
            [helper.make_tensor_value_info("scores", self.double, [rows])],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="firstpage")
        model.ir_version = FORMAT
        names = json.dumps(list(exported.features.names))
        about = {"features": names, "ranker": exported.ranker}
        if exported.categories:
            about["categories"] = json.dumps(category_lists(exported))
        helper.set_model_props(model, about)
        self.onnx.checker.check_model(model)
        return model


def _scaled(graph: _Graph, features: str, exported: ExportModel) -> str:
    """Add the scaling of training, rounded to the type of the input; return its output."""
    transform = exported.transform
    assert transform is not None
    if exported.fill is not None:
        missing = graph.node("IsNaN", [features])
        features = graph.node("Where", [missing, graph.constant(exported.fill), features])
    may_be_missing = exported.fill is None and exported.accepts_missing
    if transform.per == "global":
        shift, scale = map(graph.constant, exported.scaling())
        centered = graph.node("Sub", [features, shift])
    elif may_be_missing:
        return _rounded(graph, _scaled_known(graph, features, transform.name))
    elif transform.name == "minmax":
        shift = graph.node("ReduceMin", [features], axes=[0], keepdims=1)
        high = graph.node("ReduceMax", [features], axes=[0], keepdims=1)
        centered = graph.node("Sub", [features, shift])
        scale = _nonzero(graph, graph.node("Sub", [high, shift]))
    else:
        mean = graph.node("ReduceMean", [features], axes=[0], keepdims=1)
        low = graph.node("ReduceMin", [features], axes=[0], keepdims=1)
        high = graph.node("ReduceMax", [features], axes=[0], keepdims=1)
        centered = graph.node("Sub", [features, _exact_mean(graph, mean, low, high)])
        square = graph.node("Mul", [centered, centered])
        deviation = graph.node("Sqrt", [graph.node("ReduceMean", [square], axes=[0], keepdims=1)])
        scale = _nonzero(graph, deviation)
    return _rounded(graph, graph.node("Div", [centered, scale]))


def _scaled_known(graph: _Graph, features: str, method: str) -> str:
    """Return features scaled per query by the statistics of those that are not missing."""
    missing = graph.node("IsNaN", [features])

    def replaced(values: str, number: float) -> str:
        return graph.node("Where", [missing, graph.constant(number), values])

    if method == "minmax":
        shift = graph.node("ReduceMin", [replaced(features, np.inf)], axes=[0], keepdims=1)
        high = graph.node("ReduceMax", [replaced(features, -np.inf)], axes=[0], keepdims=1)
        centered = graph.node("Sub", [features, shift])
        return graph.node("Div", [centered, _nonzero(graph, graph.node("Sub", [high, shift]))])
    axis = graph.constant([0], np.int64)
    one, zero = graph.constant(1.0), graph.constant(0.0)
    known = graph.node("Where", [missing, zero, one])
    count = graph.node("ReduceSum", [known, axis], keepdims=1)
    count = graph.node("Max", [count, one])
    total = graph.node("ReduceSum", [replaced(features, 0.0), axis], keepdims=1)
    low = graph.node("ReduceMin", [replaced(features, np.inf)], axes=[0], keepdims=1)
    high = graph.node("ReduceMax", [replaced(features, -np.inf)], axes=[0], keepdims=1)
    mean = _exact_mean(graph, graph.node("Div", [total, count]), low, high)
    centered = graph.node("Sub", [features, mean])
    square = replaced(graph.node("Mul", [centered, centered]), 0.0)
    variance = graph.node("Div", [graph.node("ReduceSum", [square, axis], keepdims=1), count])
    return graph.node("Div", [centered, _nonzero(graph, graph.node("Sqrt", [variance]))])


def _exact_mean(graph: _Graph, mean: str, low: str, high: str) -> str:
    """Return means that are not rounded where a feature is constant."""
    return graph.node("Where", [graph.node("Equal", [low, high]), low, mean])


def _rounded(graph: _Graph, scaled: str) -> str:
    """Return scaled features, rounded to the type of the input."""
    if graph.single:
        scaled = graph.node("Cast", [scaled], to=graph.float)
        scaled = graph.node("Cast", [scaled], to=graph.double)
    return scaled


def _nonzero(graph: _Graph, deviation: str) -> str:
    """Return divisors with 1 instead of 0: a constant feature is only shifted."""
    positive = graph.node("Greater", [deviation, graph.constant(0.0)])
    return graph.node("Where", [positive, deviation, graph.constant(1.0)])


def _scores(graph: _Graph, features: str, exported: ExportModel) -> None:
    """Add the scores as the output of the graph."""
    if exported.kind == "linear":
        weights, intercept = exported.coefficients()
        product = graph.node("MatMul", [features, graph.constant(weights)])
        graph.node("Add", [product, graph.constant(intercept)], "scores")
    elif exported.scoring.network is not None:
        scores = add_network(graph, features, exported.network())
        graph.node("Identity", [scores], "scores")
    else:
        forest = exported.own_forest()
        check_leaves(forest, exported.source)  # ONNX returns the sum as float32
        if forest.single and not graph.single:  # XGBoost compares float32 numbers
            rounded = graph.node("Cast", [features], to=graph.float)
            features = graph.node("Cast", [rounded], to=graph.double)
        summed = _summed(graph, _forest(graph, features, forest), forest)
        widened = graph.node("Cast", [summed], to=graph.double)
        graph.node("Squeeze", [widened, graph.constant([1], np.int64)], "scores")


def _summed(graph: _Graph, trees: str, forest: Forest) -> str:
    """Return a column of sums over the trees.

    The runtime sums trees in float64.  XGBoost sums in float32, one tree after the other, and with
    hundreds of trees the difference shows: its trees have a column each, which are summed so.
    """
    if not forest.single:
        return trees
    sums = graph.node("CumSum", [trees, graph.constant(1, np.int64)])
    return graph.node("Gather", [sums, graph.constant([len(forest.trees) - 1], np.int64)], axis=1)


def _equality_chains(tree: Tree) -> tuple[Tree, list[str]]:
    """Return a tree and the modes of its nodes, where splits on categories compare with one each.

    ONNX has no test of membership, so the split becomes a chain of nodes with the same child.
    """
    leaf = tree.feature < 0
    modes: list[str] = np.where(leaf, "LEAF", "BRANCH_LEQ").tolist()
    if not tree.subsets:
        return tree, modes
    columns = {
        name: getattr(tree, name).tolist()
        for name in ("feature", "threshold", "left", "right", "value", "missing_left")
    }
    for node in np.flatnonzero(tree.subset >= 0).tolist():
        codes = tree.subsets[tree.subset[node]].tolist() or [-1]
        right, at = columns["right"][node], node
        for position, code in enumerate(codes):
            columns["threshold"][at], modes[at] = float(code), "BRANCH_EQ"
            if position + 1 == len(codes):
                columns["right"][at] = right
                break
            columns["right"][at] = len(modes)
            at = len(modes)
            modes.append("BRANCH_EQ")
            entry = (int(tree.feature[node]), 0.0, int(tree.left[node]), -1, 0.0, False)
            for column, value in zip(columns.values(), entry, strict=True):
                column.append(value)
    arrays: Any = {name: np.array(column) for name, column in columns.items()}
    return Tree(**arrays), modes


def _forest(graph: _Graph, features: str, forest: Forest) -> str:
    """Return the sum of all trees; one column per tree where leaves are summed in float32."""
    helper, double = graph.onnx.helper, graph.double
    columns: defaultdict[str, list[Untyped]] = defaultdict(list)
    values, weights = [], []
    for number, original in enumerate(forest.trees):
        tree, modes = _equality_chains(original)
        leaf = tree.feature < 0
        size = len(leaf)
        columns["nodes_treeids"] += [number] * size
        columns["nodes_nodeids"] += range(size)
        columns["nodes_featureids"] += np.where(leaf, 0, tree.feature).tolist()
        columns["nodes_modes"] += modes
        tracks_true = (tree.missing_left & ~leaf).astype(int)
        columns["nodes_missing_value_tracks_true"] += tracks_true.tolist()
        columns["nodes_truenodeids"] += np.where(leaf, 0, tree.left).tolist()
        columns["nodes_falsenodeids"] += np.where(leaf, 0, tree.right).tolist()
        columns["target_treeids"] += [number] * int(leaf.sum())
        columns["target_nodeids"] += np.flatnonzero(leaf).tolist()
        values += tree.threshold.tolist()
        weights += tree.value[leaf].tolist()
    attributes = dict[str, Untyped](columns)
    targets = attributes["target_treeids"] if forest.single else [0] * len(weights)
    return graph.node(
        "TreeEnsembleRegressor",
        [features],
        domain="ai.onnx.ml",
        n_targets=len(forest.trees) if forest.single else 1,
        aggregate_function="SUM",
        post_transform="NONE",
        target_ids=targets,
        nodes_values_as_tensor=helper.make_tensor("v", double, [len(values)], values),
        target_weights_as_tensor=helper.make_tensor("w", double, [len(weights)], weights),
        **attributes,
    )
