"""Failures of the database: messages for the people who use a server, remedies for its operator."""

from __future__ import annotations

import errno
import sqlite3
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from firstpage.core import FirstpageError

RESTORE = "restore a backup into a new folder: firstpage label restore BACKUP FOLDER"
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)


class StoreUnavailable(FirstpageError):
    """The database cannot be used now; the same request may succeed later.

    The message is for everybody; `reason` and `remedy` are for the operator of the database.
    """

    def __init__(self, message: str, reason: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.reason, self.remedy = reason, remedy


class Busy(StoreUnavailable):
    """The database stayed locked, or all connections stayed in use, for too long."""

    def __init__(
        self, message: str = "the database is busy; please try again in a moment."
    ) -> None:
        super().__init__(message)


@dataclass(frozen=True)
class Failure:
    """A kind of failure: what does not work, and what the operator can do."""

    reason: str
    remedy: str

    def error(self, detail: str) -> StoreUnavailable:
        """Return the error; only the operator sees the detail, which may contain paths."""
        message = f"{self.reason}; tell the operator of this server, and try again later."
        return StoreUnavailable(message, f"{self.reason} ({detail})", self.remedy)


FULL = Failure("the disk of the server is full", "free some space on it")
READ_ONLY = Failure(
    "the database cannot be written",
    "check the owner and the permissions of the folder and its files, and how its disk is mounted",
)
STANDBY = Failure("the database cannot be written", "give the address of the primary server")
UNREADABLE = Failure(
    "the database cannot be opened",
    "check the owner and the permissions of the folder and its files",
)
DISK = Failure(
    "the disk of the database cannot be read or written",
    "check that it is mounted, has space and has no errors",
)
DAMAGED = Failure("the database is damaged", f"stop its server, keep the file, and {RESTORE}")
FOREIGN = Failure("this file is not a database", RESTORE)
MEMORY = Failure("the database has too little memory", "free some memory")
UNREACHABLE = Failure(
    "the database does not answer", "check its address and password, and that it is running"
)

# Primary result codes of SQLite.
SQLITE_BUSY = (5, 6, 15)
SQLITE = {
    3: UNREADABLE, 7: MEMORY, 8: READ_ONLY, 10: DISK, 11: DAMAGED, 13: FULL, 14: UNREADABLE,
    23: UNREADABLE, 26: FOREIGN,
}  # fmt: skip
# Prefixes of PostgreSQL's SQLSTATE, the longest first.
POSTGRES_BUSY = ("40001", "40P01", "53300", "55P03", "57014")
READ_ONLY_STATE = "25006"
POSTGRES = {
    "53100": FULL, "53200": MEMORY, READ_ONLY_STATE: STANDBY, "57P": UNREACHABLE, "58": DISK,
    "XX001": DAMAGED, "XX002": DAMAGED, "08": UNREACHABLE, "53": MEMORY,
}  # fmt: skip


def failure_of(error: DBAPIError) -> StoreUnavailable | None:
    """Return the failure that a database reports; None if its statement is at fault."""
    if isinstance(error, IntegrityError):
        return None
    code = getattr(error.orig, "sqlite_errorcode", None)
    state = getattr(error.orig, "sqlstate", None)
    if code is not None:
        busy, failure = code & 0xFF in SQLITE_BUSY, SQLITE.get(code & 0xFF)
    elif state is not None:
        busy = state in POSTGRES_BUSY
        failure = next((f for prefix, f in POSTGRES.items() if state.startswith(prefix)), None)
    else:  # SQLite has a code for all of these but text that is not UTF-8
        busy, failure = False, None
        if isinstance(error, OperationalError):
            failure = DAMAGED if isinstance(error.orig, sqlite3.Error) else UNREACHABLE
    if busy:
        return Busy()
    return None if failure is None else failure.error(short(error))


def disk_failure(error: BaseException | None) -> StoreUnavailable | None:
    """Return the failure if a file could not be written because a disk is full."""
    full = isinstance(error, OSError) and error.errno in DISK_FULL_ERRORS
    return FULL.error(short(error)) if full and error is not None else None


def short(error: BaseException) -> str:
    """Return the first line of a database error."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
