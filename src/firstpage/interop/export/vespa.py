"""Vespa: a rank profile whose functions the user fills in, the score an expression or ONNX.

Vespa computes expressions in float64, and ONNX in ONNX Runtime, one document at a time.
"""

from __future__ import annotations

import json
import re

from firstpage.errors import DataError
from firstpage.interop.export.export_model import ExportFiles, ExportModel
from firstpage.interop.export.float32 import note_sums
from firstpage.interop.export.runtimes import graph_of
from firstpage.scorers.forest import Tree

HOW = """Put the profile into `schemas/SCHEMA/` of the application, fill in the functions (each
returns one feature; a number that is not there should be 0), deploy, and search with
`ranking=NAME`.
Trees and networks that ONNX Runtime shall score inside Vespa: export to `vespa-onnx`. Vespa also
reads LightGBM's and XGBoost's own files."""
HOW_ONNX = """Fill in the functions of the profile (each returns one feature; a number that is not
there should be 0), and put both files into the application:

    cp NAME.onnx APPLICATION/models/
    cp NAME.profile APPLICATION/schemas/SCHEMA/
    vespa deploy APPLICATION

Search with `ranking=NAME`. Files must keep their names. The model sees one document at a time, and
all that match: where these are many, let the profile have a cheap `first-phase`, and then

    second-phase {
        rerank-count: 100
        expression: sum(onnx(NAME).scores)
    }"""
CELLS = {"float32": "float", "float64": "double"}


def export(subject: ExportModel) -> ExportFiles:
    profile = _profile(subject)
    score = [
        "    function firstpage_score() {",
        "        expression {",
        *(f"            {line}" for line in expression(subject)),
        "        }",
        "    }",
    ]
    file = f"{profile}.profile"
    text = _text(subject, profile, score, "firstpage_score")
    return ExportFiles(file, {file: text}, HOW.replace("NAME", profile))


def export_onnx(subject: ExportModel) -> ExportFiles:
    """The same profile with the model beside it, which ONNX Runtime scores."""
    profile, held = _profile(subject), graph_of(subject, 1)
    names = [f"feature_{i + 1}" for i in range(len(subject.features.names))]
    score = [
        "    function firstpage_features() {",
        "        expression {",
        f"            tensor<{CELLS[subject.dtype]}>(d0[1],d1[{len(names)}]):[[",
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
    text = _text(subject, profile, score, f"sum(onnx({profile}).scores)")
    contents = {f"{profile}.onnx": held, f"{profile}.profile": text}
    return ExportFiles(f"{profile}.onnx", contents, HOW_ONNX.replace("NAME", profile), fixed=True)


def _profile(subject: ExportModel) -> str:
    """The model's name as Vespa can have it."""
    found = re.sub(r"\W", "_", subject.name, flags=re.ASCII)
    return found if not found[:1].isdigit() else f"_{found}"


def _text(subject: ExportModel, profile: str, score: list[str], first: str) -> bytes:
    """A profile: features as functions, what makes the score of them, and the first phase."""
    inherits = "" if profile == "default" else " inherits default"
    lines = [f"rank-profile {profile}{inherits} {{", ""]
    for i, name in enumerate(subject.features.names):
        known = _known(subject, name)
        lines += [
            f"    # feature {i + 1}: {_comment(name)}{'' if known else ' (FILL IN)'}",
            f"    function feature_{i + 1}() {{",
            f"        expression: {known or 0}",
            "    }",
            "",
        ]
    lines += [*score, "", "    first-phase {", f"        expression: {first}", "    }", "}", ""]
    return "\n".join(lines).encode()


def _known(subject: ExportModel, name: str) -> str:
    """The expression that the user gave, if any: one line that cannot end the function."""
    given = subject.features.known.get(name, {}).get("expression")
    if given is None:
        return ""
    text = given.strip() if isinstance(given, str) else ""
    if not text or len(text.splitlines()) > 1 or text.count("{") != text.count("}"):
        raise DataError(
            f"the expression of the feature {name!r} must be one line of text, with all brackets "
            f"closed; got {given!r}."
        )
    return text


def expression(subject: ExportModel) -> list[str]:
    """The score, over functions feature_1 ..; one summand a line."""
    if subject.kind == "linear":
        weights, intercept = subject.weights()
        parts = [f"{_number(w)} * feature_{i}" for i, w in enumerate(weights.tolist(), 1)]
        parts.append(_number(intercept))
    else:
        forest = subject.forest().with_thresholds(lambda _, t: t)
        note_sums(forest, False)
        parts = [_tree(tree, 0) for tree in forest.trees]
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
