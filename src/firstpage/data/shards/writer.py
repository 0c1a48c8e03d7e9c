"""Write shards: any data, as they come, in one step."""

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

from firstpage.data.dataset import Dataset, concat_datasets, pad_features
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
from firstpage.errors import DataError
from firstpage.folders import replacing
from firstpage.types import Progress

try:
    import fcntl
except ImportError:  # not on this system: drafts of killed processes stay
    fcntl = None  # type: ignore[assignment]


def letor_blocks(
    path: Path, rows: int, progress: Progress | None = None, sparse: bool | None = None,
    first: int | None = None,
) -> Generator[Dataset, None, int]:  # fmt: skip
    """Datasets of about so many rows; the query at a block's end is kept for the next.

    Whether features are sparse, and whether they count from 0 or 1 (`first`), is decided by the
    first block, or by the file before; later ones are read alike.  A block has the features that
    were seen so far: later ones may have more.  At the end the number of the first feature is told.
    """
    reader = LetorReader(path, np.dtype("float32"), sparse, None, True if first == 0 else None)
    rest: Dataset | None = None
    for _ in reader.chunks(progress):
        if reader.rows < rows or len(reader.segments) < 2:
            continue
        name = list(reader.queries)[reader.segments[-1][0]].decode("utf-8", "surrogateescape")
        block = _taken(reader, rest)
        first = _same_first(reader, first)
        unfinished = list(block.queries).index(name)
        rest = block[[unfinished]]
        last = unfinished == len(block) - 1  # as in any file that is sorted: nothing is copied
        yield block[:-1] if last else block[np.arange(len(block)) != unfinished]
        reader.sparse = block.is_sparse
    if reader.rows:
        rest = _taken(reader, rest)
        first = _same_first(reader, first)
    if rest is None or first is None:
        raise DataError(f"{path}: there is no document in it.")
    yield rest
    return first


def _taken(reader: LetorReader, rest: Dataset | None) -> Dataset:
    found = reader.take()
    return found if rest is None else concat_datasets([rest, found])


def _same_first(reader: LetorReader, first: int | None) -> int:
    if first is not None and reader.first != first:
        raise DataError(
            f"{reader.path}: a feature 0 comes late, when others were taken to count from 1; "
            "number features from 1."
        )
    return reader.first


ROWS_PER_SHARD = 1_000_000  # documents a shard


def write_shards(
    data: Dataset | Iterable[Dataset] | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    rows: int = ROWS_PER_SHARD,
    progress: Progress | None = None,
) -> Shards:
    """Cut data into shards of whole queries, about `rows` documents each.

    data   a Dataset; an iterable of such, as `Synthetic.blocks`; a file; or a folder of LETOR or
           Parquet files.  LETOR text is read block by block, so it may be larger than memory;
           other files are read whole, one after the other.
    """
    place = Path(folder)
    if rows < 1:
        raise DataError(f"rows must be at least 1; got {rows}.")
    with atomic_folder(place) as draft:
        writer = _Writer(draft)
        for block in _cut(_blocks(data, rows, progress), rows):
            writer.add(block)
        writer.finish()
    return read_shards(place)


def _blocks(data: Any, rows: int, progress: Progress | None) -> Iterator[Dataset]:
    if isinstance(data, Dataset):
        yield data
    elif isinstance(data, (str, os.PathLike)):
        path = Path(data)
        files = data_files(path) if path.is_dir() else [path]
        if not files:
            raise DataError(f"{path}: has no LETOR or Parquet files that belong together.")
        sparse = first = None  # all files are read as the first one
        once = UniqueQueries("file")
        for file in files:
            if format_of(file) == "letor":
                blocks = letor_blocks(file, rows, progress, sparse, first)
                sparse, first = yield from _told(blocks, once, file.name)
            else:
                data = _featured(read(file), file)
                once.add(data, file.name)
                yield data
    else:
        once = UniqueQueries("block")
        for number, block in enumerate(data):
            once.add(_featured(block, f"block {number}"), f"block {number}")
            yield block


def _told(
    blocks: Generator[Dataset, None, int], once: UniqueQueries, name: str
) -> Generator[Dataset, None, tuple[bool, int]]:
    """The same blocks; at the end, whether they are sparse and the number of the first feature."""
    sparse = False
    while True:
        try:
            block = next(blocks)
        except StopIteration as end:
            return sparse, end.value
        sparse = block.is_sparse
        once.add(block, name)
        yield block


def _featured(data: Any, name: object) -> Dataset:
    if not isinstance(data, Dataset):
        raise DataError(f"{name}: has no features, which shards must have.")
    return data


def _cut(blocks: Iterator[Dataset], rows: int) -> Iterator[Dataset]:
    """Pieces of at least one query and, if they can, of about `rows` documents.

    Small blocks are joined, large ones cut; a query is never torn.
    """
    held: list[Dataset] = []
    for block in blocks:
        held.append(block)
        while sum(b.n_docs for b in held) >= rows:
            whole = concat_datasets(held)
            end = max(int(np.searchsorted(whole.offsets, rows, side="right")) - 1, 1)
            yield whole[:end]
            held = [whole[end:]] if end < len(whole) else []
    if sum(len(b) for b in held):
        yield concat_datasets(held)


