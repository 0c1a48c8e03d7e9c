"""Growing feature matrices: a dense array or CSR arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage.core import Array, Floats, Ints
from firstpage.core.kernels.parsing import scatter

if TYPE_CHECKING:
    from scipy.sparse import csr_array


from firstpage.core import DataError

FLOAT64_COMMAND = "`firstpage convert FILE OUT.npz --dtype float64` writes a file that can be read"


def float_type(dtype: object) -> np.dtype[Any]:
    """Return float32 or float64 by its name; refuse any other type."""
    try:
        chosen: np.dtype[Any] = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        raise DataError(f"dtype must be float32 or float64; got {dtype!r}.") from None
    if chosen not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise DataError(f"dtype must be float32 or float64; got {chosen}.")
    return chosen


SMALL_DENSE_BYTES = 64 << 20  # a dense array of fewer bytes is always acceptable


def too_wide(rows: int, width: int, values: int) -> bool:
    """Return whether a dense array is wasteful: large, and over ten times the CSR array."""
    dense = rows * width
    return dense * 4 > SMALL_DENSE_BYTES and dense > 20 * values


class DenseSink:
    """Collects rows in a C-ordered array that grows in place, so it is never held twice."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.rows = 0
        self.width = 0
        self.values = 0
        self._expected = 0
        self._flat: Array = np.empty(0, dtype)

    def expect(self, rows: int) -> None:
        """Set the estimated number of rows, to reserve memory once; it need not be exact."""
        self._expected = rows + rows // 50

    def add(self, row_ends: Ints, columns: Ints, values: Floats, width: int) -> int | None:
        """Append rows; return the index of a value that overflows the dtype, or None."""
        if width > self.width:
            self._widen(width)
        self._reserve(self.rows + len(row_ends))
        overflow = scatter(self._flat, self.rows, self.width, row_ends, columns, values)
        self.rows += len(row_ends)
        self.values += len(values)
        return overflow if overflow >= 0 else None

    def shift(self) -> None:
        """Insert a column of zeros in front."""
        if self.rows:
            old = self._matrix()
            self._flat = np.zeros(self.rows * (self.width + 1), self.dtype)
            self._flat.reshape(self.rows, -1)[:, 1:] = old
            self.width += 1

    def _widen(self, width: int) -> None:
        if self.rows:
            old = self._matrix()
            self._flat = np.zeros(self.rows * width, self.dtype)
            self._flat.reshape(self.rows, width)[:, : self.width] = old
        self.width = width

    def _reserve(self, rows: int) -> None:
        need = rows * self.width
        if need > self._flat.size:
            capacity = max(need, min(self._expected * self.width, 4 * need), need + need // 4)
            # realloc moves pages, not bytes; there is no other reference to the array
            self._flat.resize(capacity, refcheck=False)

    def _matrix(self) -> Array:
        return self._flat[: self.rows * self.width].reshape(self.rows, self.width)

    def finish(self, n_features: int | None) -> Array:
        """Return the array, at least `n_features` wide."""
        if n_features is not None and n_features > self.width:
            self._widen(n_features)
        self._flat.resize(self.rows * self.width, refcheck=False)
        return self._flat.reshape(self.rows, self.width)

    def to_sparse(self) -> SparseSink:
        """Return a sparse sink with the rows so far."""
        from scipy.sparse import csr_array

        sink = SparseSink(self.dtype)
        if self.rows:
            old = csr_array(self._matrix())
            ends, columns = old.indptr[1:].astype(np.int64), old.indices.astype(np.int64)
            sink.add(ends, columns, old.data.astype(np.float64), self.width)
        return sink


class SparseSink:
    """Collects rows in CSR arrays that are concatenated at the end."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.rows = 0
        self.width = 0
        self.values = 0
        self._ends: list[Ints] = []
        self._columns: list[Array] = []
        self._data: list[Array] = []

    def add(self, row_ends: Ints, columns: Ints, values: Floats, width: int) -> int | None:
        """Append rows; return the index of a value that overflows the dtype, or None."""
        with np.errstate(over="ignore"):
            cast = values.astype(self.dtype)
        overflow = np.isinf(cast) & np.isfinite(values)
        if overflow.any():
            return int(np.argmax(overflow))
        self._ends.append(row_ends + self.values)
        self._columns.append(columns.astype(np.int32))
        self._data.append(cast)
        self.rows += len(row_ends)
        self.values += len(values)
        self.width = max(self.width, width)
        return None

    def shift(self) -> None:
        """Insert a column of zeros in front."""
        if self.rows:
            for columns in self._columns:
                columns += 1
            self.width += 1

    def finish(self, n_features: int | None) -> csr_array:
        """Return the CSR array, at least `n_features` wide."""
        from scipy.sparse import csr_array

        def joined(arrays: list[Array]) -> Array:
            array = np.concatenate(arrays)
            arrays.clear()  # so that only one of the three exists twice at a time
            return array

        ends = joined(self._ends)
        indptr = np.concatenate([[0], ends])
        if self.values < 2**31:
            indptr = indptr.astype(np.int32)
        shape = (self.rows, max(self.width, n_features or 0))
        array = csr_array((joined(self._data), joined(self._columns), indptr), shape=shape)
        array.sort_indices()
        return array
