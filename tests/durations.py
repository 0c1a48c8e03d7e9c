"""Record which tests are slow, from the outputs of runs: `python -m tests.durations LOG ..`.

`make durations` runs the tests and calls it.  A test is slow if its cases take more than `LIMIT`
seconds on average, with their fixtures, and long if they take more than `LONG`.  `SLOW` has a line
per slow test, which ends in " long" for a long one; `tests/conftest.py` marks them by it.  A test that
is not listed is not slow.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

SLOW = Path(__file__).with_name("slow.txt")
LIMIT, LONG = 0.1, 3.0
FINISHED = re.compile(r"\[gw\d+\] \[ *\d+%\] (?:PASSED|FAILED|XFAIL) (tests/.*)")
DURATION = re.compile(r"([\d.]+)s (?:setup|call|teardown) +(tests/.*)")


def unparametrized(node_id: str) -> str:
    """Return the id of a case without its parameters."""
    return node_id.partition("[")[0].strip()


def slow_tests(lines: Iterable[str], limit: float = LIMIT) -> list[str]:
    """Return the lines of the slow tests of outputs of pytest-xdist with `-vv` and `--durations`."""
    cases: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    for line in lines:
        if match := FINISHED.match(line):
            cases[unparametrized(match[1])] += 1
        elif match := DURATION.match(line):
            seconds[unparametrized(match[2])] += float(match[1])
    return sorted(
        f"{name} long" if total > LONG * cases[name] else name
        for name, total in seconds.items()
        if total > limit * cases[name]
    )


def recorded() -> dict[str, tuple[str, ...]]:
    """Return the marks of the tests of `SLOW`."""
    lines = (line.split() for line in SLOW.read_text().splitlines())
    return {name: ("slow", *long) for name, *long in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description="Record which tests are slow.")
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="output of a run")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, metavar="SECONDS", help="more on a slow machine"
    )
    options = parser.parse_args()
    lines = [line for log in options.logs for line in log.read_text().splitlines()]
    names = slow_tests(lines, options.limit)
    SLOW.write_text("".join(f"{name}\n" for name in names))
    print(f"{SLOW}: {len(names)} slow tests")


if __name__ == "__main__":
    main()
