"""The store: one database, short transactions, every commit durable.

SQLite runs with a write-ahead log, `synchronous=FULL` and `BEGIN IMMEDIATE`: a transaction that
writes takes the lock before it reads, so what it has read cannot change until it commits.
PostgreSQL runs with `synchronous_commit=on`.  There every statement is a round trip to another
process, also `BEGIN` and `ROLLBACK`, without which answers to questions read.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Executable,
    FromClause,
    RowMapping,
    Table,
    create_engine,
    event,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from firstpage.core import DataError, missing_dependency, remove, sync_to_disk
from firstpage.labeling.app.store.failures import (
    DAMAGED,
    READ_ONLY_STATE,
    RESTORE,
    Busy,
    StoreUnavailable,
    failure_of,
    short,
)
from firstpage.labeling.app.store.tables import alembic_version, metadata

if TYPE_CHECKING:
    from alembic.config import Config


Clock = Callable[[], datetime]
Record = TypeVar("Record")
FILE = "firstpage.db"
PRIVATE, PRIVATE_FOLDER = 0o600, 0o700  # the database contains password hashes
WAIT = 30.0  # seconds to wait for another process's transaction
POSTGRES_CONNECTIONS = 8  # each is a process, so that peak load waits instead of opening more
SQLITE_CONNECTIONS, SQLITE_OVERFLOW = 24, 40  # kept open, and in addition at peak load
# Options of a connection: it is in a transaction that writes; it is held for several transactions.
WRITES, HELD = "firstpage_writes", "firstpage_held"


def utc_now() -> datetime:
    """Return the current time; the default clock."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """Return a time as ISO 8601 text of fixed width, so that text order is time order."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class Tx:
    """An open transaction."""

    connection: Connection
    clock: Clock = utc_now
    _now: str | None = field(default=None, repr=False)

    @property
    def now(self) -> str:
        """The time of the transaction; the same for everything in it."""
        if self._now is None:
            self._now = iso(self.clock())
        return self._now

    def later(self, **time: float) -> str:
        """Return a time after `now`, such as `later(minutes=5)`."""
        return iso(datetime.fromisoformat(self.now) + timedelta(**time))

    def all(self, statement: Executable, **parameters: Any) -> Sequence[RowMapping]:
        """Return all rows of a statement with these bound parameters."""
        return self.connection.execute(statement, parameters).mappings().all()

    def first(self, statement: Executable, **parameters: Any) -> RowMapping | None:
        """Return the first row; None if there is none."""
        return self.connection.execute(statement, parameters).mappings().first()

    def value(self, statement: Executable, **parameters: Any) -> Any:
        """Return the first column of the first row; None if there is none."""
        return self.connection.execute(statement, parameters).scalar()

    def column(self, statement: Executable, **parameters: Any) -> list[Any]:
        """Return the first column of all rows."""
        return list(self.connection.execute(statement, parameters).scalars())

    def count(self, rows: FromClause, *conditions: ColumnElement[bool]) -> int:
        """Return the number of rows of a table or a join."""
        return int(self.value(select(func.count()).select_from(rows).where(*conditions)))

    def run(self, statement: Executable, **parameters: Any) -> int:
        """Execute a statement; return how many rows it changed."""
        return int(self.connection.execute(statement, parameters).rowcount)

    def add(self, table: Table, **row: Any) -> int:
        """Insert a row; return its id."""
        inserted = self.connection.execute(table.insert().values(**row))
        key = inserted.inserted_primary_key
        return int(key[0]) if key and isinstance(key[0], int) else 0

    def add_all(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows."""
        if rows:
            self.connection.execute(table.insert(), list(rows))


def from_row(kind: type[Record], row: RowMapping, **values: Any) -> Record:
    """Return a dataclass with these values, and those of the columns named as its other fields."""
    names = (field.name for field in fields(kind) if field.name not in values)  # type: ignore[arg-type]
    return kind(**values, **{name: row[name] for name in names})


class Store:
    """A database, opened by its folder or URL.

    Attributes
    ----------
    report : callable
        Called with each failure of the database, by default without effect.
    """

    def __init__(self, location: str | Path | URL, clock: Clock = utc_now) -> None:
        self.url = location if isinstance(location, URL) else database_url(location)
        self.clock = clock
        self.report: Callable[[StoreUnavailable], None] = lambda failure: None
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._writing = threading.Lock()  # fairer than SQLite's polling
        self._held = threading.local()  # the connection of `holding_connection`, per thread
        self.engine = _engine(self.url)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """Yield a transaction that sees one snapshot and is rolled back at the end."""
        with self._connected() as connection:
            try:
                yield Tx(connection, self.clock)
            finally:
                connection.rollback()

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """Yield a transaction that is committed, durably, at the end of the block."""
        with self._single_writer(), self._connected() as connection:
            connection.execution_options(**{WRITES: True})
            try:
                with connection.begin():
                    yield Tx(connection, self.clock)
            finally:
                connection.execution_options(**{WRITES: False})

    @contextmanager
    def holding_connection(self) -> Iterator[None]:
        """Use one connection for all transactions of this thread in the block.

        In PostgreSQL a statement of `read` is then a transaction of its own, which saves `BEGIN`
        and `ROLLBACK`; by default its snapshot would be its own as well.
        """
        with self._connected() as connection:
            connection.execution_options(**{HELD: True})
            self._held.connection = connection
            try:
                yield
            finally:
                self._held.connection = None

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Yield a connection; raise `StoreUnavailable` if the database fails in the block."""
        held = getattr(self._held, "connection", None)
        try:
            if held is not None and not held.in_transaction():
                yield held
                return
            with self.engine.connect() as connection:
                yield connection
        except PoolTimeout as error:
            raise Busy from error
        except StoreUnavailable as error:  # a stored value is damaged
            self.report(error)
            raise
        except DBAPIError as error:
            failure = failure_of(error)
            if failure is None:
                raise
            self.report(failure)
            raise failure from error

    @contextmanager
    def _single_writer(self) -> Iterator[None]:
        """Let one thread write to SQLite at a time; raise `Busy` after waiting too long."""
        if not self.sqlite:
            yield
            return
        if not self._writing.acquire(timeout=WAIT):
            raise Busy
        try:
            yield
        finally:
            self._writing.release()

    def prepare(self) -> Store:
        """Create the tables, or migrate them to the newest version; return the store."""
        with self.readable_errors():
            if self.sqlite:
                prepare_file(self.url)
            upgrade(self)
        return self

    @contextmanager
    def readable_errors(self) -> Iterator[None]:
        """Turn database errors inside the block into one-line errors for users."""
        try:
            yield
        except StoreUnavailable as error:
            advice = f"{error.reason}; {error.remedy}." if error.reason else error
            raise DataError(f"{self.name}: {advice}") from error
        except DBAPIError as error:
            raise DataError(
                f"{self.name}: the database refused a statement ({short(error)}); if another "
                f"program has changed it, {RESTORE}."
            ) from error

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @property
    def display_url(self) -> str:
        """The address, without a password."""
        return self.url.render_as_string(hide_password=True)

    @property
    def name(self) -> str:
        """The file of SQLite, or the address, for messages."""
        return str(self.url.database) if self.sqlite else self.display_url


def database_url(location: str | Path) -> URL:
    """Return the URL of `firstpage.db` in a folder, which is created, or the URL itself."""
    text = str(location)
    if "://" not in text:
        folder = Path(location)
        if folder.is_file():
            raise DataError(
                f"{folder}: is a file; give the project's folder, or a database: "
                f"sqlite:///{folder.resolve()}"
            )
        try:
            folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"{folder}: cannot be used as the project's folder ({error.strerror})."
            ) from error
        return URL.create("sqlite", database=str(folder / FILE))
    url = _parsed(text)
    kind = "sqlite" if url.get_backend_name() == "sqlite" else "postgresql+psycopg"
    if kind == "sqlite" and (url.database or ":memory:") == ":memory:":
        raise DataError(f"{text}: names no file; give a folder, or sqlite:///path/to/file.db.")
    return url.set(drivername=kind)


