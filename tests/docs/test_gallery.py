"""The examples of the gallery run, and each names a chart, its thumbnail."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import firstpage as fp
from tests.docs.pages import ROOT

EXAMPLES = sorted((ROOT / "docs" / "gallery").glob("*.py"))


def test_there_are_twelve() -> None:
    assert len(EXAMPLES) == 12


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_ends_with_a_chart(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = runpy.run_path(str(example))
    assert isinstance(values["chart"], fp.results.Chart)
    title, rule = values["__doc__"].strip().splitlines()[:2]
    assert rule == "=" * len(title)
