"""Files of earlier releases are read by this version, with the results of the version that wrote them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from click.testing import CliRunner

from firstpage.cli import app
from firstpage.labeling.app.store import connect
from firstpage.labeling.app.store.tables import metadata
from tests.release.kept import EXPECTED, FILES

RELEASES = sorted(FILES.glob("*.zip"))
NUMBER = re.compile(r"(?<![\w-])-?\d+\.\d+(?:e[+-]?\d+)?")


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    """Split a text into what must be equal and what may differ by rounding errors."""
    return NUMBER.split(text), [float(number) for number in NUMBER.findall(text)]


@pytest.fixture(params=RELEASES, ids=lambda file: file.stem)
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, which becomes the current one, with the files of a release."""
    with ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_of_a_release_give_the_same_results(kept: Path) -> None:
    for command, expected in json.loads((kept / EXPECTED).read_text()).items():
        arguments = [word.replace("_", " ") for word in command.split()]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, (command, done.output)
        words, numbers = words_and_numbers(expected)
        printed = words_and_numbers(done.stdout)
        assert printed[0] == words, command
        np.testing.assert_allclose(printed[1], numbers, rtol=1e-6, atol=1e-9, err_msg=command)


def test_the_store_of_a_release_gets_the_present_tables(kept: Path) -> None:
    store = connect.Store(kept / "labels").prepare()
    with store.read() as tx:
        context = MigrationContext.configure(tx.connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert connect.version_in(tx) == connect.newest_version()
    store.close()
