"""The command that a message about a missing package names, for every way of installing Firstpage."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import firstpage
from firstpage.core.errors import install_command, missing_dependency

SOURCES = Path(firstpage.__file__).parents[1]
REQUIRES = (
    "Requires-Dist: numpy>=2.0\n"
    "Requires-Dist: polars>=1.30; extra == 'tables'\n"
    "Requires-Dist: tantivy<0.28,>=0.26; extra == 'search'\n"
    'Requires-Dist: psycopg[binary]>=3.1 ; extra == "postgres"\n'
    "Requires-Dist: firstpage[tables]; extra == 'all'\n"
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that installs a record of Firstpage, with its version and its origin."""

    def install(version: str, origin: dict[str, object] | None = None) -> None:
        folder = tmp_path / "site" / f"firstpage-{version}.dist-info"
        folder.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.4\nName: firstpage\nVersion: {version}\n{REQUIRES}"
        (folder / "METADATA").write_text(metadata)
        if origin is not None:
            (folder / "direct_url.json").write_text(json.dumps(origin))
        monkeypatch.syspath_prepend(folder.parent)

    return install


def test_a_release_from_an_index_is_named(installed) -> None:
    installed("0.1.0")
    assert install_command("tables") == 'pip install "firstpage[tables]"'
    assert str(missing_dependency("polars", "tables", "Reading x.csv")) == (
        "Reading x.csv needs the package 'polars', which is not installed. "
        'Install it with: pip install "firstpage[tables]"'
    )


def test_a_version_that_no_index_has_names_the_packages(installed) -> None:
    installed("0.1.0.dev7")
    assert install_command("tables") == 'pip install "polars>=1.30"'
    assert install_command("search,postgres") == (
        'pip install "tantivy<0.28,>=0.26" "psycopg[binary]>=3.1"'
    )


def test_a_checkout_is_named_by_its_folder(installed, tmp_path: Path) -> None:
    folder = tmp_path / "a checkout"
    folder.mkdir()
    installed("0.1.0.dev7", {"url": folder.as_uri(), "dir_info": {"editable": True}})
    assert install_command("web,search") == f'pip install -e "{folder}[web,search]"'


def test_a_folder_that_was_installed_without_a_link_is_installed_again(installed, tmp_path) -> None:
    installed("0.1.0.dev7", {"url": tmp_path.as_uri(), "dir_info": {}})
    assert install_command("web") == f'pip install "{tmp_path}[web]"'


def test_a_wheel_is_named_by_its_file(installed, tmp_path: Path) -> None:
    wheel = tmp_path / "firstpage-0.1.0-py3-none-any.whl"
    wheel.touch()
    installed("0.1.0", {"url": wheel.as_uri(), "archive_info": {}})
    assert install_command("web") == f'pip install "firstpage[web] @ {wheel.as_uri()}"'


@pytest.mark.parametrize("origin", [{"archive_info": {}}, {"dir_info": {"editable": True}}])
def test_an_origin_that_is_gone_is_not_named(installed, tmp_path: Path, origin) -> None:
    installed("0.1.0", {"url": (tmp_path / "gone").as_uri(), **origin})
    assert install_command("tables") == 'pip install "polars>=1.30"'


def test_a_repository_is_named_with_its_commit(installed) -> None:
    vcs = {"vcs": "git", "commit_id": "0123abcd", "requested_revision": "main"}
    installed("0.1.0.dev7", {"url": "https://example.org/firstpage.git", "vcs_info": vcs})
    address = "git+https://example.org/firstpage.git@0123abcd"
    assert install_command("web") == f'pip install "firstpage[web] @ {address}"'


def test_sources_that_are_not_installed_are_named_by_their_folder(monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert install_command("web") == f'pip install -e "{SOURCES.parent}[web]"'


def test_the_packages_of_every_extra_are_found_in_the_metadata(monkeypatch) -> None:
    """The build writes requirements in the form that the command reads."""
    package = distribution("firstpage")
    lines = [line for line in package.requires or () if "extra ==" in line]
    assert len(lines) > 20
    monkeypatch.setattr("pathlib.Path.exists", lambda path: False)
    for extra in package.metadata.get_all("Provides-Extra") or ():
        command = install_command(extra)
        own = [line for line in lines if line.endswith((f"== '{extra}'", f'== "{extra}"'))]
        assert own
        assert command.count('"') == 2 * len(own), extra


@pytest.mark.parametrize("built", [True, False])
def test_the_version_is_that_of_the_build(tmp_path: Path, built: bool) -> None:
    folder = tmp_path / "firstpage"
    (folder / "core").mkdir(parents=True)
    for name in (
        "__init__.py",
        "__init__.pyi",
        "core/__init__.py",
        "core/__init__.pyi",
        "core/lazy.py",
    ):
        shutil.copy(SOURCES / "firstpage" / name, folder / name)
    if built:
        (folder / "_version.py").write_text('__version__ = "1.2.3"\n')
    code = "import firstpage; print(firstpage.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stdout == ("1.2.3\n" if built else "0+unknown\n")
