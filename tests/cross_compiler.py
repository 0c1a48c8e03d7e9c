"""Kernels for the other architecture, compiled on this one.

LLVM under emulation takes minutes per kernel.  Here a server on the host compiles kernels for the
emulated machine; the tests in the emulation ask it for machine code by the name of the kernel.

    python -m tests.cross_compiler target                      in the emulation: describe the machine
    python -m tests.cross_compiler serve TARGET.json SOCKET    on the host, with the same sources
"""

from __future__ import annotations

import json
import os
import platform
import socket
import socketserver
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

from firstpage.core.kernels.compiler import object_cache
from firstpage.core.kernels.compiler.functions import Subroutine, fingerprint

VARIABLE = "FIRSTPAGE_CROSS_COMPILER"  # the path of the socket
Compile = Callable[[Subroutine[Any, Any], tuple[str, ...]], object_cache.ObjectCode]


def describe_target() -> dict[str, str]:
    """Return what a compiler must know about this machine."""
    import llvmlite.binding as llvm

    return {
        "triple": llvm.get_process_triple(),
        "cpu": llvm.get_host_cpu_name(),
        "features": llvm.get_host_cpu_features().flatten(),
        "machine": platform.machine(),
    }


# --- the emulation


def request_kernels() -> None:
    """Let kernels be compiled by the server of the environment, if there is one."""
    path = os.environ.get(VARIABLE)
    if path:
        object_cache._compile = _remote(path, object_cache._compile)  # type: ignore[assignment]


def _remote(path: str, local: Compile) -> Compile:
    def compiled(kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> object_cache.ObjectCode:
        request = {
            "module": kernel.python.__module__,
            "name": kernel.name,
            "types": types,
            "fingerprint": fingerprint(kernel, types),
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            stream = connection.makefile("rwb")
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
            header = json.loads(stream.readline())
            code = stream.read()
        # A kernel that the server does not have, as one that a test defines, is compiled here.
        return local(kernel, types) if header is None else (header, code)

    return compiled


# --- the host


def compile_for(target: dict[str, str]) -> None:
    """Make Numba and the kernels of this process compile for another machine."""
    import llvmlite.binding as llvm
    from llvmlite.binding import targets

    os.environ["NUMBA_CPU_NAME"] = target["cpu"]
    os.environ["NUMBA_CPU_FEATURES"] = target["features"]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = SimpleNamespace(flatten=lambda: target["features"])
    for module in (llvm, targets):
        module.get_process_triple = module.get_default_triple = lambda: target["triple"]
        module.get_host_cpu_name = lambda: target["cpu"]
        module.get_host_cpu_features = lambda: features
    platform.machine = lambda: target["machine"]


class _Handler(socketserver.StreamRequestHandler):
    lock = Lock()  # Numba compiles one kernel at a time

    def handle(self) -> None:
        request = json.loads(self.rfile.readline())
        with self.lock:
            found = _found(request)
            types = tuple(request["types"])
            header, code = (None, b"") if found is None else object_cache._compile(found, types)
        print(request["module"], request["name"], len(code), flush=True)
        self.wfile.write(json.dumps(header).encode() + b"\n" + code)


def _found(request: dict[str, Any]) -> Subroutine[Any, Any] | None:
    """Return the kernel of a request, or None if it is not, or not the same, in these sources."""
    if request["module"].partition(".")[0] != "firstpage":
        return None
    value = getattr(import_module(request["module"]), request["name"], None)
    if value is None:
        return None
    kernel = value if isinstance(value, Subroutine) else Subroutine(value)
    same = fingerprint(kernel, tuple(request["types"])) == request["fingerprint"]
    return kernel if same else None


def serve(path: str) -> None:
    """Answer requests until the process is ended."""
    Path(path).unlink(missing_ok=True)
    with socketserver.ThreadingUnixStreamServer(path, _Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "target":
        print(json.dumps(describe_target()))
    else:
        compile_for(json.loads(Path(sys.argv[2]).read_text()))
        serve(sys.argv[3])
