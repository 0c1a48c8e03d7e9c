"""Compile a Python function once per machine; afterwards run it without loading Numba.

Importing Numba takes more than a second, which would be most of the time of a small
`firstpage evaluate`.  So a kernel is compiled by Numba the first time it is called with
given array types, its machine code is kept in the cache folder, and every later process
links that code through llvmlite alone, in milliseconds.  Small jobs for which there is no
machine code yet are interpreted: their answer is there before a compiler would have started.

Rules for the functions marked `@kernel` (called from Python) and `@part` (called from
kernels): arguments are C-ordered arrays, ints and floats; they allocate nothing (the caller
brings workspace), raise nothing (they return a code), and use global numbers only.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, update_wrapper
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from firstpage.folders import cache_folder

P = ParamSpec("P")
R = TypeVar("R")

FORMAT = 2  # of the cached files; raise it when their meaning changes
LIGHT = 100_000  # array elements that a kernel may go through before it is worth compiling
_lock = threading.RLock()


class Part(Generic[P, R]):
    """A function that kernels may call.  From Python it runs as plain Python."""

    def __init__(self, function: Callable[P, R], fastmath: bool = False) -> None:
        self.python = function
        self.name = function.__name__
        self.fastmath = fastmath
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.python(*args, **kwargs)


class Kernel(Part[P, R]):
    """A compiled function, one machine-code version per combination of argument types.

    `kernel.python(...)` runs the uncompiled original, for tests and for reading along.
    """

    def __init__(self, function: Callable[P, R], fastmath: bool = False) -> None:
        super().__init__(function, fastmath)
        self._versions: dict[tuple[str, ...], Callable[..., R]] = {}
        self._interpreted = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        assert not kwargs, "kernels take positional arguments only"
        types = tuple([_type_of(a) for a in args])
        run = self._versions.get(types)
        if run is None:
            with _lock:
                found = _from_cache(self, types)
                if found is None and self._is_light(args):
                    return self._interpret(args)
                run = _runner(found or _compiled(self, types), types)
                self._versions[types] = run
        return run(*args)

    def _is_light(self, args: tuple[Any, ...]) -> bool:
        """Whether interpreting is still cheaper than compiling, as far as one can know."""
        self._interpreted += sum(a.size for a in args if isinstance(a, np.ndarray))
        return self._interpreted <= LIGHT

    def _interpret(self, args: tuple[Any, ...]) -> R:
        with np.errstate(all="ignore"):  # machine code does not warn either
            return self.python(*args)  # type: ignore[call-arg]


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Mark a function as callable from Python, compiled at its first call."""
    return Kernel(function)


def part(function: Callable[P, R]) -> Part[P, R]:
    """Mark a function as callable from kernels."""
    return Part(function)


def _type_of(value: object) -> str:
    """`float64:1` for a vector, `int` and `float` for numbers."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous, "kernels take C-ordered arrays"
        return f"{value.dtype.name}:{value.ndim}"
    if isinstance(value, (int, np.integer)):
        return "int"
    assert isinstance(value, (float, np.floating)), f"a kernel cannot take {type(value)}"
    return "float"


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


def _caller(address: int, types: tuple[str, ...], result: str) -> Callable[..., Any]:
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *_signature(types))(address)
    is_array = [":" in name for name in types]
    box: Any = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "none": ctypes.c_int64}[result]

    def call(*args: Any) -> Any:
        words: list[Any] = []
        for value, array in zip(args, is_array, strict=True):
            if array:
                words += _array_words(value)
            else:
                words.append(value)
        out = box()
        trouble = ctypes.c_void_p()
        status = function(ctypes.addressof(out), ctypes.addressof(trouble), *words)
        assert status in (0, -2), f"a kernel failed with status {status}"  # -2: returned None
        return None if result == "none" else out.value

    return call


# --- linking: from the cache folder if it is there, else compiled now


Code = tuple[dict[str, str], bytes]
"""Symbol and result type, and the machine code."""


def _runner(found: Code, types: tuple[str, ...]) -> Callable[..., Any]:
    header, code = found
    return _caller(_engine().add(code, header["symbol"]), types, header["result"])


def _file(kernel: Kernel[Any, Any], types: tuple[str, ...]) -> Path:
    name = f"{kernel.name}-{_fingerprint(kernel, types)}.o"
    return cache_folder() / "kernels" / name


def _from_cache(kernel: Kernel[Any, Any], types: tuple[str, ...]) -> Code | None:
    return _load(_file(kernel, types))


def _compiled(kernel: Kernel[Any, Any], types: tuple[str, ...]) -> Code:
    found = _compile(kernel, types)
    _store(_file(kernel, types), *found)
    return found


def _load(file: Path) -> Code | None:
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
        handle, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(head + b"\n" + code)
        os.replace(name, file)


def _fingerprint(kernel: Kernel[Any, Any], types: tuple[str, ...]) -> str:
    """All that the machine code depends on: the functions, the types, the tools, the CPU."""
    digest = hashlib.sha256(repr((FORMAT, types, _tools())).encode())
    for function in _reachable(kernel):
        digest.update(repr((function.fastmath, list(_content(function.python)))).encode())
    return digest.hexdigest()[:24]


@cache
def _tools() -> tuple[str, ...]:
    import llvmlite.binding as llvm

    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return (sys.version, platform.machine(), version("numba"), version("llvmlite"), cpu, features)


def _reachable(start: Part[Any, Any]) -> list[Part[Any, Any]]:
    """The kernel and every part that it calls, in a fixed order."""
    found: list[Part[Any, Any]] = []
    open_ = [start]
    while open_:
        here = open_.pop()
        if here not in found:
            found.append(here)
            open_ += [v for _, v in _globals_used(here.python) if isinstance(v, Part)]
    return found


def _globals_used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    scope = function.__globals__
    for name in function.__code__.co_names:
        if name in scope:
            yield name, scope[name]


def _content(function: Callable[..., Any]) -> Iterator[object]:
    """What a function says, without where it stands."""
    code: CodeType = function.__code__
    yield (code.co_name, code.co_code, code.co_consts, code.co_names, code.co_varnames)
    for name, value in _globals_used(function):
        if isinstance(value, (int, float, np.generic)):
            yield name, repr(value)


# --- compiling


@cache
def _jitted(function: Part[Any, Any]) -> Any:
    """The function for Numba, every part it names replaced by that part's compiled form."""
    import numba

    scope = dict(function.python.__globals__)
    for name, value in _globals_used(function.python):
        if isinstance(value, Part):
            scope[name] = _jitted(value)
    plain = FunctionType(function.python.__code__, scope, function.name)
    options = {"error_model": "numpy", "fastmath": function.fastmath, "_nrt": False}
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(**options, **bare)(plain)


def _compile(kernel: Kernel[Any, Any], types: tuple[str, ...]) -> Code:
    """Numba's optimised LLVM code for these types, turned into machine code."""
    import llvmlite.binding as llvm

    dispatcher = _jitted(kernel)
    signature = tuple(_numba_type(name) for name in types)
    dispatcher.compile(signature)
    compiled = dispatcher.overloads[signature]
    module = llvm.parse_assembly(compiled.library.get_llvm_str())
    foreign = [f.name for f in module.functions if f.is_declaration and _is_runtime(f.name)]
    assert not foreign, f"kernel {kernel.name} needs Python at run time: {foreign}"
    header = {"symbol": compiled.fndesc.llvm_func_name, "result": str(compiled.fndesc.restype)}
    return header, _target_machine().emit_object(module)


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
