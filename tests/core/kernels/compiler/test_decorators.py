"""The cache of machine code: compiled once, loaded without Numba, validated on loading."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from firstpage.core import kernels
from firstpage.core.errors import FirstpageWarning
from firstpage.core.kernels.compiler import decorators, object_cache
from firstpage.core.kernels.compiler.decorators import (
    inlined_subroutine,
    kernel,
    subroutine,
    vector_kernel,
)
from firstpage.core.kernels.compiler.functions import Subroutine
from firstpage.core.types import Floats, Ints

FACTOR = 3


@subroutine
def tripled(x: float) -> float:
    return FACTOR * x


@kernel
def add_tripled(values: Floats, out: Floats) -> int:
    total = 0
    for i in range(values.size):
        out[i] += tripled(values[i])
        total += 1
    return total


@kernel
def fill(out: Ints, value: int) -> None:
    for i in range(out.size):
        out[i] = value


@kernel
def row_sums(table: Floats, weight: float, out: Floats) -> float:
    for i in range(table.shape[0]):
        out[i] = 0.0
        for j in range(table.shape[1]):
            out[i] += weight * table[i, j]
    return out[0]


@vector_kernel
def dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIRSTPAGE_CACHE", str(tmp_path))
    for function in (add_tripled, fill, row_sums):
        monkeypatch.setattr(function, "_versions", {})
        monkeypatch.setattr(function, "_interpreted", 0)
    return tmp_path / "kernels"


def test_kernels_call_subroutines_and_return_numbers(cache: Path) -> None:
    out = np.ones(3)
    assert add_tripled(np.array([1.0, 2.0, 3.0]), out) == 3
    assert out.tolist() == [4, 7, 10]
    numbers = np.zeros(2, np.int64)
    assert fill(numbers, 7) is None
    assert numbers.tolist() == [7, 7]
    sums = np.empty(2)
    assert row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]), 2.0, sums) == 6
    assert sums.tolist() == [6, 14]
    for name in ("add_tripled", "fill", "row_sums"):
        assert len(list(cache.glob(f"{name}-*.o"))) == 1


def test_arguments_are_passed_by_name_in_any_order(cache: Path) -> None:
    sums = np.empty(2)
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert row_sums(out=sums, weight=2.0, table=table) == 6
    assert row_sums(table, out=sums, weight=1.0) == 3
    assert row_sums.bind(weight=3.0, table=table, out=sums)() == 9
    assert sums.tolist() == [9, 21]
    assert len(list(cache.glob("row_sums-*.o"))) == 1


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("table", "weight"), "row_sums: missing: out"),
        (("table", "weights", "out"), "row_sums: missing: weight; unknown: weights"),
        (("table", "weight", "out", "other"), "row_sums: unknown: other"),
    ],
)
def test_wrong_names_are_refused(names: tuple[str, ...], message: str) -> None:
    arguments: dict[str, Any] = dict.fromkeys(names, np.ones(2))
    for call in (row_sums, row_sums.bind):
        with pytest.raises(TypeError, match=f"^{message}$"):
            call(**arguments)


def test_an_argument_is_passed_once() -> None:
    arguments: dict[str, Any] = {"table": np.ones((1, 1)), "out": np.ones(1)}
    with pytest.raises(TypeError, match=r"^row_sums: missing: weight; passed twice: table$"):
        row_sums(np.ones((1, 1)), **arguments)


def test_there_is_one_version_per_argument_type(cache: Path) -> None:
    out32 = np.ones(2, np.float32)
    add_tripled(np.ones(2, np.float32), out32)  # type: ignore[arg-type]
    add_tripled(np.ones(2), np.ones(2))
    assert out32.tolist() == [4, 4]
    assert len(list(cache.glob("add_tripled-*.o"))) == 2


def test_damaged_or_truncated_cache_file_is_rebuilt(cache: Path, monkeypatch) -> None:
    add_tripled(np.ones(1), np.ones(1))
    (file,) = cache.glob("add_tripled-*.o")
    content = file.read_bytes()
    for damaged in (
        content[:-7],
        content[:-1] + b"\x00",
        b"",
        b"invalid\n",
        content.replace(b"{", b"[", 1),
    ):
        file.write_bytes(damaged)
        monkeypatch.setattr(add_tripled, "_versions", {})
        out = np.zeros(1)
        add_tripled(np.ones(1), out)
        assert out[0] == 3
        assert object_cache.read_object_file(file) is not None


def test_a_change_of_any_byte_is_detected(tmp_path: Path) -> None:
    """A wrong symbol or result type in the header would crash the process."""
    file, code = tmp_path / "kernel.o", ({"symbol": "sum", "result": "int64"}, b"\x00code\n")
    object_cache._store(file, *code)
    assert object_cache.read_object_file(file) == code
    content = file.read_bytes()
    changed = [bytes([*content[:i], b ^ 1, *content[i + 1 :]]) for i, b in enumerate(content)]
    for damaged in (*changed, *(content[:i] for i in range(len(content))), b"[]\n\x00code\n"):
        file.write_bytes(damaged)
        assert object_cache.read_object_file(file) is None, damaged


def test_an_unknown_symbol_is_not_called() -> None:
    types = ("float64:1", "float64:1")
    header, code = object_cache._compile(add_tripled, types)
    with pytest.raises(object_cache.LinkingError, match="has no function 'other'"):
        object_cache.link(({**header, "symbol": "other"}, code), types)


def test_kernels_work_without_a_writable_cache(tmp_path: Path, monkeypatch) -> None:
    blocked = tmp_path / "a file, not a folder"
    blocked.write_text("")
    monkeypatch.setenv("FIRSTPAGE_CACHE", str(blocked))
    monkeypatch.setattr(add_tripled, "_versions", {})
    out = np.zeros(1)
    with pytest.warns(FirstpageWarning, match="file, not a folder.*cannot be stored here"):
        add_tripled(np.ones(1), out)
    assert out[0] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one line per process is enough
        monkeypatch.setattr(add_tripled, "_versions", {})
        add_tripled(np.ones(1), out)
    assert out[0] == 6


def test_cache_key_depends_on_every_subroutine_and_constant() -> None:
    before = object_cache.cache_file(add_tripled, ("float64:1", "float64:1"))
    scope = dict(tripled.python.__globals__, FACTOR=4)
    changed = Subroutine(FunctionType(tripled.python.__code__, scope, "tripled"))
    outer = dict(add_tripled.python.__globals__, tripled=changed)
    other = decorators.Kernel(FunctionType(add_tripled.python.__code__, outer, "add_tripled"))
    assert object_cache.cache_file(other, ("float64:1", "float64:1")) != before
    assert object_cache.cache_file(add_tripled, ("float64:1", "float32:1")) != before


def test_inlined_subroutines_give_the_same_numbers_by_other_code(cache: Path) -> None:
    inlined = inlined_subroutine(tripled.python)
    scope = dict(add_tripled.python.__globals__, tripled=inlined)
    code = FunctionType(add_tripled.python.__code__, scope, "add_tripled")
    other = decorators.compiled_kernel(code)
    types = ("float64:1", "float64:1")
    assert object_cache.cache_file(other, types) != object_cache.cache_file(add_tripled, types)
    out = np.ones(3)
    assert other(np.array([1.0, 2.0, 3.0]), out) == 3
    assert out.tolist() == [4, 7, 10]


def test_vector_kernels_are_never_interpreted(cache: Path, monkeypatch) -> None:
    """A worker's small shard and a large one elsewhere must agree to the last bit."""
    monkeypatch.setattr(decorators, "MAX_INTERPRETED", 10**15)
    monkeypatch.setattr(dot, "_versions", {})
    values = np.random.default_rng(0).normal(size=1000)
    result = dot(values, values)
    assert list(cache.iterdir())
    assert result == pytest.approx(dot.python(values, values), rel=1e-12)


