"""Kernels as ordinary Numba functions: on request, and where linking fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from firstpage.core.errors import FirstpageError, FirstpageWarning
from firstpage.core.kernels.compiler import object_cache
from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.compiler.functions import NumbaFunction
from firstpage.core.types import Floats
from tests.patience import PATIENCE

# The script fits a ranker, and prints its scores to the last bit.
SCRIPT = """
import sys
import firstpage as fp
from firstpage.core.kernels.compiler import decorators

decorators.MAX_INTERPRETED = 0  # nothing is interpreted
data = fp.Synthetic(queries=30, docs=10, features=5).dataset()  # arrays would load scikit-learn
print(fp.Regression().fit(data).predict(data).tobytes().hex())
print(any(m.startswith('numba') for m in sys.modules), file=sys.stderr)
"""
BREAK = "import llvmlite.binding as llvm\ndel llvm.ExecutionEngine.add_object_file\n"


def test_plain_numba_gives_the_same_numbers_on_request_and_where_linking_fails(
    tmp_path: Path,
) -> None:
    def run(script: str, **env: str) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), **env},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert result.returncode == 0, result.stderr
        return result

    run(SCRIPT)  # compiles what is not in the cache yet, with Numba
    linked = run(SCRIPT)
    assert linked.stderr == "False\n"
    forced = run(SCRIPT, FIRSTPAGE_KERNELS="numba")
    assert forced.stdout == linked.stdout
    assert forced.stderr == "True\n"  # on request: no warning
    stored = {file.name for file in tmp_path.rglob("*.nbc")}
    assert stored
    broken = run(BREAK + SCRIPT)
    assert broken.stdout == linked.stdout
    (line,) = [text for text in broken.stderr.splitlines() if "FirstpageWarning" in text]
    assert "AttributeError" in line
    assert "add_object_file" in line
    assert "every start takes about a second more" in line
    assert {file.name for file in tmp_path.rglob("*.nbc")} == stored  # from the cache


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Set up the state of a process that has linked nothing, with an empty cache."""
    monkeypatch.setenv("FIRSTPAGE_CACHE", str(tmp_path))
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setattr(object_cache.linking, "_on", None)
    object_cache._self_check.cache_clear()
    return monkeypatch


def doubled(values: Floats, out: Floats) -> float:
    total = 0.0
    for i in range(values.size):
        out[i] = 2 * values[i]
        total += out[i]
    return total


FACTOR = 1


@subroutine
def scaled(x: float) -> float:
    return FACTOR * x


def total_scaled(values: Floats) -> float:
    total = 0.0
    for i in range(values.size):
        total += scaled(values[i])
    return total


def check_doubled(warning: str) -> None:
    """Check that a new kernel warns and works, also with read-only arrays and bound arguments."""
    function = kernel(doubled)
    values, out = np.arange(3.0), np.zeros(3)
    values.setflags(write=False)
    with pytest.warns(FirstpageWarning, match=warning) as caught:
        assert function(values, out) == 6
    assert len(caught) == 1
    assert out.tolist() == [0, 2, 4]
    assert isinstance(next(iter(function._versions.values())), NumbaFunction)
    out[:] = 0
    assert function.bind(values, out)() == 6
    assert out.tolist() == [0, 2, 4]


def test_untested_version_is_not_linked(fresh: pytest.MonkeyPatch) -> None:
    fresh.setitem(object_cache.TESTED_VERSIONS, "numba", ((0, 1), (0, 2)))
    check_doubled(r"numba \d+\.\d+\S* is not a tested version")


def test_code_with_other_arguments_is_not_called(fresh: pytest.MonkeyPatch) -> None:
    """The compiled function appears to take one argument more."""
    signature = object_cache._signature
    fresh.setattr(object_cache, "_signature", lambda types: signature((*types, "int")))
    check_doubled("kernel _weighted_sum takes")


def test_failed_self_check_is_detected_before_a_kernel_runs(fresh: pytest.MonkeyPatch) -> None:
    """The result appears to be written to another address."""
    fresh.setattr(object_cache.LinkedFunction, "_run", lambda self, words, box: box.value)
    check_doubled("the self-check returned")


def test_unknown_value_of_the_variable_raises_an_error(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("FIRSTPAGE_KERNELS", "fast")
    with pytest.raises(FirstpageError, match="set it to linked or numba"):
        kernel(doubled)(np.ones(1), np.ones(1))


def test_numba_cache_depends_on_every_subroutine_and_constant(fresh: pytest.MonkeyPatch) -> None:
    """Numba's own key covers the function alone, and would load the earlier version."""
    fresh.setenv("FIRSTPAGE_KERNELS", "numba")
    for factor in (3, 4):
        scope = dict(scaled.python.__globals__, FACTOR=factor)
        inner = subroutine(FunctionType(scaled.python.__code__, scope, "scaled"))
        outer = dict(total_scaled.__globals__, scaled=inner)
        function = kernel(FunctionType(total_scaled.__code__, outer, "total_scaled"))
        assert function(np.ones(5)) == 5 * factor


def test_numba_functions_work_without_a_writable_cache(fresh: pytest.MonkeyPatch) -> None:
    """Numba has no cache folder for a function that was compiled from text."""
    scope = {"__name__": "nowhere"}
    exec(compile("def third(x: float) -> float:\n    return x / 3\n", "<text>", "exec"), scope)
    fresh.setenv("FIRSTPAGE_KERNELS", "numba")
    assert kernel(scope["third"])(6.0) == 2  # type: ignore[arg-type]


def test_tested_versions_match_the_dependencies() -> None:
    file = Path(__file__).parents[4] / "pyproject.toml"
    dependencies = "\n".join(tomllib.loads(file.read_text())["project"]["dependencies"])
    for package, (first, end) in object_cache.TESTED_VERSIONS.items():
        bounds = re.search(rf"^{package}>=(\S+),<(\S+)$", dependencies, re.M)
        assert bounds is not None
        assert bounds.groups() == (".".join(map(str, first)), ".".join(map(str, end)))
    object_cache.check_versions()  # of the installed packages
