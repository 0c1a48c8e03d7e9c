"""Static files: one script per page, compressed once, cached forever."""

from __future__ import annotations

import gzip
import re
import warnings
from pathlib import Path

import pytest

from firstpage.core.http.static_files import CachedStaticFiles, bundled
from firstpage.labeling.app.pages.rendering import static_files

with warnings.catch_warnings():  # a deprecation warning about its HTTP library
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

SCRIPTS = {
    "a.js": 'import * as b from "./b.js";\nimport { x as y, z } from "./c.js";\nb.go(y, z);\n',
    "b.js": 'import { z } from "./c.js";\nexport function go() { return z; }\n',
    "c.js": "export const x = 1;\nexport class z {}\nexport async function* w() {}\n",
}


def test_a_script_contains_its_modules_once_and_in_order() -> None:
    assert bundled(SCRIPTS, "a.js") == (
        "const module_c = (() => {\nconst x = 1;\nclass z {}\nasync function* w() {}\n\n"
        "return { x, z, w };\n})();\n"
        "const module_b = (() => {\nconst { z } = module_c;\nfunction go() { return z; }\n\n"
        "return { go };\n})();\n"
        "const b = module_b;\nconst { x : y, z } = module_c;\nb.go(y, z);\n"
    )
    assert bundled(SCRIPTS, "c.js") == SCRIPTS["c.js"]


@pytest.mark.parametrize("line", [
    "export let x = 1;", "export default 1;", 'export * from "./c.js";', 'import c from "./c.js";',
    'import {\n  x,\n} from "https://elsewhere/c.js";', 'const c = await import("./c.js");',
])  # fmt: skip
def test_other_syntax_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"^a\.js: cannot be bundled"):
        bundled({**SCRIPTS, "a.js": line}, "a.js")


def test_modules_that_import_each_other_are_refused() -> None:
    scripts = {
        name: f'import {{ f }} from "./{other}.js";'
        for name, other in [("a.js", "b"), ("b.js", "a")]
    }
    with pytest.raises(ValueError, match="import each other"):
        bundled(scripts, "a.js")


def test_files_are_sent_compressed_if_accepted(tmp_path: Path) -> None:
    (tmp_path / "own.css").write_text("p { color: red }\n" * 50)
    files = CachedStaticFiles(tmp_path, sheets={"all.css": ("base.css", "own.css")})
    client = TestClient(files)
    for accepted, encoding in (
        ("gzip, br", "gzip"),
        ("br;q=1, gzip;q=.5", "gzip"),
        ("identity", None),
        ("gzip;q=0, identity", None),
        ("*;q=0.0", None),
    ):
        reply = client.get("/all.css", headers={"accept-encoding": accepted})
        assert reply.text.endswith("p { color: red }\n")
        assert reply.headers.get("content-encoding") == encoding
        assert reply.headers["content-type"].startswith("text/css")
        assert reply.headers["vary"] == "accept-encoding"
        assert "immutable" in reply.headers["cache-control"]
    assert client.head("/all.css").content == b""
    assert client.get("/../static_files.py").status_code == 404
    assert client.post("/all.css").status_code == 405
    assert CachedStaticFiles(tmp_path).url != files.url


def test_the_judging_page_needs_few_files() -> None:
    """No script imports another one, so no browser waits for one request after another."""
    client = TestClient(static_files())
    for name in ("judge.js", "page.js", "revise.js", "live.js", "preview.js"):
        reply = client.get(f"/{name}")
        assert reply.headers["content-type"].startswith("text/javascript")
        assert not re.search(r"^import\b", reply.text, re.MULTILINE)
    assert len(gzip.compress(client.get("/judge.js").content)) < 30_000
