"""LETOR text, also known as SVMlight with query ids: `2 qid:10 1:0.03 5:0.2 # docid = GX001`.

The reader streams: a chunk of text becomes a chunk of values, which goes straight into the
final array, so that reading needs little more memory than its result.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.data.dataset import INTERLEAVED, Dataset, data_warnings, warn_about
from firstpage.data.formats.letor_reader import LetorReader
from firstpage.data.ids import Ids, encode_text
from firstpage.data.io.files import read_all, write_bytes
from firstpage.data.io.json_files import json_digest
from firstpage.errors import DataError, FirstpageWarning, at
from firstpage.folders import cache_folder, replacing
from firstpage.kernels.parsing import letor as kernel
from firstpage.kernels.parsing.numbers import powers, spelled_number
from firstpage.types import Array, Bytes, Floats, Progress

MIN_CACHED_BYTES = 1 << 20  # smaller files parse faster than their cache entry is worth
CACHE_FORMAT = 4
CacheLocation = bool | Literal["beside"] | str | os.PathLike[str]
"""True: the cache folder; "beside": next to the file; a path: that folder; False: nowhere."""
BLANKS = " \t\n\r\x0b\x0c"


def read_letor(
    path: str | os.PathLike[str],
    *,
    dtype: Literal["float32", "float64"] | type[np.floating] = "float32",
    sparse: bool | None = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
    cache: CacheLocation = True,
    progress: Progress | None = None,
) -> Dataset:
    """Read a LETOR file: plain, `.gz`, `.xz` or `.zst`.

    A feature that a line does not name is 0; `nan` and LETOR's `NULL` are NaN.  `sparse` None
    chooses CSR where a dense array would be mostly zeros.  Features count from 1, or from 0
    where `zero_based` says so or a feature 0 occurs.  Large files are cached and open at once the
    next time: `cache` True in the cache folder, "beside" next to the file, a path in that folder,
    False nowhere.
    """
    file = Path(path)
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise DataError(f"dtype must be float32 or float64, and is {dtype!r}.") from None
    if n_features is not None and not isinstance(n_features, (int, np.integer)):
        raise DataError(f"n_features must be a whole number, and is {n_features!r}.")
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise DataError(f"dtype must be float32 or float64, and is {kind}.")
    options = {
        "dtype": kind.name,
        "sparse": sparse,
        "n_features": n_features,
        "zero_based": zero_based,
    }
    entry = None
    if cache is not False and file.is_file() and file.stat().st_size >= MIN_CACHED_BYTES:
        entry = CacheEntry(file, cache, options)
        if (arrays := entry.load()) is not None:
            warn_about(str(file), json.loads(arrays["remarks"].tobytes()))
            return dataset_from_arrays(arrays, str(file))
    reader = LetorReader(file, kind, sparse, n_features, zero_based)
    dataset = reader.read(progress)
    remarks = data_warnings(dataset)
    warn_about(str(file), remarks)
    if entry is not None:
        held = json.dumps([*reader.remarks, *remarks]).encode()
        entry.save(dataset_to_arrays(dataset) | {"remarks": np.frombuffer(held, np.uint8)})
    return dataset


# --- writing


def write_letor(data: Dataset | Iterable[Dataset], path: str | os.PathLike[str]) -> None:
    """Write LETOR text that reads back to the same numbers; compressed by its suffix.

    Takes one dataset, or many one after the other, so that any size can be streamed.
    """
    with write_bytes(Path(path)) as out:
        for part in [data] if isinstance(data, Dataset) else data:
            for query in part:
                out.write(encode_text(_letor_lines(query)))


def _letor_lines(query: Dataset) -> str:
    name = query.queries[0]
    check_identifier(name, "query id", "a LETOR file", BLANKS + "#")
    if not np.isfinite(query.y).all():
        raise DataError(f"a label of query {name!r} is missing or infinite; it cannot be written.")
    lines = []
    ids = list(query.docids) if query.docids is not None else None
    for row in range(query.n_docs):
        columns, values = _row(query.X, row)
        if ids is not None and ids[row]:
            check_identifier(ids[row], "document id", "a LETOR file")
        # A numpy float prints with as many digits as its own type needs, not more.
        texts = values.astype("U32") if values.dtype == np.float32 else map(repr, values.tolist())
        features = " ".join(f"{c + 1}:{_short(t)}" for c, t in zip(columns, texts, strict=True))
        if row == 0 and (not len(columns) or columns[-1] < query.n_features - 1):
            features += f" {query.n_features}:0"  # so that empty last columns come back
        comment = f" #docid = {ids[row]}" if ids is not None and ids[row] else ""
        lines.append(f"{_number(query.y[row])} qid:{name} {features}".rstrip() + comment + "\n")
    return "".join(lines)


def check_identifier(name: str, what: str, where: str, separators: str = BLANKS) -> None:
    """Refuse an identifier that would be read back as something else."""
    if not name or any(c in separators for c in name):
        raise DataError(
            f"the {what} {name!r} cannot stand in {where} (it is empty or would split)."
        )


def _row(X: Any, row: int) -> tuple[Sequence[int], Any]:
    """Columns and values of one document; a sparse one names only what it has."""
    if isinstance(X, np.ndarray):
        return range(X.shape[1]), X[row]
    lo, hi = X.indptr[row], X.indptr[row + 1]
    return X.indices[lo:hi], X.data[lo:hi]


def _short(text: str) -> str:
    return text[:-2] if text.endswith(".0") else text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


# --- parsed files, stored as `.npy` arrays that open in a millisecond by memory mapping
#
# An entry is a folder named after the file and all that its content depends on: the file's path,
# size and time, the reading options, and the version of this format.  Two processes may make it at
# once: one wins and both have it.  Where nothing can be written, nothing is.


class CacheEntry:
    """The place in the cache for one file read with given options."""

    def __init__(self, path: Path, where: CacheLocation, options: dict[str, Any]) -> None:
        info = path.stat()
        self._prefix = f"{path.name}.{json_digest([str(path.resolve()), options])[:12]}."
        if where == "beside":
            base = path.parent / ".firstpage"
        else:
            base = cache_folder() / "data" if where is True else Path(where or ".")
        state = json_digest([CACHE_FORMAT, info.st_size, info.st_mtime_ns])
        self.folder = base / (self._prefix + state[:12])

    def load(self) -> dict[str, Array] | None:
        """The arrays, mapped read-only, or None where they are absent or not whole."""
        try:
            sizes: dict[str, int] = json.loads((self.folder / "entry.json").read_text())
            arrays = {}
            for name, size in sizes.items():
                file = self.folder / f"{name}.npy"
                if file.stat().st_size != size:
                    return None
                arrays[name] = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, AttributeError):
            return None
        return arrays

    def save(self, arrays: dict[str, Array]) -> None:
        """Keep the arrays; stale entries of the same file go."""
        with suppress(OSError):  # full or read-only disk, or another process was first
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.folder) as draft:
                draft.mkdir()
                sizes = {}
                for name, array in arrays.items():
                    np.save(draft / f"{name}.npy", array, allow_pickle=False)
                    sizes[name] = (draft / f"{name}.npy").stat().st_size
                (draft / "entry.json").write_text(json.dumps(sizes))
                for old in self.folder.parent.glob(glob.escape(self._prefix) + "*"):
                    shutil.rmtree(old, ignore_errors=True)


def dataset_to_arrays(data: Dataset) -> dict[str, Array]:
    queries = data.queries.compact()
    arrays: dict[str, Array] = {"y": data.y, "offsets": data.offsets}
    arrays |= {"queries": queries.data, "query_ends": queries.ends}
    if data.docids is not None:
        ids = data.docids
        arrays |= {"ids": ids.data, "id_starts": ids.starts, "id_ends": ids.ends}
    if data.row_order is not None:
        arrays["row_order"] = data.row_order
    if isinstance(data.X, np.ndarray):
        return arrays | {"X": data.X}
    shape = np.array(data.X.shape)
    parts: dict[str, Any] = {
        "data": data.X.data,
        "indices": data.X.indices,
        "indptr": data.X.indptr,
    }
    return arrays | parts | {"shape": shape}


def dataset_from_arrays(arrays: dict[str, Array], source: str) -> Dataset:
    if "X" in arrays:
        X: Any = arrays["X"]
    else:
        from scipy.sparse import csr_array

        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = csr_array(parts, shape=tuple(arrays["shape"].tolist()), copy=False)
    queries = Ids.from_packed(arrays["queries"], arrays["query_ends"])
    ids = None
    if "ids" in arrays:  # all mapped: nothing here may take longer for more documents
        ids = Ids(arrays["ids"], arrays["id_starts"], arrays["id_ends"])
    order = arrays.get("row_order")
    if order is not None:
        warnings.warn(INTERLEAVED.format(what=source), FirstpageWarning, stacklevel=3)
    return Dataset(X, arrays["y"], arrays["offsets"], queries, ids, None, source, order)


# --- files of scores: one per line, in the order of the documents they belong to


def read_scores(path: str | os.PathLike[str], expected: int | None = None) -> Floats:
    """One number a line; blank lines and what follows a # do not count.

    `expected` is how many documents there are; another number of scores is an error.
    """
    file = Path(path)
    raw = read_all(file)
    text = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", np.uint8)
    values = np.empty(int(np.count_nonzero(text == 10)))
    hards = np.empty(3 * len(values), np.int64)
    state = np.zeros(3, np.int64)
    cell = np.zeros(1, np.uint64)
    code = kernel.parse_scores(
        text, len(text), *powers(), cell, cell.view(np.float64), values, hards, state
    )
    rows, hard, trouble = state.tolist()
    if code:
        raise _not_a_number(file, text, trouble)
    for row, start, end in hards[:hard].reshape(-1, 3).tolist():
        value = spelled_number(bytes(text[start:end]))
        if value is None:
            raise _not_a_number(file, text, start)
        values[row] = value
    if expected is not None and rows != expected:
        raise DataError(f"{file}: {rows} scores for {expected} documents; give one a document.")
    bad = np.isnan(values[:rows])
    if bad.any():
        raise DataError(f"{file}: the score of document {int(np.argmax(bad)) + 1} is NaN.")
    return values[:rows].copy()


def _not_a_number(file: Path, text: Bytes, pos: int) -> DataError:
    before = bytes(text[:pos])
    line, column = before.count(b"\n") + 1, pos - before.rfind(b"\n")
    got = bytes(text[pos : pos + 60]).split(b"\n")[0].decode("utf-8", "replace").strip()
    return DataError(
        f"{at(file, line, column)}: a line must hold one number, the score; {got!r} is not one."
    )


def write_scores(scores: Iterable[float], path: str | os.PathLike[str]) -> None:
    """One number a line, with all its digits."""
    with write_bytes(Path(path)) as out:
        out.write("".join(f"{float(s)!r}\n" for s in scores).encode())
