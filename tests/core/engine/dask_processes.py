"""A Dask cluster of separate processes, which tests can start and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE

SRC = Path(__file__).parents[3] / "src"
# A process ends with the tests, even if they are killed: they hold the other end of its input.
RUN_MODULE = """
import os, runpy, sys, threading
threading.Thread(target=lambda: os._exit(len(os.read(0, 1))), daemon=True).start()
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class DaskProcesses:
    """A scheduler and workers, each a process of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.port = 0
        self._lifeline = os.pipe()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", RUN_MODULE, *arguments],
                env=env,
                stdin=self._lifeline[0],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def start(self) -> None:
        """Start a scheduler, at the port of the previous one if there was one."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self.scheduler = self._start(
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--no-dashboard",
            "--scheduler-file",
            str(file),
            "--no-show",
        )
        deadline = time.time() + PATIENCE
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.time() < deadline
            assert self.scheduler.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)
        import json

        self.port = int(json.loads(file.read_text())["address"].rsplit(":", 1)[1])

    @property
    def engine(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def require_workers(self, count: int) -> None:
        """Start or kill workers until there are this many, and wait for them to connect."""
        from distributed import Client

        self.workers = [w for w in self.workers if w.poll() is None]
        for extra in self.workers[count:]:
            self.kill(extra)
        self.workers = self.workers[:count]
        while len(self.workers) < count:
            self.workers.append(
                self._start(
                    "distributed.cli.dask_worker",
                    f"tcp://127.0.0.1:{self.port}",
                    "--no-nanny",
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                    "--memory-limit",
                    "1GB",
                    "--local-directory",
                    str(self.folder),
                )
            )
        with Client(f"tcp://127.0.0.1:{self.port}", set_as_default=False) as client:
            deadline = time.time() + PATIENCE
            while len(client.nthreads()) != count:
                assert time.time() < deadline, (self.folder / "log").read_text()
                time.sleep(0.05)

    def run_on_workers(self, function: Any) -> list[Any]:
        """Return the result of a function on every worker."""
        from distributed import Client

        with Client(f"tcp://127.0.0.1:{self.port}", set_as_default=False) as client:
            return list(client.run(function).values())

    def kill_worker(self) -> None:
        self.kill(self.workers.pop())

    def kill_scheduler(self) -> None:
        assert self.scheduler is not None
        self.kill(self.scheduler)
        self.scheduler = None

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for process in [*self.workers, *filter(None, [self.scheduler])]:
            self.kill(process)
        for end in self._lifeline:
            os.close(end)
