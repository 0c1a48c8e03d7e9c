"""What is dear to make, kept at hand for each project until the database has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project

MOST = 32  # projects at hand
Made = TypeVar("Made")


class Kept(Generic[Made]):
    """One thing a project.  `mark` tells the state of the database that it was made from.

    Who comes while it is being made waits, instead of making it a second time.  Every server has
    its own, and the mark decides for each of them.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, int], tuple[Hashable, Made]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tx: Tx, project: Project, mark: Hashable, make: Callable[[], Made]) -> Made:
        """As it was made from this state, or made now."""
        key = str(tx.connection.engine.url), project.id
        with self._lock:
            old = self._made.get(key)
            if old is None or old[0] != mark:
                old = mark, make()
                self._made[key] = old
            self._made.move_to_end(key)
            while len(self._made) > MOST:
                self._made.popitem(last=False)
            return old[1]
