"""TOML files beside modules: what papers print, and what entries and checks say."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def tables_beside(module_file: str) -> dict[str, Any]:
    """Return the content of the TOML file that is named as a module, and in its folder."""
    return tomllib.loads(Path(module_file).with_suffix(".toml").read_text("utf-8"))
