"""Embedding the documents of an index: passages, the journal of what is embedded, the files.

A document is embedded as a whole and, if it is long, also in passages: windows of `WINDOW` words, a
new one every `STEP` words, at most `MAX_PASSAGES` per document, so that later words count only in
shorter documents.  The encoder truncates whatever is longer than it can read.

What is embedded is written to a journal, text by text, until the index is committed.  A writer that
is interrupted or killed therefore loses nothing: the next one takes the vectors of equal texts from
the journal.

References
----------
Dai and Callan, Deeper text understanding for IR with contextual neural language modeling, SIGIR
2019 (the best passage, MaxP).
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, Ints, Progress, warn
from firstpage.search import storage
from firstpage.search.encoders import Encoder
from firstpage.search.forward import ForwardIndex
from firstpage.search.precomputed import PRECOMPUTED, PrecomputedVectors
from firstpage.search.vectors import (
    DIGEST_BYTES,
    FILES,
    StoredVectors,
    document_codes,
    n_words,
    sign_words,
)

WINDOW = 100  # words of a passage
STEP = 75  # words between the beginnings of passages
MAX_PASSAGES = 16  # of a document
BLOCK = 256  # documents that are embedded between two reports of progress
JOURNAL = "embedded.journal"
NO_TEXT = bytes(DIGEST_BYTES)
PREFIX = struct.Struct(f"<I{DIGEST_BYTES}sI")  # of a record: checksum, digest, number of vectors

Codes = tuple[Array, Array]
"""Vectors of a document as integers, and the factors of their lengths."""
Document = tuple[str, list[str]]
"""The id of a document and the words of its text."""


@dataclass(frozen=True)
class VectorChange:
    """How a commit changes the vectors of an index.

    `source` has the vectors of new documents; without one they get none.  `rebuild` replaces all
    vectors by those of the source, or removes them without one.  `known` are vectors of the same
    encoder that may be used again.
    """

    source: Encoder | PrecomputedVectors | None = None
    rebuild: bool = False
    known: StoredVectors | None = None
    progress: Progress | None = None

    def open(self, folder: Path, reusable: Reusable) -> Embedder | Lookup:
        """Return what computes or looks up the vectors of documents."""
        if self.source is None or isinstance(self.source, PrecomputedVectors):
            return Lookup(self.source, reusable)
        return Embedder(folder, self.source, reusable)


NO_SOURCE = VectorChange()


def passages(words: Sequence[str]) -> list[str]:
    """Return the texts of a document to embed: the whole, then its passages if it is long."""
    if not words:
        return []
    texts = [" ".join(words)]
    if len(words) > WINDOW:
        ends = range(WINDOW, len(words) + STEP, STEP)
        texts += [" ".join(words[end - WINDOW : end]) for end in ends[:MAX_PASSAGES]]
    return texts


def text_digest(words: Sequence[str]) -> bytes:
    """Return the digest of a document's text; zeros without one."""
    if not words:
        return NO_TEXT
    text = " ".join(words).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()


class Journal:
    """The vectors of texts that an encoder has embedded for an index, until they are committed."""

    def __init__(self, folder: Path, encoder: Mapping[str, Any]) -> None:
        self._path = folder / JOURNAL
        self._dimensions = int(encoder["dimensions"])
        settings = {"encoder": encoder["digest"], "dimensions": self._dimensions}
        windows = {"window": WINDOW, "step": STEP, "max_passages": MAX_PASSAGES}
        header = json.dumps({**settings, **windows}).encode() + b"\n"
        self._offset_of: dict[bytes, int] = {}
        self._stream = open(self._path, "a+b")  # noqa: SIM115
        self._stream.seek(0)
        is_own = self._stream.readline(1 << 16) == header
        self._end = self._stream.tell() if is_own else 0
        while is_own and (record := self._read(self._end)) is not None:
            digest, codes = record
            self._offset_of[digest] = self._end
            self._end += PREFIX.size + codes[0].nbytes + codes[1].nbytes
        self._stream.truncate(self._end)  # what a killed writer may leave
        if not is_own:
            self._end = self._stream.write(header)

    def _read(self, offset: int) -> tuple[bytes, Codes] | None:
        """Return the record at an offset; None where it is not complete."""
        self._stream.seek(offset)
        prefix = self._stream.read(PREFIX.size)
        if len(prefix) < PREFIX.size:
            return None
        checksum, digest, count = PREFIX.unpack(prefix)
        if count > 1 + MAX_PASSAGES:
            return None
        content = self._stream.read(count * (4 + self._dimensions))
        if zlib.crc32(prefix[4:] + content) != checksum:
            return None
        scales = np.frombuffer(content, np.float32, count)
        codes = np.frombuffer(content, np.int8, offset=4 * count)
        return digest, (codes.reshape(count, self._dimensions), scales)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._offset_of)

    def __contains__(self, digest: bytes) -> bool:
        """Return whether the vectors of a text are stored."""
        return digest in self._offset_of

    def get(self, digest: bytes) -> Codes | None:
        """Return the vectors of a text, or None if they are not stored."""
        offset = self._offset_of.get(digest)
        record = None if offset is None else self._read(offset)
        return None if record is None else record[1]

    def append(self, digest: bytes, codes: Codes) -> None:
        """Store the vectors of a text."""
        content = codes[1].tobytes() + codes[0].tobytes()
        prefix = PREFIX.pack(0, digest, len(codes[1]))[4:]
        record = struct.pack("<I", zlib.crc32(prefix + content)) + prefix + content
        self._offset_of[digest] = self._end
        self._end += self._stream.write(record)

    def flush(self) -> None:
        """Hand all records to the system, so that a killed process does not lose them."""
        self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    @staticmethod
    def remove(folder: Path) -> None:
        """Remove the journal of a folder, since its vectors are committed."""
        (folder / JOURNAL).unlink(missing_ok=True)