def test_small_inputs_without_machine_code_are_interpreted(cache: Path, monkeypatch) -> None:
    monkeypatch.setattr(decorators, "MAX_INTERPRETED", 25)
    out = np.zeros(5)
    add_tripled(np.ones(5), out)  # 10 elements
    add_tripled(np.ones(5), out)  # 20
    assert not cache.exists()
    assert out.tolist() == [6] * 5
    add_tripled(np.ones(5), out)  # 30: now it is compiled
    assert len(list(cache.glob("add_tripled-*.o"))) == 1
    assert out.tolist() == [9] * 5


def test_on_compile_is_called_before_a_compilation(cache: Path, monkeypatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(kernels, "on_compile", lambda: calls.append("compiled"))
    fill(np.zeros(1, np.int64), 1)
    fill(np.zeros(1, np.int64), 1)
    assert calls == ["compiled"]


def test_many_threads_may_call_a_new_kernel_at_once(cache: Path) -> None:
    def job(i: int) -> float:
        out = np.zeros(100)
        add_tripled(np.full(100, float(i)), out)
        return float(out.sum())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(job, range(40))) == [300.0 * i for i in range(40)]


def test_only_c_ordered_arrays_are_accepted(cache: Path) -> None:
    with pytest.raises(AssertionError, match="C-ordered"):
        add_tripled(np.ones(6)[::2], np.ones(3))


SCRIPT = """
import sys
import firstpage as fp
result = fp.evaluate([2.0, 1.0] * 30000, [0, 1] * 30000, qid=sorted(list(range(30000)) * 2),
                    measures=["RR"])
print(round(result["RR"], 6), [m for m in ("numba", "scipy", "sklearn", "rich") if m in sys.modules])
"""


def test_later_processes_do_not_load_numba(tmp_path: Path) -> None:
    """Two processes at once, then a third, in a new cache: all agree, the third loads no Numba."""
    env = {**os.environ, "FIRSTPAGE_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT]
    pipes = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    first = [p.communicate(timeout=300)[0] for p in pipes]
    assert all(text.startswith("0.5 ") for text in first)
    third = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert third.stdout.strip() == "0.5 []"
