"""Type aliases that many modules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]
AnyWords: TypeAlias = NDArray[np.uint32] | NDArray[np.uint64]
Bools: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]
BoundKernel: TypeAlias = Callable[[], object]
"""A kernel with its arrays bound; a call reads the input arrays and writes the output arrays."""
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished units of work and the total."""
