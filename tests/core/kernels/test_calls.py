"""Kernels and subroutines with many parameters are called by the names of these parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import firstpage

SOURCE = Path(firstpage.__file__).parent
MARKS = {"kernel", "compiled_kernel", "vector_kernel", "subroutine", "inlined_subroutine"}
MAX_POSITIONAL = 6  # parameters, up to which a kernel may be called by position


def _trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that define or import kernels."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if "kernels" in text:
            yield path.relative_to(SOURCE).as_posix(), ast.parse(text)


def _kernels(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of parameters of each kernel and subroutine of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            marks = {getattr(mark, "id", getattr(mark, "attr", "")) for mark in node.decorator_list}
            if marks & MARKS:
                yield node.name, len(node.args.args)


def _imported_kernels(tree: ast.Module, sizes: dict[str, dict[str, int]]) -> dict[str, int]:
    """Return how many parameters each kernel has, by the expression that names it."""
    callables: dict[str, int] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.ImportFrom) and node.module):
            continue
        for name in node.names:
            used = name.asname or name.name
            inside = f"{node.module}.{name.name}"
            for module, kernels in sizes.items():
                if f"{module}.".startswith(f"{inside}."):
                    callables |= {f"{used}.{kernel}": size for kernel, size in kernels.items()}
                elif f"{module}.".startswith(f"{node.module}.") and name.name in kernels:
                    callables[used] = kernels[name.name]
    return callables


def _positional_calls(
    path: str, tree: ast.Module, callables: dict[str, int]
) -> Iterator[tuple[str, str]]:
    names = {name.rpartition(".")[2] for name in callables} | {"bind", "python"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            if getattr(node.func, "attr", getattr(node.func, "id", None)) not in names:
                continue
            called = ast.unparse(node.func).removesuffix(".bind").removesuffix(".python")
            if callables.get(called, 0) > MAX_POSITIONAL:
                yield path, f"line {node.lineno}: {called}"


def test_kernels_of_many_parameters_are_called_by_name() -> None:
    trees = dict(_trees())
    sizes = {
        "firstpage." + path.removesuffix(".py").replace("/", "."): dict(_kernels(tree))
        for path, tree in trees.items()
    }
    sizes = {module: own for module, own in sizes.items() if own}
    assert sum(size > MAX_POSITIONAL for own in sizes.values() for size in own.values()) > 50
    by_position: list[tuple[str, str]] = []
    for path, tree in trees.items():
        own = sizes.get("firstpage." + path.removesuffix(".py").replace("/", "."), {})
        by_position += _positional_calls(path, tree, _imported_kernels(tree, sizes) | own)
    assert not by_position
