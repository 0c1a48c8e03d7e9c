"""Kernels and subroutines with many parameters are called by the names of these parameters.

By name: as a keyword, or by position where the variable or the attribute has the parameter's name,
of which a part may be passed, as in `offsets[lo:hi]`.
"""

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


Parameters = tuple[str, ...]


def _kernels(tree: ast.Module) -> Iterator[tuple[str, Parameters]]:
    """Yield the name and the parameters of each kernel and subroutine of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            marks = {getattr(mark, "id", getattr(mark, "attr", "")) for mark in node.decorator_list}
            if marks & MARKS:
                yield node.name, tuple(parameter.arg for parameter in node.args.args)


def _imported_kernels(
    tree: ast.Module, parameters: dict[str, dict[str, Parameters]]
) -> dict[str, Parameters]:
    """Return the parameters of each kernel, by the expression that names it."""
    callables: dict[str, Parameters] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.ImportFrom) and node.module):
            continue
        for name in node.names:
            used = name.asname or name.name
            inside = f"{node.module}.{name.name}"
            for module, kernels in parameters.items():
                if f"{module}.".startswith(f"{inside}."):
                    callables |= {f"{used}.{kernel}": names for kernel, names in kernels.items()}
                elif f"{module}.".startswith(f"{node.module}.") and name.name in kernels:
                    callables[used] = kernels[name.name]
    return callables


def _name_of(argument: ast.expr) -> str:
    """Return the name of a variable or attribute that, or a part of which, is passed."""
    argument = argument.value if isinstance(argument, ast.Subscript) else argument
    return str(getattr(argument, "attr", getattr(argument, "id", ""))).lstrip("_")


def _nameless_calls(
    path: str, tree: ast.Module, callables: dict[str, Parameters]
) -> Iterator[tuple[str, str]]:
    """Yield the calls that pass something else by position than the parameter's name says."""
    names = {name.rpartition(".")[2] for name in callables} | {"bind", "python"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            if getattr(node.func, "attr", getattr(node.func, "id", None)) not in names:
                continue
            called = ast.unparse(node.func).removesuffix(".bind").removesuffix(".python")
            parameters = callables.get(called, ())
            passed = tuple(map(_name_of, node.args))
            if len(parameters) > MAX_POSITIONAL and passed != parameters[: len(passed)]:
                yield path, f"line {node.lineno}: {called}"


def test_kernels_of_many_parameters_are_called_by_name() -> None:
    trees = dict(_trees())
    parameters = {
        "firstpage." + path.removesuffix(".py").replace("/", "."): dict(_kernels(tree))
        for path, tree in trees.items()
    }
    parameters = {module: own for module, own in parameters.items() if own}
    assert sum(len(p) > MAX_POSITIONAL for own in parameters.values() for p in own.values()) > 50
    nameless: list[tuple[str, str]] = []
    for path, tree in trees.items():
        own = parameters.get("firstpage." + path.removesuffix(".py").replace("/", "."), {})
        nameless += _nameless_calls(path, tree, _imported_kernels(tree, parameters) | own)
    assert not nameless


def test_calls_with_other_names_are_found() -> None:
    kernels: dict[str, Parameters] = {
        "sort": ("keys", "order", "low", "high", "first", "second", "third")
    }
    for call, is_wrong in {
        "sort(keys, self.order, low, high=0, first=1, second=2, third=3)": False,
        "sort(keys[a:b], self._order, low[0], high=0, first=1, second=2, third=3)": False,
        "sort(keys, low[0], order, high=0, first=1, second=2, third=3)": True,
        "sort(order, keys, low, high=0, first=1, second=2, third=3)": True,
        "sort(keys, order, 0, high=0, first=1, second=2, third=3)": True,
    }.items():
        assert bool(list(_nameless_calls("module.py", ast.parse(call), kernels))) == is_wrong
