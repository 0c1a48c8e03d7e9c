"""Vespa: a rank profile whose functions the user fills in.  Vespa computes in float64."""

from __future__ import annotations

import json
import re

from firstpage.exporting.forest import Tree
from firstpage.exporting.subject import Files, Subject

HOW = """Put the profile into `schemas/SCHEMA/` of the application, fill in the functions (each
returns one feature; a number that is not there should be 0), deploy, and search with
`ranking=NAME`.
Vespa also reads LightGBM's and XGBoost's own files, and ONNX: export to those for trees that it
shall compile itself."""


def export(subject: Subject) -> Files:
    subject.for_engine("Vespa")
    profile = re.sub(r"\W", "_", subject.name, flags=re.ASCII)
    profile = profile if not profile[:1].isdigit() else f"_{profile}"
    lines = [f"rank-profile {profile} inherits default {{", ""]
    for i, name in enumerate(subject.features.names):
        known = subject.features.known.get(name, {}).get("expression")
        lines += [
            f"    # feature {i + 1}: {_comment(name)}{'' if known else ' (FILL IN)'}",
            f"    function feature_{i + 1}() {{",
            f"        expression: {known or 0}",
            "    }",
            "",
        ]
    lines += [
        "    function firstpage_score() {",
        "        expression {",
        *(f"            {line}" for line in expression(subject)),
        "        }",
        "    }",
        "",
        "    first-phase {",
        "        expression: firstpage_score",
        "    }",
        "}",
        "",
    ]
    file = f"{profile}.profile"
    how = HOW.replace("NAME", profile)
    return Files(file, {file: "\n".join(lines).encode()}, how)


def expression(subject: Subject) -> list[str]:
    """The score, over functions feature_1 ..; one summand a line."""
    if subject.kind == "linear":
        weights, intercept = subject.weights()
        parts = [f"{_number(w)} * feature_{i}" for i, w in enumerate(weights.tolist(), 1)]
        parts.append(_number(intercept))
    else:
        parts = [_tree(tree, 0) for tree in subject.forest().with_thresholds(lambda _, t: t).trees]
    return [parts[0], *(f"+ {part}" for part in parts[1:])]


def _comment(name: str) -> str:
    """A name in one line without brackets, as JSON writes it."""
    return json.dumps(name).replace("{", "\\u007b").replace("}", "\\u007d")


def _tree(tree: Tree, at: int) -> str:
    if tree.feature[at] < 0:
        return _number(float(tree.value[at]))
    test = f"feature_{int(tree.feature[at]) + 1} <= {_number(float(tree.threshold[at]))}"
    left, right = _tree(tree, int(tree.left[at])), _tree(tree, int(tree.right[at]))
    return f"if ({test}, {left}, {right})"


def _number(value: float) -> str:
    """With all digits, and a point before any exponent; negative ones in brackets."""
    text = repr(abs(value))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return f"(-{text})" if value < 0 else text
