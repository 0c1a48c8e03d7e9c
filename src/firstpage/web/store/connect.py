"""Where things are kept: one store a database, short transactions, every commit durable.

SQLite runs with a write-ahead log, `synchronous=FULL` and `BEGIN IMMEDIATE`: a transaction that
will write takes the lock before it reads, so what it decided on cannot have changed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    RootTransaction,
    RowMapping,
    Table,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from firstpage.errors import DataError, FirstpageError, missing_dependency

if TYPE_CHECKING:
    from alembic.config import Config


Clock = Callable[[], datetime]
FILE = "firstpage.db"
PRIVATE, PRIVATE_FOLDER = 0o600, 0o700  # password hashes are inside
WAIT = 30.0  # seconds to wait for another process's transaction
SERVER_CONNECTIONS = 8  # of PostgreSQL: each is a process, so a rush waits rather than opens more
CONNECTIONS, MORE = 24, 40  # kept open, and for a rush


class Busy(FirstpageError):
    """Others use the database without end."""

    def __init__(self) -> None:
        super().__init__("the database is busy; please try again in a moment.")


def utc_now() -> datetime:
    """The clock by default."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """Fixed width, so that text order is time order."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class Tx:
    """A transaction that is open; all services take one."""

    connection: Connection
    clock: Clock = utc_now
    _now: str | None = field(default=None, repr=False)

    @property
    def now(self) -> str:
        """The same moment for all that happens in this transaction."""
        if self._now is None:
            self._now = iso(self.clock())
        return self._now

    def later(self, **time: float) -> str:
        """So much after now; minutes=5, say."""
        return iso(datetime.fromisoformat(self.now) + timedelta(**time))

    def all(self, what: Executable, **given: Any) -> Sequence[RowMapping]:
        """All rows; `given` fills the places that a prepared statement leaves."""
        return self.connection.execute(what, given).mappings().all()

    def first(self, what: Executable, **given: Any) -> RowMapping | None:
        return self.connection.execute(what, given).mappings().first()

    def value(self, what: Executable, **given: Any) -> Any:
        """The first column of the first row; None without rows."""
        return self.connection.execute(what, given).scalar()

    def run(self, what: Executable, **given: Any) -> int:
        """Do it; how many rows it changed."""
        return int(self.connection.execute(what, given).rowcount)

    def add(self, table: Table, **row: Any) -> int:
        """One row; its id."""
        done = self.connection.execute(table.insert().values(**row))
        key = done.inserted_primary_key
        return int(key[0]) if key and isinstance(key[0], int) else 0

    def add_all(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self.connection.execute(table.insert(), list(rows))


class Store:
    """A database, by its folder, file or URL."""

    def __init__(self, where: str | Path, clock: Clock = utc_now) -> None:
        self.url = database_url(where)
        self.clock = clock
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._writing = threading.Lock()  # fairer than SQLite's own polling
        self.engine = _engine(self.url)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A moment's picture; nothing is kept of what is written here."""
        with self._connected() as connection:
            try:
                yield Tx(connection, self.clock)
            finally:
                connection.rollback()

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """All or nothing; durable when the block is left."""
        if not self.sqlite:
            with self._connected() as connection, connection.begin():
                yield Tx(connection, self.clock)
            return
        with self._alone(), self._connected() as connection:
            writing = connection.execution_options(firstpage_writes=True)
            with _begun(writing):
                yield Tx(writing, self.clock)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Yield a connection of the pool; who waits too long for one is told, not hung."""
        try:
            connection = self.engine.connect()
        except PoolTimeout as error:
            raise Busy from error
        with connection:
            yield connection

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer of this process at a time; who waits too long is told, not hung."""
        if not self._writing.acquire(timeout=WAIT):
            raise Busy
        try:
            yield
        finally:
            self._writing.release()

    def prepare(self) -> Store:
        """Create or bring up to date the tables; the store itself."""
        with self.told():
            if self.sqlite:
                make_private(Path(str(self.url.database)))
            upgrade(self)
        return self

    @contextmanager
    def told(self) -> Iterator[None]:
        """A database that is damaged, away or no database at all is one line to a person."""
        try:
            yield
        except DBAPIError as error:
            raise DataError(
                f"{self.shown}: cannot open this database ({short(error)}); "
                "check its address, that it runs, and that you may write there."
            ) from error

    def close(self) -> None:
        self.engine.dispose()

    @property
    def shown(self) -> str:
        """The address without a password."""
        return self.url.render_as_string(hide_password=True)


def database_url(where: str | Path) -> URL:
    """A folder (made if absent) holds `firstpage.db`; a URL is itself."""
    text = str(where)
    if "://" not in text:
        folder = Path(where)
        try:
            folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"{folder}: cannot be the project's folder ({error.strerror})."
            ) from error
        return URL.create("sqlite", database=str(folder / FILE))
    url = _parsed(text)
    kind = "sqlite" if url.get_backend_name() == "sqlite" else "postgresql+psycopg"
    if kind == "sqlite" and (url.database or ":memory:") == ":memory:":
        raise DataError(f"{text}: names no file; give a folder, or sqlite:///path/of/a/file.db.")
    return url.set(drivername=kind)