def holds_store(location: str | Path) -> bool:
    """Return whether a folder has a database, or what remains of one; True for a URL or a file."""
    folder = Path(location)
    names = (FILE, f"{FILE}-wal")
    return (
        "://" in str(location)
        or folder.is_file()
        or any((folder / name).exists() for name in names)
    )


def make_private(path: Path) -> None:
    """Create a file that only its owner can read; the files that SQLite adds inherit its mode."""
    with suppress(OSError):  # it exists, or opening it will report the problem
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))


def prepare_file(url: URL) -> None:
    """Create the file of a database with its tables, unless it exists.

    A file that is empty, or missing beside its write-ahead log, is what remains of a lost database,
    which a new one must not hide.
    """
    path = Path(str(url.database))
    journal = path.with_name(f"{path.name}-wal")
    if path.is_dir():
        raise DataError(f"{path}: is a folder, and must be a database file; rename it.")
    if not path.exists():
        if journal.exists():
            raise DataError(
                f"{path}: is missing, but {journal.name} is there: the database was lost; put it "
                f"back, or {RESTORE}."
            )
        _create_file(url, path)
    elif path.is_file() and not path.stat().st_size:
        raise DataError(
            f"{path}: is empty (0 bytes), so the database was lost; {RESTORE}. Only if there never "
            "was one, delete this file."
        )


def _create_file(url: URL, path: Path) -> None:
    """Create a database under another name, then give it its name, unless there is one by now.

    A process that is killed thereby leaves no empty file, and servers can start at the same time.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        make_private(temporary)
        store = Store(url.set(database=str(temporary)))
        try:
            upgrade(store)
        finally:
            store.close()
        _rename_new(temporary, path)
        sync_to_disk(path.parent)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            remove(temporary.with_name(temporary.name + suffix))


def _rename_new(temporary: Path, path: Path) -> None:
    """Rename a file unless the new name exists, also if another process creates it meanwhile."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not path.exists():
            os.replace(temporary, path)


