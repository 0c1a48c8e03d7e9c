"""The public face: names, suggestions, and docstrings that say everything."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import firstpage as fp
from tests.public_names import documented, parameters, public_callables, public_objects, sections

OBJECTS = dict(public_objects())
CALLABLES = dict(public_callables())
NAMESPACES = [getattr(fp, name) for name in fp.__all__ if inspect.ismodule(getattr(fp, name))]


def test_dir_lists_the_public_names_alone() -> None:
    assert dir(fp) == sorted(fp.__all__)
    assert {"aggregation", "dcglearn", "labeling", "papers"} <= set(dir(fp))
    assert not [name for name in dir(fp) if name.startswith("_") and name != "__version__"]


@pytest.mark.parametrize("namespace", [fp, *NAMESPACES], ids=lambda module: module.__name__)
def test_no_public_name_is_a_submodule(namespace: ModuleType) -> None:
    """Importing a submodule sets its name in the package, and would hide a function of that name."""
    submodules = {
        module.name for module in pkgutil.iter_modules(vars(namespace).get("__path__", []))
    }
    names = set(namespace.__all__) & submodules
    assert not [name for name in names if not inspect.ismodule(getattr(namespace, name))]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("LambdaMart", "firstpage.LambdaMART"),
        ("listmle", "firstpage.ListMLE"),
        ("read_leter", "firstpage.read_letor"),
        ("DCGLearn", "firstpage.dcglearn.DCGLearn"),
        ("aggregate", "firstpage.aggregation.aggregate"),
    ],
)
def test_a_misspelled_name_gets_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(
        AttributeError, match=f"has no attribute '{name}'. Did you mean '{suggestion}'"
    ):
        getattr(fp, name)


def test_an_unknown_name_gets_no_suggestion() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'qwertz'$"):
        fp.qwertz  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_no_module_of_it() -> None:
    code = "import sys, firstpage; print(*[m for m in sys.modules if m.startswith('firstpage')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"firstpage", "firstpage.core", "firstpage.core.lazy"}


@pytest.mark.parametrize("path", CALLABLES)
def test_every_parameter_is_documented_and_exists(path: str) -> None:
    value = CALLABLES[path]
    assert inspect.getdoc(value), "there is no docstring"
    passed = documented(inspect.getdoc(value) or "", "Parameters")
    fields = documented(value.__doc__ or "", "Attributes") if inspect.isclass(value) else []
    assert [name for name in parameters(value) if name not in {*passed, *fields}] == []
    assert [name for name in passed if name not in parameters(value)] == []
    assert len(set(passed)) == len(passed)


@pytest.mark.parametrize("path", OBJECTS)
def test_docstring_is_complete(path: str) -> None:
    value = OBJECTS[path]
    docstring = value.__doc__ or ""
    summary = docstring.strip().partition("\n")[0]
    assert summary.endswith("."), f"the first line is not a sentence: {summary!r}"
    required = {"Examples"}
    if inspect.isfunction(value):
        required.add("Returns" if _returns(value) else "Parameters")
        if inspect.isgeneratorfunction(value) or _returns_iterator(value):
            required = {"Examples", "Yields"}
    if not (inspect.isclass(value) and issubclass(value, Exception | Warning)):
        assert required <= set(sections(docstring))


def _returns_iterator(function: Any) -> bool:
    return str(inspect.signature(function).return_annotation).startswith("Iterator")


def _returns(function: Any) -> bool:
    return inspect.signature(function).return_annotation not in ("None", None)


@pytest.mark.parametrize("path", OBJECTS)
def test_examples_run(path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Each docstring's example, run in an empty folder, prints what it shows."""
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in doctest.DocTestFinder(recurse=False).find(OBJECTS[path], path, globs={"fp": fp}):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
