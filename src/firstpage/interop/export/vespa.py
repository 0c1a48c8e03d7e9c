"""Models for Vespa: a rank profile with functions to fill in; the score is an expression or ONNX.

Vespa evaluates expressions in float64, and ONNX models with ONNX Runtime, one document at a time.
"""

from __future__ import annotations

import json
import re

from firstpage.core import DataError
from firstpage.interop.export.export_model import ExportFiles, ExportModel, usage
from firstpage.interop.export.float32 import warn_of_rounding
from firstpage.interop.export.runtimes import graph_of
from firstpage.learning.scorers import Tree

TENSOR_CELL_TYPES = {"float32": "float", "float64": "double"}


def export(exported: ExportModel) -> ExportFiles:
    """Return a rank profile whose score is an expression."""
    profile = _profile(exported)
    score = [
        "    function firstpage_score() {",
        "        expression {",
        *(f"            {line}" for line in score_terms(exported)),
        "        }",
        "    }",
    ]
    file = f"{profile}.profile"
    text = _text(exported, profile, score, "firstpage_score")
    return ExportFiles(file, {file: text}, usage("vespa", profile))


def export_onnx(exported: ExportModel) -> ExportFiles:
    """Return a rank profile and an ONNX model that computes the score."""
    profile, graph = _profile(exported), graph_of(exported, 1)
    names = [f"feature_{i + 1}" for i in range(len(exported.features.names))]
    score = [
        "    function firstpage_features() {",
        "        expression {",
        f"            tensor<{TENSOR_CELL_TYPES[exported.dtype]}>(d0[1],d1[{len(names)}]):[[",
        *(f"                {name}," for name in names[:-1]),
        f"                {names[-1]}",
        "            ]]",
        "        }",
        "    }",
        "",
        f"    onnx-model {profile} {{",
        f"        file: models/{profile}.onnx",
        '        input "features": firstpage_features',
        '        output "scores": scores',
        "    }",
    ]
    text = _text(exported, profile, score, f"sum(onnx({profile}).scores)")
    contents = {f"{profile}.onnx": graph, f"{profile}.profile": text}
    return ExportFiles(f"{profile}.onnx", contents, usage("vespa-onnx", profile), fixed=True)


def _profile(exported: ExportModel) -> str:
    """Return the model's name as a valid name of a profile."""
    name = re.sub(r"\W", "_", exported.name, flags=re.ASCII)
    return name if not name[:1].isdigit() else f"_{name}"


def _text(exported: ExportModel, profile: str, score: list[str], first_phase: str) -> bytes:
    """Return a profile: one function per feature, the score, and the first phase."""
    inherits = "" if profile == "default" else " inherits default"
    lines = [f"rank-profile {profile}{inherits} {{", ""]
    for i, name in enumerate(exported.features.names):
        expression = _feature_expression(exported, name)
        lines += [
            f"    # feature {i + 1}: {_comment(name)}{'' if expression else ' (FILL IN)'}",
            f"    function feature_{i + 1}() {{",
            f"        expression: {expression or 0}",
            "    }",
            "",
        ]
    lines += [
        *score,
        "",
        "    first-phase {",
        f"        expression: {first_phase}",
        "    }",
        "}",
        "",
    ]
    return "\n".join(lines).encode()


def _feature_expression(exported: ExportModel, name: str) -> str:
    """Return the user's expression of a feature, if any; it must be one line."""
    expression = exported.features.known.get(name, {}).get("expression")
    if expression is None:
        return ""
    text = expression.strip() if isinstance(expression, str) else ""
    if not text or len(text.splitlines()) > 1 or text.count("{") != text.count("}"):
        raise DataError(
            f"the expression of the feature {name!r} must be one line of text, with all brackets "
            f"closed; got {expression!r}."
        )
    return text


def score_terms(exported: ExportModel) -> list[str]:
    """Return the lines of the score over the functions feature_1, ..; one term per line."""
    if exported.kind == "linear":
        weights, intercept = exported.weights()
        terms = [f"{_number(w)} * feature_{i}" for i, w in enumerate(weights.tolist(), 1)]
        terms.append(_number(intercept))
    else:
        forest = exported.forest().with_thresholds(lambda _, t: t)
        warn_of_rounding(forest, False)
        terms = [_tree(tree, 0) for tree in forest.trees]
    return [terms[0], *(f"+ {term}" for term in terms[1:])]


def _comment(name: str) -> str:
    """Return a name as a JSON string on one line, without brackets."""
    return json.dumps(name).replace("{", "\\u007b").replace("}", "\\u007d")


def _tree(tree: Tree, node: int) -> str:
    """Return the nested `if` expression of a tree."""
    if tree.feature[node] < 0:
        return _number(float(tree.value[node]))
    test = f"feature_{int(tree.feature[node]) + 1} <= {_number(float(tree.threshold[node]))}"
    left, right = _tree(tree, int(tree.left[node])), _tree(tree, int(tree.right[node]))
    return f"if ({test}, {left}, {right})"


def _number(value: float) -> str:
    """Return a number with all digits, a point before an exponent, and brackets if negative."""
    text = repr(abs(value))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return f"(-{text})" if value < 0 else text
