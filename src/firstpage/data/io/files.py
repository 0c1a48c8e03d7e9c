"""Read and write plain and compressed files."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, cast

from firstpage.core import Advice, DataError, atomic_replace, location, missing_dependency

MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
BOM = b"\xef\xbb\xbf"
DECOMPRESSION_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)


def suffix_of(path: Path) -> tuple[str, str]:
    """Return the suffixes of format and compression: ('.txt', '.gz') of `train.txt.gz`."""
    if path.suffix.lower() in (".gz", ".xz", ".zst"):
        return Path(path.stem).suffix.lower(), path.suffix.lower()
    return path.suffix.lower(), ""


def check_readable(path: Path) -> None:
    """Raise if a file is missing, a folder, or not readable."""
    if not path.exists():
        similar = _similar(path)
        hint = f" Did you mean {similar}?" if similar else ""
        raise DataError(f"{path}: no such file.{hint}")
    if path.is_dir():
        raise DataError(
            f"{path}: is a folder; name a file in it.",
            Advice("A folder of shards is read by fp.read_shards.", "read_shards"),
        )
    if not os.access(path, os.R_OK):
        raise DataError(f"{path}: no permission to read it.")


def _similar(path: Path) -> str:
    """Return the file of the same folder with the most similar name, or an empty string."""
    from difflib import get_close_matches

    names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    return ", ".join(str(path.parent / n) for n in get_close_matches(path.name, names, 1))


@contextmanager
def open_bytes(path: Path, any_encoding: bool = False) -> Iterator[tuple[Any, Callable[[], int]]]:
    """Yield the decompressed stream, and a function that returns the bytes read from disk.

    UTF-16 text is refused unless the caller reads `any_encoding`.
    """
    check_readable(path)
    with (
        open(path, "rb") as raw,
        _decompressing(raw, _compression(path, raw, any_encoding), str(path)) as stream,
    ):
        yield stream, raw.tell if raw.seekable() else (lambda: 0)


def decompressed(content: bytes, source: str) -> bytes:
    """Return the contents of a file that may be compressed."""
    with _decompressing(io.BytesIO(content), _compression_of(content), source) as stream:
        data: bytes = stream.read()
    return data


@contextmanager
def _decompressing(raw: IO[bytes], compression: str, source: str) -> Iterator[Any]:
    """Yield the decompressed stream; refuse a damaged one."""
    stream: Any = raw
    if compression == ".gz":
        stream = gzip.open(raw)  # noqa: SIM115 (only raw must be closed)
    elif compression == ".xz":
        stream = lzma.open(raw)  # noqa: SIM115
    elif compression == ".zst":
        stream = io.BufferedReader(_ZstdReader(raw, _zstandard(f"Reading {source}")))
    try:
        yield stream
    except DECOMPRESSION_ERRORS as error:
        if compression:
            raise DataError(
                f"{location(source)}: the {compression} file is damaged or truncated ({error})."
            ) from error
        raise


def _compression(path: Path, raw: IO[bytes], any_encoding: bool) -> str:
    """Return the compression by the first bytes of the file, or by the name of a pipe."""
    if not raw.seekable():
        return suffix_of(path)[1]
    head = raw.read(6)
    raw.seek(0)
    if not any_encoding and head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path}: is UTF-16 text; save it as UTF-8.")
    return _compression_of(head)


def _compression_of(head: bytes) -> str:
    """Return the compression by the first bytes of a file."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")


def read_all(path: Path) -> bytes:
    """Return the decompressed file without its byte-order mark."""
    with open_bytes(path) as (stream, _):
        data: bytes = stream.read()
    return data.removeprefix(BOM)


class _ZstdReader(io.RawIOBase):
    """Decompresses all frames; unlike the library's reader it detects a truncated file."""

    def __init__(self, raw: IO[bytes], library: Any) -> None:
        self._raw = raw
        self._library = library
        self._frame: Any = None
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            rest = self._frame.unused_data if self._frame is not None and self._frame.eof else b""
            chunk = rest or self._raw.read(1 << 17)
            if not chunk:
                if self._frame is not None and not self._frame.eof:
                    raise EOFError("the last frame is incomplete")
                return 0
            if self._frame is None or self._frame.eof:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            try:
                self._ready = self._frame.decompress(chunk)
            except self._library.ZstdError as error:
                raise EOFError(str(error)) from error
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


def _zstandard(why: str) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise missing_dependency("zstandard", "zstd", why) from error
    return zstandard


@contextmanager
def write_bytes(path: Path, *, sync: bool = False) -> Iterator[IO[bytes]]:
    """Yield a stream of a file that appears when it is complete; the suffix sets the compression.

    With `sync` the file is flushed to disk first.  `-` writes to standard output.  Links, pipes and
    devices are written through and never replaced: replacing /dev/null would break the machine.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        return
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name a file in it.")
    through = path.is_symlink() or (path.exists() and not path.is_file())
    with nullcontext(path) if through else atomic_replace(path, sync=sync) as draft:
        try:
            raw = open(draft, "wb" if through else "xb")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise DataError(f"{path}: cannot write there ({error.strerror}).") from error
        with raw, _compressed(path, raw) as out:
            yield out


@contextmanager
def _compressed(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a stream that compresses to `raw` as the suffix of the path says."""
    compression = suffix_of(path)[1]
    if compression == ".gz":
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as out:
            yield cast("IO[bytes]", out)
    elif compression == ".xz":
        with lzma.open(raw, "wb") as out:
            yield out
    elif compression == ".zst":
        writer = _zstandard(f"Writing {path}").ZstdCompressor()
        with writer.stream_writer(raw, closefd=False) as out:
            yield out
    else:
        yield raw
