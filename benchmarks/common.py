"""Code shared by the benchmarks: CPU times, tables, and other libraries that may be absent."""

from __future__ import annotations

import importlib.util
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))


def cpu_seconds(job: Callable[[], Any], repeats: int = 5, warmups: int = 1) -> float:
    """Return the median CPU time of a job over all threads, after untimed warm-up runs."""
    for _ in range(warmups):
        job()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return statistics.median(times)


def peer(name: str) -> Any | None:
    """Return a module of another library, or None if it is not installed.

    A library that is installed but cannot be imported is named.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            print(f"left out: {name} ({error})", file=sys.stderr)
        return None


def versions(*packages: str) -> str:
    """Return the versions of Python and of some packages."""
    entries = [f"Python {platform.python_version()}", platform.machine()]
    for package in packages:
        try:
            entries.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            entries.append(f"{package} not installed")
    return ", ".join(entries)


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
    """Print a table."""
    from firstpage.core import Table

    print()
    print(Table(head, rows, title=title, note=note).text(), flush=True)


def seconds(value: float) -> str:
    """Return a time as text, in milliseconds below one second."""
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.2f} s"
