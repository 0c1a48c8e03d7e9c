"""Stores of tests share compiled statements, whatever SQLAlchemy's keys of them look like."""

from __future__ import annotations

from pathlib import Path

from firstpage.labeling.app.store import people
from firstpage.labeling.app.store.connect import Store
from tests.labeling.app.statements import sharing_compiled_statements


def test_a_second_store_compiles_nothing(tmp_path: Path) -> None:
    compiled = []
    with sharing_compiled_statements() as statements:
        for name in ("first", "second"):
            store = Store(tmp_path / name).prepare()
            with store.write() as tx:
                people.create(tx, name)
                row = people.by_login(tx, name)
            store.close()
            assert row is not None
            assert row.login == name
            compiled.append(dict(statements))
    assert len(compiled[0]) > 2
    assert compiled[1] == compiled[0], "the same objects"
