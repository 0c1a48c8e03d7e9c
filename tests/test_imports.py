"""The structure of the package: no circles, and borders between the packages."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import grimp
import pytest

import firstpage
from firstpage.core.lazy import public_names, stub_imports

ROOT = Path(firstpage.__file__).parent
PROJECT = ROOT.parents[1]
MODULES = sorted(ROOT.rglob("*.py"))
IMPORT = re.compile(r"from (firstpage[\w.]*) import (?:\(([^)]*)\)|([^\n(]+))")
FACES = {
    ".".join(("firstpage", *f.relative_to(ROOT).parts[:-1])): f for f in ROOT.rglob("__init__.pyi")
}
LISTED = {face: {*stub_imports(stub), *public_names(stub)} for face, stub in FACES.items()}


def test_no_import_leads_in_a_circle() -> None:
    graph = grimp.build_graph("firstpage", cache_dir=None)  # those of type checkers too
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 300
    TopologicalSorter(imports).prepare()  # a circle is an error, which names it


def package_of(file: Path) -> str:
    parts = file.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else ""


@dataclass
class Uses:
    """What a file uses of others, each with name and line, and what it defines."""

    imported: list[tuple[str, str, int]]  # of other packages, with the module
    through_faces: list[tuple[str, str, int]]  # of faces that it imports as a whole
    private: list[tuple[str, int]]
    classes: list[str]
    defined: set[str]


@cache
def uses(file: Path) -> Uses:
    """Parse a file: all of them take seconds, and tests that follow one another share them."""
    tree = ast.parse(file.read_text())
    nodes = list(ast.walk(tree))
    return Uses(
        list(imports_from_other_packages(file, nodes)),
        list(names_through_faces(tree, nodes)),
        [
            (node.attr, node.lineno)
            for node in nodes
            if isinstance(node, ast.Attribute) and node.attr.startswith("_")
        ],
        [node.name for node in nodes if isinstance(node, ast.ClassDef)],
        set(definitions(nodes)),
    )


def imports_from_other_packages(file: Path, nodes: list[ast.AST]) -> Iterator[tuple[str, str, int]]:
    """Yield module, name and line of what a file imports from another package."""
    if not package_of(file):  # the root's own modules compose the package
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("firstpage."), f"{file}:{node.lineno}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("firstpage."):
            module = str(node.module)
            if module.split(".")[1] != package_of(file):
                yield from ((module, alias.name, node.lineno) for alias in node.names)


def names_through_faces(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[tuple[str, str, int]]:
    """Yield face, name and line of what a file takes from a face that it imports as a whole."""
    faces = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in FACES
    }
    for node in nodes:
        match node:
            case ast.Attribute(ast.Name(name), attribute) if name in faces:
                yield faces[name], attribute, node.lineno


def definitions(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def test_packages_take_from_each_other_only_names_of_faces() -> None:
    count, wrong = 0, []
    for file in MODULES:
        direct = [
            (module, name, line)
            for module, name, line in uses(file).imported
            if f"{module}.{name}" not in FACES
        ]
        for module, name, line in (*direct, *uses(file).through_faces):
            count += 1
            if name not in LISTED.get(module, ()):
                wrong.append(f"{file.relative_to(ROOT)}:{line}: {name} of {module}")
    assert count > 1000
    assert wrong == []


def test_faces_list_only_names_that_are_taken() -> None:
    """A name of a face is for users (`__all__`, the root's stub), or something else takes it."""
    sources = [*MODULES, *PROJECT.glob("benchmarks/*.py"), *PROJECT.glob("tests/**/*.py")]
    sources += [f for f in PROJECT.glob("docs/**/*") if f.suffix in (".py", ".md")]
    texts = [*(f.read_text() for f in [*sources, *ROOT.rglob("*.pyi")])]
    taken = {
        (module, name)
        for text in texts
        for module, several, one in IMPORT.findall(text)
        for name in re.findall(r"(\w+)(?: as \w+)?,?", several or one)
    }
    taken |= {(face, name) for file in MODULES for face, name, _ in uses(file).through_faces}
    idle = [
        f"{face}: {name}"
        for face, stub in FACES.items()
        for name in LISTED[face]
        if face != "firstpage" and f'"{name}"' not in stub.read_text() and (face, name) not in taken
    ]
    assert idle == []


def test_imports_of_scripts_exist() -> None:
    """Benchmarks and generators are not imported by tests: many need a peer."""
    scripts = [*(PROJECT / "benchmarks").glob("*.py"), *(PROJECT / "docs").rglob("*.py")]
    imports = [
        (script.name, node.module, alias.name)
        for script in scripts
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("firstpage")
        for alias in node.names
    ]
    assert len(imports) > 50
    missing = []
    for script, name, imported in imports:
        module = import_module(name or "")
        if not hasattr(module, imported) and find_spec(f"{name}.{imported}") is None:
            missing.append(f"{script}: {imported} of {name}")
    assert missing == []


def test_every_class_has_a_name_of_its_own() -> None:
    files = defaultdict(list)
    for file in MODULES:
        for name in uses(file).classes:
            files[name].append(file.relative_to(ROOT).as_posix())
    assert len(files) > 500
    assert not {name: paths for name, paths in files.items() if len(paths) > 1}


def test_no_package_uses_private_names_of_another() -> None:
    defined: defaultdict[str, set[str]] = defaultdict(set)
    used: list[tuple[Path, int, str]] = []
    for file in MODULES:
        for name in uses(file).defined:
            defined[name].add(package_of(file))
        used += [(file, line, name) for name, line in uses(file).private]
    named_tuples = {"_fields", "_replace", "_asdict"}
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {name} of {', '.join(sorted(defined[name]))}"
        for file, line, name in used
        if not name.startswith("__")
        and name not in named_tuples
        and defined[name]
        and package_of(file) not in defined[name]
    ]
    assert wrong == []


@pytest.mark.parametrize("face", sorted(FACES))
def test_no_module_hides_a_name_of_its_face(face: str) -> None:
    """Importing a submodule sets its name in the package, and would hide a name of the face."""
    folder = FACES[face].parent
    modules = {f.stem for f in folder.glob("*.py")} | {
        f.parent.name for f in folder.glob("*/__init__.py")
    }
    names = stub_imports(FACES[face])
    assert {name for name, module in names.items() if name in modules and module != face} == set()


PACKAGES = sorted(f.parent.name for f in ROOT.glob("*/__init__.py"))
NAMED = re.compile(r"(?<![\w/])(?:[a-z]\w*/)+(?:\w+\.py)?|\b[a-z]\w*\.py\b")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_a_package_is_its_map(package: str) -> None:
    """It shows the way of the data in a drawing, and names the files to open for each change."""
    docstring = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    assert "──▶" in docstring
    _, _, table = docstring.partition("To change ")
    named = NAMED.findall(table)
    assert len(named) > 5
    assert [name for name in named if not (ROOT / package / name).exists()] == []
    listed = {name.split("/")[0] for name in named}
    assert {f.parent.name for f in (ROOT / package).glob("*/__init__.py")} - listed == set()
