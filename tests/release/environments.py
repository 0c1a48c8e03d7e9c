"""Try a built wheel as users will: python -m tests.release.environments dist [python ..]

Every Python from 3.11 on that is found here gets empty environments: one with the core alone, in
which a run is evaluated and a linear ranker trained, one with the extras of the demo, which runs,
and one of the sdist.  Versions that are not here are listed as untried.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from tests.release.artifacts import ROOT, run, uv

MINORS = range(11, 15)
QRELS = "q1 0 a 1\nq1 0 b 0\nq1 0 c 2\n"
RUN = "q1 Q0 a 1 3.0 t\nq1 Q0 b 2 2.0 t\nq1 Q0 c 3 1.0 t\n"
LETOR = "".join(
    f"{(i * 7) % 3} qid:{i // 5 + 1} 1:{(i * 7) % 3 + (i % 4) / 4} 2:{i % 5}\n" for i in range(50)
)


def interpreters() -> dict[str, Path]:
    """Return the Pythons of this machine by version: on the path, and of pyenv."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    folders += sorted((Path.home() / ".pyenv/versions").glob("*/bin"))
    pythons: dict[str, Path] = {}
    for name in [f"3.{minor}" for minor in MINORS]:
        for python in [folder / f"python{name}" for folder in folders]:
            code = "import sys; print('%d.%d' % sys.version_info[:2])"
            if python.exists() and name not in pythons:
                done = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
                if done.stdout.strip() == name:
                    pythons[name] = python
    return pythons


def environment(folder: Path, python: Path, *requirements: str) -> Path:
    """Install requirements in a new environment; return its folder of commands."""
    run(uv(), "venv", "--quiet", "--python", python, folder)
    install(folder / "bin", *requirements)
    return folder / "bin"


def install(bin: Path, *requirements: str) -> None:
    run(uv(), "pip", "install", "--quiet", "--python", bin / "python", *requirements)


def fails(*command: str | Path, cwd: Path) -> str:
    """Run a command that must fail in one line; return the line."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 1 or len(done.stderr.splitlines()) != 1:
        raise SystemExit(f"{command} must fail in one line, and ended with:\n{done.stderr}")
    return done.stderr.strip()


def try_core(bin: Path, version: str, folder: Path) -> None:
    """Evaluate a run, train and use a linear ranker, and install an extra as a message says."""
    for name, text in (("a.qrels", QRELS), ("a.run", RUN), ("a.txt", LETOR), ("a.csv", "x")):
        (folder / name).write_text(text)
    printed = run(bin / "firstpage", "--version", cwd=folder)
    if printed != f"firstpage {version}\n":
        raise SystemExit(f"firstpage --version prints {printed!r}, and the wheel is {version}")
    run(bin / "python", "-W", "error", "-c", "import firstpage as fp; dir(fp)", cwd=folder)
    run(bin / "firstpage", "evaluate", "a.qrels", "a.run", cwd=folder)
    run(bin / "firstpage", "train", "ListMLE(k=5)", "a.txt", "-o", "m.json", cwd=folder)
    run(bin / "firstpage", "train", "RankSVM", "a.txt", "-o", "s.json", cwd=folder)
    run(bin / "firstpage", "rank", "m.json", "a.txt", "-o", "a.scores", cwd=folder)
    run(bin / "firstpage", "evaluate", "a.txt", "--scores", "a.scores", cwd=folder)
    printed = run(bin / "python", Path(__file__).with_name("user.py"), cwd=folder)
    if not printed.startswith(version):
        raise SystemExit(f"user.py prints {printed!r}")
    convert = (bin / "firstpage", "convert", "a.txt", "a.parquet")
    message = fails(*convert, cwd=folder)
    command = message.partition("pip install ")[2]
    install(bin, *command.strip('"').split('" "'))
    run(*convert, cwd=folder)
    print(f"  core: evaluates, trains and ranks; then: {message}")


def try_types(bin: Path, folder: Path) -> None:
    """Check the user's program with mypy and pyright against the installed package."""
    program = Path(__file__).with_name("user.py")
    tools = Path(sys.executable).parent
    python = bin / "python"
    run(tools / "mypy", "--strict", "--python-executable", python, program, cwd=folder)
    print("  types: accepted by mypy --strict")
    run(tools / "pyright", "--pythonpath", python, program, cwd=folder)
    print("  types: accepted by pyright")


def try_python(python: Path, wheel: Path, sdist: Path, folder: Path) -> None:
    version = wheel.name.split("-")[1]
    core = environment(folder / "core", python, str(wheel))
    try_core(core, version, folder)
    try_types(core, folder)
    extras = f"firstpage[web,search,serve] @ {wheel.as_uri()}"
    start = perf_counter()
    bin = environment(folder / "demo", python, extras)
    run(bin / "firstpage", "demo", "-o", "demo", cwd=folder)
    print(f"  demo: done, {perf_counter() - start:.0f} s with its installation")
    bin = environment(folder / "sdist", python, str(sdist))
    if version not in run(bin / "firstpage", "--version", cwd=folder):
        raise SystemExit("the sdist has another version than the wheel")
    print("  sdist: has the same version")


def main(dist: Path, *pythons: str) -> None:
    (wheel,), (sdist,) = dist.glob("firstpage-*.whl"), dist.glob("firstpage-*.tar.gz")
    chosen = {name: path for name, path in interpreters().items() if name in (pythons or (name,))}
    for name, python in chosen.items():
        print(f"Python {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try_python(python, wheel, sdist, Path(folder))
    untried = [f"3.{minor}" for minor in MINORS if f"3.{minor}" not in chosen]
    print(f"Untried: Python {', '.join(untried)}" if untried else "Tried every Python.")


if __name__ == "__main__":
    os.chdir(ROOT)
    main(Path(sys.argv[1]).absolute(), *sys.argv[2:])
