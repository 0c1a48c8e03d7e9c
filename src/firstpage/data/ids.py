"""Identifiers of queries and documents, stored as bytes.

Millions of Python strings would cost more time and memory than the numbers they label, so a
column of identifiers is one byte array with the start and end of each.  An identifier is decoded
to a `str` on access.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np

from firstpage.core import Array, Bytes, DataError, Ints, Words
from firstpage.core.kernels import gather_bytes, hash_ids

MIN_ROWS = 100  # fewer integers may well be distinct
_ENDING = re.compile(r"(^|[\W_])(id|uuid|guid)$", re.IGNORECASE)
_CAMEL_CASE = re.compile(r"([A-Za-z][a-z0-9]+)I[dD]$")
_WORDS = frozenset({  # that end in "id", whatever the case: HybrID
    "acid", "aid", "android", "avid", "bid", "covid", "cuboid", "fluid", "forbid", "grid", "humid",
    "hybrid", "invalid", "kid", "lid", "lipid", "liquid", "lucid", "maid", "mid", "paid", "pyramid",
    "raid", "rapid", "rigid", "said", "skid", "solid", "squid", "steroid", "thyroid", "unpaid",
    "valid", "vivid", "void",
})  # fmt: skip


def is_identifier(name: str) -> bool:
    """Return whether a column is named `id`, or its name ends in `_id`, `-id`, ` id` or `Id`.

    Before `Id` or `ID` a word of two letters or more is needed, which does not complete another.
    """
    if _ENDING.search(name):
        return True
    compound = _CAMEL_CASE.search(name)
    return compound is not None and f"{compound[1]}id".lower() not in _WORDS


def are_distinct_integers(values: Array) -> bool:
    """Return whether many numbers are integers, each of which occurs once."""
    if len(values) < MIN_ROWS or not np.isfinite(values).all() or (values % 1).any():
        return False
    return len(np.unique(values)) == len(values)


BLANKS = " \t\n\r\x0b\x0c"


@dataclass(frozen=True, eq=False)
class Ids:
    """A column of identifiers: `data[starts[i]:ends[i]]` is the i-th, encoded in UTF-8.

    `known_hashes` holds the hashes of the identifiers where a parser has computed them already.
    """

    data: Bytes
    starts: Ints
    ends: Ints
    known_hashes: Words | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for array in (self.data, self.starts, self.ends):
            array.setflags(write=False)

    @classmethod
    def from_values(cls, names: Ids | Iterable[object]) -> Ids:
        """Return a column of strings or numbers; integral floats are written as integers."""
        if isinstance(names, Ids):
            return names
        names = names.tolist() if isinstance(names, np.ndarray) else list(names)
        if set(map(type, names)) == {str} and (joined := "".join(map(str, names))).isascii():
            ends = np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))
            return cls.from_packed(np.frombuffer(joined.encode(), np.uint8), ends)
        raw = [name if isinstance(name, bytes) else encode_text(id_text(name)) for name in names]
        ends = np.cumsum([len(b) for b in raw], dtype=np.int64)
        return cls.from_packed(np.frombuffer(b"".join(raw), np.uint8), ends)

    @classmethod
    def from_packed(cls, data: Bytes, ends: Ints) -> Ids:
        """Return a column of identifiers that follow each other without gaps."""
        starts = np.zeros_like(ends)
        starts[1:] = ends[:-1]
        return cls(data, starts, ends)

    @classmethod
    def concatenate(cls, first: Ids, second: Ids) -> Ids:
        """Return the identifiers of both columns, those of `first` first."""
        data = np.concatenate([first.data, second.data])
        starts = np.concatenate([first.starts, second.starts + len(first.data)])
        ends = np.concatenate([first.ends, second.ends + len(first.data)])
        return cls(data, starts, ends, np.concatenate([first.hashes, second.hashes]))

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[str]:
        data = self.data.tobytes()
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield data[start:end].decode("utf-8", "surrogateescape")

    @overload
    def __getitem__(self, key: int | np.integer) -> str: ...
    @overload
    def __getitem__(self, key: slice | Ints) -> Ids: ...

    def __getitem__(self, key: int | np.integer | slice | Ints) -> str | Ids:
        if isinstance(key, (int, np.integer)):
            start, end = self.starts[key], self.ends[key]
            return bytes(self.data[start:end]).decode("utf-8", "surrogateescape")
        hashes = None if self.known_hashes is None else self.known_hashes[key]
        return Ids(self.data, self.starts[key], self.ends[key], hashes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids):
            return NotImplemented
        return len(self) == len(other) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(repr(self[i]) for i in range(min(3, len(self))))
        return f"Ids({len(self)}: {shown}{', ..' if len(self) > 3 else ''})"

    @cached_property
    def hashes(self) -> Words:
        """A 64-bit hash of each identifier, equal in every process."""
        if self.known_hashes is not None:
            return self.known_hashes
        out = np.empty(len(self), np.uint64)
        hash_ids(self.data, self.starts, self.ends, out)
        return out

    def compact(self) -> Ids:
        """Return the same identifiers over a byte array without unused bytes."""
        ends = np.cumsum(self.ends - self.starts, dtype=np.int64)
        out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        gather_bytes(self.data, self.starts, self.ends, out)
        return Ids.from_packed(out, ends)

    def repeat(self, counts: Ints) -> Ids:
        """Return each identifier repeated `counts` times, without copying its bytes."""
        return Ids(self.data, np.repeat(self.starts, counts), np.repeat(self.ends, counts))

    def to_array(self) -> Array:
        """Return an int64 array if every identifier is a plain integer, else one of strings."""
        names = list(self)
        if all(_is_plain_int(name) for name in names):
            return np.array([int(name) for name in names], np.int64)
        return np.array(names, object)


def encode_text(text: str) -> bytes:
    """Return the bytes of a text; identifiers that were not UTF-8 get their original bytes."""
    return text.encode("utf-8", "surrogateescape")


def check_identifier(name: str, kind: str, target: str, separators: str = BLANKS) -> None:
    """Refuse an identifier that would not be read back unchanged."""
    if not name or any(c in separators for c in name):
        raise DataError(
            f"the {kind} {name!r} cannot be written to {target} (it is empty or has a separator)."
        )


def is_missing(value: object) -> bool:
    """Return whether a value of a table is missing: None, NaN, or NA of pandas."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # comparisons with NA of pandas have no truth value
        return True


def id_text(name: object) -> str:
    """Return an id as text; the number 7.0 is "7"."""
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    if isinstance(name, (float, np.floating)) and float(name).is_integer():
        return str(int(name))
    return str(name)


def _is_plain_int(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 19 and (name == "0" or name[0] != "0")
