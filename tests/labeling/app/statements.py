"""Compiled SQL statements that the stores of all tests share.

SQLAlchemy compiles a statement once per engine.  A server has one engine, but nearly every test has
its own, and compiling the same statements again takes more than a tenth of the time of these tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from firstpage.labeling.app.store import connect

Key = tuple[Any, ...]  # the dialect of an engine, the statement, its columns and options


class CompiledStatements(dict[Key, Any]):
    """Compiled statements by the name of a dialect, as all stores configure it in the same way."""

    def get(self, key: Key, default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Key, compiled: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), compiled)


@contextmanager
def sharing_compiled_statements() -> Iterator[CompiledStatements]:
    """Let stores that are opened in the block compile each statement once."""
    statements = CompiledStatements()

    def sharing(*arguments: Any, **options: Any) -> Engine:
        options["execution_options"] = {"compiled_cache": statements}
        return create_engine(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{connect.__name__}.create_engine", sharing)
        yield statements
