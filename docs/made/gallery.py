"""What the gallery takes from an example: the charts that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from firstpage.results import Chart
from made.stage import dark


def save_charts(
    block: object, variables: dict[str, Any], settings: dict[str, Any], **_: object
) -> str:
    """Write the charts of a block that are new, for both themes, and return their directives."""
    lines = []
    for name, chart in list(variables["example_globals"].items()):
        if not isinstance(chart, Chart) or chart in variables.setdefault("charts", []):
            continue
        variables["charts"].append(chart)
        light = Path(next(variables["image_path_iterator"])).with_suffix(".svg")
        other = light.with_stem(f"{light.stem}-dark")
        light.write_text(chart.svg)
        other.write_text(dark(chart.svg))
        for file, theme in ((light, "light"), (other, "dark")):
            path = file.relative_to(settings["src_dir"])
            alt = chart.svg.partition("<title>")[2].partition("</title>")[0] or name
            lines += [f".. image:: /{path}", f"   :alt: {alt}", f"   :class: only-{theme}", ""]
    return "\n".join(lines)
