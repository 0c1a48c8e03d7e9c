"""Notebooks as pages of the site, with the output that they are stored with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def notebook_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages and their charts, with their names."""
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        parts, charts = list[str](), 0
        for cell in json.loads(file.read_text())["cells"]:
            source = "".join(cell["source"])
            code = cell["cell_type"] == "code"
            parts.append(f"```python\n{source}\n```" if code else source)
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                if "image/svg+xml" in data:
                    charts += 1
                    name = f"{file.stem}-{charts}"
                    yield f"notebooks/{name}.svg", "".join(data["image/svg+xml"])
                    alt = "The chart of the cell above"
                    for theme, suffix in (("light", ""), ("dark", "-dark")):
                        parts.append(f"![{alt}]({name}{suffix}.svg){{.only-{theme}}}")
                else:
                    text = "".join(output.get("text") or data["text/plain"]).rstrip()
                    parts.append(f"```text\n{text}\n```")
        parts.append(f"[Download the notebook](../files/docs/notebooks/{file.name})")
        yield f"notebooks/{file.stem}.md", "\n\n".join(parts) + "\n"
