"""Runs as arguments, patterns, standard input, duplicates, and the gate of `evaluate`."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
from csv import reader
from pathlib import Path

import pytest

import firstpage as fp

QRELS = {str(q): {"a": 1, "b": 0, "c": 0} for q in range(12)}
GOOD = {q: {"a": 3.0, "b": 2.0, "c": 1.0} for q in QRELS}
BAD = {q: {"a": 1.0 + (int(q) % 3), "b": 2.5, "c": 1.5} for q in QRELS}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    fp.write_qrels(fp.Qrels.from_dict(QRELS), tmp_path / "t.qrels")
    for name, table in (("good", GOOD), ("bad", BAD)):
        fp.write_run(fp.Run.from_dict(table, name), tmp_path / f"{name}.run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def means(out: str) -> dict[str, float]:
    return {row["system"]: row["measures"]["RR"] for row in json.loads(out)}


EXPECTED = {"bad": 0.5 + 1 / 9, "good": 1.0}


@pytest.mark.parametrize(
    "arguments",
    [
        ("t.qrels", "bad.run", "good.run"),
        ("t.qrels", "*.run"),
        ("--qrels", "t.qrels", "bad.run", "good.run"),
        ("--qrels", "t.qrels", "--run", "*.run"),
        ("t.qrels", "--run", "bad.run", "--run", "good.run"),
    ],
)
def test_runs_are_arguments_and_patterns(run, folder, arguments) -> None:
    code, out, err = run("evaluate", *arguments, "-m", "RR", "--json")
    assert (code, err) == (0, "")
    assert means(out) == pytest.approx(EXPECTED)
    code, out, _ = run("compare", *arguments, "-m", "RR", "--json", "--baseline", "good.run")
    assert code == 0
    assert json.loads(out)["baseline"] == "good"


def test_a_run_is_read_from_standard_input(run, folder, monkeypatch) -> None:
    content = (folder / "bad.run").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, _ = run("evaluate", "t.qrels", "good.run", "-", "-m", "RR", "--json")
    assert code == 0
    assert means(out) == pytest.approx(EXPECTED)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_standard_input_may_be_compressed(run, folder, monkeypatch, compress) -> None:
    content = compress((folder / "bad.run").read_bytes())
    for part, expected in ((content, 0), (content[:-20], 1)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(part)))
        code, _, err = run("evaluate", "t.qrels", "-", "-m", "RR")
        assert (code, "file is damaged or truncated" in err) == (expected, bool(expected))


def test_a_file_named_run_is_read_as_a_run(run, folder) -> None:
    Path("four.run").write_text("1 d7 1 12.5\n")
    code, _, err = run("describe", "four.run")
    assert (code, "has 4 fields instead of 6" in err) == (1, True)


def test_runs_with_the_same_tag_are_named_by_their_files(run, folder) -> None:
    fp.write_run(fp.Run.from_dict(BAD, "good"), folder / "bad.run")
    code, out, _ = run("evaluate", "t.qrels", "bad.run", "good.run", "-m", "RR", "--json")
    assert code == 0
    assert list(means(out)) == ["bad.run", "good.run"]


def test_duplicates_are_refused_with_their_line_or_resolved(run, folder) -> None:
    lines = (folder / "good.run").read_text().splitlines()
    (folder / "twice.run").write_text("\n".join([*lines, lines[0].replace(" 3 ", " 0.5 "), ""]))
    code, _, err = run("evaluate", "t.qrels", "twice.run")
    assert code == 1
    assert (
        "twice.run:37: document 'a' occurs twice in query '0'; drop one. Or read the run with --duplicates, which"
        in err
    )
    code, _, err = run("evaluate", "t.qrels", "twice.run", "--duplicates", "best")
    assert code == 0
    assert "1 lines repeat a document" in err


def test_repeated_judgments_of_different_subtopics_name_the_reader(run, folder) -> None:
    (folder / "d.qrels").write_text("0 1 a 1\n0 2 a 0\n0 1 b 1\n")
    (folder / "p.qrels").write_text("0 0 a 1\n0 0 a 0\n0 0 b 1\n")
    assert "read_diversity_qrels" in run("evaluate", "d.qrels", "good.run").stderr
    plain = run("evaluate", "p.qrels", "good.run").stderr
    assert "p.qrels:2: document 'a' occurs twice in query '0'." in plain


def test_counts_have_no_decimals(run, folder) -> None:
    out = run("evaluate", "t.qrels", "*.run", "-m", "num_q", "-m", "num_ret", "-m", "RR").stdout
    assert "good       12       36  1.0000" in out
    tied = fp.evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 1, "b": 0}}, measures="NumQ", ci=True)
    assert str(tied).endswith("NumQ  1  [1, 1]")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("evaluate", "t.qrels", "none*.run"), 1, "no file matches"),
        (("evaluate", "t.qrels", "-", "-"), 2, "standard input (-) can be read once"),
        (("evaluate", "t.qrels"), 2, "at least one ranking"),
        (("compare", "t.qrels", "good.run"), 2, "at least two rankings"),
        (("evaluate", "t.qrels", "good.run", "--fail-under", "AP"), 2, "takes MEASURE=NUMBER"),
        (("evaluate", "t.qrels", "good.run", "--fail-under", "AP=x"), 2, "takes a number"),
        (("evaluate", "t.qrels", "good.run", "--fail-if-worse", "1"), 2, "go together"),
        (("evaluate", "t.qrels", "good.run", "--junit", "x.xml"), 2, "requires --fail-under"),
        (
            ("evaluate", "t.qrels", "good.run", "--fail-under", "AP=.9", "--fail-under", "AP=.1"),
            2,
            "give each measure once",
        ),
        (
            ("evaluate", "t.qrels", "good.run", "--fail-under", "AP=0.1", "--junit", "x.pdf"),
            2,
            "must end in .xml",
        ),
    ],
)
def test_wrong_usage_is_answered_in_one_line(run, folder, arguments, code, message) -> None:
    result = run(*arguments)
    assert result.returncode == code
    assert message in result.stderr


def test_the_gate_sets_the_exit_code_and_writes_reports(run, folder) -> None:
    base = ["evaluate", "t.qrels"]
    code, _, _ = run(*base, "good.run", "--save-baseline", "base.json", "-m", "RR")
    assert code == 0
    code, out, err = run(
        *base,
        "bad.run",
        "-m",
        "RR",
        "--baseline",
        "base.json",
        "--fail-if-worse",
        "0.01",
        "--fail-under",
        "AP=0.9",
        "--summary",
        "gate.md",
        "--junit",
        "gate.xml",
        "--json",
    )
    assert code == 1
    assert set(json.loads(out)["measures"]) == {"RR", "AP"}
    assert "gate: failed" in err
    assert "Gate failed" in (folder / "gate.md").read_text()
    assert (folder / "gate.xml").read_text().count("<failure") == 2
    code, _, err = run(*base, "good.run", "--baseline", "bad.run", "--fail-if-worse", "RR=0.01")
    assert code == 0
    assert "gate: passed" in err
    changed = {**QRELS, "0": {"a": 1, "b": 1, "c": 0}}
    fp.write_qrels(fp.Qrels.from_dict(changed), folder / "t.qrels")
    gated = (*base, "good.run", "-m", "RR", "--baseline", "base.json", "--fail-if-worse", "0.1")
    assert "the judgments have changed" in run(*gated).stderr


def test_compare_is_a_gate_for_the_other_rankings(run, folder) -> None:
    base = ("compare", "t.qrels", "*.run", "-m", "RR", "--rounds", 200, "--fail-if-worse", 0.01)
    code, out, err = run(
        *base, "--baseline", "good", "--fail-under", "AP=0.9", "--json", "--junit", "gate.xml"
    )
    assert code == 1
    assert set(json.loads(out)["systems"]["bad"]) == {"RR", "AP"}
    assert "fail: bad: AP" in err
    assert "fail: bad: RR changes" in err
    assert "good: " not in err
    assert (folder / "gate.xml").read_text().count("<failure") == 2
    code, _, err = run(*base, "--baseline", "bad")
    assert (code, "gate: passed" in err) == (0, True)
    assert "go together" in run(*base).stderr


def test_wins_and_losses_are_shown_with_documents(run, folder) -> None:
    base = ("compare", "t.qrels", "*.run", "-m", "RR", "--rounds", 100, "--wins", 1)
    assert "win: query 0, RR good 1.0000, bad 0.3333 (+0.6667)" in run(*base).stdout
    cases = json.loads(run(*base, "--json").stdout)["wins"]["cases"]
    assert [case["kind"] for case in cases] == ["win", "hard"]
    assert cases[0]["documents"]["good"][0] == {"document": "a", "grade": 1.0, "score": 3.0}
    assert "Wins and losses" in run(*base, "-f", "html").stdout
    assert "requires another format than csv and latex" in run(*base, "-f", "csv").stderr


def test_evaluate_has_segments_weights_bounds_and_condensed_lists(run, folder) -> None:
    rows = [f"{q},{'ab'[int(q) % 2]},{q}" for q in QRELS]
    (folder / "table.csv").write_text("\n".join(["qid,class,traffic", *rows, ""]))
    few = {q: {"b": 0, "c": 0, "a": 1} if q < "5" else {"a": 1} for q in QRELS}
    fp.write_qrels(fp.Qrels.from_dict(few), folder / "t.qrels")
    table = ("--query-table", "table.csv", "--by", "class", "--weight", "traffic")
    base = ("evaluate", "t.qrels", "bad.run", "-m", "RR", "-m", "P@1")
    code, out, _ = run(*base, *table, "--bounds", "--ci", "--json")
    assert code == 0
    weights = {q: float(q) for q in QRELS}
    expected = fp.evaluate(
        BAD,
        few,
        measures="RR P@1",
        weights=weights,
        by={q: "ab"[int(q) % 2] for q in QRELS},
        bounds=True,
        ci=True,
    )
    record = json.loads(out)
    assert record["by"] == "class"
    assert record["measures"] == pytest.approx(expected.means)
    for segment, part in expected.segments.items():
        assert record["segments"][segment]["measures"] == pytest.approx(part.means)
        assert record["segments"][segment]["ci"]["RR"] == pytest.approx(part.intervals["RR"])
    assert record["bounds"]["RR"] == pytest.approx(expected.bounds["RR"]._asdict())
    assert "Unjudged documents are" in run(*base, *table, "--bounds").stdout
    assert "<caption>Unjudged" in run(*base, *table, "--bounds", "-f", "html").stdout
    csv = run(*base, *table, "--bounds", "-f", "csv").stdout.splitlines()
    assert csv[0] == "measure,mean,low,high,condensed,relevant,class"
    assert len(csv) == 1 + 3 * 2
    condensed = run(*base, "--condensed", "--json")
    assert "unjudged documents are removed" in condensed.stderr
    assert json.loads(condensed.stdout)["measures"]["RR"] == pytest.approx(
        fp.evaluate(fp.condensed(BAD, few), few, measures="RR")["RR"]
    )
    code, out, _ = run("compare", *base[1:], "good.run", "--condensed", "--rounds", 100, "--json")
    assert json.loads(out)["systems"]["bad"]["RR"] == json.loads(condensed.stdout)["measures"]["RR"]
    bounded = run("compare", *base[1:], "good.run", "--bounds", "--rounds", 100)
    assert "Unjudged documents are" in bounded.stdout
    compared = ("compare", *base[1:], "good.run", "--bounds", "--rounds", 100, "-f", "csv")
    for options, column in (((), []), (table[:4], ["class"])):
        head, *lines = reader(run(*compared, *options).stdout.splitlines())
        assert head[-6:-2] == ["mean", "mean_against", "condensed", "condensed_against"]
        assert head[: len(column)] == column
        assert all(len(line) == len(head) for line in lines)
        first = dict(zip(head, lines[0], strict=True))
        unweighted = fp.evaluate(BAD, few, measures="RR", bounds=True)
        side = "" if first["system"] == "bad" else "_against"
        assert float(first["mean" + side]) == pytest.approx(unweighted["RR"])
        bounds = unweighted.bounds["RR"]
        assert float(first["condensed" + side]) == pytest.approx(bounds.condensed)
        assert float(first["relevant" + side]) == pytest.approx(bounds.relevant)
    base = ("evaluate", "t.qrels", "bad.run", "-m", "RR", "-m", "P@1")
    alone = run(*base, "--query-table", "table.csv").stderr
    assert "--query-table needs --by COLUMN or --weight COLUMN." in alone
    alone = run(*base, "--by", "class").stderr
    assert "--by class names a column: give its table with --query-table FILE." in alone


def test_plan_and_segments(run, folder) -> None:
    command = ("plan", "t.qrels", "*.run", "-m", "RR", "--difference", 0.02, "--json")
    code, out, _ = run(*command)
    assert code == 0
    expected = fp.planning.plan("*.run", "t.qrels", measures="RR", differences=[0.02])
    assert json.loads(out)["rows"][0]["queries"] == expected.rows[0].queries
    assert run("plan", "--deviation", 0.2, "-f", "csv").stdout.count("NDCG@10") == 4
    assert "two or more runs, or --deviation" in run("plan", "t.qrels", "good.run").stderr
    rows = [f"{q},{'ab'[int(q) % 2]},{q}" for q in QRELS]
    (folder / "table.csv").write_text("\n".join(["qid,class,traffic", *rows, ""]))
    base = (
        "compare",
        "t.qrels",
        "*.run",
        "-m",
        "RR",
        "--query-table",
        "table.csv",
        "--rounds",
        500,
    )
    code, out, _ = run(*base, "--by", "class", "--weight", "traffic", "--json")
    assert code == 0
    record = json.loads(out)
    assert list(record["segments"]["segments"]) == ["a", "b"]
    assert len(record["segments"]["interactions"]) == 1
    weights = {q: float(q) for q in QRELS}
    bad = fp.evaluate(BAD, QRELS, measures="RR", weights=weights)["RR"]
    assert record["systems"]["bad"]["RR"] == pytest.approx(bad)
    assert "p: how often" in run(*base, "--by", "class").stdout
    assert "By class" in run(*base, "--by", "class", "-f", "html").stdout
    assert run(*base, "--by", "class", "-f", "csv").stdout.startswith("class,measure,")
    assert run(*base).returncode == 2


def test_a_baseline_is_read_before_it_is_stored_again(run, folder) -> None:
    base = ("evaluate", "t.qrels", "-m", "RR")
    code, out, err = run(*base, "good.run", "bad.run", "--save-baseline", "base.json")
    assert (code, out, "stores one ranking; give one" in err) == (2, "", True)
    assert run(*base, "good.run", "--save-baseline", "base.json")[0] == 0
    stored = Path("base.json").read_text()
    again = ("--baseline", "base.json", "--save-baseline", "base.json", "--fail-if-worse", 0.01)
    code, _, err = run(*base, "bad.run", *again)
    assert code == 1
    assert "base.json is not written: a check failed" in err
    assert Path("base.json").read_text() == stored
    code, _, err = run(*base, "good.run", *again)
    assert (code, "wrote base.json" in err) == (0, True)


def test_baselines_have_the_settings_of_the_system(run, folder) -> None:
    base = ("evaluate", "t.qrels", "good.run", "-m", "NDCG@2")
    assert run(*base, "--k", 1, "--save-baseline", "base.json")[0] == 0
    check = ("--baseline", "base.json", "--fail-if-worse", 0)
    code, _, err = run(*base, *check)
    assert code == 1
    assert "was measured with k=1, and the system with k=None" in err
    assert run(*base, "--k", 1, *check)[0] == 0
    lines = Path("t.qrels").read_text().splitlines()
    Path("t.qrels").write_text("\n".join(reversed(lines)) + "\n")
    code, _, err = run(*base, "--k", 1, *check)
    assert (code, "have changed" in err) == (0, False)  # the same judgments in another order


def test_a_baseline_of_repeated_documents_is_read_as_the_run(run, folder) -> None:
    text = Path("good.run").read_text()
    Path("twice.run").write_text(text + text.splitlines()[0] + "\n")
    base = ("evaluate", "t.qrels", "bad.run", "-m", "RR", "--baseline", "twice.run")
    assert "--duplicates" in run(*base, "--fail-if-worse", 1)[2]
    assert run(*base, "--fail-if-worse", 1, "--duplicates", "first")[0] == 0


def test_a_margin_too_small_to_plan_for_is_no_error(run, folder) -> None:
    base = ("evaluate", "t.qrels", "bad.run", "-m", "RR", "--baseline", "other.run")
    table = {q: {**docs, "a": 4.0 - docs["a"]} for q, docs in BAD.items()}
    fp.write_run(fp.Run.from_dict(table), folder / "other.run")
    code, _, err = run(*base, "--fail-if-worse", 1e-9)
    assert code == 0
    assert "more than 1,000,000,000 queries" in err


def test_segments_of_every_run_are_shown(run, folder) -> None:
    for name, queries in (("first", "01"), ("second", "1234")):
        table = {q: GOOD[q] for q in queries}
        fp.write_run(fp.Run.from_dict(table, name), folder / f"{name}.run")
    rows = "".join(f"{q},{'en' if q < 2 else 'de'}\n" for q in range(12))
    Path("q.csv").write_text(f"query,lang\n{rows}")
    code, out, _ = run(
        "evaluate",
        "t.qrels",
        "first.run",
        "second.run",
        "-m",
        "RR",
        "--queries",
        "run",
        "--query-table",
        "q.csv",
        "--by",
        "lang",
    )
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines() if line.startswith(("en", "de"))] == [
        ["en", "first", "2"],
        ["en", "second", "1"],
        ["de", "second", "3"],
    ]


def test_bounds_of_different_queries_are_told(run, folder) -> None:
    fp.write_run(fp.Run.from_dict({"0": GOOD["0"]}, "one"), folder / "one.run")
    code, out, err = run(
        "compare",
        "t.qrels",
        "one.run",
        "good.run",
        "bad.run",
        "-m",
        "RR",
        "--queries",
        "run",
        "--bounds",
    )
    assert code == 0
    assert "there are no bounds for unjudged documents" in err
    assert "removed" not in out


@pytest.mark.parametrize("command", ["plan", "pool"])
def test_csv_has_one_number_per_cell(run, folder, command: str) -> None:
    code, out, _ = run(command, "t.qrels", "*.run", "-m", "RR", "-f", "csv")
    assert code == 0
    head, *rows = reader(io.StringIO(out))
    assert rows
    assert not [cell for row in rows for cell in row if "," in cell or "%" in cell or "[" in cell]
    assert all(len(row) == len(head) for row in rows)
