"""The access log: one line per request, in the Common Log Format with the seconds of the answer."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path

from starlette.types import Scope

from firstpage.core import DataError

log = logging.getLogger("firstpage.serving")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class AccessLog:
    """Writes lines to a file, which may be moved meanwhile, or to standard output.

    A line has the route, and nothing else that clients send, such as queries.

    Parameters
    ----------
    path : path
        The file, to which lines are appended; `-` is standard output.

    Raises
    ------
    DataError
        If the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        is_file = str(path) != "-"
        try:
            self._handler: logging.Handler = (
                WatchedFileHandler(path) if is_file else logging.StreamHandler(sys.stdout)
            )
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}).") from None
        self._path, self._failed = path, False
        self._handler.handleError = self._report  # type: ignore[method-assign]

    def write(self, scope: Scope, route: str, status: int, size: int, seconds: float) -> None:
        """Write the line of a request."""
        client, moment = (scope["client"] or ("-",))[0], datetime.now(UTC)
        method = scope["method"] if scope["method"] in METHODS else "-"
        line = (
            f"{client} - - [{moment:%d/%b/%Y:%H:%M:%S} +0000] "
            f'"{method} {route} HTTP/{scope["http_version"]}" {status} {size} {seconds:.4f}'
        )
        self._handler.handle(logging.LogRecord("access", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()

    def _report(self, record: logging.LogRecord) -> None:
        """Log a failure once, such as of a full disk."""
        if not self._failed:
            log.error("%s: the access log cannot be written (%s).", self._path, sys.exc_info()[1])
        self._failed = True
