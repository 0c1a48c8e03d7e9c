"""What there is, for the command line and the manual."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from firstpage.measures.conventions import CONVENTIONS
from firstpage.measures.learned import LEARNED
from firstpage.measures.parse import MEASURES


def forms() -> list[tuple[str, str]]:
    """(`NDCG(gain, discount)@n`, what it is) of every measure."""
    found = []
    for cls in MEASURES:
        names = [f.name for f in fields(cls)]
        given = ", ".join(name for name in names if name != "cutoff")
        form = cls.__name__ + (f"({given})" if given else "") + ("@n" if "cutoff" in names else "")
        found.append((form, cls.about + (" (lower is better)" if cls.lower_is_better else "")))
    found += [(f"{name}(file, form, segment)@n", cls.about) for name, cls in LEARNED.items()]
    return found


def conventions() -> dict[str, dict[str, Any]]:
    """Every setting of every convention."""
    return {
        name: {f.name: getattr(c, f.name) for f in fields(c) if f.name != "name"}
        for name, c in CONVENTIONS.items()
    }