class Reusable:
    """Vectors of texts that need not be embedded again, by the digests of the texts."""

    def __init__(self, stored: StoredVectors | None, rows: Ints | None = None) -> None:
        self._stored = stored
        self._row_of: dict[bytes, int] = {}
        if stored is not None:
            chosen = (
                np.flatnonzero(stored.counts) if rows is None else rows[stored.counts[rows] > 0]
            )
            digests = map(bytes, stored.digests[chosen])
            self._row_of = dict(zip(digests, chosen.tolist(), strict=True))
            self._row_of.pop(NO_TEXT, None)

    def get(self, digest: bytes) -> Codes | None:
        """Return the vectors of a text, or None if they are not stored."""
        row = self._row_of.get(digest)
        return None if row is None or self._stored is None else self._stored.of_row(row)


class Embedder:
    """Vectors of documents by an encoder; those of equal texts are computed once."""

    absence = "have no text, and therefore no vectors"

    def __init__(self, folder: Path, encoder: Encoder, reusable: Reusable) -> None:
        self._folder, self._encoder, self._reusable = folder, encoder, reusable
        self._journal = Journal(folder, encoder.to_dict())
        self.computed = 0

    def codes(self, documents: Sequence[Document]) -> list[Codes | None]:
        """Return the vectors of documents, which are ids and words."""
        digests = [text_digest(words) for _, words in documents]
        journal, stored = self._journal, self._reusable.get
        missing = {
            digest: passages(words)
            for digest, (_, words) in zip(digests, documents, strict=True)
            if words and digest not in journal and stored(digest) is None
        }
        if missing:
            texts = [text for each in missing.values() for text in each]
            vectors = self._encoder.encode_documents(texts)
            ends = np.cumsum([len(each) for each in missing.values()])
            for digest, each in zip(missing, np.split(vectors, ends[:-1]), strict=True):
                # zeros are the vectors of texts without tokens
                journal.append(digest, document_codes(each[each.any(axis=1) & each[0].any()]))
            journal.flush()
            self.computed += len(missing)
        return [journal.get(digest) or stored(digest) for digest in digests]

    def report(self, ids: Mapping[str, int]) -> None:
        """Do nothing: an encoder has no vectors of other documents."""

    def close(self, is_finished: bool) -> None:
        """Close the journal; say that it is kept if not all documents are embedded."""
        self._journal.close()
        if len(self._journal) and not is_finished:
            warn(
                f"{self._folder}: the vectors of {len(self._journal):,} documents are kept, "
                "so that they need not be computed again."
            )


class Lookup:
    """Vectors of documents that were computed elsewhere; those of unchanged texts stay."""

    def __init__(self, vectors: PrecomputedVectors | None, reusable: Reusable) -> None:
        self._vectors, self._reusable = vectors, reusable
        self.computed = 0
        self.absence = (
            "have no vectors; those of this index were computed elsewhere and come with documents"
            if vectors is None
            else f"have no vectors in {vectors.source}"
        )

    def codes(self, documents: Sequence[Document]) -> list[Codes | None]:
        """Return the vectors of documents, which are ids and words."""
        return [self._codes(name, words) for name, words in documents]

    def _codes(self, name: str, words: list[str]) -> Codes | None:
        vectors = None if self._vectors is None else self._vectors.of_document(name)
        if vectors is None:
            return self._reusable.get(text_digest(words))
        self.computed += 1
        return document_codes(vectors)

    def report(self, ids: Mapping[str, int]) -> None:
        """Report vectors whose documents are not in the index."""
        if self._vectors is None:
            return
        names = self._vectors.positions
        unknown = [name for name in names if name not in ids]
        if len(unknown) == len(names):
            raise DataError(
                f"{self._vectors.source}: none of its {len(names):,} ids is that of a document; "
                f"they are such as {unknown[0]!r}."
            )
        if unknown:
            warn(
                f"{self._vectors.source}: {len(unknown):,} of {len(names):,} ids are not those of "
                f"documents, such as {unknown[0]!r}; their vectors are left out."
            )

    def close(self, is_finished: bool) -> None:
        """Do nothing: no file is open."""