def _parsed(text: str) -> URL:
    """Return the URL of a supported database."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise DataError(
            f"{_without_password(text)}: not a database URL; write postgresql://user@host/name."
        ) from error
    if url.get_backend_name() not in ("sqlite", "postgresql", "postgres"):
        raise DataError(
            f"{url.render_as_string()}: projects are stored in SQLite or PostgreSQL; "
            "give a folder or postgresql://user@host/name."
        )
    return url


def _without_password(text: str) -> str:
    """Return an invalid URL without the part that may contain a password."""
    kind, _, rest = text.partition("://")
    return f"{kind}://{rest.rpartition('@')[2]}"


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url,
            connect_args={"timeout": WAIT, "check_same_thread": False},
            pool_size=SQLITE_CONNECTIONS,
            max_overflow=SQLITE_OVERFLOW,
            json_deserializer=_loads,
        )
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        engine = create_engine(
            url,
            connect_args={"options": "-c synchronous_commit=on"},
            pool_size=POSTGRES_CONNECTIONS,
            max_overflow=POSTGRES_CONNECTIONS,
            pool_use_lifo=True,
            pool_pre_ping=True,
        )
    except ModuleNotFoundError as error:
        raise missing_dependency("psycopg", "postgres", "PostgreSQL") from error
    event.listen(engine, "begin", _begin_postgres)
    event.listen(engine, "handle_error", _leave_standby)
    return engine


def _leave_standby(context: ExceptionContext) -> None:
    """Replace all connections after a failover, as the new ones reach the new primary server."""
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY_STATE:
        context.is_disconnect = True


def _loads(text: str) -> Any:
    """Return a stored JSON value."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise DAMAGED.error("a stored value is not JSON") from error


def _set_up_sqlite(raw: Any, record: object) -> None:
    raw.isolation_level = None  # BEGIN is emitted by `_begin_sqlite`
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        raw.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgres(connection: Connection) -> None:
    raw: Any = connection.connection.dbapi_connection
    options = connection.get_execution_options()
    autocommit = options.get(HELD, False) and not options.get(WRITES, False)
    if raw.autocommit != autocommit:
        raw.autocommit = autocommit


def storable(text: str) -> str:
    """Return a text if both databases can store it: NUL and lone surrogates are refused."""
    if "\x00" in text:
        raise ValueError("must not contain the character NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must not contain a lone surrogate") from None
    return text


MIGRATION_LOCK = 7_205_759  # arbitrary, the same for all servers of one PostgreSQL database
MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(store: Store) -> None:
    """Create the tables or migrate them to the newest version; concurrent servers take turns."""
    if present_version(store) == newest_version():  # the usual case
        with store.read() as tx:
            missing = sorted(metadata.tables.keys() - _table_names(tx))
        if missing:
            raise DataError(f"{store.name}: the table {missing[0]!r} is missing; {RESTORE}.")
        return
    with store.write() as tx:
        if not store.sqlite:
            tx.connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        version = version_in(tx)
        if version is None:
            _check_foreign(store, tx)
            create_tables(tx)
        elif version not in known_versions():
            raise DataError(
                f"{store.name}: was written by a newer Firstpage (tables {version}); "
                "update this one."
            )
        elif version != newest_version():
            migrate(tx)


def _check_foreign(store: Store, tx: Tx) -> None:
    """Refuse a database without a version whose tables have the names of ours."""
    taken = sorted(metadata.tables.keys() & _table_names(tx))
    if taken:
        raise DataError(
            f"{store.name}: has the table {taken[0]!r} of another program; give a new folder or an "
            "empty database."
        )


def _table_names(tx: Tx) -> set[str]:
    return set(inspect(tx.connection).get_table_names())


def create_tables(tx: Tx) -> None:
    """Create the newest tables at once: the migrations would, but Alembic is slow to load."""
    metadata.create_all(tx.connection)
    alembic_version.create(tx.connection)
    tx.connection.execute(alembic_version.insert().values(version_num=newest_version()))


def migrate(tx: Tx) -> None:
    """Apply the migrations that these tables have not had."""
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = tx.connection
    command.upgrade(config, "head")


def known_versions() -> list[str]:
    """Return the versions of the migration files, oldest first."""
    return sorted(path.name.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def newest_version() -> str:
    """Return the newest version of the tables."""
    return known_versions()[-1]


def present_version(store: Store) -> str | None:
    """Return the version of a database's tables; None if it has none yet."""
    with store.read() as tx:
        return version_in(tx)


def version_in(tx: Tx) -> str | None:
    """Return the version of the tables; None if there are none yet."""
    if not inspect(tx.connection).has_table("alembic_version"):
        return None
    version: str | None = tx.value(text("SELECT version_num FROM alembic_version"))
    return version


def alembic_config() -> Config:
    """Return the configuration with which Alembic finds the migrations."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
