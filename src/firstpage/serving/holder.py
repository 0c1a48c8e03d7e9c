"""The model that is served now, and how a new file takes its place."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstpage.errors import DataError, FirstpageError
from firstpage.serving.served import Mark, Served, digest, load, mark_of

log = logging.getLogger("firstpage.serving")
MAX_NAMES = 5  # features named in a message; the answer to POST /reload names all


@dataclass(frozen=True)
class Reload:
    """What one look at the model file came to.

    old       the model in service before
    new       the model in the file; None where the file holds none
    digest    of the file, None where it cannot be read
    refused   why the file is not served; None: it is
    """

    old: Served | None
    new: Served | None
    digest: str | None
    refused: str | None = None

    @property
    def accepted(self) -> bool:
        return self.refused is None

    @property
    def added(self) -> list[str]:
        """Features that the new model needs and the old one did not."""
        return _missing(self.new, self.old)

    @property
    def removed(self) -> list[str]:
        """Features that the old model needed and the new one does not."""
        return _missing(self.old, self.new)

    def to_dict(self) -> dict[str, Any]:
        """Return what `POST /reload` answers."""
        same = self.old is not None and self.old.digest == self.digest
        return {
            "accepted": self.accepted,
            "changed": self.accepted and not same,
            "refused": self.refused,
            "old": _summary(self.old, self.old.digest if self.old else None),
            "new": _summary(self.new, self.digest),
            "features": {"added": self.added, "removed": self.removed},
        }


class Holder:
    """A model file that is watched.

    A new file is read beside the model in service, and takes its place in one step; a request
    keeps the model that it began with.  A file that cannot be served is refused, once, and the
    old model stays.  So is a model with other features than the one in service, unless
    `allow_new_features`: the clients send the features of the old one.
    """

    def __init__(self, path: str | os.PathLike[str], *, allow_new_features: bool = False) -> None:
        self.path = Path(path)
        self.name = printable(self.path.name)
        self.allow_new_features = allow_new_features
        self.served: Served | None = None
        self.refused: str | None = None  # why the file that lies there now is not served
        self.reloads = 0
        self.refusals = 0
        self._mark: Mark | None = None
        self._turn = threading.Lock()

    def changed(self) -> bool:
        """Whether another file lies there than the one looked at last."""
        return mark_of(self.path) != self._mark

    def look(self) -> Reload:
        """Take the file that lies there now, or refuse it."""
        with self._turn:
            self._mark = mark_of(self.path)  # what is written from now on is seen next time
            old, new, seen = self.served, None, None
            try:
                seen = digest(self.path)
                new = old if old is not None and old.digest == seen else load(self.path)
                self._check_features(Reload(old, new, seen))
            except (FirstpageError, OSError, MemoryError) as error:
                reason = " ".join(str(error).split()) or "not enough memory"
                return self._refuse(old, new, seen, reason)
            except Exception as error:  # a file must never take the service down
                return self._refuse(old, new, seen, f"{self.path}: cannot be served ({error!r}).")
            recovered, self.refused = self.refused is not None, None
            done = Reload(old, new, new.digest)
            if new is not old:
                self._serve(new, done)
            if recovered:
                log.info("recovered: %s can be served again, model %s", self.path, new.digest[:12])
            return done

    def _check_features(self, reload: Reload) -> None:
        """Refuse a model whose features are not those of the model in service."""
        old, new = reload.old, reload.new
        if self.allow_new_features or old is None or new is None or old.names == new.names:
            return
        raise DataError(
            f"{self.path}: has other features than the model in service ({_difference(reload)}), "
            "and clients send those; restart the server with it, or start it with "
            "--allow-new-features."
        )

    def _serve(self, new: Served, reload: Reload) -> None:
        old, self.served = self.served, new
        self.reloads += old is not None
        model = new.model
        log.info("serving %s: %s, %d features, %s", self.path, model.ranker, model.n_features,
                 new.digest[:12])  # fmt: skip
        if old is not None and old.names != new.names:
            log.warning("other features than before: %s", printable(_difference(reload)))

    def _refuse(self, old: Served | None, new: Served | None, seen: str | None, why: str) -> Reload:
        self.refused = printable(why)
        self.refusals += 1
        stays = "" if old is None else f" The model {old.digest[:12]} stays."
        log.warning("refused: %s%s", self.refused, stays)
        return Reload(old, new, seen, self.refused)


def printable(text: str) -> str:
    """Return a text in which what is no UTF-8 is escaped, so that it can be printed and sent."""
    return text.encode("utf-8", "backslashreplace").decode()


def _missing(names: Served | None, other: Served | None) -> list[str]:
    if names is None or other is None:
        return []
    known = set(other.names)
    return [name for name in names.names if name not in known]


def _summary(model: Served | None, seen: str | None) -> dict[str, Any] | None:
    """A model's digest, ranker and number of features; of no model, what is known of its file."""
    if model is None:
        return None if seen is None else {"digest": seen, "ranker": None, "features": None}
    return {"digest": seen, "ranker": model.model.ranker, "features": len(model.names)}


def _difference(reload: Reload) -> str:
    """Both numbers of features, and which were added and removed."""
    assert reload.old is not None
    assert reload.new is not None
    parts = [f"{len(reload.new.names)} instead of {len(reload.old.names)}"]
    for word, names in (("added", reload.added), ("removed", reload.removed)):
        if names:
            parts.append(f"{word}: {_listed(names)}")
    if sorted(reload.old.names) == sorted(reload.new.names):
        parts.append("the same names in another order")
    return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