def make_private(path: Path) -> None:
    """A file that is not there yet is made for its owner alone; what SQLite adds follows it."""
    with suppress(OSError):  # there already, or told when it is opened
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))


def _parsed(text: str) -> URL:
    """A URL of a kind that we can open."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise DataError(
            f"{_without_password(text)}: is no database URL; write postgresql://user@host/name."
        ) from error
    if url.get_backend_name() not in ("sqlite", "postgresql", "postgres"):
        raise DataError(
            f"{url.render_as_string()}: a project lives in SQLite or PostgreSQL; "
            "give a folder or postgresql://user@host/name."
        )
    return url


def _without_password(text: str) -> str:
    """What cannot be read as a URL may still hold a password: only what follows it is shown."""
    kind, _, rest = text.partition("://")
    return f"{kind}://{rest.rpartition('@')[2]}"


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url, connect_args={"timeout": WAIT, "check_same_thread": False},
            pool_size=CONNECTIONS, max_overflow=MORE,
        )  # fmt: skip
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        return create_engine(
            url, connect_args={"options": "-c synchronous_commit=on"},
            pool_size=SERVER_CONNECTIONS, max_overflow=SERVER_CONNECTIONS, pool_pre_ping=True,
            pool_use_lifo=True,
        )  # fmt: skip
    except ModuleNotFoundError as error:
        raise missing_dependency("psycopg", "postgres", "PostgreSQL") from error


def _set_up_sqlite(raw: Any, record: object) -> None:
    raw.isolation_level = None  # we say BEGIN ourselves, below
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        raw.execute(f"PRAGMA {pragma}").close()


def _begun(connection: Connection) -> RootTransaction:
    """Begin to write; another process that holds the lock for too long makes the database busy."""
    try:
        return connection.begin()
    except OperationalError as error:
        if "locked" in short(error):
            raise Busy from error
        raise


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("firstpage_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def short(error: Exception) -> str:
    """The first line of what a database says."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


MIGRATION_LOCK = 7_205_759  # any number, the same for all servers of one PostgreSQL database
MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(store: Store) -> None:
    """To the newest version; two servers that start at once do it one after the other."""
    have = present_version(store)
    if have == newest_version():
        return  # as always but once; Alembic need not be loaded
    from alembic import command

    if have is not None and have not in known_versions():
        raise DataError(
            f"{store.shown}: was written by a newer Firstpage (tables {have}); update this one."
        )
    config = alembic_config()
    with store.write() as tx:
        if not store.sqlite:
            tx.connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        config.attributes["connection"] = tx.connection
        command.upgrade(config, "head")


def known_versions() -> list[str]:
    """Those that this program knows, oldest first: files are named by them."""
    return sorted(path.name.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def newest_version() -> str:
    return known_versions()[-1]


def present_version(store: Store) -> str | None:
    """The version of a database; None where it has no tables yet."""
    with store.read() as tx:
        if not inspect(tx.connection).has_table("alembic_version"):
            return None
        found: str | None = tx.value(text("SELECT version_num FROM alembic_version"))
        return found


def alembic_config() -> Config:
    """Where Alembic finds the steps."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
