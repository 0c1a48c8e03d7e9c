"""Machine code of kernels: compile it, store it in the cache folder, link it, call it.

All that Firstpage relies on of Numba's private interface is in this file; docs/kernels.md lists it.
Where it cannot be relied on, `linking` gives up, and kernels are called through Numba itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from firstpage import kernels
from firstpage.errors import FirstpageError, FirstpageWarning
from firstpage.folders import atomic_replace, cache_folder
from firstpage.kernels.compiler.functions import Part, fingerprint, jitted
from firstpage.types import Floats, Ints

FORMAT = 2  # of the cached files; raise it when their meaning changes

# --- whether this process links machine code

VARIABLE = "FIRSTPAGE_KERNELS"
LINKED, PLAIN = "linked", "numba"  # what the variable may say
CHECKED = {"numba": ((0, 60), (0, 69)), "llvmlite": ((0, 43), (0, 51))}
"""From which version on, and before which, linking was checked; as in pyproject.toml."""

T = TypeVar("T")


class LinkingError(Exception):
    """Numba's private interface is not as the linker expects it."""


class Linking:
    """Whether this process links machine code; once given up, it stays so."""

    def __init__(self) -> None:
        self._on: bool | None = None  # not decided yet

    def attempt(self, action: Callable[[], T]) -> T | None:
        """Return the result of `action`, or None where linking is off or fails now."""
        try:
            if self._on is None:
                self._on = _requested() == LINKED
                if self._on:
                    check_versions()
            return action() if self._on else None
        except FirstpageError:
            raise
        except Exception as error:  # a private interface may break in any way
            self._on = False
            warnings.warn(_explained(error), FirstpageWarning, stacklevel=2)
            return None


linking = Linking()


def _requested() -> str:
    value = os.environ.get(VARIABLE) or LINKED
    if value not in (LINKED, PLAIN):
        raise FirstpageError(f"{VARIABLE}={value!r} is unknown; set it to {LINKED} or {PLAIN}.")
    return value


version_of = cache(version)  # reads a file


def check_versions() -> None:
    """Refuse versions of Numba and llvmlite with which linking was never checked."""
    for package, (first, end) in CHECKED.items():
        installed = version_of(package)
        numbers = tuple(int(number) for number in installed.split(".")[:2])
        if not first <= numbers < end:
            raise LinkingError(f"{package} {installed} was never checked for it")


def _explained(error: Exception) -> str:
    reason = " ".join(f"{error}".split()) or "no reason given"
    if not isinstance(error, LinkingError):
        reason = f"{type(error).__name__}: {reason}"
    wanted = " ".join(f"'{name}<{end[0]}.{end[1]}'" for name, (_, end) in CHECKED.items())
    return (
        f"stored machine code cannot be linked here ({reason}), so kernels run by plain "
        "numba.njit: the results are the same, every start takes about a second more and the first "
        f"one longer. Install {wanted}, or set {VARIABLE}={PLAIN} to silence this."
    )


# --- calling: Numba passes an array as (owner, parent, size, itemsize, data, shape, strides)


def _array_words(a: np.ndarray[Any, Any]) -> list[int | None]:
    return [None, None, a.size, a.itemsize, a.ctypes.data, *a.shape, *a.strides]


def _signature(types: tuple[str, ...]) -> list[type]:
    pointer, word = ctypes.c_void_p, ctypes.c_ssize_t
    slots: list[type] = [pointer, pointer]  # where the result and an exception would go
    for name in types:
        if name == "int":
            slots.append(ctypes.c_int64)
        elif name == "float":
            slots.append(ctypes.c_double)
        else:
            slots += [pointer, pointer, word, word, pointer, *([word] * (2 * int(name[-1])))]
    return slots


