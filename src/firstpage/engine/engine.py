"""What an engine is: parts that stay where they are, and calls that go to all of them.

A part is made from a small description of where its data lie (its spec), never from the data
themselves.  What a call answers depends on the spec and the arguments alone: whatever a part keeps
between calls is a cache.  So a part that got lost with its worker is made again somewhere else, and
nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from firstpage.errors import FirstpageError

Make = Callable[[Any, int], Any]
"""(spec, threads) -> a part; a function that a worker can import, or a class."""


class EngineError(FirstpageError):
    """The machines that were to work are not there, or went away."""


class Part(Protocol):
    """What works on one shard."""

    @property
    def nbytes(self) -> int:
        """About what it holds in memory."""
        ...

    def release(self) -> None:
        """After a call: let go of pages of mapped files."""
        ...


class Parts(Protocol):
    """Parts of one job, numbered from 0."""

    def __len__(self) -> int: ...

    def each(self, method: str, *args: Any, own: Sequence[Any] | None = None) -> list[Any]:
        """What every part's method answers, in the order of parts.

        own   one more argument, of each part's own; a part whose own is None is not asked, and
              its answer is None
        """
        ...

    def close(self) -> None:
        """The job is done; what parts held is let go."""
        ...


class Engine(Protocol):
    """A place to work."""

    def parts(self, make: Make, specs: Sequence[Any]) -> Parts: ...


@dataclass
class Kept:
    """Parts that are held because they fit.

    Passes go through all parts in turn.  So one that does not fit beside the others is made anew
    each time: to drop another for it would only mean to make that one anew instead.  Parts of
    other jobs go first, the oldest job before all.
    """

    limit: int
    _held: dict[tuple[str, int], tuple[Any, int]] = field(default_factory=dict)

    def get(self, key: tuple[str, int]) -> Any:
        return self._held.get(key, (None, 0))[0]

    def offer(self, key: tuple[str, int], part: Any) -> bool:
        """After use: keep it if it fits, by the size that it has now."""
        size = int(part.nbytes)
        self._held.pop(key, None)
        used = sum(n for _, n in self._held.values())
        for other in [k for k in self._held if k[0] != key[0]]:
            if used + size <= self.limit:
                break
            used -= self._held.pop(other)[1]
        if used + size > self.limit:
            return False
        self._held[key] = part, size
        return True

    def drop(self, job: str) -> None:
        for key in [k for k in self._held if k[0] == job]:
            del self._held[key]

    def __len__(self) -> int:
        return len(self._held)
