"""Tests of `firstpage hybrid`: reports, files, exports, documents to label, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firstpage as fp
from tests.evaluation.aggregation.test_fusion_tuning import collection


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tables, qrels = collection(40, (0.6, 1.4))
    for name, table in zip(("bm25", "dense"), tables, strict=True):
        table["unjudged"] = {"d1": 2.0, "d2": 1.0}
        fp.write_run(fp.Run.from_dict(table, name), f"{name}.run")
    judged = {q: {d: g for d, g in docs.items() if int(d[1:]) % 3} for q, docs in qrels.items()}
    fp.write_qrels(fp.Qrels.from_dict(judged), "test.qrels")
    return tmp_path


RUNS = ("bm25.run", "dense.run")
JUDGED = (*RUNS, "--qrels", "test.qrels")


def tuned(**options) -> fp.aggregation.TunedFusion:
    runs = [fp.read_run(name) for name in RUNS]
    return fp.aggregation.tune_fusion(runs, fp.read_qrels("test.qrels"), **options)


def test_the_report_is_that_of_tune_fusion_and_the_run_has_all_queries(run, files) -> None:
    code, out, err = run("hybrid", *JUDGED, "-o", "hybrid.run", "--tag", "both", "--seed", 3)
    assert code == 0
    expected = tuned(seed=3)
    assert out.startswith(expected.report())
    assert "fusion minus bm25\nunjudged: " in out
    assert err == "wrote hybrid.run\n"
    fused = fp.read_run("hybrid.run")
    assert fused.name == "both"
    assert len(fused) == 41
    runs = [fp.read_run(name) for name in RUNS]
    assert fused.to_dict()["q3"] == pytest.approx(expected.fusion.fuse_runs(runs).to_dict()["q3"])


def test_a_saved_fusion_fuses_other_runs_without_judgments(run, files) -> None:
    assert run("hybrid", *JUDGED, "--save", "fusion.json", "-o", "one.run").returncode == 0
    code, out, err = run("hybrid", *RUNS, "--fusion", "fusion.json", "-o", "two.run")
    assert (code, out) == (0, "")
    assert Path("one.run").read_text() == Path("two.run").read_text()
    assert err == "wrote two.run\n"
    report = run("hybrid", *JUDGED, "--json").stdout
    Path("report.json").write_text(report)
    assert run("hybrid", *RUNS, "--fusion", "report.json", "-o", "three.run").returncode == 0
    assert Path("one.run").read_text() == Path("three.run").read_text()


def test_json_has_the_results_the_curve_and_the_unjudged_documents(run, files) -> None:
    code, out, _ = run("hybrid", *JUDGED, "-m", "NDCG@5", "--folds", 4, "--json")
    assert code == 0
    record, expected = json.loads(out), tuned(measure="NDCG@5", folds=4)
    assert record["means"] == pytest.approx(expected.to_dict()["means"])
    assert record["fusion"] == expected.fusion.to_dict()
    assert len(record["choices"]) == 4
    assert len(record["curve"]["best"]) == 21
    unjudged = record["unjudged"]
    assert unjudged["against"] == "bm25"
    assert unjudged["unfavorable"]["difference"] <= unjudged["observed"]["difference"]
    by_system = {row["system"]: row for row in unjudged["systems"]}
    assert set(by_system) == {"fusion", "bm25", "dense"}
    assert by_system["fusion"]["nonrelevant"] == pytest.approx(expected.fusion_values.mean())
    assert by_system["fusion"]["relevant"] != by_system["fusion"]["nonrelevant"]


def test_the_page_has_a_picture_and_the_verdict(run, files) -> None:
    code, _, err = run("hybrid", *JUDGED, "--html", "page.html")
    assert code == 0
    page = Path("page.html").read_text()
    assert "<svg" in page
    assert "weight of dense" in page
    assert "Fusion minus bm25" in page
    assert tuned().verdict in page
    assert err == "wrote page.html\n"


def test_documents_to_label_are_those_that_could_change_the_verdict(run, files) -> None:
    code, _, err = run("hybrid", *JUDGED, "--to-label", "undecided.run", "--limit", 500)
    assert code == 0
    assert err == "wrote undecided.run\n"
    expected = tuned()
    runs = [fp.read_run(name) for name in RUNS]
    fused = expected.held_out_run(runs)
    effect = fp.planning.unjudged_effect(fused, runs[0], fp.read_qrels("test.qrels"))
    assert fp.read_run("undecided.run").to_dict().keys() == effect.to_judge.to_dict().keys()
    assert len(fp.read_run("undecided.run").docids) == len(effect.to_judge.docids) > 3
    code, _, err = run("hybrid", *JUDGED, "--to-label", "few.run", "--limit", 3)
    few = fp.read_run("few.run")
    assert sorted(few.values, reverse=True) == sorted(effect.to_judge.values, reverse=True)[:3]
    assert "few.run: the 3 documents of" in err
    complete = {f"q{q}": {f"d{d}": int(d < 4) for d in range(40)} for q in range(40)}
    fp.write_qrels(fp.Qrels.from_dict(complete), "complete.qrels")
    code, _, err = run("hybrid", *RUNS, "--qrels", "complete.qrels", "--to-label", "none.run")
    assert code == 0
    assert "none.run is not written: no judgment changes the verdict" in err
    assert not Path("none.run").exists()


def test_a_labeling_project_takes_the_documents_to_label(run, files) -> None:
    pytest.importorskip("starlette")
    run("hybrid", *JUDGED, "--to-label", "undecided.run", "--limit", 7)
    documents = [{"id": f"d{d}", "text": f"text {d}"} for d in range(40)]
    queries = [{"id": f"q{q}", "text": f"question {q}"} for q in range(40)]
    for name, rows in (("documents", documents), ("queries", queries)):
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sources = ("--queries", "queries.jsonl", "--collection", "documents.jsonl")
    code, out, err = run(
        "label", "setup", "shop", *sources, "--run", "undecided.run", "--tool", "grades"
    )
    assert code == 0, err
    assert "7 documents" in out + err


def test_exports_restrict_what_is_tried_to_what_the_engines_can_express(run, files) -> None:
    exports = ("--export", "elasticsearch", "es.json", "--export", "vespa", "v.profile")
    code, out, err = run("hybrid", *JUDGED, *exports, "--json")
    assert code == 0
    assert "trying the 45 fusions that Elasticsearch and Vespa can express" in err
    fusion = fp.aggregation.StageFusion.from_dict(json.loads(out)["fusion"])
    assert fusion.method == "rrf"
    body = json.loads(Path("es.json").read_text())
    assert body["retriever"]["rrf"]["rank_constant"] == fusion.rank_constant
    assert body["retriever"]["rrf"]["rank_window_size"] == 15  # the depth of the runs
    assert Path("v.profile").read_text().rstrip() == fp.export_fusion(fusion, "vespa", 15)


def test_an_export_of_another_fusion_is_refused_in_one_line(run, files) -> None:
    fusion = fp.aggregation.StageFusion("scores", mean="geometric")
    Path("mean.json").write_text(json.dumps(fusion.to_dict()))
    export = ("--fusion", "mean.json", "--export", "elasticsearch", "es.json")
    code, out, err = run("hybrid", *RUNS, *export, "-o", "o.run")
    assert (code, out) == (1, "")
    assert "Elasticsearch cannot compute the fusion min-max, geometric mean" in err
    assert len(err.splitlines()) == 1
    assert not Path("es.json").exists()
    assert not Path("o.run").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("bm25.run", "--qrels", "test.qrels"), 2, "give at least two runs"),
        (RUNS, 2, "give --qrels, to choose a fusion, or the --fusion to use"),
        ((*JUDGED, "--fusion", "fusion.json"), 2, "give --qrels, to choose"),
        ((*RUNS, "--fusion", "fusion.json"), 2, "--fusion requires -o or --export"),
        ((*RUNS, "--fusion", "fusion.json", "--html", "p.html"), 2, "--html requires --qrels"),
        ((*JUDGED, "--limit", "3"), 2, "--limit requires --to-label"),
        ((*JUDGED, "--export", "lucene", "x.json"), 2, "'lucene' is not one of"),
        ((*JUDGED, "--export", "vespa", "x.json"), 2, "must end in .profile"),
        ((*JUDGED, "--export", "solr", "x.json", "--export", "qdrant", "x.json"), 2, "twice"),
        ((*JUDGED, "-m", "WKT@5"), 1, "better when lower"),
        (
            (*RUNS, "--fusion", "three.json", "-o", "o.run"),
            1,
            "three.json: is a fusion of 3 stages",
        ),
        ((*RUNS, "--fusion", "broken.json", "-o", "o.run"), 1, "broken.json: is not JSON"),
        ((*RUNS, "--fusion", "list.json", "-o", "o.run"), 1, "list.json: is not a fusion"),
        ((*RUNS, "--fusion", "other.json", "-o", "o.run"), 1, "a fusion has no field 'k'"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_written(
    run, files, arguments, code, message
) -> None:
    fusion = fp.aggregation.StageFusion()
    Path("fusion.json").write_text(json.dumps(fusion.to_dict()))
    three = fp.aggregation.StageFusion(stages=("a", "b", "c"))
    Path("three.json").write_text(json.dumps(three.to_dict()))
    Path("broken.json").write_text("{")
    Path("list.json").write_text("[]")
    Path("other.json").write_text('{"k": 60}')
    before = sorted(Path().iterdir())
    result = run("hybrid", *arguments)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(Path().iterdir()) == before