class Linked:
    """Machine code at an address, called with arrays and numbers of the given types."""

    def __init__(self, address: int, types: tuple[str, ...], result: str) -> None:
        self._function = ctypes.CFUNCTYPE(ctypes.c_int32, *_signature(types))(address)
        self._is_array = [":" in name for name in types]
        self._box: Any = ctypes.c_double if result == "float64" else ctypes.c_int64
        self._returns = result != "none"

    def __call__(self, *args: Any) -> Any:
        return self._run(self._words(args), self._box())

    def bind(self, args: tuple[Any, ...]) -> Callable[[], Any]:
        """The same call again and again: where the arrays lie is looked up once."""
        function, words, box = self._function, self._words(args), self._box()
        trouble = ctypes.c_void_p()
        first = (ctypes.addressof(box), ctypes.addressof(trouble))

        def call(_keep: Any = (args, box, trouble)) -> Any:
            status = function(*first, *words)
            assert status in (0, -2), f"a kernel failed with status {status}"
            return box.value

        return call

    def _words(self, args: tuple[Any, ...]) -> list[Any]:
        words: list[Any] = []
        for value, array in zip(args, self._is_array, strict=True):
            if array:
                words += _array_words(value)
            else:
                words.append(value)
        return words

    def _run(self, words: list[Any], box: Any) -> Any:
        trouble = ctypes.c_void_p()
        status = self._function(ctypes.addressof(box), ctypes.addressof(trouble), *words)
        assert status in (0, -2), f"a kernel failed with status {status}"  # -2: returned None
        return box.value if self._returns else None


# --- linking: from the cache folder if it is there, else compiled now


Code = tuple[dict[str, str], bytes]
"""Symbol and result type, and the machine code."""


def linked(code: Code, types: tuple[str, ...]) -> Linked:
    """Return machine code as something to call."""
    header, machine_code = code
    return Linked(_engine().add(machine_code, header["symbol"]), types, header["result"])


def file_of(kernel: Part[Any, Any], types: tuple[str, ...]) -> Path:
    """Where the machine code is stored: named for all that it depends on."""
    name = f"{kernel.name}-{fingerprint(kernel, FORMAT, types, _tools())}.o"
    return cache_folder() / "kernels" / name


def from_cache(kernel: Part[Any, Any], types: tuple[str, ...]) -> Code | None:
    """Return the stored machine code, if there is any."""
    return load(file_of(kernel, types))


def compiled(kernel: Part[Any, Any], types: tuple[str, ...]) -> Code:
    """Compile a kernel and store its machine code.

    The first compilation of a process is preceded by a self-check of the calling convention.
    """
    if kernels.on_compile is not None:
        kernels.on_compile()
    _self_check()
    return _compiled(kernel, types)


def _compiled(kernel: Part[Any, Any], types: tuple[str, ...]) -> Code:
    code = _compile(kernel, types)
    _store(file_of(kernel, types), *code)
    return code


def load(file: Path) -> Code | None:
    """Header and machine code, or None where the file is absent, damaged or cut short."""
    try:
        head, _, code = file.read_bytes().partition(b"\n")
        header: dict[str, str] = json.loads(head)
    except (OSError, ValueError):
        return None
    return (header, code) if header.get("sha256") == hashlib.sha256(code).hexdigest() else None


def _store(file: Path, header: dict[str, str], code: bytes) -> None:
    """Write in one step, so that another process sees all of it or nothing."""
    head = json.dumps({**header, "sha256": hashlib.sha256(code).hexdigest()}).encode()
    with suppress(OSError):  # a read-only disk costs the next start a compilation, no more
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_replace(file) as draft:
            draft.write_bytes(head + b"\n" + code)


@cache
def _tools() -> tuple[str, ...]:
    import llvmlite.binding as llvm

    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    tools = version_of("numba"), version_of("llvmlite")
    return (sys.version, platform.machine(), *tools, cpu, features)


# --- compiling


