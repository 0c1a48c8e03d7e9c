"""Build wheel, sdist and SBOM of the last commit, and check them: python -m tests.release.artifacts dist

Nothing but the commit counts: it is built in two clones, with other paths and permissions, and the
bytes must be equal.  The package must contain every file that git tracks below src, and no other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
GENERATED = "src/firstpage/_version.py"
NOT_IN_SDIST = (
    ".ci/", ".github/", ".gitattributes", ".git_archival.txt", "benchmarks/", "tests/",
)  # fmt: skip


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command and return what it prints; its output is shown if it fails."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=os.environ | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}FAILED: {command[0]}")
    return done.stdout


def build(source: Path, target: Path, umask: int) -> list[Path]:
    """Clone the last commit to `source`, and build it; return wheel and sdist."""
    before = os.umask(umask)
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, source)
    seconds = run("git", "log", "-1", "--format=%ct", cwd=source).strip()
    run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", target,
        cwd=source, SOURCE_DATE_EPOCH=seconds,
    )  # fmt: skip
    os.umask(before)
    return sorted(target.iterdir())


def check_equal(first: list[Path], second: list[Path]) -> None:
    """Refuse builds that are not reproducible."""
    for one, other in zip(first, second, strict=True):
        if one.name != other.name or one.read_bytes() != other.read_bytes():
            raise SystemExit(f"{one} and {other} differ: the build is not reproducible.")


def check_names(kind: str, names: set[str], expected: set[str]) -> None:
    """Refuse an archive with missing files or with others."""
    for problem, files in (("lacks", expected - names), ("must not contain", names - expected)):
        if files:
            raise SystemExit(f"The {kind} {problem} {', '.join(sorted(files))}.")


def check_contents(wheel: Path, sdist: Path, tracked: set[str]) -> None:
    """Compare the files of wheel and sdist with those that git tracks."""
    version = wheel.name.split("-")[1]
    info = f"firstpage-{version}.dist-info/"
    metadata = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    package = {name for name in tracked if name.startswith("src/")} | {GENERATED}
    with ZipFile(wheel) as archive:
        expected = {name.removeprefix("src/") for name in package} | {info + m for m in metadata}
        check_names("wheel", set(archive.namelist()), expected)
    with tarfile.open(sdist) as tar:
        names = {member.name.split("/", 1)[1] for member in tar.getmembers() if member.isfile()}
    expected = {name for name in tracked if not name.startswith(NOT_IN_SDIST)}
    check_names("sdist", names, expected | {GENERATED, "PKG-INFO"})


def write_sbom(wheel: Path, target: Path) -> None:
    """Write what the wheel with all extras installs today, as CycloneDX in JSON."""
    with tempfile.TemporaryDirectory() as folder:
        run(uv(), "venv", "--quiet", "--python", sys.executable, f"{folder}/venv")
        python = f"{folder}/venv/bin/python"
        run(
            uv(),
            "pip",
            "install",
            "--quiet",
            "--python",
            python,
            f"firstpage[all] @ {wheel.as_uri()}",
        )
        run(
            sys.executable, "-m", "cyclonedx_py", "environment", python, "--output-reproducible",
            "--pyproject", "pyproject.toml", "--mc-type", "library", "--of", "JSON", "-o", target,
        )  # fmt: skip
    bill = json.loads(target.read_text())
    bill["metadata"]["component"]["version"] = wheel.name.split("-")[1]  # not in pyproject.toml
    target.write_text(json.dumps(bill, indent=2) + "\n")


def uv() -> Path:
    """Return the command that makes environments, from the environment of this process."""
    return Path(sys.executable).with_name("uv")


def main(target: Path) -> None:
    target.mkdir(exist_ok=True)
    for old in target.glob("firstpage-*"):
        old.unlink()
    if changes := run("git", "status", "--porcelain").strip():
        print(f"Note: changes that are not committed are not part of the build:\n{changes}")
    with tempfile.TemporaryDirectory() as folder:
        first = build(Path(folder, "one"), target, 0o022)
        second = build(Path(folder, "another-path"), Path(folder, "built"), 0o077)
        check_equal(first, second)
        tracked = set(run("git", "ls-files", cwd=Path(folder, "one")).splitlines())
    sdist, wheel = sorted(first, key=lambda file: file.suffix)
    check_contents(wheel, sdist, tracked)
    print(
        run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", wheel, sdist).strip()
    )
    write_sbom(wheel, target / f"{wheel.name.removesuffix('-py3-none-any.whl')}.cdx.json")
    for file in sorted(target.glob("firstpage-*")):
        print(f"{file.name}  {file.stat().st_size / 1e6:.2f} MB")
    print(f"Built twice with equal bytes; {len(tracked)} tracked files compared.")
    if "dev" in wheel.name:
        print("Not a release: the last commit has no tag such as v0.1.0.")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
