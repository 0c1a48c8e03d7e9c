"""One run of the demo on a small collection, for all tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock

from firstpage.cli import main
from firstpage.demo import loop
from tests.demo.small import small_collection

Once = Callable[[str, Callable[[Path], object]], Path]  # the fixture `once`


def run_small_demo(folder: Path) -> None:
    """Run `firstpage demo` on the small collection, and store its output beside its files."""
    with (
        mock.patch.object(loop, "stdlib_collection", small_collection),
        mock.patch.object(sys, "argv", ["firstpage", "demo", "-o", str(folder / "out")]),
        redirect_stdout(StringIO()) as out,
    ):
        try:
            main()
        except SystemExit as stop:
            assert not stop.code
    (folder / "printed").write_text(out.getvalue())


def finished_demo(once: Once) -> tuple[Path, str]:
    """Return the folder, which tests must not change, and the output of a complete demo."""
    folder = once("demo", run_small_demo)
    return folder / "out", (folder / "printed").read_text()
