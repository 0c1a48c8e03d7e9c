"""Shared by all tests: a kernel cache of their own, compiled kernels, the real data if there."""

from __future__ import annotations

import fcntl
import gc
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Workers share the cores already: threads of BLAS and OpenMP that spin while they wait for one
# another make small tests ten times slower.  Set before NumPy is loaded; child processes inherit it.
for variable, value in {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}.items():
    os.environ.setdefault(variable, value)

# Compiled modules are stored, whatever the caller's setting: otherwise every worker rewrites the
# assertions of all tests, and every process that a test starts compiles the package.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

gc.disable()  # until all modules are loaded, which stay

# A shell that starts the tests in the background lets them, and all that they start, ignore an
# interrupt, which some of them send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests write and remove tens of thousands of small files, and databases that wait for the disk:
# all of it goes to memory, where there is room.
MEMORY = Path("/dev/shm")
NEEDED = 6 << 30  # bytes
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > NEEDED
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

from firstpage.core import kernels  # noqa: E402
from firstpage.core.engine.threads import available  # noqa: E402
from firstpage.core.kernels.compiler import decorators, object_cache  # noqa: E402
from firstpage.core.kernels.compiler.functions import Subroutine  # noqa: E402
from tests import durations  # noqa: E402
from tests.cross_compiler import request_kernels  # noqa: E402

settings.register_profile(
    "default",
    max_examples=30,
    deadline=None,  # a first call may compile a kernel
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
    database=None,
)
settings.register_profile("emulated", settings.get_profile("default"), max_examples=8)
settings.register_profile(  # other examples each time
    "thorough", settings.get_profile("default"), max_examples=500, derandomize=False
)
settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    # Kept between runs, so that kernels are compiled once; never the user's own cache.
    assert config.cache is not None
    os.environ["FIRSTPAGE_CACHE"] = str(config.cache.mkdir("firstpage"))
    request_kernels()
    if "PYTEST_XDIST_WORKER" in os.environ:
        compile_once(config.cache.mkdir("locks"))


