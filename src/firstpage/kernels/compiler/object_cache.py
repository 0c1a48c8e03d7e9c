"""Machine code of kernels: compile it, keep it in the cache folder, link it, call it.

Numba is imported here, in one function, and only when there is something to compile.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from firstpage import kernels
from firstpage.folders import cache_folder
from firstpage.kernels.compiler.functions import Part, content, globals_used, reachable

FORMAT = 2  # of the cached files; raise it when their meaning changes

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


def linked(found: Code, types: tuple[str, ...]) -> Linked:
    header, code = found
    return Linked(_engine().add(code, header["symbol"]), types, header["result"])


def _file(kernel: Part[Any, Any], types: tuple[str, ...]) -> Path:
    name = f"{kernel.name}-{fingerprint(kernel, types)}.o"
    return cache_folder() / "kernels" / name


def from_cache(kernel: Part[Any, Any], types: tuple[str, ...]) -> Code | None:
    return load(_file(kernel, types))


def compiled(kernel: Part[Any, Any], types: tuple[str, ...]) -> Code:
    if kernels.on_compile is not None:
        kernels.on_compile()
    found = _compile(kernel, types)
    _store(_file(kernel, types), *found)
    return found


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
        handle, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(head + b"\n" + code)
        os.replace(name, file)


def fingerprint(kernel: Part[Any, Any], types: tuple[str, ...]) -> str:
    """All that the machine code depends on: the functions, the types, the tools, the CPU."""
    digest = hashlib.sha256(repr((FORMAT, types, _tools())).encode())
    for function in reachable(kernel):
        digest.update(repr((sorted(function.fastmath), list(content(function.python)))).encode())
    return digest.hexdigest()[:24]


@cache
def _tools() -> tuple[str, ...]:
    import llvmlite.binding as llvm

    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return (sys.version, platform.machine(), version("numba"), version("llvmlite"), cpu, features)


# --- compiling


@cache
def _jitted(function: Part[Any, Any]) -> Any:
    """The function for Numba, every part it names replaced by that part's compiled form."""
    import numba

    scope = dict(function.python.__globals__)
    for name, value in globals_used(function.python):
        if isinstance(value, Part):
            scope[name] = _jitted(value)
    plain = FunctionType(function.python.__code__, scope, function.name)
    options = {"error_model": "numpy", "fastmath": set(function.fastmath), "_nrt": False}
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(**options, **bare)(plain)


def _compile(kernel: Part[Any, Any], types: tuple[str, ...]) -> Code:
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
