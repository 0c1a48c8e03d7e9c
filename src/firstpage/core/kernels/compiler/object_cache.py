"""Machine code of kernels: compile it, store it in the cache folder, link it, call it.

Everything that depends on Numba's private interface is in this file; docs/kernels.md lists it.
Where that interface is unavailable, `linking` turns off, and kernels are called through Numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from firstpage.core import kernels
from firstpage.core.errors import FirstpageError, warn
from firstpage.core.folders import VARIABLE as CACHE_VARIABLE
from firstpage.core.folders import atomic_replace, cache_folder
from firstpage.core.kernels.compiler.functions import Subroutine, fingerprint, jitted
from firstpage.core.types import Floats, Ints

FORMAT = 4  # of the cached files; increment it when their meaning changes

# --- whether this process links machine code

VARIABLE = "FIRSTPAGE_KERNELS"
LINKED, NUMBA = "linked", "numba"  # values of the variable
TESTED_VERSIONS = {"numba": ((0, 61), (0, 69)), "llvmlite": ((0, 44), (0, 51))}
"""First tested version and first untested one, per package; as in pyproject.toml."""

T = TypeVar("T")


class LinkingError(Exception):
    """Numba's private interface is not as the linker expects it."""


class Linking:
    """Whether this process links machine code; once turned off, it stays off."""

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
            warn(_fallback_warning(error))
            return None


linking = Linking()


def _requested() -> str:
    value = os.environ.get(VARIABLE) or LINKED
    if value not in (LINKED, NUMBA):
        raise FirstpageError(f"{VARIABLE}={value!r} is unknown; set it to {LINKED} or {NUMBA}.")
    return value


def check_versions() -> None:
    """Raise an error for versions of Numba and llvmlite with which linking was not tested."""
    for package, (first, end) in TESTED_VERSIONS.items():
        installed = installed_version(package)
        if installed is None:
            raise LinkingError(f"{package} is not installed")
        numbers = tuple(int(number) for number in installed.split(".")[:2])
        if not first <= numbers < end:
            raise LinkingError(f"{package} {installed} is not a tested version")


@cache
def installed_version(package: str) -> str | None:
    """Return the version of a package without importing it, or None if it is not installed.

    It is part of the name of a folder beside the package.  `importlib.metadata`, which reads it
    where there is no such folder, imports the package `email`: a twentieth of a small evaluation.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    folders = list(Path(spec.origin).parents[1].glob(f"{package}-*.dist-info"))
    if len(folders) == 1:
        return folders[0].stem.removeprefix(f"{package}-")
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _fallback_warning(error: Exception) -> str:
    reason = " ".join(f"{error}".split()) or "no reason given"
    if not isinstance(error, LinkingError):
        reason = f"{type(error).__name__}: {reason}"
    requirements = " ".join(
        f"'{name}<{end[0]}.{end[1]}'" for name, (_, end) in TESTED_VERSIONS.items()
    )
    return (
        f"stored machine code cannot be linked here ({reason}), so kernels run by plain "
        "numba.njit: the results are the same, every start takes about a second more and the first "
        f"one longer. Install {requirements}, or set {VARIABLE}={NUMBA} to silence this."
    )


# --- calling: Numba passes an array as (owner, parent, size, itemsize, data, shape, strides)


_NO_BYTES = ctypes.c_char * 0


def _address(a: np.ndarray[Any, Any]) -> int:
    """Return the address of the items; `ctypes.data` takes four times as long as a buffer."""
    return ctypes.addressof(_NO_BYTES.from_buffer(a)) if a.flags.writeable else a.ctypes.data


def _array_words(a: np.ndarray[Any, Any]) -> list[int | None]:
    """Return the fields of an array, as Numba passes them."""
    return [None, None, a.size, a.itemsize, _address(a), *a.shape, *a.strides]


def _signature(types: tuple[str, ...]) -> list[type]:
    """Return the C types of the arguments of a compiled kernel."""
    pointer, word = ctypes.c_void_p, ctypes.c_ssize_t
    slots: list[type] = [pointer, pointer]  # addresses of the result and of an exception
    for name in types:
        if name == "int":
            slots.append(ctypes.c_int64)
        elif name == "float":
            slots.append(ctypes.c_double)
        else:
            slots += [pointer, pointer, word, word, pointer, *([word] * (2 * int(name[-1])))]
    return slots


class LinkedFunction:
    """Machine code at an address, called with arrays and numbers of the given types."""

    def __init__(self, address: int, types: tuple[str, ...], result: str) -> None:
        self._function = ctypes.CFUNCTYPE(ctypes.c_int32, *_signature(types))(address)
        self._is_array = [":" in name for name in types]
        self._box: Any = ctypes.c_double if result == "float64" else ctypes.c_int64
        self._returns = result != "none"

    def __call__(self, *args: Any) -> Any:
        return self._run(self._words(args), self._box())

    def bind(self, args: tuple[Any, ...]) -> Callable[[], Any]:
        """Return a function that calls the kernel with these arrays; addresses are taken once."""
        function, words, box = self._function, self._words(args), self._box()
        exception = ctypes.c_void_p()
        first = (ctypes.addressof(box), ctypes.addressof(exception))

        def call(_references: Any = (args, box, exception)) -> Any:
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
        exception = ctypes.c_void_p()
        status = self._function(ctypes.addressof(box), ctypes.addressof(exception), *words)
        assert status in (0, -2), f"a kernel failed with status {status}"  # -2: returned None
        return box.value if self._returns else None


# --- linking: from the cache folder if the code is there, else compiled


ObjectCode = tuple[dict[str, str], bytes]
"""Symbol and result type, and the machine code."""


def link(code: ObjectCode, types: tuple[str, ...]) -> LinkedFunction:
    """Link machine code and return it as a callable."""
    header, machine_code = code
    return LinkedFunction(_linker().add(machine_code, header["symbol"]), types, header["result"])


def cache_file(kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> Path:
    """Return the file of the machine code; its name covers everything the code depends on."""
    name = f"{kernel.name}-{fingerprint(kernel, FORMAT, types, _toolchain())}.o"
    return cache_folder() / "kernels" / name


def load_cached(kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> ObjectCode | None:
    """Return the stored machine code, or None."""
    return read_object_file(cache_file(kernel, types))


def compile_kernel(kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> ObjectCode:
    """Compile a kernel and store its machine code.

    The first compilation of a process is preceded by a self-check of the calling convention.
    """
    if kernels.on_compile is not None:
        kernels.on_compile()
    _self_check()
    return _compile_and_store(kernel, types)


def _compile_and_store(kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> ObjectCode:
    code = _compile(kernel, types)
    _store(cache_file(kernel, types), *code)
    return code


def read_object_file(file: Path) -> ObjectCode | None:
    """Return header and machine code, or None if the file is missing, damaged or truncated.

    Its first line is the digest of the rest: the header, as a line of JSON, and the code.
    """
    try:
        digest, _, content = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != _digest(content):
        return None
    head, _, code = content.partition(b"\n")
    return json.loads(head), code


def _store(file: Path, header: dict[str, str], code: bytes) -> None:
    """Write the file atomically, so that another process sees all of it or nothing."""
    content = json.dumps(header).encode() + b"\n" + code
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_replace(file) as temporary:
            temporary.write_bytes(_digest(content) + b"\n" + content)
    except OSError as error:
        _warn_not_stored(file.parent, error.strerror or str(error))


@cache
def _warn_not_stored(folder: Path, reason: str) -> None:
    """Warn once per folder that machine code cannot be stored."""
    warn(
        f"{folder}: compiled kernels cannot be stored here ({reason}), so every start compiles "
        f"them again, which takes seconds; set {CACHE_VARIABLE} to a folder that can be written."
    )


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


@cache
def _toolchain() -> tuple[str, ...]:
    import llvmlite.binding as llvm

    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    tools = [str(installed_version(package)) for package in TESTED_VERSIONS]
    return (sys.version, platform.machine(), *tools, cpu, features)


# --- compiling


def _compile(kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> ObjectCode:
    """Return the machine code of Numba's optimized LLVM code for these types."""
    import llvmlite.binding as llvm

    options = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = jitted(kernel, error_model="numpy", **options)
    signature = tuple(_numba_type(name) for name in types)
    with nonnegative_indices():
        dispatcher.compile(signature)
    overload = dispatcher.overloads[signature]
    module = llvm.parse_assembly(overload.library.get_llvm_str())
    runtime_symbols = [f.name for f in module.functions if f.is_declaration and _is_runtime(f.name)]
    if runtime_symbols:
        raise LinkingError(f"kernel {kernel.name} needs Python at run time: {runtime_symbols}")
    symbol = overload.fndesc.llvm_func_name
    _check_arguments(kernel.name, module.get_function(symbol), types)
    header = {"symbol": symbol, "result": str(overload.fndesc.restype)}
    return header, _target_machine().emit_object(module)


