"""Pictures of gains and discounts: every number is in them, for eyes and ears."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.intervals import Intervals
from firstpage.report.measure import discounts, drawn, gains, utility_text

UTILITY = Utility.from_gains([0.0, 1.0, 4.0], [2.0, 1.0, -0.5, 0.0], (0, 1, 3))


def ends(values: np.ndarray) -> np.ndarray:
    return np.column_stack([values - 0.1, values + 0.2])


SURE = Intervals(
    ends(UTILITY.gains), ends(UTILITY.discounts), np.zeros((4, 3, 2)), np.ones(2), 200, 0.9
)  # fmt: skip


def test_the_numbers_are_said() -> None:
    assert 'aria-label="Gains of grades: 0: 0.00, 1: 0.25, 3: 1.00"' in gains(UTILITY)
    assert "Discounts of places: 1: 1.00, 2: 0.50, 3: -0.25, 4: 0.00" in discounts(UTILITY)


def test_intervals_are_bars() -> None:
    assert 'class="error' not in drawn(UTILITY)
    assert "intervals" not in drawn(UTILITY)
    sure = drawn(UTILITY, SURE)
    assert sure.count('class="error c0"') == 7
    assert sure.count('class="band c0"') == 2
    assert sure.count("The band is the 90 % interval.") == 2
    assert "1: 0.250 [0.150, 0.450]" in sure


def test_what_is_fixed_by_normalization_has_no_interval() -> None:
    """The best grade is worth 1; a measure file may hold intervals of draws that taught nothing."""
    kept = {
        "gains": [[0.0, 0.0], [0.0, 0.4], [0.0, 1.0]], "discounts": [[0.5, 1.0]] * 4,
        "weights": np.zeros((4, 3, 2)).tolist(), "share": [0.9, 1.0], "rounds": 100, "level": 0.95,
    }  # fmt: skip
    utility = replace(UTILITY, about={"intervals": kept})
    picture, text = gains(utility, Intervals.held(utility)), utility_text(utility)
    assert "1: 0.250 [0.000, 0.400]" in picture
    assert "3: 1.000<" in picture
    assert "[0.000, 1.000]" not in picture
    assert "[0.000, 1.000]" not in text


def test_all_lies_inside_the_sheet() -> None:
    for picture in (gains(UTILITY, SURE), discounts(UTILITY, SURE)):
        root = ElementTree.fromstring(picture)
        height = float(root.attrib["viewBox"].split()[3])
        found = [float(y) for y in re.findall(r'c?y[12]?="([\d.-]+)"', picture)]
        assert min(found) >= 0
        assert max(found) <= height
        assert ">-0<" not in picture


def test_a_first_place_that_is_hardly_known_leaves_the_axis_readable() -> None:
    wild = Utility.from_gains([0.0, 1.0, 4.0], [0.001, 1.0, 2.3, 0.0], (0, 1, 3))
    picture = discounts(wild)
    assert "3: 2300.00" in picture, "the number is said"
    assert ">2000<" not in picture, "but the axis ends where it can be read"
    assert ">1<" in picture
    assert "What is above 3 is drawn at the edge." in drawn(wild)
    assert "drawn at the edge" not in drawn(UTILITY, SURE)


def test_the_usual_ones_are_beside() -> None:
    assert gains(UTILITY).count("dashed") == 2
    assert discounts(UTILITY).count("dashed") == 1
    assert "2^grade" in gains(UTILITY)
