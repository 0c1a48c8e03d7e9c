"""Tests of `firstpage theory`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from firstpage.papers.theory import registry
from tests.interop.report.test_report import Checker


def test_report_shows_false_theorems_and_their_corrections(run) -> None:
    code, out, err = run("theory", "lan2013/theorem-1", "lan2013/theorem-1-weak", "--samples", 100)
    assert (code, err) == (0, "")
    assert out.startswith("Lan et al. (2013)")
    assert "false as printed  theorem-1:" in out
    assert "corrected: holds  theorem-1-weak:" in out
    assert "counterexample: n = 2, k = 1, scores in true order" in out
    assert "2 checks, 2 as recorded." in out
    assert "False as printed: lan2013/theorem-1; corrected by theorem-1-weak." in out


def test_outcome_that_differs_from_the_record_has_exit_code_1(run, monkeypatch) -> None:
    (check,) = registry.select_checks(["lan2013/theorem-1"])
    monkeypatch.setattr(registry, "CHECKS", (replace(check, holds=True),))
    code, out, _ = run("theory", "--samples", 100)
    assert code == 1
    assert "NOT AS RECORDED" in out
    assert "NOT as recorded: lan2013/theorem-1: does not hold." in out


def test_list_and_json_have_all_checks(run) -> None:
    out = run("theory", "--list").stdout
    assert out.count("\n") == len(registry.CHECKS) + 2
    rows = json.loads(run("theory", "--list", "--json").stdout)
    assert [row["name"] for row in rows] == [check.name for check in registry.CHECKS]
    (record,) = json.loads(run("theory", "zhou2013/example", "--json").stdout)
    assert (record["holds"], record["as_recorded"], record["kind"]) == (True, True, "printed")
    assert record["numbers"]["flips at power"] == 3


def test_page_is_valid_html(run, tmp_path: Path) -> None:
    run("theory", "lan2013/final", "-o", tmp_path / "page.html", "--samples", 50)
    text = (tmp_path / "page.html").read_text()
    Checker().feed(text)
    assert "<b>false as printed</b>" in text
    assert "final-listmle" in text


def test_loss_is_checked_in_both_forms(run, tmp_path: Path) -> None:
    code, out, _ = run("theory", "--loss", "ListMLE", "--k", 2, "--samples", 6)
    assert code == 0
    assert "ListMLE, full order: not consistent with the top-2 true loss" in out
    assert "ListMLE, top 2: consistent with the top-2 true loss" in out
    assert "subgroup        fails" in out
    run("theory", "--loss", "RankSVM(k=1)", "--samples", 6, "-o", tmp_path / "loss.html")
    page = (tmp_path / "loss.html").read_text()
    Checker().feed(page)
    assert "the risk is minimal at" in page
    record = json.loads(run("theory", "--loss", "ListNet(k=1)", "--samples", 3, "--json").stdout)
    assert record["ListNet(k=1)"]["holds"] is True


def test_user_defined_loss_is_checked(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_theory_loss.py").write_text(
        "def phi(scores, order):\n    return float((scores[order[0]] - 1) ** 2)\nfive = 5\n"
        "def last(scores, order):\n    return float((scores[order[0]] + 1) ** 2)\n"
    )
    code, out, _ = run("theory", "--loss", "my_theory_loss:phi", "--n", 3, "--samples", 5)
    assert code == 0
    assert out.startswith("my_theory_loss:phi: not")
    reversed_loss = ("theory", "--loss", "my_theory_loss:last", "--n", 3, "--samples", 5)
    record = json.loads(run(*reversed_loss, "--json").stdout)["my_theory_loss:last"]["agreement"]
    assert (record["agree"], record["margin"]) == (0, None)
    assert "inf" not in run(*reversed_loss).stdout
    for name, message in (("five", "has no function 'five'"), ("six", "has no function 'six'")):
        code, _, err = run("theory", "--loss", f"my_theory_loss:{name}")
        assert code == 1
        assert err.count("\n") == 1
        assert message in err


def test_usage_errors(run) -> None:
    assert run("theory", "--k", 2).returncode == 2
    assert run("theory", "zhou2013", "--loss", "ListMLE").returncode == 2
    assert run("theory", "-o", "x.csv").returncode == 2
    for option in ("--samples", "--seed"):
        result = run("theory", "--list", option, 3)
        assert result.returncode == 2
        assert f"{option} requires a run of the checks, without --list" in result.stderr
    code, _, err = run("theory", "nope")
    assert (code, err) == (1, "firstpage: error: no check begins with 'nope'; --list shows all.\n")
    assert "k must be from 1" in run("theory", "--loss", "ListMLE", "--k", 7).stderr
