"""The model that is served now, and how a new file takes its place."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

from firstpage.errors import FirstpageError
from firstpage.serving.served import Mark, Served, digest, load, mark_of

log = logging.getLogger("firstpage.serving")


class Holder:
    """A model file that is watched.

    A new file is read beside the model in service, and takes its place in one step; a request
    keeps the model that it began with.  A file that cannot be served is refused, once, and the
    old model stays.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = printable(self.path.name)
        self.served: Served | None = None
        self.refused: str | None = None  # why the file that lies there now is not served
        self.reloads = 0
        self.refusals = 0
        self._mark: Mark | None = None
        self._turn = threading.Lock()

    def changed(self) -> bool:
        """Whether another file lies there than the one looked at last."""
        return mark_of(self.path) != self._mark

    def look(self) -> bool:
        """Take the file that lies there now; whether it is served afterwards."""
        with self._turn:
            self._mark = mark_of(self.path)  # what is written from now on is seen next time
            try:
                if self.served is not None and digest(self.path) == self.served.digest:
                    self.refused = None
                    return True
                found = load(self.path)
            except (FirstpageError, OSError, MemoryError) as error:
                self._refuse(" ".join(str(error).split()) or "not enough memory")
                return False
            except Exception as error:  # a file must never take the service down
                self._refuse(f"{self.path}: cannot be served ({error!r}).")
                return False
            self.reloads += self.served is not None
            self.served, self.refused = found, None
            model = found.model
            log.info("serving %s: %s, %d features, %s", self.path, model.ranker, model.n_features,
                     found.digest[:12])  # fmt: skip
            return True

    def _refuse(self, why: str) -> None:
        self.refused = printable(why)
        self.refusals += 1
        stays = "" if self.served is None else f" The model {self.served.digest[:12]} stays."
        log.warning("refused: %s%s", self.refused, stays)


def printable(text: str) -> str:
    """A name that is no UTF-8 can be neither printed nor told as it is."""
    return text.encode("utf-8", "backslashreplace").decode()
