"""Write shards of data of any size, atomically."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import DataError, Progress, atomic_replace, warn
from firstpage.data.categories import merged_categories, recoded
from firstpage.data.concat import check_equal_names, concat_datasets, pad_features
from firstpage.data.dataset import Dataset
from firstpage.data.formats.letor import dataset_to_arrays
from firstpage.data.formats.letor_reader import LetorReader
from firstpage.data.formats.registry import format_of, read
from firstpage.data.shards.shards import (
    SHARDS_FORMAT,
    TABLE_FILE,
    Shard,
    Shards,
    UniqueQueries,
    data_files,
    read_shards,
    warn_about_widths,
)

NO_RECIPE = (
    "{}: shards do not store how the features were computed, so a model trained on them cannot "
    "search; train on parquet or npz instead."
)

SHARD_ORDER = "{}: scores of its shards are in the order of the shards, not of its rows."

try:
    import fcntl
except ImportError:  # not on this system: drafts of killed processes remain
    fcntl = None  # type: ignore[assignment]


def letor_blocks(
    path: Path,
    rows: int,
    progress: Progress | None = None,
    sparse: bool | None = None,
    first: int | None = None,
) -> Generator[Dataset, None, int]:
    """Yield datasets of about `rows` rows; the last query of a block moves to the next.

    The first block, or the file before, decides whether features are sparse and whether they count
    from 0 or 1 (`first`); later blocks are read alike.  A block has the features seen so far:
    later ones may have more.  The generator returns the number of the first feature.
    """
    reader = LetorReader(path, np.dtype("float32"), sparse, None, True if first == 0 else None)
    rest: Dataset | None = None
    for _ in reader.chunks(progress):
        if reader.rows < rows or len(reader.segments) < 2:
            continue
        name = list(reader.queries)[reader.segments[-1][0]].decode("utf-8", "surrogateescape")
        block = _take_block(reader, rest)
        first = _check_first(reader, first)
        unfinished = list(block.queries).index(name)
        rest = block[[unfinished]]
        last = unfinished == len(block) - 1  # as in any sorted file: nothing is copied
        yield block[:-1] if last else block[np.arange(len(block)) != unfinished]
        reader.sparse = block.is_sparse
    if reader.rows:
        rest = _take_block(reader, rest)
        first = _check_first(reader, first)
    if rest is None or first is None:
        raise DataError(f"{path}: contains no documents.")
    yield rest
    return first


def _take_block(reader: LetorReader, rest: Dataset | None) -> Dataset:
    block = _in_shard_order(reader.take())
    return block if rest is None else _in_shard_order(concat_datasets([rest, block]))


def _in_shard_order(data: Dataset) -> Dataset:
    """Return the data without the order of the lines, which shards do not store."""
    if data.row_order is None:
        return data
    warn(SHARD_ORDER.format(data.source))
    return replace(data, row_order=None)


def _check_first(reader: LetorReader, first: int | None) -> int:
    if first is not None and reader.first != first:
        raise DataError(
            f"{reader.path}: a feature 0 occurs after features were assumed to count from 1; "
            "number features from 1."
        )
    return reader.first


ROWS_PER_SHARD = 1_000_000


def write_shards(
    data: Dataset | Iterable[Dataset] | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    rows: int = ROWS_PER_SHARD,
    progress: Progress | None = None,
) -> Shards:
    """Write data as shards of complete queries.

    Parameters
    ----------
    data : Dataset, iterable of Dataset, or path
        A dataset; an iterable such as `Synthetic.blocks()`; a file; or a folder of shards, or of
        LETOR or Parquet files.  LETOR text is read block by block, so it may be larger than memory;
        other files are read one at a time.
    folder : path
        Where to write; it must not exist yet, or be empty.  It appears when it is complete.
    rows : int, default 1_000_000
        Documents per shard, about.
    progress : callable, optional
        Called with the number of bytes read so far and the size of the file.

    Returns
    -------
    Shards
        The shards.

    Raises
    ------
    DataError
        If the folder exists, or the data are invalid or inconsistent.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> recipe = fp.Synthetic(queries=100, docs=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(fp.write_shards(recipe.blocks(10), os.path.join(folder, "shards"), rows=250))
    2
    """
    path = Path(folder)
    if not isinstance(rows, (int, np.integer)) or rows < 1:
        raise DataError(f"rows must be an integer of at least 1; got {rows!r}.")
    if not isinstance(data, (str, os.PathLike, Iterable)):
        raise DataError(
            f"data must be a Dataset, an iterable of these or a path; got {type(data).__name__}."
        )
    with atomic_folder(path) as draft:
        writer = _Writer(draft)
        checked = (writer.check(*block) for block in _blocks(data, rows, progress))
        for block in _resize_blocks(checked, rows):
            writer.add(block)
        writer.finish()
    return read_shards(path)


def _blocks(data: Any, rows: int, progress: Progress | None) -> Iterator[tuple[str, Dataset]]:
    """Yield the data block by block, with the name of the file or of the block."""
    if isinstance(data, (str, os.PathLike)) and (Path(data) / TABLE_FILE).is_file():
        data = read_shards(data)
    if isinstance(data, Dataset):
        yield data.source, data
    elif isinstance(data, (str, os.PathLike)):
        path = Path(data)
        files = data_files(path) if path.is_dir() else [path]
        if not files:
            raise DataError(f"{path}: has no LETOR or Parquet files that belong together.")
        sparse = first = None  # all files are read like the first one
        unique_queries = UniqueQueries("file")
        for file in files:
            if format_of(file) == "letor":
                blocks = letor_blocks(file, rows, progress, sparse, first)
                sparse, first = yield from _checked_blocks(blocks, unique_queries, file.name)
            else:
                data = _check_dataset(read(file), file)
                unique_queries.add(data, file.name)
                yield file.name, data
    else:
        unique_queries = UniqueQueries("block")
        for number, block in enumerate(data):
            unique_queries.add(_check_dataset(block, f"block {number}"), f"block {number}")
            yield f"block {number}", block


def _checked_blocks(
    blocks: Generator[Dataset, None, int], unique_queries: UniqueQueries, name: str
) -> Generator[tuple[str, Dataset], None, tuple[bool, int]]:
    """Yield the blocks of a file with its name.

    The generator returns whether they are sparse, and the number of the first feature.
    """
    sparse = False
    while True:
        try:
            block = next(blocks)
        except StopIteration as end:
            return sparse, end.value
        sparse = block.is_sparse
        unique_queries.add(block, name)
        yield name, block


def _check_dataset(data: Any, name: object) -> Dataset:
    if not isinstance(data, Dataset):
        raise DataError(f"{name}: has no features, which shards must have.")
    return data


def _resize_blocks(blocks: Iterator[Dataset], rows: int) -> Iterator[Dataset]:
    """Yield blocks of at least one query and, where possible, of about `rows` documents.

    Small blocks are joined and large ones divided; a query is never divided.
    """
    pending: list[Dataset] = []
    for block in blocks:
        pending.append(block)
        while sum(b.n_docs for b in pending) >= rows:
            joined = _in_shard_order(concat_datasets(pending))
            end = max(int(np.searchsorted(joined.offsets, rows, side="right")) - 1, 1)
            yield joined[:end]
            pending = [joined[end:]] if end < len(joined) else []
    if sum(len(b) for b in pending):
        yield _in_shard_order(concat_datasets(pending))


class _Writer:
    """Writes the shards one by one, and the table at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shards: list[Shard] = []
        self.widths: list[int] = []
        self.source_widths: dict[str, int] = {}  # the number of features of each source
        self.unique_queries = UniqueQueries("shard")
        self.first: Dataset | None = None
        self.low, self.high = np.inf, -np.inf
        self.zero_based = False

    def check(self, name: str, data: Dataset) -> Dataset:
        """Return a block of the data; raise an error if it does not fit to the first one."""
        if self.first is None:
            self.first = replace(data[:0], docids=None)
            if data.recipe is not None:
                warn(NO_RECIPE.format(data.source))
        check_equal_names(self.first, data)
        if data.X.dtype != self.first.X.dtype:
            raise DataError(
                f"{name}: its features are {data.X.dtype}, and those of earlier data "
                f"{self.first.X.dtype}; give all data the same type."
            )
        if data.query_weights is not None:
            raise DataError(f"{data.source}: shards do not store the weights of queries.")
        if data.positions is not None:
            raise DataError(f"{data.source}: shards do not store the positions of documents.")
        if not np.isfinite(data.y).all():
            raise DataError(f"{data.source}: a label is not a finite number.")
        if data.is_sparse != self.first.is_sparse:
            raise DataError(
                f"{name}: sparse features after dense ones, or the reverse; give all data the same "
                "kind (Dataset.dense)."
            )
        self.source_widths[name] = max(self.source_widths.get(name, 0), data.n_features)
        self.zero_based |= data.zero_based
        return _in_shard_order(data)

    def add(self, data: Dataset) -> None:
        """Write a shard of checked data."""
        assert self.first is not None
        categories = merged_categories([self.first, data])
        self.first = replace(self.first, categories=categories)
        data = recoded(data, categories)[0]
        name = f"{len(self.shards):05d}"
        self.unique_queries.add(data, f"shard {name}")
        self.low = min(self.low, float(data.y.min(initial=np.inf)))
        self.high = max(self.high, float(data.y.max(initial=-np.inf)))
        self.widths.append(data.n_features)
        self.shards.append(self._write(data, name))

    def _write(self, data: Dataset, name: str) -> Shard:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        sizes = {}
        arrays = dataset_to_arrays(data)
        if data.docids is not None:
            ids = data.docids.compact()  # a slice refers to the names of the whole file
            arrays |= {"ids": ids.data, "id_starts": ids.starts, "id_ends": ids.ends}
        for key, array in arrays.items():
            file = path / f"{key}.npy"
            np.save(file, array, allow_pickle=False)
            sizes[key] = file.stat().st_size
        return Shard(name, data.n_docs, len(data), data.sha256(with_names=True), sizes)

    def finish(self) -> None:
        """Give all shards the same width, and write the table."""
        if self.first is None or not sum(s.rows for s in self.shards):
            raise DataError("there are no documents to write.")
        width = max(self.widths)
        warn_about_widths("the data", self.source_widths)
        content = {
            "features": width,
            "dtype": str(self.first.X.dtype),
            "sparse": self.first.is_sparse,
            "feature_names": self.first.feature_names,
            "labels": [self.low, self.high],
        }
        if self.zero_based:
            content["zero_based"] = True
        if self.first.categories:
            content["categories"] = {str(c): list(n) for c, n in self.first.categories.items()}
        for number, shard_width in enumerate(self.widths):
            if shard_width < width:  # text omits zeros: the last features came late
                self._widen(number, width)
        content["shards"] = [asdict(s) for s in self.shards]
        (self.folder / TABLE_FILE).write_text(
            json.dumps(SHARDS_FORMAT.with_header(content), indent=1) + "\n"
        )

    def _widen(self, number: int, width: int) -> None:
        """Write a wider copy of a shard and replace it: mapped files must not change."""
        assert self.first is not None
        shard, names = self.shards[number], self.first.feature_names
        dtype, sparse = str(self.first.X.dtype), self.first.is_sparse
        old_width, labels = self.widths[number], (self.low, self.high)
        data = Shards(self.folder, (shard,), old_width, dtype, sparse, names, labels)[0]
        new = self._write(replace(data, X=pad_features(data.X, width)), f"{shard.name}-wide")
        shutil.rmtree(self.folder / shard.name)
        os.replace(self.folder / new.name, self.folder / shard.name)
        self.shards[number] = replace(new, name=shard.name)


# --- atomic folders


MIN_DRAFT_AGE = 2.0  # seconds; a younger draft may not be locked yet by the process that writes it


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a draft folder that takes the name `path` at the end; a failure removes it.

    A process that is killed leaves its draft, whose name begins with a dot; the next process that
    writes to the same path removes it.
    """
    lock = None
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise DataError(f"{path}: exists already; remove it, or choose another folder.")
        final = path.resolve()  # a link to an empty folder remains a link
        final.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale_drafts(final)
        with atomic_replace(final) as draft:
            draft.mkdir()
            lock = _try_lock(draft)
            yield draft
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        if lock is not None:
            os.close(lock)


def _remove_stale_drafts(final: Path) -> None:
    """Remove drafts of the same path that no process is writing any more."""
    if fcntl is None:
        return
    for old in final.parent.iterdir():
        if not old.name.startswith(f".{final.name}-") or not _is_draft(old):
            continue
        lock = _try_lock(old)
        if lock is not None:
            shutil.rmtree(old, ignore_errors=True)
            os.close(lock)


def _is_draft(folder: Path) -> bool:
    """Return whether a folder contains only shards, and was not created just now."""
    with suppress(OSError):
        names = [entry.name for entry in folder.iterdir()]
        only_shards = all(name == "shards.json" or name[:5].isdigit() for name in names)
        return only_shards and time.time() - folder.stat().st_mtime > MIN_DRAFT_AGE
    return False


def _try_lock(folder: Path) -> int | None:
    """Lock a folder while this process lives; return None if it is locked or cannot be locked."""
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
