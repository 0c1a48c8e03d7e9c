"""Reading at half speed, so that the server answers others while it reads a long upload."""

from __future__ import annotations

import time
from collections.abc import Callable

from firstpage.data.formats.row_reader import ByteStream

LONGEST_PAUSE = 0.1  # seconds


class PacedStream:
    """A binary stream that pauses before each read as long as its reader worked since the last.

    The threads of a server share one interpreter.  A reader that never rests keeps half of it,
    and every answer, which passes between threads some twenty times, waits for it each time.
    """

    def __init__(
        self, stream: ByteStream, pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:  # fmt: skip
        self._stream, self._pause, self._clock = stream, pause, clock
        self._resumed = clock()

    def read(self, size: int = -1) -> bytes:
        """Pause, then read up to `size` bytes."""
        self._pause(min(self._clock() - self._resumed, LONGEST_PAUSE))
        self._resumed = self._clock()
        return self._stream.read(size)

    def seek(self, offset: int) -> int:
        """Go to a position of the stream."""
        return self._stream.seek(offset)
