"""The model in service, and its replacement when the model file changes."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from pathlib import Path

from msgspec import UNSET

from firstpage.core import DataError, FirstpageError, plain_text
from firstpage.search import Index
from firstpage.serving.json_messages import ModelSummary, ReloadReport
from firstpage.serving.served_index import IndexSource, ServedIndex
from firstpage.serving.served_model import FileStamp, ServedModel, file_stamp, load, sha256_of

log = logging.getLogger("firstpage.serving")
Stamps = tuple[FileStamp | None, FileStamp | None]
MAX_NAMES = 5  # features named in a message; the answer to POST /reload names all


class WatchedModel:
    """The model of a file that may be replaced.

    A new file is read while the old model answers requests, and replaces it in one step; a request
    uses one model from beginning to end.  A file that cannot be served is refused once, and the
    old model stays in service.  A model with other features than the one in service is refused,
    too, because the clients send the features of the old one, unless `allow_new_features` is set.

    With an index, a model that does not fit it is refused, and a changed index is opened again.

    Attributes
    ----------
    model : ServedModel or None
        The model in service.
    refused : str or None
        Why the current file is not served; None if it is.
    reloads, refusals : int
        How many models replaced another, and how many files were refused.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        allow_new_features: bool = False,
        source: IndexSource | None = None,
    ) -> None:
        self.path = Path(path)
        self.source = source
        self.name, self._printable_path = printable(self.path.name), printable(str(self.path))
        self.allow_new_features = allow_new_features
        self.model: ServedModel | None = None
        self.refused: str | None = None
        self.reloads = 0
        self.refusals = 0
        self._stamp: Stamps | None = None
        self._index: Index | None = None
        self._index_stamp: FileStamp | None = None
        self._lock = threading.Lock()

    def changed(self) -> bool:
        """Return whether the file, or the index, has changed since it was last read."""
        return self._stamps() != self._stamp

    def _stamps(self) -> Stamps:
        index = None if self.source is None else file_stamp(self.source.manifest)
        return file_stamp(self.path), index

    def reload(self) -> ReloadReport:
        """Serve the current file, or refuse it; return what changed."""
        with self._lock:
            self._stamp = self._stamps()  # later writes are detected by the next check
            old, new, digest, refused = self.model, None, None, None
            try:
                digest = sha256_of(self.path)
                new = old if old is not None and old.digest == digest else load(self.path)
                digest = new.digest
                self._check_features(old, new)
                new = self._with_index(new)
            except (FirstpageError, OSError, MemoryError) as error:
                refused = plain_text(error) or "not enough memory"
            except Exception as error:  # a file must never stop the server
                log.exception("%s: cannot be served", self._printable_path)
                refused = f"{self.path}: cannot be served ({error!r})."
            if refused is not None:
                self._refuse(printable(refused))
            elif new is not None:
                self._serve(new)
            return self._report(old, new, digest)

    def _with_index(self, model: ServedModel) -> ServedModel:
        """Return a model with the current index; refuse a model that does not fit it."""
        if self.source is None or self._stamp is None:
            return model
        if self._index is None or self._index_stamp != self._stamp[1]:
            self._index = Index(self.source.path, self.source.encoder)
            self._index_stamp = self._stamp[1]
        if model.texts is not None and model.texts.index is self._index:
            return model
        texts = ServedIndex.open(self.source, self._index, model.model, str(self.path))
        for line in texts.notes:
            log.warning("%s", printable(line))
        served = replace(model, texts=texts)
        served.check_on_texts(str(self.path))
        return served

    def _check_features(self, old: ServedModel | None, new: ServedModel) -> None:
        """Refuse a model whose features differ from those of the model in service."""
        if self.allow_new_features or old is None or old.names == new.names:
            return
        raise DataError(
            f"{self.path}: has other features than the model in service "
            f"({_feature_changes(old, new)}), which clients send; restart the server, or start it "
            "with --allow-new-features."
        )

    def _serve(self, new: ServedModel) -> None:
        old, self.model = self.model, new
        recovered, self.refused = self.refused is not None, None
        if new is not old:
            self.reloads += old is not None
            log.info(
                "serving %s: %s, %d features, %s%s",
                self._printable_path,
                new.model.ranker,
                new.model.n_features,
                new.digest[:12],
                _index_text(new),
            )
            if old is not None and old.names != new.names:
                changes = printable(_feature_changes(old, new))
                log.warning("the features changed: %s", changes)
        if recovered:
            log.info(
                "recovered: %s is valid again, model %s", self._printable_path, new.digest[:12]
            )

    def _refuse(self, reason: str) -> None:
        self.refused = reason
        self.refusals += 1
        current = "" if self.model is None else f" Model {self.model.digest[:12]} stays in service."
        log.warning("refused: %s%s", reason, current)

    def _report(
        self, old: ServedModel | None, new: ServedModel | None, digest: str | None
    ) -> ReloadReport:
        accepted = self.refused is None
        return ReloadReport(
            detail=UNSET if accepted else f"refused: {self.refused}",
            digest=digest if accepted and digest is not None else UNSET,
            accepted=accepted,
            changed=accepted and (old is None or old.digest != digest),
            refused=self.refused,
            old=_summary(old, old.digest if old else None),
            new=_summary(new, digest),
            features={"added": _missing(new, old), "removed": _missing(old, new)},
            reloads=self.reloads,
        )


def printable(text: str) -> str:
    """Return a text with lone surrogates escaped, so that it can be printed and sent."""
    return text.encode("utf-8", "backslashreplace").decode()


def _index_text(model: ServedModel) -> str:
    if model.texts is None:
        return ""
    index = model.texts.index
    return f"; index {printable(str(index.path))}, {len(index):,} documents"


def _missing(model: ServedModel | None, other: ServedModel | None) -> list[str]:
    """Return the features of a model that another model lacks."""
    if model is None or other is None:
        return []
    known = set(other.names)
    return [name for name in model.names if name not in known]


def _summary(model: ServedModel | None, digest: str | None) -> ModelSummary | None:
    """Return a summary of a model; only the digest, if the file is not a valid model."""
    if model is None:
        return None if digest is None else ModelSummary(digest)
    return ModelSummary(digest, model.model.ranker, len(model.names))


def _feature_changes(old: ServedModel, new: ServedModel) -> str:
    """Return both numbers of features, and the names added and removed."""
    changes = [f"{len(new.names)} instead of {len(old.names)}"]
    for change, names in (("added", _missing(new, old)), ("removed", _missing(old, new))):
        if names:
            listed = ", ".join(repr(name[:60]) for name in names[:MAX_NAMES])
            more = len(names) - MAX_NAMES
            changes.append(f"{change}: {listed}" + (f" and {more} more" if more > 0 else ""))
    if sorted(old.names) == sorted(new.names):
        changes.append("the same names in another order")
    return "; ".join(changes)
