"""A temporary PostgreSQL server on a free loopback port, if it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

# Nothing survives the tests, and every test adds a database that would be vacuumed.
SETTINGS = "-c max_connections=200 -c fsync=off -c autovacuum=off"
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/bin")


def programs() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`; None if PostgreSQL is not installed."""
    executable = shutil.which("initdb")
    if executable:
        return Path(executable).parent
    for candidate in PLACES:
        for folder in sorted(Path("/").glob(candidate.lstrip("/")), reverse=True):
            if (folder / "initdb").exists():
                return folder
    return None


@contextmanager
def cluster() -> Iterator[str]:
    """Yield the URL of a running server whose data folder is deleted afterwards."""
    folder = programs()
    assert folder is not None
    root = Path(tempfile.mkdtemp(prefix="firstpage-pg-"))
    root.chmod(0o777)
    data, port = root / "data", _free_port()
    try:
        _run(folder / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N")
        _run(
            folder / "pg_ctl",
            "-D",
            data,
            "-w",
            "-l",
            root / "log",
            "start",
            "-o",
            f"-p {port} -h 127.0.0.1 -k {root} {SETTINGS}",
        )
        yield f"postgresql://postgres@127.0.0.1:{port}"
    finally:
        subprocess.run(
            _as_user(folder / "pg_ctl", "-D", data, "-m", "immediate", "stop"),
            capture_output=True,
            check=False,
        )
        shutil.rmtree(root, ignore_errors=True)


def new_database(server: str, template: str = "template1") -> str:
    """Create a database on the server, empty or as a copy of another one; return its URL."""
    import psycopg

    name = f"t{uuid4().hex}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return f"{server}/{name}"


def _run(*command: object) -> None:
    """Quietly; what went wrong is in the error.  The log file must not keep our pipes open."""
    done = subprocess.run(
        _as_user(*command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, f"{command} failed with {done.returncode}"


def _as_user(*command: object) -> list[str]:
    """Return the command run as an unprivileged user: PostgreSQL refuses to run as root."""
    words = [str(word) for word in command]
    if os.geteuid() != 0:
        return words
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *words]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
