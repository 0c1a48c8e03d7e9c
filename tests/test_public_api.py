"""The public face: names, suggestions, and docstrings that say everything."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import firstpage as fp
from tests.docs.examples import own_names_forgotten
from tests.public_names import documented, parameters, public_callables, public_objects, sections

OBJECTS = dict(public_objects())
CALLABLES = dict(public_callables())
PARTS = 12  # of the examples, which workers share
NAMESPACES = [getattr(fp, name) for name in dir(fp) if inspect.ismodule(getattr(fp, name))]


def test_dir_lists_the_public_names_alone() -> None:
    assert dir(fp) == sorted(vars(fp)["__all__"])
    assert {"aggregation", "dcglearn", "labeling", "papers"} <= set(dir(fp))
    assert not [name for name in dir(fp) if name.startswith("_") and name != "__version__"]


def test_no_public_name_is_a_submodule() -> None:
    """Importing a submodule sets its name in the package, and would hide a function of that name."""
    wrong = []
    for namespace in (fp, *NAMESPACES):
        folders = vars(namespace).get("__path__", [])
        names = {module.name for module in pkgutil.iter_modules(folders)} & set(namespace.__all__)
        wrong += [
            f"{namespace.__name__}.{name}"
            for name in sorted(names)
            if not inspect.ismodule(getattr(namespace, name))
        ]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("LambdaMart", "fp.LambdaMART"),
        ("listmle", "fp.ListMLE"),
        ("read_leter", "fp.read_letor"),
        ("DCGLearn", "fp.dcglearn.DCGLearn"),
        ("aggregate", "fp.aggregation.aggregate"),
        ("gate", "fp.planning.gate"),
        ("Loss", "fp.extend.Loss"),
        ("loss", "fp.extend.loss"),
        ("Measure", "fp.extend.Measure"),
        ("Tuned", "fp.results.Tuned"),
        ("Chart", "fp.results.Chart"),
    ],
)
def test_a_misspelled_name_gets_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(
        AttributeError, match=f"has no attribute '{name}'. Did you mean '{suggestion}'"
    ):
        getattr(fp, name)


@pytest.mark.parametrize("namespace", [fp, *NAMESPACES], ids=lambda module: module.__name__)
def test_a_namespace_says_which_names_it_lacks(namespace: ModuleType) -> None:
    assert not hasattr(namespace, "qwertz")


def test_a_suggestion_in_a_namespace_is_reached_through_fp() -> None:
    with pytest.raises(AttributeError, match=r"Did you mean 'fp\.planning\.Gate'"):
        fp.planning.gates  # type: ignore[attr-defined]  # noqa: B018


def test_an_unknown_name_gets_no_suggestion() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'qwertz'$"):
        fp.qwertz  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_no_module_of_it() -> None:
    code = "import sys, firstpage; print(*[m for m in sys.modules if m.startswith('firstpage')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split()) - {"firstpage._version"}  # a line, which the build writes
    assert loaded == {"firstpage", "firstpage.core", "firstpage.core.lazy"}


def test_every_parameter_is_documented_and_exists() -> None:
    wrong = []
    for path, value in CALLABLES.items():
        passed = documented(inspect.getdoc(value) or "", "Parameters")
        fields = documented(value.__doc__ or "", "Attributes") if inspect.isclass(value) else []
        if not inspect.getdoc(value):
            wrong.append(f"{path}: there is no docstring")
        existing = parameters(value)
        undocumented = [name for name in existing if name not in {*passed, *fields}]
        unknown = [name for name in passed if name not in existing]
        repeated = [name for name, count in Counter(passed).items() if count > 1]
        wrong += [f"{path}: {name} is not documented" for name in undocumented]
        wrong += [f"{path}: {name} is documented, but not a parameter" for name in unknown]
        wrong += [f"{path}: {name} is documented twice" for name in repeated]
    assert wrong == []


def test_docstrings_are_complete() -> None:
    wrong = []
    for path, value in OBJECTS.items():
        summary = (value.__doc__ or "").strip().partition("\n")[0]
        if not summary.endswith("."):
            wrong.append(f"{path}: the first line is not a sentence: {summary!r}")
        missing = required_sections(value) - set(sections(value.__doc__ or ""))
        wrong += [f"{path}: there is no section {name}" for name in sorted(missing)]
    assert wrong == []


def required_sections(value: Any) -> set[str]:
    if inspect.isclass(value) and issubclass(value, Exception | Warning):
        return set()
    if not inspect.isfunction(value):
        return {"Examples"}
    returned = inspect.signature(value).return_annotation
    if inspect.isgeneratorfunction(value) or str(returned).startswith("Iterator"):
        return {"Examples", "Yields"}
    return {"Examples", "Parameters" if returned in ("None", None) else "Returns"}


@pytest.mark.parametrize("part", range(PARTS))
def test_examples_run(part: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each docstring's example, run in an empty folder, prints what it shows."""
    wrong = []
    for path in list(OBJECTS)[part::PARTS]:
        (tmp_path / path).mkdir()
        monkeypatch.chdir(tmp_path / path)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        with own_names_forgotten():
            for test in doctest.DocTestFinder(recurse=False).find(
                OBJECTS[path], path, globs={"fp": fp}
            ):
                runner.run(test)
        if runner.summarize(verbose=False).failed:
            wrong.append(path)
    assert wrong == []  # their output, with what was expected, is printed above
