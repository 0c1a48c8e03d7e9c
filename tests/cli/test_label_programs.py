"""`label tokens`, `webhook`, `import`, grade scales, and the options of sign-in by a header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("shared_statements")


@pytest.fixture
def folder(tmp_path: Path, run: Any) -> Path:
    rows = [{"query": "q1", "document": f"d{i}", "text": "words"} for i in range(3)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = run(
        "label",
        "setup",
        f"{tmp_path}/p",
        "--documents",
        f"{tmp_path}/d.jsonl",
        "--tool",
        "grades",
        "--grades",
        "No, n, #aa0000; Yes",
        "--aspects",
        "trust",
        "--reasons",
        "recent; clear",
        "--lead",
        "lena",
        "--assessor",
        "ada",
    )
    assert made.returncode == 0, made.stderr
    return tmp_path


def test_tokens(folder: Path, run: Any) -> None:
    shop = f"{folder}/p"
    assert "no tokens" in run("label", "tokens", shop).stdout
    made = run("label", "tokens", shop, "--create", "ci", "--login", "ada", "--scope", "judge")
    assert made.stdout.startswith("firstpage_")
    listed = run("label", "tokens", shop).stdout
    assert "judge" in listed
    assert made.stdout.strip() not in listed
    assert run("label", "tokens", shop, "--revoke", "1").returncode == 0
    for wrong, words in (
        (("--revoke", "1"), "has no token 1"),
        (("--create", "x", "--login", "nobody"), "no account 'nobody'"),
        (("--create", "x", "--login", "ada", "--days", "0"), "valid for up to"),
        (("--create", "x"), "--create with --login"),
    ):
        result = run("label", "tokens", shop, *wrong)
        assert result.returncode != 0
        assert words in result.stderr


def test_settings_show_and_change_the_scale(folder: Path, run: Any) -> None:
    shop = f"{folder}/p"
    shown = run("label", "settings", shop).stdout
    assert "No; Yes" in shown
    assert "recent; clear" in shown
    renamed = run("label", "settings", shop, "--grades", "Bad; Good; Best", "--reasons", "")
    assert "Bad; Good; Best" in renamed.stdout
    assert "recent" not in renamed.stdout
    wrong = run("label", "settings", shop, "--grades", "Only")
    assert "must be a list of 2 to 10 grades" in wrong.stderr


def test_ratings_and_webhook(folder: Path, run: Any) -> None:
    shop, ratings = f"{folder}/p", folder / "r.csv"
    ratings.write_text("query,docid,rating\nq1,d0,1\nq1,d2,0\nq1,d1,\n")
    hook = run("label", "webhook", shop, "--url", "https://example.org/hook")
    assert hook.stdout.startswith("Secret of the signatures: ")
    imported = run("label", "import", shop, str(ratings))
    assert imported.stdout.startswith("2 ratings of 1 queries, recorded as 'quepid'.")
    assert "https://example.org/hook" in run("label", "webhook", shop).stdout
    exported = run("label", "export", shop, "--content", "quepid", "-o", f"{folder}/out.csv")
    assert "0 = No, 1 = Yes" in exported.stderr
    assert (folder / "out.csv").read_text().splitlines()[1:] == ["q1,d0,1", "q1,d1,", "q1,d2,0"]
    ratings.write_text("query,docid,rating\nq1,d0,4\n")
    refused = run("label", "import", shop, str(ratings), "--login", "other")
    assert "the rating 4 of 'd0' for 'q1' is not a grade" in refused.stderr
    local = ("label", "webhook", shop, "--url", "http://127.0.0.1:9/hook")
    refused = run(*local)
    assert refused.returncode == 1
    assert "the address of '127.0.0.1' is not public" in refused.stderr
    assert run(*local, "--private-webhooks").returncode == 0
    assert run("label", "webhook", shop, "--remove").returncode == 0
    assert "no webhook" in run("label", "webhook", shop, "--remove").stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--auth-header", "X-Remote-User"], "--auth-header needs --auth-from"),
        (["--auth-from", "10.0.0.1"], "need --auth-header"),
        (["--auth-create"], "need --auth-header"),
        (["--auth-header", "X User", "--auth-from", "10.0.0.1"], "is not a name such as"),
        (["--auth-header", "Cookie", "--auth-from", "10.0.0.1"], "is not a name such as"),
        (["--auth-header", "X-User", "--auth-from", "10.0.0.1/8"], "not an address or a network"),
        (["--auth-header", "X-User", "--auth-from", "10.0.0.1", "--open"], "this machine only"),
    ],
)
def test_wrong_options_of_sign_in_by_a_header(
    tmp_path: Path, run: Any, options: list[str], words: str
) -> None:
    result = run("label", "serve", str(tmp_path), *options)
    assert result.returncode != 0
    assert words in result.stderr
