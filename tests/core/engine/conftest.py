"""The same data in shards, in a LETOR file and in memory; a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import firstpage as fp
from tests.core.engine.dask_processes import DaskProcesses

DATA = fp.Synthetic(queries=80, docs="uniform(4, 30)", features=7, seed=3).dataset()


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> fp.Shards:
    return fp.write_shards(DATA, tmp_path_factory.mktemp("shards") / "s", rows=250)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    fp.write_letor(DATA, tmp_path / "train.txt")
    return tmp_path / "train.txt"


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """A scheduler; tests start workers as they need them."""
    processes = DaskProcesses(tmp_path_factory.mktemp("cluster"))
    processes.start()
    yield processes
    processes.close()
