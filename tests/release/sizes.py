"""Print what the core and each extra install, in MB: python -m tests.release.sizes dist [extra ..]

Each is installed in an empty environment, with byte code.  The size of an extra is what it adds to
the core.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

from tests.release.artifacts import ROOT, run, uv

LARGE = ("torch", "sentence-transformers")  # measured only if they are named


def installed_mb(requirement: str) -> dict[str, float]:
    """Install a requirement in an empty environment; return the size of each package's files."""
    with tempfile.TemporaryDirectory() as folder:
        run(uv(), "venv", "--quiet", "--python", sys.executable, f"{folder}/venv")
        python = f"{folder}/venv/bin/python"
        run(
            uv(), "pip", "install", "--quiet", "--compile-bytecode", "--python", python, requirement
        )
        (packages,) = Path(folder, "venv").glob("lib/python*/site-packages")
        sizes: dict[str, float] = {}
        for file in packages.rglob("*"):
            if file.is_file():
                name = file.relative_to(packages).parts[0].split("-")[0].removesuffix(".libs")
                sizes[name] = sizes.get(name, 0.0) + file.stat().st_size / 1e6
    return sizes


def main(dist: Path, *extras: str) -> None:
    (wheel,) = dist.glob("firstpage-*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = installed_mb(f"firstpage @ {wheel.as_uri()}")
    print(f"wheel {wheel.stat().st_size / 1e6:.1f}\ncore {sum(core.values()):.0f}")
    print("  " + ", ".join(f"{n} {mb:.0f}" for n, mb in largest(core)))
    for extra in extras or [e for e in project["optional-dependencies"] if e not in LARGE]:
        added = installed_mb(f"firstpage[{extra}] @ {wheel.as_uri()}")
        added = {name: mb for name, mb in added.items() if name not in core}
        print(f"{extra} +{sum(added.values()):.0f}")
        print("  " + ", ".join(f"{name} {mb:.0f}" for name, mb in largest(added)), flush=True)


def largest(sizes: dict[str, float]) -> list[tuple[str, float]]:
    """Return the packages of 1 MB or more, the largest first."""
    return sorted(((n, mb) for n, mb in sizes.items() if mb >= 1), key=lambda pair: -pair[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), *sys.argv[2:])
