"""RankLib's model files: features are numbers from 1 on, in the order of the model's."""

from __future__ import annotations

from collections.abc import Iterator

from firstpage.interop.export.float32 import written
from firstpage.interop.export.subject import Files, Subject
from firstpage.scorers.forest import Tree

HOW = """Score a LETOR file with RankLib: `java -jar RankLib.jar -load MODEL -rank FILE -score OUT`.
Feature 1 is the first column of the model, and so on. Trees compute in float32."""


def export(subject: Subject) -> Files:
    return Files("model.txt", {"model.txt": text_of(subject).encode()}, HOW)


def text_of(subject: Subject) -> str:
    """A model file: "Linear Regression", whose number 0 is the intercept, or "LambdaMART"."""
    if subject.kind == "linear":
        weights, intercept = subject.weights()
        pairs = [f"{i}:{w!r}" for i, w in enumerate(weights.tolist(), 1)]
        return "\n".join(["## Linear Regression", "## Lambda = 0.0", f"0:{intercept!r} "]) + (
            " ".join(pairs) + "\n"
        )
    trees = subject.forest32().trees
    leaves = max(int((tree.feature < 0).sum()) for tree in trees)
    lines = [
        "## LambdaMART",
        f"## No. of trees = {len(trees)}",
        f"## No. of leaves = {leaves}",
        "## No. of threshold candidates = 256",
        "## Learning rate = 1.0",
        "## Stop early = 100",
        "",
        "<ensemble>",
    ]
    for number, tree in enumerate(trees, 1):
        lines.append(f'\t<tree id="{number}" weight="1.0">')
        lines.append("\t\t<split>")
        lines += _node(tree, 0, "\t\t\t")
        lines += ["\t\t</split>", "\t</tree>"]
    return "\n".join([*lines, "</ensemble>", ""])


def _node(tree: Tree, at: int, indent: str) -> Iterator[str]:
    if tree.feature[at] < 0:
        yield f"{indent}<output> {written(tree.value[at])} </output>"
        return
    yield f"{indent}<feature> {int(tree.feature[at]) + 1} </feature>"
    yield f"{indent}<threshold> {written(tree.threshold[at])} </threshold>"
    for side, child in (("left", tree.left[at]), ("right", tree.right[at])):
        yield f'{indent}<split pos="{side}">'
        yield from _node(tree, int(child), indent + "\t")
        yield f"{indent}</split>"
