"""Build the site: `make site`.  Its sources are written to .site/, and the site to site/."""

from __future__ import annotations

import sys

from made.check import check
from made.stage import ROOT, stage, write_raw_pages
from sphinx.cmd.build import main as sphinx

WORK, SITE = ROOT / ".site", ROOT / "site"


def main() -> None:
    stage(WORK / "source")
    options = ["-nW", "--keep-going", "-q", "-c", str(ROOT / "docs"), "-d", str(WORK / "doctrees")]
    if code := sphinx([*options, str(WORK / "source"), str(SITE)]):
        sys.exit(code)
    write_raw_pages(SITE)
    problems = check(SITE)
    print("\n".join(problems) or f"wrote {SITE / 'index.html'}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
