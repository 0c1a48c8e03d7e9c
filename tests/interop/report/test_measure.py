"""Drawings of gains and discounts contain every number, also for screen readers."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.evaluation.dcglearn.confidence import Intervals
from firstpage.interop.report.measure import discounts, gains, utility_figures, utility_text

UTILITY = Utility.from_gains([0.0, 1.0, 4.0], [2.0, 1.0, -0.5, 0.0], (0, 1, 3))


def bounds(values: np.ndarray) -> np.ndarray:
    return np.column_stack([values - 0.1, values + 0.2])


INTERVALS = Intervals(
    bounds(UTILITY.gains), bounds(UTILITY.discounts), np.zeros((4, 3, 2)), np.ones(2), 200, 0.9
)


def test_titles_contain_the_numbers() -> None:
    assert 'aria-label="Gains of grades: 0: 0.00, 1: 0.25, 3: 1.00"' in gains(UTILITY)
    assert "Discounts of positions: 1: 1.00, 2: 0.50, 3: -0.25, 4: 0.00" in discounts(UTILITY)


def test_intervals_are_drawn_as_bars_and_bands() -> None:
    assert 'class="error' not in utility_figures(UTILITY)
    assert "intervals" not in utility_figures(UTILITY)
    figures = utility_figures(UTILITY, INTERVALS)
    assert figures.count('class="error c0"') == 7
    assert figures.count('class="band c0"') == 2
    assert figures.count("The band is the 90 % interval.") == 2
    assert "1: 0.250 [0.150, 0.450]" in figures


def test_fixed_gains_have_no_interval() -> None:
    """The best gain is 1, even if a measure file has an interval for it."""
    stored = {
        "gains": [[0.0, 0.0], [0.0, 0.4], [0.0, 1.0]], "discounts": [[0.5, 1.0]] * 4,
        "weights": np.zeros((4, 3, 2)).tolist(), "rank_one_fraction": [0.9, 1.0], "rounds": 100, "level": 0.95,
    }  # fmt: skip
    utility = replace(UTILITY, about={"intervals": stored})
    picture, text = gains(utility, Intervals.from_utility(utility)), utility_text(utility)
    assert "1: 0.250 [0.000, 0.400]" in picture
    assert "3: 1.000<" in picture
    assert "[0.000, 1.000]" not in picture
    assert "[0.000, 1.000]" not in text


def test_all_coordinates_lie_inside_the_drawing() -> None:
    for picture in (gains(UTILITY, INTERVALS), discounts(UTILITY, INTERVALS)):
        root = ElementTree.fromstring(picture)
        height = float(root.attrib["viewBox"].split()[3])
        coordinates = [float(y) for y in re.findall(r'c?y[12]?="([\d.-]+)"', picture)]
        assert min(coordinates) >= 0
        assert max(coordinates) <= height
        assert ">-0<" not in picture


def test_large_discounts_are_drawn_at_the_upper_edge() -> None:
    undetermined = Utility.from_gains([0.0, 1.0, 4.0], [0.001, 1.0, 2.3, 0.0], (0, 1, 3))
    picture = discounts(undetermined)
    assert "3: 2300.00" in picture, "the title contains the number"
    assert ">2000<" not in picture, "but the axis bounds where it can be read"
    assert ">1<" in picture
    assert "Values above 3 are drawn at the upper edge." in utility_figures(undetermined)
    assert "drawn at the upper edge" not in utility_figures(UTILITY, INTERVALS)


def test_standard_gains_and_discounts_are_drawn_dashed() -> None:
    assert gains(UTILITY).count("dashed") == 2
    assert discounts(UTILITY).count("dashed") == 1
    assert "2^grade" in gains(UTILITY)
