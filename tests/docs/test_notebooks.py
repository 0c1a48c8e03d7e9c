"""The notebooks are stored with the output that their cells have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.notebooks import outputs
from tests.docs.pages import ROOT, difference

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def texts(output: list[dict[str, Any]]) -> str:
    parts = [each.get("text") or each["data"]["text/plain"] for each in output]
    return "".join("".join(part) for part in parts)


def kinds(output: list[dict[str, Any]]) -> list[list[str]]:
    return [sorted(each.get("data", {})) for each in output]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_stores_its_output(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = list(outputs(json.loads(path.read_text())))
    assert cells
    for cell, found in cells:
        assert kinds(cell["outputs"]) == kinds(found)
        if found:
            problem = difference(texts(cell["outputs"]), texts(found))
            assert problem == "", f"run python -m tests.docs.notebooks {path}\n{problem}"
