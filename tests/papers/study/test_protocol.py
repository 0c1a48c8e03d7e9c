"""The protocols of a study: thinned experiments, and those with all that the paper prints."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firstpage.core.registry import ParameterError
from firstpage.learning.rankers.registry import ranker
from firstpage.papers.study import page
from firstpage.papers.study.registry import STUDIES, load_study
from firstpage.papers.study.run import _schedule, estimate_cost, format_duration, run_study
from firstpage.papers.study.study import Experiment, PaperEntry, RunPlan
from tests.papers import example_study

ENTRIES = [(name, entry) for name in STUDIES for entry in load_study(name).entries.values()]
ROOT = Path(__file__).parents[3]


def test_the_protocol_selects_the_experiments_and_the_page_names_it() -> None:
    entry = example_study.full_entry()
    study = example_study.study(entry)
    quick = run_study(study, [entry], RunPlan(seeds=3))
    paper = run_study(study, [entry], RunPlan(seeds=3, protocol="paper"))
    assert (quick.computed_runs, paper.computed_runs) == (3, 3)
    values = [r.results[0].cells.samples(coin="ours", throws=1) for r in (quick, paper)]
    assert (values[1] - values[0]).tolist() == pytest.approx([0.2] * 3)
    assert quick.to_dict()["thinned"] == {"figure1": "One coin of three."}
    assert (paper.to_dict()["protocol"], paper.to_dict()["thinned"]) == ("paper", {})
    for render in (page.text, page.markdown, page.html):
        quick_page, paper_page = (render([r], "command") for r in (quick, paper))
        assert "One coin of three." in quick_page
        assert "quick; entries say what is thinned" in quick_page
        assert "One coin of three." not in paper_page
        assert "All of it." in paper_page
        assert "all coins." in paper_page
        assert "the printed grids, rates and numbers of iterations in full" in paper_page


@pytest.mark.parametrize(
    ("study", "entry"), ENTRIES, ids=lambda value: getattr(value, "name", value)
)
def test_experiments_of_both_protocols_have_valid_parameters(study: str, entry: PaperEntry) -> None:
    full = entry.with_protocol("paper")
    assert bool(entry.thinned) == (entry.paper_protocol is not None)
    assert not full.thinned
    assert full.datasets == entry.datasets
    for experiment in (*entry.experiments, *full.experiments):
        folders = {"folder": experiment.dataset, "optional_folder": experiment.optional_dataset}
        given = {key: value for key, value in folders.items() if value is not None}
        inspect.signature(experiment.function).bind(None, **experiment.params, **given)


def test_the_printed_grids_are_complete() -> None:
    def params(target: str, **labels: str) -> dict:
        study, name = target.split("/")
        entry = load_study(study).entries[name].with_protocol("paper")
        return next(
            dict(e.params) for e in entry.experiments if labels.items() <= dict(e.params).items()
        )

    rates = [
        f"gd(rate={rate}, max_iter=500)" for rate in ("1e-05", "0.0001", "0.001", "0.01", "0.1")
    ]
    costs = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 10, 100, 1000]
    assert params("lan2013/figure1", model="RankSVM")["grid"] == {"C": costs}
    for model in ("RankNet", "ListMLE"):
        assert params("lan2013/figure2", model=model)["grid"] == {"solver": rates}
    tolerances = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]
    assert params("lan2013/figure2", model="RankBoost")["grid"] == {"tol": tolerances}
    assert params("cheng2014/figure2")["costs"] == [10.0**i for i in range(-5, 6)]
    assert params("xia2009/table1")["training"] == "SGD"
    from firstpage.papers.niu2012.learned import RANKERS

    assert RANKERS["FocusedSVM"].full_protocol() == ({}, {"C": tuple(costs)})
    assert RANKERS["FocusedNet"].full_protocol() == ({"l2": 0.0}, {"solver": tuple(rates)})
    assert RANKERS["RankBoost, stumps"].full_protocol() == ({"rounds": 500}, {})
    for text in rates:
        ranker("RankNet", solver=text).check_parameters()


def test_the_cost_is_estimated_by_the_first_run() -> None:
    entry = example_study.full_entry()
    plan = RunPlan(seeds=5, protocol="paper")
    schedule = _schedule(example_study.study(entry), [entry], plan)
    text = estimate_cost([schedule], 2)
    assert text.startswith("5 of 5 runs are to be computed; the first took ")
    assert "with 2 processes" in text
    assert "4 of 5 runs are to be computed" in estimate_cost([schedule], 1)  # the first is cached
    assert run_study(schedule.study, [entry], plan).computed_runs == 3
    assert estimate_cost([schedule], 1) == "all 5 runs are cached."
    assert [format_duration(s) for s in (30, 600, 9000, 5 * 86400)] == [
        "30 seconds",
        "10.0 minutes",
        "2.5 hours",
        "5.0 days",
    ]


def test_unknown_protocols_are_refused() -> None:
    from firstpage.papers.study.run import reproduce

    with pytest.raises(ParameterError, match="protocol must be 'quick' or 'paper'; got 'thin'"):
        reproduce("xia2009", protocol="thin")  # type: ignore[arg-type]


def test_a_killed_run_continues_where_it_stopped(tmp_path: Path) -> None:
    log, runs = tmp_path / "log", 8
    code = f"from tests.papers.example_study import run_slowly as r; r({str(tmp_path / 'cache')!r}, {str(log)!r}, {runs})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        while not log.exists() or len(log.read_text().split()) < 3:
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = len(log.read_text().split())
    entry = example_study.entry(
        Experiment(example_study.slow_coin, {"log": str(log)}), claims=example_study.no_claims
    )
    study = example_study.study(entry)
    resumed = run_study(study, [entry], RunPlan(seeds=runs))
    assert resumed.total_runs == runs
    assert runs - finished <= resumed.computed_runs <= runs - finished + 1  # one was not stored yet
    complete = run_study(study, [entry], RunPlan(seeds=runs, recompute=True))
    assert complete.to_dict() == resumed.to_dict()
