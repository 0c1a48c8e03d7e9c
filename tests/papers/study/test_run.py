"""Running a study: runs are cached, resumed, and equal in any number of processes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from firstpage.core.errors import DataError, FirstpageError
from firstpage.papers.study import run
from firstpage.papers.study.run import reproduce, run_study
from firstpage.papers.study.study import Experiment, RunPlan
from tests.narrow import present
from tests.papers import example_study


def test_cells_are_means_over_runs_with_standard_errors() -> None:
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    result = run_study(example_study.study(entry), [entry], RunPlan(seeds=7))
    cell = result.results[0].cells.cells[1]
    assert cell.labels == {"coin": "ours", "throws": 2}
    assert len(cell.values) == 7
    assert cell.ours == pytest.approx(np.mean(cell.values))
    assert cell.se == pytest.approx(np.std(cell.values, ddof=1) / np.sqrt(7))
    assert cell.paper == 0.7
    assert result.results[0].cells.cells[0].paper is None
    assert result.computed_runs == result.total_runs == 7


def test_json_has_cells_and_claims() -> None:
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    record = run_study(example_study.study(entry), [entry], RunPlan(seeds=3)).to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record["cells"][1].keys() >= {"entry", "coin", "throws", "paper", "ours", "se"}
    assert record["claims"] == [
        {
            "entry": "figure1",
            "text": "ours is better",
            "verdict": "holds",
            "source": "paper",
            "evidence": record["claims"][0]["evidence"],
            "held_equal": "the coin's <weight>.",
        }
    ]
    assert record["versions"].keys() == {"python", "numpy", "scipy", "numba"}


def test_cached_runs_are_not_repeated(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1, "log": log}))
    study = example_study.study(entry)
    first = run_study(study, [entry], RunPlan(seeds=4))
    second = run_study(study, [entry], RunPlan(seeds=6))
    assert (first.computed_runs, second.computed_runs, second.total_runs) == (4, 2, 6)
    assert len(Path(log).read_text().split()) == 6
    values = second.results[0].cells.cells[0].values
    assert first.results[0].cells.cells[0].values.tolist() == values[:4].tolist()
    assert run_study(study, [entry], RunPlan(seeds=6, recompute=True)).computed_runs == 6


def test_cache_depends_on_parameters_seed_and_code() -> None:
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    other = example_study.entry(Experiment(example_study.coin, {"bias": 0.2}))
    study = example_study.study(entry)
    assert run_study(study, [entry], RunPlan(seeds=2)).computed_runs == 2
    assert run_study(study, [other], RunPlan(seeds=2)).computed_runs == 2
    assert run_study(study, [entry], RunPlan(seeds=2, seed=1)).computed_runs == 2
    changed = replace(
        study, modules=("firstpage.papers.study.claims", "firstpage.papers.study.study")
    )
    assert run_study(changed, [entry], RunPlan(seeds=2)).computed_runs == 2
    assert run_study(study, [entry], RunPlan(seeds=2)).computed_runs == 0


def test_resumed_run_equals_uninterrupted_run(tmp_path: Path, monkeypatch) -> None:
    log = str(tmp_path / "log")
    entry = example_study.entry(
        Experiment(example_study.interrupt_after, {"log": log, "after": 3}),
        claims=example_study.no_claims,
    )
    study = example_study.study(entry)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, [entry], RunPlan(seeds=5))
    monkeypatch.setenv("CONTINUE_RUN", "1")
    resumed = run_study(study, [entry], RunPlan(seeds=5))
    assert resumed.computed_runs == 2
    uninterrupted = run_study(study, [entry], RunPlan(seeds=5, recompute=True))
    assert (
        resumed.results[0].cells.cells[0].values.tolist()
        == uninterrupted.results[0].cells.cells[0].values.tolist()
    )


def test_damaged_cache_files_are_recomputed(run_cache: Path) -> None:
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    study = example_study.study(entry)
    run_study(study, [entry], RunPlan(seeds=3))
    first, second, _ = sorted(run_cache.rglob("*.json"))
    first.write_text("{incomplete")
    second.write_text("[]")
    assert run_study(study, [entry], RunPlan(seeds=3)).computed_runs == 2


def test_results_do_not_depend_on_processes() -> None:
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    study = example_study.study(entry)
    single = run_study(study, [entry], RunPlan(seeds=4))
    several = run_study(study, [entry], RunPlan(seeds=4, jobs=2, recompute=True))
    assert several.computed_runs == 4
    assert single.to_dict() == several.to_dict()


def test_killed_worker_raises_an_error() -> None:
    entry = example_study.entry(
        Experiment(example_study.end_process), claims=example_study.no_claims
    )
    with pytest.raises(FirstpageError, match="run it again, with fewer --jobs"):
        run_study(example_study.study(entry), [entry], RunPlan(seeds=2, jobs=2))


def test_experiments_of_a_stream_share_random_numbers() -> None:
    shared = example_study.entry(
        Experiment(example_study.coin, {"bias": 0.0}, "same"),
        Experiment(example_study.coin, {"bias": 1.0}, "same"),
        claims=example_study.no_claims,
    )
    cells = run_study(example_study.study(shared), [shared], RunPlan(seeds=3)).results[0].cells
    values = cells.samples(coin="theirs", throws=1)
    assert len(values) == 6  # two experiments, three runs each
    assert values[:3].tolist() == values[3:].tolist()
    separate = example_study.entry(
        Experiment(example_study.coin, {"bias": 0.0}, "one"),
        Experiment(example_study.coin, {"bias": 0.0}, "two"),
        claims=example_study.no_claims,
    )
    values = (
        run_study(example_study.study(separate), [separate], RunPlan(seeds=3))
        .results[0]
        .cells.samples(coin="theirs", throws=1)
    )
    assert len(set(values.tolist())) == 6


def test_entries_share_experiments(tmp_path: Path) -> None:
    experiment = Experiment(example_study.coin, {"bias": 0.1, "log": str(tmp_path / "log")})
    both = [example_study.entry(experiment), example_study.entry(experiment, name="figure2")]
    result = run_study(example_study.study(*both), both, RunPlan(seeds=2))
    assert result.total_runs == 2
    assert [len(r.cells) for r in result.results] == [4, 4]


def test_missing_data_is_reported_and_the_rest_computed(tmp_path: Path) -> None:
    computable = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    lacking = example_study.entry(
        Experiment(example_study.coin, {"bias": 0.1}, dataset="web10k"), name="figure2"
    )
    result = run_study(
        example_study.study(computable, lacking),
        [computable, lacking],
        RunPlan(seeds=2, data=tmp_path),
    )
    assert result.results[0].claims[0].verdict == "holds"
    assert result.results[1].claims[0].verdict == "inconclusive"
    assert "MSLR-WEB10K" in result.results[1].missing


def test_notes_of_runs_are_cached() -> None:
    entry = example_study.entry(Experiment(example_study.warn), claims=example_study.no_claims)
    study = example_study.study(entry)
    assert run_study(study, [entry], RunPlan(seeds=2)).notes == ["a warning of the package"]
    assert run_study(study, [entry], RunPlan(seeds=2)).notes == ["a warning of the package"]


def test_progress_is_reported() -> None:
    entry, calls = example_study.entry(Experiment(example_study.coin, {"bias": 0.1})), []
    run_study(
        example_study.study(entry), [entry], RunPlan(seeds=2), lambda *call: calls.append(call)
    )
    assert calls == [(0, 2), (1, 2), (2, 2)]


def test_stale_runs_are_deleted(run_cache: Path, monkeypatch) -> None:
    old = run_cache / "example" / "0123"
    old.mkdir(parents=True)
    run.open_run_cache("example", ("firstpage.papers.study.claims",))
    assert old.is_dir()
    monkeypatch.setattr(run, "MAX_AGE_SECONDS", -1.0)
    run.open_run_cache("example", ("firstpage.papers.study.claims",))
    assert not old.exists()


def test_unwritable_cache_is_ignored(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(run, "cache_folder", lambda: tmp_path / "file")
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    assert run_study(example_study.study(entry), [entry], RunPlan(seeds=2)).computed_runs == 2


def test_fast_and_seeds_set_the_number_of_runs() -> None:
    experiment = Experiment(example_study.coin, {"bias": 0.1}, runs=9, fast_runs=2)
    assert [
        plan.n_runs(experiment)
        for plan in (RunPlan(), RunPlan(fast=True), RunPlan(seeds=4, fast=True))
    ] == [
        9,
        2,
        4,
    ]


def test_cells_are_selected_by_labels() -> None:
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    cells = run_study(example_study.study(entry), [entry], RunPlan(seeds=2)).results[0].cells
    assert cells.label_values("throws") == [1, 2]
    with pytest.raises(KeyError, match="2 cells"):
        cells.samples(coin="ours")


def folds(**options) -> list[Experiment]:
    """Return an experiment per fold."""
    return [
        Experiment(example_study.query_values, {"fold": n}, f"fold {n}", **options)
        for n in (1, 2, 3)
    ]


def test_queries_are_averaged_over_runs_and_concatenated_over_folds() -> None:
    entry = example_study.entry(*folds(), claims=example_study.no_claims)
    result = run_study(example_study.study(entry), [entry], RunPlan(seeds=2)).results[0].cells
    cell = result.cell(model="ours", measure="N@1")
    assert (len(cell.values), len(present(cell.queries))) == (6, 2 + 3 + 4)
    assert cell.ours == pytest.approx(np.mean(cell.values))  # the mean of the means of folds
    assert cell.se == pytest.approx(np.std(present(cell.queries), ddof=1) / 3)
    assert result.samples(model="theirs", measure="N@3") == pytest.approx(
        0.5 * present(cell.queries)
    )
    assert cell.to_dict()["queries"] == 9
    first = run_study(example_study.study(entry), [entry], RunPlan(seeds=1)).results[0].cells
    of_one = present(first.cell(model="ours", measure="N@1").queries)
    assert np.abs(of_one - present(cell.queries)).max() > 0


def test_deterministic_experiments_run_once() -> None:
    entry = example_study.entry(*folds(randomized=False), claims=example_study.no_claims)
    assert run_study(example_study.study(entry), [entry], RunPlan(seeds=5)).total_runs == 3


def test_optional_data_set_is_passed_where_available(tmp_path: Path) -> None:
    for name in ("mq2007", "mq2007-list"):
        (tmp_path / name / "Fold1").mkdir(parents=True)
    (tmp_path / "mq2007-list" / "Fold1" / "test.txt").write_text("1 qid:1 1:0\n")
    experiment = Experiment(
        example_study.folders, dataset="mq2007", optional_dataset="mq2007-list", randomized=False
    )
    entry = example_study.entry(experiment, claims=example_study.no_claims)
    assert entry.datasets == ["mq2007"]

    def run_once() -> tuple[str, int]:
        result = run_study(example_study.study(entry), [entry], RunPlan(data=tmp_path))
        return result.results[0].cells.cells[0].labels["coin"], result.computed_runs

    assert run_once() == ("mq2007, mq2007-list", 1)
    (tmp_path / "mq2007-list" / "Fold1" / "test.txt").write_text("2 qid:1 1:0\n")
    assert run_once()[1] == 1  # other data are another run
    (tmp_path / "mq2007-list").rename(tmp_path / "elsewhere")
    assert run_once() == ("mq2007, None", 1)
    assert run_once()[1] == 0


def test_reproduce_takes_names_and_returns_cells_and_claims(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    (reproduction,) = reproduce(
        "zhou2013/table1", data=tmp_path, seeds=2, progress=lambda *call: calls.append(call)
    )
    (result,) = reproduction.results
    assert (reproduction.study.name, result.entry.name) == ("zhou2013", "table1")
    assert result.cells.cell(label=3).paper == 473
    assert [claim.source for claim in result.claims] == ["ours"]
    assert calls == [(0, 2), (1, 2), (2, 2)]


def test_reproduce_names_missing_data_of_several_entries(tmp_path: Path) -> None:
    (reproduction,) = reproduce("zhou2013/table1", "zhou2013/figure12", data=tmp_path, seeds=1)
    assert [bool(result.missing) for result in reproduction.results] == [False, True]


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        ((), {}, "name a paper such as 'xia2009'"),
        (("zhou2013/figure12",), {}, "figure12 needs MSLR-WEB10K"),
        (("zhou2013/table1",), {"seeds": 0}, "seeds must be an integer of at least 1; got 0"),
        (("zhou2013/table1",), {"jobs": 0}, "jobs must be an integer of at least 1; got 0"),
        (("zhou2013/table1",), {"data": "nowhere"}, "nowhere: no such folder"),
    ],
)
def test_reproduce_refuses_invalid_arguments(monkeypatch, targets, options, message: str) -> None:
    monkeypatch.delenv("FIRSTPAGE_DATA", raising=False)
    with pytest.raises(DataError, match=message):
        reproduce(*targets, **options)
