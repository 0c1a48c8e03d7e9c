"""The learned measure, and the preferences that it was learned from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from firstpage.web.analysis.compared import compared
from firstpage.web.analysis.measure import learned
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project


def measure(tx: Tx, project: Project) -> Iterator[str]:
    """As `Utility.save` writes it; an error says why where there is none."""
    found = learned(tx, project).known().to_dict()
    yield json.dumps(found, indent=1, allow_nan=False) + "\n"


def preferences(tx: Tx, project: Project) -> Iterator[str]:
    """One judgment a line: grades from the first place on, null for what nobody has judged."""
    for judgment in compared(tx, project):
        yield json.dumps(asdict(judgment), ensure_ascii=False) + "\n"
