"""A plugin of pytest: PyTorch cannot be imported, as on a machine that does not have it.

    python -m pytest -p tests.without_torch

`make quick` uses it, so that a test which needs PyTorch and is not marked `torch` fails.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any


class WithoutTorch(PathFinder):
    """The usual finder of modules, for which PyTorch is not installed."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return None if fullname == "torch" else super().find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutTorch
