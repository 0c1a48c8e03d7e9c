"""LETOR text, also known as SVMlight with query ids: `2 qid:10 1:0.03 5:0.2 # docid = GX001`.

The reader streams: each chunk of text is parsed straight into the final array, so reading needs
little more memory than its result.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.core import (
    Array,
    Bytes,
    DataError,
    Floats,
    Progress,
    atomic_replace,
    cache_folder,
    location,
    warn,
)
from firstpage.core.kernels.parsing import fallback_number, number_tables
from firstpage.core.kernels.parsing import letor as kernel
from firstpage.data.dataset import INTERLEAVED, Dataset
from firstpage.data.formats.feature_buffers import float_type
from firstpage.data.formats.letor_reader import LetorReader
from firstpage.data.formats.letor_writer import check_writable, header_text, letor_text
from firstpage.data.ids import Ids
from firstpage.data.io.files import read_all, write_bytes
from firstpage.data.io.json_files import json_digest
from firstpage.data.suspicious import data_warnings, warn_about

MIN_CACHED_BYTES = 1 << 20  # smaller files are not worth a cache entry
CACHE_FORMAT = 6
CacheLocation = bool | Literal["beside"] | str | os.PathLike[str]
"""True: the cache folder; "beside": next to the file; a path: that folder; False: no cache."""


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
    """Read a LETOR file, plain or compressed (`.gz`, `.xz`, `.zst`).

    A feature that a line does not name is 0; `nan` and LETOR's `NULL` are NaN.  Comments such as
    `#1: bm25` at the top of the file name the features.

    Parameters
    ----------
    path : path
        The file.
    dtype : {"float32", "float64"}, default "float32"
        The type of the features.
    sparse : bool, optional
        Whether to return a CSR array.  By default one is chosen if a dense array would be mostly
        zeros.
    n_features : int, optional
        The number of features.  By default it is the largest feature number in the file, or the
        number of names if there are more.
    zero_based : bool, optional
        Whether features count from 0.  By default they do if a feature 0 occurs.
    cache : bool, "beside" or path, default True
        Where to store a parsed copy of a large file, which the next call opens at once: in the
        cache folder (True), next to the file ("beside"), in this folder (a path), or nowhere
        (False).
    progress : callable, optional
        Called with the number of bytes read so far and the size of the file.

    Returns
    -------
    Dataset
        The documents; ids are read from comments such as `# docid = GX001`.

    Raises
    ------
    DataError
        If the file cannot be read or a line is malformed; the message names file, line and column.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("2 qid:10 1:0.5 3:1 # docid = a\\n0 qid:10 2:0.25 # docid = b\\n")
    ...     data = fp.read_letor(path)
    >>> data.X.tolist()
    [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]]
    """
    file = Path(path)
    feature_type = float_type(dtype)
    if n_features is not None and not isinstance(n_features, (int, np.integer)):
        raise DataError(f"n_features must be an integer; got {n_features!r}.")
    options = {
        "dtype": feature_type.name,
        "sparse": sparse,
        "n_features": n_features,
        "zero_based": zero_based,
    }
    entry = None
    if cache is not False and file.is_file() and file.stat().st_size >= MIN_CACHED_BYTES:
        entry = CacheEntry(file, cache, options)
        if (arrays := entry.load()) is not None:
            stored = json.loads(arrays["record"].tobytes())
            warn_about(str(file), stored["warnings"])
            names = stored["feature_names"]
            return dataset_from_arrays(
                arrays, str(file), None if names is None else tuple(names), stored["zero_based"]
            )
    reader = LetorReader(file, feature_type, sparse, n_features, zero_based)
    dataset = reader.read(progress)
    messages = data_warnings(dataset)
    warn_about(str(file), messages)
    if entry is not None:
        record = {
            "warnings": [*reader.warnings, *messages],
            "feature_names": dataset.feature_names,
            "zero_based": dataset.zero_based,
        }
        stored_bytes = np.frombuffer(json.dumps(record).encode(), np.uint8)
        entry.save(dataset_to_arrays(dataset) | {"record": stored_bytes})
    return dataset


# --- writing


def write_letor(data: Dataset | Iterable[Dataset], path: str | os.PathLike[str]) -> None:
    """Write LETOR text that reads back to equal numbers; the suffix selects the compression.

    Numbers are written with as few digits as their type needs, in the form of Python's `repr`
    without a final `.0`.  If features have names, the file begins with comments such as `#1: bm25`.

    Parameters
    ----------
    data : Dataset or iterable of Dataset
        The documents; an iterable such as `Synthetic.blocks()` is streamed, so it may be larger
        than memory.
    path : path
        The file, which appears when it is complete; `-` is standard output.

    Raises
    ------
    DataError
        If an id or a feature name cannot be written to a LETOR file, a label is not finite, or
        datasets of an iterable have different feature names.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> data = fp.Synthetic(queries=2, docs=3, features=2).dataset()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.txt.gz")
    ...     fp.write_letor(data, path)
    ...     bool((fp.read_letor(path).X == data.X).all())
    True
    """
    with write_bytes(Path(path)) as out:
        for number, block in enumerate([data] if isinstance(data, Dataset) else data):
            check_writable(block)
            if not number:
                names = block.feature_names
                out.write(header_text(names or ()))
            elif block.feature_names != names:
                raise DataError(f"{block.source}: its feature names differ from those before.")
            for text in letor_text(block):
                out.write(text)


# --- the cache of parsed files: `.npy` arrays that are opened by memory mapping
#
# An entry is a folder named after the file and everything its content depends on: the file's path,
# size and modification time, the reading options, and the version of this format.  If two processes
# write an entry at once, one succeeds and both can use it.  Where nothing can be written, the cache
# is skipped.


class CacheEntry:
    """The cache entry of one file read with these options."""

    def __init__(self, path: Path, location: CacheLocation, options: dict[str, Any]) -> None:
        info = path.stat()
        self._prefix = f"{path.name}.{json_digest([str(path.resolve()), options])[:12]}."
        if location == "beside":
            base = path.parent / ".firstpage"
        else:
            base = cache_folder() / "data" if location is True else Path(location or ".")
        state = json_digest([CACHE_FORMAT, info.st_size, info.st_mtime_ns])
        self.folder = base / (self._prefix + state[:12])

    def load(self) -> dict[str, Array] | None:
        """Return the arrays, mapped read-only, or None if they are absent or incomplete."""
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
        """Store the arrays, and delete stale entries of the same file."""
        with suppress(OSError):  # full or read-only disk, or another process wrote it first
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with atomic_replace(self.folder) as draft:
                draft.mkdir()
                sizes = {}
                for name, array in arrays.items():
                    np.save(draft / f"{name}.npy", array, allow_pickle=False)
                    sizes[name] = (draft / f"{name}.npy").stat().st_size
                (draft / "entry.json").write_text(json.dumps(sizes))
                for old in self.folder.parent.glob(glob.escape(self._prefix) + "*"):
                    shutil.rmtree(old, ignore_errors=True)


def dataset_to_arrays(data: Dataset) -> dict[str, Array]:
    """Return the arrays that represent a dataset in the cache and in shards."""
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
    csr: dict[str, Any] = {"data": data.X.data, "indices": data.X.indices, "indptr": data.X.indptr}
    return arrays | csr | {"shape": shape}


def dataset_from_arrays(
    arrays: dict[str, Array],
    source: str,
    feature_names: tuple[str, ...] | None = None,
    zero_based: bool = False,
) -> Dataset:
    """Return the dataset of the arrays of `dataset_to_arrays`, without copying them."""
    if "X" in arrays:
        X: Any = arrays["X"]
    else:
        from scipy.sparse import csr_array

        csr = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = csr_array(csr, shape=tuple(arrays["shape"].tolist()), copy=False)
    queries = Ids.from_packed(arrays["queries"], arrays["query_ends"])
    ids = None
    if "ids" in arrays:  # mapped: the cost must not depend on the number of documents
        ids = Ids(arrays["ids"], arrays["id_starts"], arrays["id_ends"])
    order = arrays.get("row_order")
    if order is not None:
        warn(INTERLEAVED.format(source=source))
    return Dataset(
        X,
        arrays["y"],
        arrays["offsets"],
        queries,
        ids,
        feature_names,
        source,
        order,
        zero_based=zero_based,
    )


# --- score files: one score per line, in the order of the documents


def read_scores(path: str | os.PathLike[str], expected: int | None = None) -> Floats:
    """Read a score file: one number per line; blank lines and comments (#) are skipped.

    Parameters
    ----------
    path : path
        The file, plain or compressed.
    expected : int, optional
        The number of documents; another number of scores is an error.

    Returns
    -------
    ndarray of float
        The scores in the order of the lines.

    Raises
    ------
    DataError
        If a line is not a number, or the number of scores is wrong.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scores.txt")
    ...     fp.write_scores([0.25, 3, -1.5], path)
    ...     fp.read_scores(path, expected=3).tolist()
    [0.25, 3.0, -1.5]
    """
    file = Path(path)
    raw = read_all(file)
    text = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", np.uint8)
    values = np.empty(int(np.count_nonzero(text == 10)))
    fallbacks = np.empty(3 * len(values), np.int64)
    state = np.zeros(3, np.int64)
    code = kernel.parse_scores(
        buf=text, size=len(text), **number_tables(), values=values, fallbacks=fallbacks, state=state
    )
    rows, n_fallback, error_at = state.tolist()
    if code:
        raise _not_a_number(file, text, error_at)
    for row, start, end in fallbacks[:n_fallback].reshape(-1, 3).tolist():
        value = fallback_number(bytes(text[start:end]))
        if value is None:
            raise _not_a_number(file, text, start)
        values[row] = value
    if expected is not None and rows != expected:
        raise DataError(f"{file}: {rows} scores for {expected} documents; give one per document.")
    bad = np.isnan(values[:rows])
    if bad.any():
        raise DataError(f"{file}: the score of document {int(np.argmax(bad)) + 1} is NaN.")
    return values[:rows].copy()


def _not_a_number(file: Path, text: Bytes, pos: int) -> DataError:
    before = bytes(text[:pos])
    line, column = before.count(b"\n") + 1, pos - before.rfind(b"\n")
    got = bytes(text[pos : pos + 60]).split(b"\n")[0].decode("utf-8", "replace").strip()
    return DataError(
        f"{location(file, line, column)}: a line must contain one number, the score; got {got!r}."
    )


def write_scores(scores: Iterable[float], path: str | os.PathLike[str]) -> None:
    """Write a score file: one number per line, with all digits.

    Parameters
    ----------
    scores : iterable of float
        The scores.
    path : path
        The file; the suffix selects the compression, `-` is standard output.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scores.txt")
    ...     fp.write_scores([0.5, 1.0], path)
    ...     fp.read_scores(path).tolist()
    [0.5, 1.0]
    """
    with write_bytes(Path(path)) as out:
        out.write("".join(f"{float(s)!r}\n" for s in scores).encode())