class _Writer:
    """Writes shard after shard, and the table at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shards: list[Shard] = []
        self.widths: list[int] = []
        self.files: dict[str, int] = {}  # the features of each source, as text tells them
        self.once = UniqueQueries("shard")
        self.first: Dataset | None = None
        self.low, self.high = np.inf, -np.inf

    def add(self, data: Dataset) -> None:
        if self.first is None:
            self.first = replace(data[:0], docids=None)
        if data.feature_names != self.first.feature_names or data.X.dtype != self.first.X.dtype:
            raise DataError(f"{data.source}: its features or their type are not those before.")
        if not np.isfinite(data.y).all():
            raise DataError(f"{data.source}: a label is not a finite number.")
        if data.is_sparse != self.first.is_sparse:
            raise DataError(f"{data.source}: sparse features after dense ones, or the reverse.")
        name = f"{len(self.shards):05d}"
        self.once.add(data, f"shard {name}")
        self.low = min(self.low, float(data.y.min(initial=np.inf)))
        self.high = max(self.high, float(data.y.max(initial=-np.inf)))
        self.widths.append(data.n_features)
        width = max(self.files.get(data.source, 0), data.n_features)
        self.files[data.source] = width
        self.shards.append(self._write(data, name))

    def _write(self, data: Dataset, name: str) -> Shard:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        sizes = {}
        arrays = dataset_to_arrays(replace(data, row_order=None))
        if data.docids is not None:
            ids = data.docids.compact()  # slices of a file point into all of its names
            arrays |= {"ids": ids.data, "id_starts": ids.starts, "id_ends": ids.ends}
        for key, array in arrays.items():
            file = place / f"{key}.npy"
            np.save(file, array, allow_pickle=False)
            sizes[key] = file.stat().st_size
        return Shard(name, data.n_docs, len(data), data.sha256(with_names=True), sizes)

    def finish(self) -> None:
        if self.first is None or not sum(s.rows for s in self.shards):
            raise DataError("there is no document to write.")
        width = max(self.widths)
        warn_about_widths("the data", self.files)
        held = {
            "features": width,
            "dtype": str(self.first.X.dtype),
            "sparse": self.first.is_sparse,
            "feature_names": self.first.feature_names,
            "labels": [self.low, self.high],
        }
        for number, found in enumerate(self.widths):
            if found < width:  # text leaves out zeros: the last features came late
                self._widen(number, width)
        held["shards"] = [asdict(s) for s in self.shards]
        (self.folder / TABLE_FILE).write_text(
            json.dumps(SHARDS_FORMAT.with_header(held), indent=1) + "\n"
        )

    def _widen(self, number: int, width: int) -> None:
        """Beside it first: what is read is mapped, and must not change."""
        assert self.first is not None
        shard, names = self.shards[number], self.first.feature_names
        kind, sparse = str(self.first.X.dtype), self.first.is_sparse
        was, labels = self.widths[number], (self.low, self.high)
        now = Shards(self.folder, (shard,), was, kind, sparse, names, labels)[0]
        new = self._write(replace(now, X=pad_features(now.X, width)), f"{shard.name}-wide")
        shutil.rmtree(self.folder / shard.name)
        os.replace(self.folder / new.name, self.folder / shard.name)
        self.shards[number] = replace(new, name=shard.name)


# --- a folder that appears in one step, when all of it is written


MIN_DRAFT_AGE = 2.0  # seconds in which a draft may not be locked yet by who makes it


@contextmanager
def atomic_folder(place: Path) -> Iterator[Path]:
    """A draft beside the place, which takes its name at the end; a failure leaves nothing.

    A process that is killed leaves its draft, whose name begins with a dot; the next that writes
    to the same place removes it.
    """
    lock = None
    try:
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise DataError(f"{place}: is there already; remove it, or name another folder.")
        final = place.resolve()  # a link to an empty folder stays one
        final.parent.mkdir(parents=True, exist_ok=True)
        _clean(final)
        with replacing(final) as draft:
            draft.mkdir()
            lock = _locked(draft)
            yield draft
    except OSError as error:
        raise DataError(f"{place}: cannot be written ({error.strerror or error}).") from error
    finally:
        if lock is not None:
            os.close(lock)


def _clean(final: Path) -> None:
    """Remove drafts of the same place that nobody works on any more."""
    if fcntl is None:
        return
    for old in final.parent.iterdir():
        if not old.name.startswith(f".{final.name}-") or not _is_draft(old):
            continue
        lock = _locked(old)
        if lock is not None:
            shutil.rmtree(old, ignore_errors=True)
            os.close(lock)


def _is_draft(folder: Path) -> bool:
    """Folders of arrays, and nothing else, that nobody began just now."""
    with suppress(OSError):
        names = [one.name for one in folder.iterdir()]
        ours = all(name == "shards.json" or name[:5].isdigit() for name in names)
        return ours and time.time() - folder.stat().st_mtime > MIN_DRAFT_AGE
    return False


def _locked(folder: Path) -> int | None:
    """Hold a folder while this process lives; None where another does, or nobody can."""
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
