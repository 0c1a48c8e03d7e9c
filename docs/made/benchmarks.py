"""docs/images/benchmarks.svg: the first table of docs/benchmarks.md as a chart."""

from __future__ import annotations

import re
from math import log10
from pathlib import Path

from firstpage.core import charts

PAGE = Path(__file__).parents[1] / "benchmarks.md"
ROW = re.compile(r"^\| \[([^\]]+)\][^|]*\|[^|]*\|[^|]*\| ([\d.,]+)(?: to ([\d.,]+))? \|$", re.M)
TICK = re.compile(r"(<text class=\"tick\"[^>]*>)(-?\d)(</text>)")
TITLE = "CPU time of the peer / CPU time of Firstpage, on a logarithmic scale"


def benchmarks_chart() -> str:
    rows = []
    for task, low, high in ROW.findall(PAGE.read_text()):
        ends = [log10(float(text.replace(",", ""))) for text in (low, high or low)]
        rows.append((task, sum(ends) / 2, *ends))
    drawing = charts.intervals(rows, TITLE, zero=True)
    drawing = TICK.sub(lambda match: f"{match[1]}{10.0 ** int(match[2]):g}{match[3]}", drawing)
    return (
        charts.stacked([(drawing, f"{TITLE}; 1 is equal, dots are middles of ranges")], TITLE).svg
        + "\n"
    )
