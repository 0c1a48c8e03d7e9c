"""What the package logs; pytest's own capture attaches to every logger in every test, and is off."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO


@contextmanager
def captured_log(name: str) -> Iterator[StringIO]:
    """Yield the text that a logger writes from now on, all levels from INFO up."""
    text = StringIO()
    logger, handler = logging.getLogger(name), logging.StreamHandler(text)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield text
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