def _compile(kernel: Part[Any, Any], types: tuple[str, ...]) -> Code:
    """Numba's optimized LLVM code for these types, turned into machine code."""
    import llvmlite.binding as llvm

    bare = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = jitted(kernel, error_model="numpy", **bare)
    signature = tuple(_numba_type(name) for name in types)
    dispatcher.compile(signature)
    overload = dispatcher.overloads[signature]
    module = llvm.parse_assembly(overload.library.get_llvm_str())
    foreign = [f.name for f in module.functions if f.is_declaration and _is_runtime(f.name)]
    if foreign:
        raise LinkingError(f"kernel {kernel.name} needs Python at run time: {foreign}")
    symbol = overload.fndesc.llvm_func_name
    _check_arguments(kernel.name, module.get_function(symbol), types)
    header = {"symbol": symbol, "result": str(overload.fndesc.restype)}
    return header, _target_machine().emit_object(module)


def _check_arguments(name: str, function: Any, types: tuple[str, ...]) -> None:
    """Refuse code that takes other arguments than `Linked` passes: calling it could crash."""
    names = {ctypes.c_void_p: "ptr", ctypes.c_double: "double"}
    expected = [names.get(slot, "i64") for slot in _signature(types)]
    actual = [str(argument.type) for argument in function.arguments]
    actual = ["ptr" if text.endswith("*") else text for text in actual]  # LLVM before 15
    if actual != expected:
        raise LinkingError(f"kernel {name} takes ({', '.join(actual)}), not {', '.join(expected)}")


def _is_runtime(symbol: str) -> bool:
    return symbol.startswith(("Py", "_Py", "NRT_", "numba_"))


def _numba_type(name: str) -> Any:
    from numba import types
    from numba.np.numpy_support import from_dtype

    if name == "int":
        return types.int64
    if name == "float":
        return types.float64
    dtype, ndim = name.split(":")
    return types.Array(from_dtype(np.dtype(dtype)), int(ndim), "C")


# --- the self-check: small functions that use each kind of argument and of result


def _weighted_sum(values: Floats, table: Ints, factor: float, row: int) -> float:
    total = 0.0
    for i in range(values.size):
        values[i] *= factor
        total += values[i] * table[row, i]
    return total


def _set_first(values: Ints, value: int) -> None:
    values[0] = value


@cache
def _self_check() -> None:
    """Compile, link and call two small functions, and compare with what Python computes."""
    probes: tuple[tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...]], ...] = (
        (
            _weighted_sum,
            ("float64:1", "int64:2", "float", "int"),
            (np.array([1.0, -2.5, 4.0]), np.arange(6).reshape(2, 3), 0.5, 1),
        ),
        (_set_first, ("int64:1", "int"), (np.zeros(2, np.int64), 7)),
    )
    for function, types, args in probes:
        probe: Part[Any, Any] = Part(function)
        code = from_cache(probe, types) or _compiled(probe, types)
        results = []
        for run in (linked(code, types), function):
            arrays = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
            results.append((run(*arrays), arrays[0].tolist()))
        if results[0] != results[1]:
            raise LinkingError(f"the self-check returned {results[0]} instead of {results[1]}")


# --- running


def _target_machine() -> Any:
    import llvmlite.binding as llvm

    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if platform.machine().lower() in ("x86_64", "amd64") else "default",
        codemodel="jitdefault",
    )


class _Engine:
    """The one place that holds executable memory; it lives as long as the process."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self._llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._engines: list[Any] = []

    def add(self, code: bytes, symbol: str) -> int:
        """Link the object code and return the address of `symbol`.

        Each kernel gets an engine of its own: parts compiled into several kernels would
        otherwise meet as duplicate symbols.
        """
        engine = self._llvm.create_mcjit_compiler(self._llvm.parse_assembly(""), _target_machine())
        engine.add_object_file(self._llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._engines.append(engine)
        return int(engine.get_function_address(symbol))


@cache
def _engine() -> _Engine:
    return _Engine()
