"""Bodies in NumPy's own format: one matrix, candidates x features.  Never pickles."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.serving.asked import Asked, short, wishes_of_address
from firstpage.serving.limits import Limits, Refusal, check_candidates, check_queries
from firstpage.types import Array

MEDIA = "application/x-npy"
HEADER = 4096  # bytes; the header of a matrix has about 120
MAGIC = b"\x93NUMPY"


def read_rank(body: bytes, given: Mapping[str, str], width: int, limits: Limits) -> Asked:
    X = _matrix(body, width)
    check_candidates(len(X), limits, "the matrix")
    return Asked(X, offsets_from_lengths([len(X)]), wishes=wishes_of_address(given))


def read_batch(body: bytes, given: Mapping[str, str], width: int, limits: Limits) -> Asked:
    """Query after query; ?lengths=100,50,.. says how many rows each has."""
    X = _matrix(body, width)
    parts = given.get("lengths", "").split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise Refusal(
            422,
            "a batch in this format needs the number of rows of each query: ?lengths=100,50,.. or "
            "the header X-Lengths.",
        )
    lengths = [int(part) for part in parts]
    check_queries(len(lengths), limits)
    for number, length in enumerate(lengths):
        check_candidates(length, limits, f"query {number}")
    if sum(lengths) != len(X):
        raise Refusal(
            422, f"the lengths add up to {sum(lengths)}, and the matrix has {len(X)} rows."
        )
    return Asked(X, offsets_from_lengths(lengths), wishes=wishes_of_address(given))


def written(values: Array) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, values, version=(1, 0), allow_pickle=False)
    return out.getvalue()


def _matrix(body: bytes, width: int) -> Array:
    """A view of the body, checked before a number is touched."""
    if body[:6] != MAGIC or len(body) < 12:
        raise Refusal(422, "the body is no .npy file (numpy.save writes one).")
    wide = body[6] != 1
    size = int.from_bytes(body[8 : 12 if wide else 10], "little")
    start = (12 if wide else 10) + size
    if size > HEADER or start > len(body):
        raise Refusal(422, f"the header of the .npy body is broken, or longer than {HEADER} bytes.")
    shape, columns_first, dtype = _header(body[:start])
    if dtype not in (np.dtype("<f4"), np.dtype("<f8")):
        raise Refusal(
            422, f"the matrix holds {str(dtype)[:60]}; float32 or float64 (little-endian) is taken."
        )
    if len(shape) != 2:
        raise Refusal(
            422, f"the array has the shape {short(shape)}; a matrix is taken: one row a candidate."
        )
    if shape[1] != width:
        raise Refusal(422, f"the matrix has {short(shape[1])} features, and the model {width}.")
    if shape[0] * width * dtype.itemsize != len(body) - start:
        raise Refusal(
            422, f"the matrix says {short(shape[0])} x {width}, but the body has another length."
        )
    found: Array = np.frombuffer(body, dtype, offset=start)
    if columns_first:
        return np.ascontiguousarray(found.reshape(shape[::-1]).T)
    return found.reshape(shape)


@lru_cache(256)
def _header(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, columns first, type); clients send the same few again and again."""
    stream = io.BytesIO(head)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version} is not read")
        read = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
        shape, columns_first, dtype = getattr(np.lib.format, read)(stream, max_header_size=HEADER)
        if any(type(size) is not int or size < 0 for size in shape):
            raise ValueError("the shape must be whole numbers from 0 on")
        return shape, columns_first, dtype
    except Exception as error:  # whatever a made-up header brings the parser to
        said = (str(error).splitlines() or [""])[0][:120]
        raise Refusal(422, f"the header of the .npy body cannot be read ({said}).") from None
