"""Run notebooks of docs/notebooks; ``python -m tests.docs.notebooks PATH ..`` stores their output."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def outputs(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the code cells in order, each with its output as a notebook stores it."""
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with redirect_stdout(StringIO()) as printed:
            exec(compile(tree, "cell", "exec"), names)
            value = None
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        found: list[dict[str, Any]] = []
        if printed.getvalue():
            text = printed.getvalue().splitlines(keepends=True)
            found.append({"name": "stdout", "output_type": "stream", "text": text})
        if value is not None:
            data = {"text/plain": repr(value).splitlines(keepends=True)}
            if hasattr(value, "_repr_svg_"):
                data["image/svg+xml"] = value._repr_svg_().splitlines(keepends=True)
            shown = {"data": data, "execution_count": None, "metadata": {}}
            found.append({"output_type": "execute_result", **shown})
        yield cell, found


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        notebook = json.loads(path.read_text())
        with TemporaryDirectory() as folder, chdir(folder):
            for cell, found in outputs(notebook):
                cell["outputs"] = found
        path.write_text(json.dumps(notebook, indent=1) + "\n")


if __name__ == "__main__":
    main()
