"""The model in service, and how the model of a new file replaces it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET

from firstpage.errors import DataError, FirstpageError
from firstpage.serving.json_messages import ModelSummary, ReloadReport
from firstpage.serving.served_model import FileStamp, ServedModel, file_stamp, load, sha256_of

log = logging.getLogger("firstpage.serving")
MAX_NAMES = 5  # features named in a message; the answer to POST /reload names all


@dataclass(frozen=True)
class ReloadResult:
    """What one look at the model file resulted in.

    old      the model in service before
    new      the model in the file; None where the file holds none
    digest   of the file; None where it cannot be read
    refused  why the file is not served; None: it is
    """

    old: ServedModel | None
    new: ServedModel | None
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

    def report(self, reloads: int) -> ReloadReport:
        """Return what `POST /reload` answers."""
        same = self.old is not None and self.old.digest == self.digest
        return ReloadReport(
            detail=UNSET if self.refused is None else f"refused: {self.refused}",
            digest=UNSET if self.refused is not None or self.digest is None else self.digest,
            accepted=self.accepted,
            changed=self.accepted and not same,
            refused=self.refused,
            old=_summary(self.old, self.old.digest if self.old else None),
            new=_summary(self.new, self.digest),
            features={"added": self.added, "removed": self.removed},
            reloads=reloads,
        )

    def feature_changes(self) -> str:
        """Return both numbers of features, and which were added and removed."""
        assert self.old is not None
        assert self.new is not None
        changes = [f"{len(self.new.names)} instead of {len(self.old.names)}"]
        for word, names in (("added", self.added), ("removed", self.removed)):
            if names:
                changes.append(f"{word}: {_listed(names)}")
        if sorted(self.old.names) == sorted(self.new.names):
            changes.append("the same names in another order")
        return "; ".join(changes)


class WatchedModel:
    """The model of a file that may be replaced.

    A new file is read while the model in service goes on, and replaces it in one step; a request
    keeps the model that it began with.  A file that cannot be served is refused, once, and the
    old model stays.  So is a model with other features than the one in service, unless
    `allow_new_features`: the clients send the features of the old one.

    model    the model in service, None while there is none
    refused  why the file that lies there now is not served; None: it is
    """

    def __init__(self, path: str | os.PathLike[str], *, allow_new_features: bool = False) -> None:
        self.path = Path(path)
        self.name = printable(self.path.name)
        self.allow_new_features = allow_new_features
        self.model: ServedModel | None = None
        self.refused: str | None = None
        self.reloads = 0
        self.refusals = 0
        self._stamp: FileStamp | None = None
        self._lock = threading.Lock()

    def changed(self) -> bool:
        """Return whether another file lies there than the one read last."""
        return file_stamp(self.path) != self._stamp

    def reload(self) -> ReloadResult:
        """Serve the file that lies there now, or refuse it."""
        with self._lock:
            self._stamp = file_stamp(self.path)  # what is written from now on is seen next time
            old, new, digest = self.model, None, None
            try:
                digest = sha256_of(self.path)
                new = old if old is not None and old.digest == digest else load(self.path)
                result = ReloadResult(old, new, new.digest)
                self._check_features(result)
            except (FirstpageError, OSError, MemoryError) as error:
                reason = " ".join(str(error).split()) or "not enough memory"
                return self._refuse(old, new, digest, reason)
            except Exception as error:  # a file must never take the service down
                reason = f"{self.path}: cannot be served ({error!r})."
                return self._refuse(old, new, digest, reason)
            recovered, self.refused = self.refused is not None, None
            if new is not old:
                self._serve(new, result)
            if recovered:
                log.info("recovered: %s can be served again, model %s", self.path, new.digest[:12])
            return result

    def _check_features(self, result: ReloadResult) -> None:
        """Refuse a model whose features are not those of the model in service."""
        old, new = result.old, result.new
        if self.allow_new_features or old is None or new is None or old.names == new.names:
            return
        raise DataError(
            f"{self.path}: has other features than the model in service "
            f"({result.feature_changes()}), and clients send those; restart the server with it, or "
            "start it with --allow-new-features."
        )

    def _serve(self, new: ServedModel, result: ReloadResult) -> None:
        old, self.model = self.model, new
        self.reloads += old is not None
        log.info("serving %s: %s, %d features, %s", self.path, new.model.ranker,
                 new.model.n_features, new.digest[:12])  # fmt: skip
        if old is not None and old.names != new.names:
            log.warning("other features than before: %s", printable(result.feature_changes()))

    def _refuse(
        self, old: ServedModel | None, new: ServedModel | None, digest: str | None, reason: str
    ) -> ReloadResult:
        self.refused = printable(reason)
        self.refusals += 1
        stays = "" if old is None else f" The model {old.digest[:12]} stays."
        log.warning("refused: %s%s", self.refused, stays)
        return ReloadResult(old, new, digest, self.refused)


def printable(text: str) -> str:
    """Return a text in which what is no UTF-8 is escaped, so that it can be printed and sent."""
    return text.encode("utf-8", "backslashreplace").decode()


def _missing(model: ServedModel | None, other: ServedModel | None) -> list[str]:
    """Return the features of a model that another lacks."""
    if model is None or other is None:
        return []
    known = set(other.names)
    return [name for name in model.names if name not in known]


def _summary(model: ServedModel | None, digest: str | None) -> ModelSummary | None:
    """Return a summary of a model; of a file without one, its digest."""
    if model is None:
        return None if digest is None else ModelSummary(digest)
    return ModelSummary(digest, model.model.ranker, len(model.names))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
