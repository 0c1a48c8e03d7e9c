"""Features of a local sentence-transformers model: the similarity of query and document.

A document is embedded as a whole and, if it is long, also in passages: windows of `WINDOW` words, a
new one every `STEP` words, at most `MAX_PASSAGES` per document, so that later words count only in
shorter documents.  The model truncates whatever is longer than it can read.

The vectors are stored in the folder `embeddings` of the index, in one file per model.  The index
itself does not know that file: it names the state of the index that it belongs to, is replaced
atomically, and may be deleted at any time.

References
----------
Reimers and Gurevych, Sentence-BERT, EMNLP 2019 (cosine).  Dai and Callan, Deeper text understanding
for IR with contextual neural language modeling, SIGIR 2019 (the best passage, MaxP).
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import (
    Array,
    Bytes,
    DataError,
    Floats,
    Ints,
    Progress,
    missing_dependency,
    warn,
)
from firstpage.data.io import write_bytes
from firstpage.search.index import Index

NAMES = ("embedding.cosine", "embedding.max_similarity")
WINDOW = 100  # words of a passage
STEP = 75  # words between the beginnings of passages
MAX_PASSAGES = 16  # of a document
BATCH = 32  # texts that the model reads at a time
BLOCK = 256  # documents that are embedded between two reports of progress
DIGEST_BYTES = 16
ALIGNMENT = 64  # of the numbers in a file
FORMAT = "firstpage-embeddings-1"
MODULES = "modules.json"  # the file that makes a folder a sentence-transformers model
PROBE = "the quick brown fox"
WEIGHTS_TOLERANCE = 1e-3  # of the vector of one text by two copies of a model


class Embedding:
    """Similarity of queries and the documents of an index by a local model.

    Parameters
    ----------
    index : Index
        The index.
    path : path
        The folder of a sentence-transformers model.
    digest : str, optional
        The digest that the model must have.
    source : str, optional
        What messages call the ranker that was trained with that digest.
    progress : callable, optional
        Called with the number of embedded documents and the number of all to embed.

    Attributes
    ----------
    folder : Path
        The folder of the model.
    digest : str
        The digest of the model's files.

    Raises
    ------
    DataError
        If there is no model, it cannot be loaded, or it has another digest.
    MissingDependency
        If sentence-transformers is not installed.
    """

    def __init__(
        self,
        index: Index,
        path: str | os.PathLike[str],
        digest: str | None = None,
        source: str = "",
        progress: Progress | None = None,
    ) -> None:
        self.folder = Path(os.path.abspath(path))
        try:
            self.digest = model_digest(self.folder)
        except DataError as error:
            if digest is None:
                raise
            raise DataError(f"{source}: its embedding model is missing: {error}") from error
        if digest is not None and digest != self.digest:
            raise DataError(
                f"{self.folder}: the files of this embedding model are not those that {source} was "
                "trained with; restore them, or compute the features and train again."
            )
        self._model = _load(self.folder)
        self._lock = threading.Lock()  # tokenizers must not be shared by threads
        self._forward: object = None
        self.follow(index, progress)

    def to_dict(self) -> dict[str, str]:
        """Return what a recipe records."""
        return {"path": str(self.folder), "digest": self.digest}

    def follow(self, index: Index, progress: Progress | None = None) -> None:
        """Take the vectors of the documents from the cache, or compute those that it lacks."""
        with self._lock:
            if self._forward is not index.forward:
                self._vectors = _document_vectors(index, self, progress)
                self._forward = index.forward

    def columns(self, text: str, rows: Ints) -> Iterator[tuple[str, Floats]]:
        """Yield the names and values of the features; they are 0 where there is no text."""
        cosine, best = np.zeros(len(rows)), np.zeros(len(rows))
        words = " ".join(text.split())
        first, counts = self._vectors.ranges(rows)
        present = np.flatnonzero(counts)
        if words and len(present):
            with self._lock:
                query = self.encode_query(words).astype(float)
            first, counts = first[present], counts[present]
            starts = np.cumsum(counts) - counts
            numbers = np.arange(counts.sum()) + np.repeat(first - starts, counts)
            # unlike a matrix product, this does not depend on the number of candidates
            similarity = np.einsum("ij,j->i", self._vectors.vectors[numbers].astype(float), query)
            cosine[present] = similarity[starts]
            similarity[starts[counts > 1]] = -np.inf  # the whole document is not a passage
            best[present] = np.maximum.reduceat(similarity, starts)
        yield from zip(NAMES, (cosine, best), strict=True)

    def encode_query(self, text: str) -> Array:
        """Return the vector of a query, of length 1."""
        vector: Array = self._encode(self._model, "query", ("query",), [text])[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents or passages, of length 1."""
        return self._encode(self._model, "document", ("document", "passage", "corpus"), texts)

    def _encode(self, model: Any, role: str, prompts: Sequence[str], texts: Sequence[str]) -> Array:
        """Return vectors; a model with different prompts for queries and documents gets them."""
        encode = getattr(model, f"encode_{role}", None)
        if encode is None:  # before version 5 of the library
            prompt = next((name for name in prompts if name in model.prompts), None)
            encode = partial(model.encode, prompt_name=prompt)
        try:
            encoded = encode(
                list(texts),
                batch_size=BATCH,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        except Exception as error:
            raise DataError(f"{self.folder}: the model failed ({_first_line(error)}).") from error
        vectors = np.asarray(encoded, np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise DataError(
                f"{self.folder}: the model does not return one finite vector per text; are its "
                "weights damaged?"
            )
        return vectors

    def check_weights(self) -> None:
        """Refuse a model with missing weights, which the library replaces by random numbers."""
        again = _load(self.folder, seed=1)
        expected = self._encode(self._model, "query", ("query",), [PROBE])
        if not np.allclose(
            self._encode(again, "query", ("query",), [PROBE]), expected, atol=WEIGHTS_TOLERANCE
        ):
            raise DataError(
                f"{self.folder}: weights of the model are missing or do not fit its configuration; "
                "copy the whole model again."
            )


# --- the model


def model_digest(folder: Path) -> str:
    """Return the digest of a model's files (weights, configuration, tokenizer).

    Hidden files and Markdown do not count.
    """
    if not folder.is_dir():
        raise DataError(
            f"{folder}: no such folder; give the folder of a sentence-transformers model "
            "(nothing is downloaded)."
        )
    if not (folder / MODULES).is_file():
        raise DataError(
            f"{folder}: is not a sentence-transformers model (it has no {MODULES}); save one there "
            "with SentenceTransformer(..).save(..)."
        )
    digest = hashlib.sha256()
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    try:
        for name in sorted(files, key=lambda name: name.as_posix()):
            if name.suffix != ".md" and not any(part.startswith(".") for part in name.parts):
                with open(files[name], "rb") as stream:
                    content = hashlib.file_digest(stream, "sha256").hexdigest()
                digest.update(f"{content} {name.as_posix()}\n".encode())
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read ({error.strerror}).") from error
    return digest.hexdigest()


def _load(folder: Path, seed: int = 0) -> Any:
    """Return the model in evaluation mode; load nothing but the files of the folder."""
    _refuse_code(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries about each other
        try:
            import torch
            from huggingface_hub import constants
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except ImportError as error:
            raise missing_dependency("sentence-transformers", "embed", "Embedding texts") from error
        with _quiet_and_offline(logging, constants), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                return SentenceTransformer(str(folder), local_files_only=True).eval()
            except Exception as error:
                raise DataError(
                    f"{folder}: the model cannot be loaded ({_first_line(error)})."
                ) from error


def _refuse_code(folder: Path) -> None:
    """Refuse a model whose modules are not the library's own, since loading it would run code."""
    try:
        modules = json.loads((folder / MODULES).read_bytes())
        types = [str(module["type"]) for module in modules]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder}: the model cannot be loaded ({MODULES}: {_first_line(error)})."
        ) from error
    other = [name for name in types if not name.startswith("sentence_transformers.")]
    if other:
        raise DataError(
            f"{folder}: its module {other[0]!r} is not part of sentence-transformers; models that "
            "bring their own code are not loaded."
        )


@contextmanager
def _quiet_and_offline(logging: Any, constants: Any) -> Iterator[None]:
    """Let the libraries neither print nor use the network; restore their settings afterwards."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    offline = constants.HF_HUB_OFFLINE
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = offline
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    text = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {text}".rstrip(" .")


# --- the vectors of documents


def passages(words: Sequence[str]) -> list[str]:
    """Return the texts of a document to embed: the whole, then its passages if it is long."""
    if not words:
        return []
    texts = [" ".join(words)]
    if len(words) > WINDOW:
        ends = range(WINDOW, len(words) + STEP, STEP)
        texts += [" ".join(words[end - WINDOW : end]) for end in ends[:MAX_PASSAGES]]
    return texts


@dataclass(frozen=True, eq=False)
class DocumentVectors:
    """The vectors of all documents of an index.

    Those of a row end at `ends[row]`: that of the whole document, then those of its passages if it
    is long.  Digests of the texts are zeros for rows without vectors.
    """

    ends: Ints
    digests: Bytes
    vectors: Array

    def ranges(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the first vector of each row, and how many it has."""
        first = np.where(rows > 0, self.ends[rows - 1], 0)
        return first, self.ends[rows] - first

    def by_digest(self) -> dict[bytes, Array]:
        """Return the vectors of each text."""
        first, counts = self.ranges(np.arange(len(self.ends)))
        return {
            self.digests[row].tobytes(): self.vectors[first[row] : self.ends[row]]
            for row in np.flatnonzero(counts).tolist()
        }


def _document_vectors(
    index: Index, embedding: Embedding, progress: Progress | None
) -> DocumentVectors:
    """Return the vectors of all documents, and store them if they were not."""
    path = index.path / "embeddings" / embedding.digest[:16]
    state = _state(index)
    stored, problem = None, ""
    if path.exists():
        try:
            stored_state, stored = _read(path, embedding.digest)
            if stored_state == state and len(stored.ends) == len(index.forward.deleted):
                return stored
            what = "has changed since its documents were embedded; " if stored_state else ""
            problem = f"{index.path}: {what}"
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"{path}: damaged ({_first_line(error)}); "
    embedding.check_weights()
    known = {} if stored is None else stored.by_digest()
    digests = _text_digests(index)
    n_texts = int(digests.any(axis=1).sum())
    rows = [
        row
        for row in np.flatnonzero(digests.any(axis=1)).tolist()
        if digests[row].tobytes() not in known
    ]
    warn(
        f"{problem or f'{index.path}: '}embedding {len(rows):,} of {len(index):,} documents with "
        f"{embedding.folder}."
    )
    if n_texts < len(index):
        warn(
            f"{index.path}: {len(index) - n_texts:,} of {len(index):,} documents have no text; "
            f"{' and '.join(NAMES)} are 0 for them."
        )
    try:
        _embed(index, embedding, rows, digests, known, progress)
    except BaseException:  # such as Ctrl-C: the next run continues from here
        if known:
            _write(path, embedding, "", _assembled(embedding, digests, known))
        raise
    vectors = _assembled(embedding, digests, known)
    if problem := _write(path, embedding, state, vectors):
        warn(
            f"{path}: cannot be written ({problem}); the vectors of documents stay in memory and "
            "are computed again next time."
        )
        return vectors
    return _read(path, embedding.digest)[1]


def _embed(
    index: Index,
    embedding: Embedding,
    rows: Sequence[int],
    digests: Bytes,
    known: dict[bytes, Array],
    progress: Progress | None,
) -> None:
    """Add the vectors of some documents to those that are known by the digests of their texts."""
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        texts = [passages(words) for words in _words(index, block)]
        encoded = embedding.encode_documents([text for each in texts for text in each])
        ends = np.cumsum([len(each) for each in texts])
        for row, vectors in zip(block, np.split(encoded, ends[:-1]), strict=True):
            known[digests[row].tobytes()] = vectors
        if progress is not None:
            progress(start + len(block), len(rows))


def _assembled(embedding: Embedding, digests: Bytes, known: dict[bytes, Array]) -> DocumentVectors:
    """Return the known vectors in the order of rows."""
    parts = [known.get(digest.tobytes()) for digest in digests]
    ends = np.cumsum([0 if part is None else len(part) for part in parts], dtype=np.int64)
    n_dimensions = len(embedding.encode_query(PROBE))
    empty = np.empty((0, n_dimensions), np.float32)
    return DocumentVectors(
        ends, digests, np.concatenate([empty, *(part for part in parts if part is not None)])
    )


def _words(index: Index, rows: Sequence[int]) -> Iterator[list[str]]:
    """Yield the words of the text fields of documents."""
    for start in range(0, len(rows), BLOCK):
        for document in index.engine.sources(rows[start : start + BLOCK]):
            values = (document.get(name, "") for name in index.schema.analyzers)
            yield " ".join(v if isinstance(v, str) else f"{v:.15g}" for v in values).split()


def _text_digests(index: Index) -> Bytes:
    """Return the digests of the texts of all rows; zeros for deleted and empty documents."""
    digests = np.zeros((len(index.forward.deleted), DIGEST_BYTES), np.uint8)
    rows = np.flatnonzero(~index.forward.deleted).tolist()
    for row, words in zip(rows, _words(index, rows), strict=True):
        if words:
            text = " ".join(words).encode("utf-8", "surrogatepass")
            digest = hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()
            digests[row] = np.frombuffer(digest, np.uint8)
    return digests


def _state(index: Index) -> str:
    """Return a digest of the documents of an index, cheaper than reading their texts."""
    forward = index.forward
    names = [index.generation, list(forward.ids), forward.terms.terms]
    digest = hashlib.sha256(json.dumps(names).encode())
    for array in (forward.tokens, forward.ends, forward.deleted):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


# --- the file of vectors: a line of JSON, padded, and the arrays


def _settings(embedding_digest: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": embedding_digest,
        "window": WINDOW,
        "step": STEP,
        "max_passages": MAX_PASSAGES,
    }


def _write(path: Path, embedding: Embedding, state: str, content: DocumentVectors) -> str:
    """Write the vectors atomically; return why that is impossible, or nothing."""
    arrays = [np.ascontiguousarray(a) for a in (content.ends, content.digests, content.vectors)]
    header = json.dumps(
        {
            **_settings(embedding.digest),
            "state": state,
            "rows": len(content.ends),
            "vectors": list(content.vectors.shape),
            "sha256": _checksum(arrays),
        }
    )
    line = header.encode() + b" " * (-(len(header) + 1) % ALIGNMENT) + b"\n"
    try:
        path.parent.mkdir(exist_ok=True)
        with write_bytes(path, sync=True) as out:
            out.write(line)
            for array in arrays:
                out.write(array.data if array.size else b"")
    except OSError as error:
        return error.strerror or str(error)
    except DataError as error:
        return str(error.__cause__.strerror if isinstance(error.__cause__, OSError) else error)
    return ""


def _read(path: Path, model: str) -> tuple[str, DocumentVectors]:
    """Return the state of the index and the vectors of a file; raise if it is damaged."""
    with open(path, "rb") as stream:
        line = stream.readline(1 << 16)
    header = json.loads(line)
    settings = _settings(model)
    if {key: header[key] for key in settings} != settings:
        raise ValueError("it has another format")
    rows, shape = header["rows"], tuple(header["vectors"])
    offset, arrays = len(line), []
    layout: list[tuple[tuple[int, ...], type[np.generic]]] = [
        ((rows,), np.int64),
        ((rows, DIGEST_BYTES), np.uint8),
        (shape, np.float32),
    ]
    sizes = [int(np.prod(each)) * np.dtype(dtype).itemsize for each, dtype in layout]
    if path.stat().st_size != offset + sum(sizes):
        raise ValueError("it has another size than it says")
    for (each, dtype), size in zip(layout, sizes, strict=True):
        arrays.append(
            np.asarray(np.memmap(path, dtype, "r", offset, each)) if size else np.empty(each, dtype)
        )
        offset += size
    if _checksum(arrays) != header["sha256"]:
        raise ValueError("its contents do not match its checksum")
    return header["state"], DocumentVectors(*arrays)


def _checksum(arrays: Sequence[Array]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()
