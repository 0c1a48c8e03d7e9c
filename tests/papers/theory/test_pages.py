"""The table of iterations in docs/theory.md is what the check of the bound counts."""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from firstpage.papers.cheng2014.theorems import COSTS, EPSILONS, count_iterations

PAGE = Path(__file__).parents[3] / "docs/theory.md"
ROW = re.compile(r"^\| C = ([\d.]+) \| (.+) \|$", re.MULTILINE)


def test_the_iterations_of_cutting_planes_are_those_of_the_page() -> None:
    printed = {
        float(C): cells.replace(",", "").split(" | ") for C, cells in ROW.findall(PAGE.read_text())
    }
    assert sorted(printed) == sorted(COSTS)
    counted = count_iterations(np.random.default_rng([0, crc32(b"cheng2014/one-slack")]))
    for C, cells in printed.items():
        rows = [row for row in counted if row[0] == C]
        assert [epsilon for _, epsilon, _, _ in rows] == list(EPSILONS)
        # Rounding errors of another machine may add an iteration.
        assert [int(cell) for cell in cells[:-1]] == pytest.approx([row[2] for row in rows], abs=1)
        assert int(cells[-1]) == pytest.approx(rows[-1][3], rel=1e-6)
