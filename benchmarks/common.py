"""Shared by the benchmarks: CPU time, medians of repeats, tables, peers that may be absent."""

from __future__ import annotations

import importlib
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))


def cpu_seconds(job: Callable[[], Any], repeats: int = 5, warm: int = 1) -> float:
    """Median CPU time of a job (all threads), after `warm` runs that do not count."""
    for _ in range(warm):
        job()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return statistics.median(times)


def peer(name: str) -> Any | None:
    """A module of another project, or None where it cannot be installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def versions(*packages: str) -> str:
    found = [f"Python {platform.python_version()}", platform.machine()]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return ", ".join(found)


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
    from firstpage.table import Table

    print()
    print(Table(head, rows, title=title, note=note).text(), flush=True)


def seconds(value: float) -> str:
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.2f} s"