class VectorWriter:
    """Appends the vectors of rows to files, in the order of rows.

    `stored` is what the manifest says about vectors, `first` the number of rows that are committed.
    """

    def __init__(self, folder: Path, stored: Mapping[str, Any], first: int) -> None:
        self._folder, self._stored, self._first = folder, stored, first
        files, count = folder / stored["files"], int(stored["count"])
        files.mkdir(exist_ok=True)
        dimensions = int(stored["encoder"]["dimensions"])
        sizes = {
            "codes": count * dimensions, "scales": count, "signs": count * n_words(dimensions),
            "ends": first, "digests": first * DIGEST_BYTES,
        }  # fmt: skip
        self._files: dict[str, storage.AppendFile] = {}
        with ExitStack() as opened:
            for name, dtype in FILES.items():
                file = storage.AppendFile(files / name, dtype, sizes[name])
                self._files[name] = file
                opened.callback(file.discard)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close all files; what was not finished does not count."""
        self._opened.close()

    def finish(self) -> dict[str, Any]:
        """Close all files; return what the manifest says about them."""
        for file in self._files.values():
            file.close()
        return {**self._stored, "count": self._files["scales"].size}

    def write(
        self,
        source: Embedder | Lookup,
        forward: ForwardIndex,
        words_of: Callable[[Sequence[int]], Iterable[list[str]]],
        progress: Progress | None,
    ) -> None:
        """Append the vectors of all rows that are not committed; `words_of` returns their texts."""
        without: list[int] = []
        total = forward.n_rows - self._first
        for start in range(self._first, forward.n_rows, BLOCK):
            rows = np.arange(start, min(start + BLOCK, forward.n_rows))
            live = rows[~forward.deleted[rows]].tolist()
            words = list(words_of(live))
            codes = source.codes([(forward.ids[r], w) for r, w in zip(live, words, strict=True)])
            self._append(
                rows, dict(zip(live, words, strict=True)), dict(zip(live, codes, strict=True))
            )
            without += [
                row for row, each in zip(live, codes, strict=True) if not each or not len(each[1])
            ]
            if progress is not None:
                progress(start + len(rows) - self._first, total)
        source.report(forward.row_of)
        if without:
            warn(
                f"{self._folder}: {len(without):,} of {total:,} documents {source.absence}, "
                f"such as {forward.ids[without[0]]!r}."
            )

    def _append(
        self,
        rows: Ints,
        words: Mapping[int, list[str]],
        codes: Mapping[int, Codes | None],
    ) -> None:
        present = {row: each for row, each in codes.items() if each is not None}
        counts = [len(present[row][1]) if row in present else 0 for row in rows.tolist()]
        self._files["ends"].append(self._files["scales"].size + np.cumsum(counts))
        digests = b"".join(text_digest(words.get(row, [])) for row in rows.tolist())
        self._files["digests"].append(np.frombuffer(digests, np.uint8))
        if present:
            joined = np.concatenate([each for each, _ in present.values()])
            self._files["codes"].append(joined)
            self._files["signs"].append(sign_words(joined))
            self._files["scales"].append(np.concatenate([each for _, each in present.values()]))


def is_same_encoder(record: Mapping[str, Any] | None, source: Encoder | PrecomputedVectors) -> bool:
    """Return whether stored vectors are those of an encoder."""
    return record is not None and record["digest"] == source.digest


def check_source(
    source: Encoder | PrecomputedVectors, record: Mapping[str, Any], location: str
) -> None:
    """Refuse vectors of new documents that do not fit those of an index."""
    is_file = source.name == PRECOMPUTED
    if is_file != (record["name"] == PRECOMPUTED):
        kinds = {True: "were computed elsewhere", False: f"are of the encoder {record['name']!r}"}
        raise DataError(
            f"{location}: its vectors {kinds[not is_file]}; those of new documents must be so too."
        )
    if record["dimensions"] != source.dimensions:
        raise DataError(
            f"{location}: has vectors of {record['dimensions']} dimensions; those of "
            f"{source.name!r} have {source.dimensions}."
        )
    if not is_file and record["digest"] != source.digest:
        raise DataError(
            f"{location}: has vectors of the encoder {record['name']!r} with the digest "
            f"{record['digest'][:12]}; that of {source.name!r} is {source.digest[:12]}."
        )