def index_as_given(context: Any, builder: Any, index_type: Any, index: Any, size: Any) -> Any:
    """Return the code of an array index; Numba's own adds `size` if the index is negative."""
    from numba import types

    return context.cast(
        builder, index, index_type, types.intp if index_type.signed else types.uintp
    )


@contextmanager
def nonnegative_indices() -> Iterator[None]:
    """Compile indices that never count from the end, as those of kernels: fewer instructions.

    `make indices` runs all tests with kernels that stop at an index outside its array.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.np import arrayobj

    with global_compiler_lock:  # other functions of this process are compiled as usual
        usual = arrayobj.fix_integer_index
        arrayobj.fix_integer_index = index_as_given
        try:
            yield
        finally:
            arrayobj.fix_integer_index = usual


def _check_arguments(name: str, function: Any, types: tuple[str, ...]) -> None:
    """Raise an error if the code takes other arguments than `LinkedFunction` passes."""
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


# --- the self-check: small functions that use each kind of argument and result


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
    """Compile, link and call two small functions, and compare the results with Python's."""
    probes: tuple[tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...]], ...] = (
        (
            _weighted_sum,
            ("float64:1", "int64:2", "float", "int"),
            (np.array([1.0, -2.5, 4.0]), np.arange(6).reshape(2, 3), 0.5, 1),
        ),
        (_set_first, ("int64:1", "int"), (np.zeros(2, np.int64), 7)),
    )
    for function, types, args in probes:
        probe: Subroutine[Any, Any] = Subroutine(function)
        code = load_cached(probe, types) or _compile_and_store(probe, types)
        results = []
        for run in (link(code, types), function):
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


class _Linker:
    """Owner of all executable memory; it lives as long as the process."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self._llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._engines: list[Any] = []

    def add(self, code: bytes, symbol: str) -> int:
        """Link the object code and return the address of `symbol`.

        Each kernel gets its own engine, since subroutines compiled into several kernels would
        otherwise be duplicate symbols.
        """
        engine = self._llvm.create_mcjit_compiler(self._llvm.parse_assembly(""), _target_machine())
        engine.add_object_file(self._llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._engines.append(engine)
        address = int(engine.get_function_address(symbol))
        if not address:
            raise LinkingError(f"the machine code has no function {symbol!r}")
        return address


@cache
def _linker() -> _Linker:
    return _Linker()
