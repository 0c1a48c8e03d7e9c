"""The files around a release agree with each other, and the checks of an archive refuse what is wrong."""

from __future__ import annotations

import re
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.release.artifacts import GENERATED, check_contents, check_equal
from tests.release.environments import MINORS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TRACKED = {"src/firstpage/__init__.py", "src/firstpage/py.typed", "tests/test_a.py", "LICENSE"}
WHEEL = (
    "firstpage/__init__.py", "firstpage/py.typed", "firstpage/_version.py",
    *(f"firstpage-0.1.0.dist-info/{name}"
      for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")),
)  # fmt: skip
SDIST = ("src/firstpage/__init__.py", "src/firstpage/py.typed", "LICENSE", GENERATED, "PKG-INFO")


@pytest.fixture
def archives(tmp_path: Path):
    """Return a function that writes a wheel and an sdist with files of these names."""

    def write(wheel_names: tuple[str, ...], sdist_names: tuple[str, ...]) -> tuple[Path, Path]:
        wheel, sdist = tmp_path / "firstpage-0.1.0-py3-none-any.whl", tmp_path / "a.tar.gz"
        with ZipFile(wheel, "w") as archive:
            for name in wheel_names:
                archive.writestr(name, "")
        (tmp_path / "empty").touch()
        with tarfile.open(sdist, "w:gz") as tar:
            for name in sdist_names:
                tar.add(tmp_path / "empty", f"firstpage-0.1.0/{name}")
        return wheel, sdist

    return write


def test_archives_with_the_tracked_files_are_accepted(archives) -> None:
    wheel, sdist = archives(WHEEL, SDIST)
    check_contents(wheel, sdist, TRACKED)


@pytest.mark.parametrize(
    ("wheel", "sdist", "problem"),
    [
        (WHEEL[:1] + WHEEL[2:], SDIST, r"wheel lacks firstpage/py\.typed"),
        ((*WHEEL, "tests/test_a.py"), SDIST, r"wheel must not contain tests/test_a\.py"),
        ((*WHEEL, "firstpage/notes.txt"), SDIST, r"wheel must not contain firstpage/notes\.txt"),
        (WHEEL, SDIST[1:], r"sdist lacks src/firstpage/__init__\.py"),
        (WHEEL, (*SDIST, "tests/test_a.py"), r"sdist must not contain tests/test_a\.py"),
    ],
)
def test_archives_with_other_files_are_refused(archives, wheel, sdist, problem) -> None:
    files = archives(wheel, sdist)
    with pytest.raises(SystemExit, match=problem):
        check_contents(files[0], files[1], TRACKED)


def test_builds_that_differ_in_a_byte_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / folder / "a.whl" for folder in ("one", "other")]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(b"equal")
    check_equal(files[:1], files[1:])
    files[1].write_bytes(b"Equal")
    with pytest.raises(SystemExit, match="not reproducible"):
        check_equal(files[:1], files[1:])


def test_workflows_call_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = [t for file in WORKFLOWS for t in re.findall(r"run: make (\w+)", file.read_text())]
    assert {"check", "lowest", "release", "docs"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_python_is_in_the_matrix_and_those_that_were_tried_are_classified() -> None:
    (matrix,) = re.findall(r"python: \[(.*)\]", (ROOT / ".github/workflows/check.yml").read_text())
    versions = re.findall(r"[\d.]+", matrix)
    assert versions == [f"3.{minor}" for minor in MINORS]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    classified = re.findall(r":: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert classified == versions[: len(classified)]
    untried = set(versions) - set(classified)
    install = (ROOT / "docs/install.md").read_text()
    for version in untried:
        assert f"| Python {version} | Not tried" in install


def test_fragments_of_the_changelog_have_a_kind_that_is_known() -> None:
    kinds = [kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]]
    assert PROJECT["tool"]["towncrier"]["start_string"] in (ROOT / "CHANGELOG.md").read_text()
    for file in (ROOT / "changelog.d").glob("*"):
        assert file.name == ".gitignore" or re.fullmatch(
            rf"\+?[\w.-]+\.({'|'.join(kinds)})\.md", file.name
        ), file.name


def test_the_fallback_version_is_a_development_version() -> None:
    """Sources without history are no release, and newer than the last one that has a date."""
    version = PROJECT["tool"]["hatch"]["version"]["fallback-version"]
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)\.dev0", version)
    assert found is not None
    released = re.findall(
        r"^## (\d+)\.(\d+)\.(\d+) \(\d", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    assert all(tuple(map(int, found.groups())) > tuple(map(int, old)) for old in released)


def test_readme_of_an_index_links_to_no_file_beside_it() -> None:
    text = (ROOT / "README.md").read_text()
    assert "<picture>" in text
    assert "](docs/" in text
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for rule in hook["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert not re.findall(r"<picture|<img|<!--|docs/|\]\((?!https?:)", text)
    assert "PyTerrier" in text


def test_every_extra_has_a_size_or_is_large() -> None:
    install = (ROOT / "docs/install.md").read_text()
    for extra in PROJECT["project"]["optional-dependencies"]:
        assert f"| `{extra}` |" in install, extra