def compile_once(folder: Path) -> None:
    """Let a worker wait for a kernel that another one compiles, and load its machine code."""
    compile_kernel = object_cache.compile_kernel

    def compiled(kernel: Subroutine[Any, Any], types: tuple[str, ...]) -> object_cache.ObjectCode:
        with (folder / object_cache.cache_file(kernel, types).name).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return object_cache.load_cached(kernel, types) or compile_kernel(kernel, types)

    object_cache.compile_kernel = compiled


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let every worker import other test modules first.

    In a fresh clone that compiles the assertions of all tests, which takes longer than importing
    compiled ones: each worker compiles some, and then reads what the others compiled.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        return
    root = session.config.rootpath
    folders = [session.config.invocation_params.dir / argument for argument in session.config.args]
    files = [file for folder in folders for file in sorted(folder.rglob("test_*.py"))]
    first = len(files) * int(worker[2:]) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for file in files[first:] + files[:first]:
            with suppress(Exception, pytest.skip.Exception):  # collecting says what is wrong
                import_module(".".join(file.relative_to(root).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Leave what every test needs out of garbage collection, and collect less often.

    Otherwise that is a seventh of the time.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: tests that wait for a browser or a server leave theirs idle."""
    return available() + 1


MARKED_BY_FIXTURE = {
    "browser": "browser",
    "cluster": "cluster",
    "finished": "slow",  # a whole demo
    "postgres_server": "postgres",
    "real_data": "data",
}


LONGEST = ("test_kill_server.py", "test_fallback.py", "test_cluster.py")
WAITING = ("test_cluster_trees.py", "test_slow_clients.py", "test_workers.py")


def comes_first(item: pytest.Item) -> bool:
    """Whether a test belongs at the start, which one worker runs alone.

    While it waits for a browser, the others compute; at the end no worker waits for a long test.
    """
    path = item.path
    return path.name in (*LONGEST, *WAITING) or path.parent.name == "browser"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use and by their recorded durations; `torch` is in the tests."""
    items.sort(key=comes_first, reverse=True)
    slow = durations.recorded()
    for item in items:
        for mark in slow.get(durations.unparametrized(item.nodeid), ()):
            item.add_marker(mark)
        for fixture in getattr(item, "fixturenames", ()):
            if marker := MARKED_BY_FIXTURE.get(fixture):
                item.add_marker(marker)
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if any(isinstance(value, str) and value == "postgresql" for value in parameters.values()):
            item.add_marker("postgres")
        if item.get_closest_marker("torch") and find_spec("torch") is None:
            item.add_marker(pytest.mark.skip(reason="no PyTorch: make test TORCH=torch==2.13.0"))


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests mean the machine code; those of the interpreter say so."""
    monkeypatch.setattr(decorators, "MAX_INTERPRETED", 0)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk: no test loses power.  Tests of waiting have an `fsync` of their own."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No machine code at all: every kernel runs as plain Python, in an empty cache."""
    monkeypatch.setattr(decorators, "MAX_INTERPRETED", 10**15)
    monkeypatch.setenv("FIRSTPAGE_CACHE", str(tmp_path / "empty"))
    for info in pkgutil.walk_packages(kernels.__path__, "firstpage.core.kernels."):
        for thing in vars(import_module(info.name)).values():
            if isinstance(thing, decorators.Kernel):
                monkeypatch.setattr(thing, "_versions", {})
                monkeypatch.setattr(thing, "always_compile", False)


@pytest.fixture(scope="session")
def once(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], object]], Path]:
    """Return a function that fills a folder in the first worker that asks, and returns it to all.

    Tests must not change such a folder.
    """
    own = tmp_path_factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def folder(name: str, fill: Callable[[Path], object]) -> Path:
        target, complete = root / f"once-{name}", root / f"once-{name}.complete"
        with (root / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                shutil.rmtree(target, ignore_errors=True)  # of a worker that failed
                target.mkdir()
                fill(target)
                complete.touch()
        return target

    return folder


def _shared_data() -> Path | None:
    if given := os.environ.get("FIRSTPAGE_DATA"):
        return Path(given)
    packed = Path(__file__).parents[2] / "shared" / "data"
    return packed if (packed / "unpack").exists() else None


@pytest.fixture(scope="session")
def real_data(pytestconfig: pytest.Config) -> Path:
    """The real collections, unpacked; the test is skipped, and says so, without them."""
    found = _shared_data()
    if found is None:
        pytest.skip("no real data: set FIRSTPAGE_DATA to the folder that holds them")
    if (found / "mq2008").is_dir():
        return found
    assert pytestconfig.cache is not None
    unpacked = pytestconfig.cache.mkdir("real-data")
    if not (unpacked / "complete").exists():
        subprocess.run([str(found / "unpack"), str(unpacked)], check=True, capture_output=True)
        (unpacked / "complete").touch()
    return unpacked


@pytest.fixture(scope="session")
def shared_statements() -> Iterator[None]:
    """Let all stores of a process compile each SQL statement once."""
    from tests.labeling.app.statements import sharing_compiled_statements

    with sharing_compiled_statements():
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Yield the URL of a PostgreSQL server; skip the test if PostgreSQL is not installed."""
    from tests.labeling.app import postgres

    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.cluster() as url:
        yield url


def chromium_path() -> str | None:
    """Return the system's browser; Playwright's own cannot be fetched everywhere.

    The headless shell is the same engine without a desktop's parts, at a third of the work.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def postgres_folder() -> Path | None:
    """Where the database server's programs lie."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    path = found[-1] if found else shutil.which("postgres")
    return None if path is None else Path(path).parent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not tested is said aloud, at the end, where it is read."""
    if _shared_data() is None:
        terminalreporter.line("NOT TESTED: real data (set FIRSTPAGE_DATA to their folder)")
    if chromium_path() is None:
        terminalreporter.line("NOT TESTED: pages in a browser (install chromium)")
    if postgres_folder() is None:
        terminalreporter.line("NOT TESTED: PostgreSQL (install postgresql)")
    if find_spec("torch") is None:
        terminalreporter.line("NOT TESTED: networks (make test TORCH=torch==2.13.0)")
