"""Running a study: runs once each, kept, resumed, the same in any number of processes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from firstpage.errors import FirstpageError
from firstpage.papers.study import run
from firstpage.papers.study.run import reproduce
from firstpage.papers.study.study import Plan, Work
from tests.papers import works


def test_cells_are_means_over_runs_with_their_errors() -> None:
    entry = works.entry(Work(works.coin, {"bias": 0.1}))
    found = reproduce(works.study(entry), [entry], Plan(seeds=7))
    cell = found.outcomes[0].cells.cells[1]
    assert cell.where == {"coin": "ours", "throws": 2}
    assert len(cell.values) == 7
    assert cell.ours == pytest.approx(np.mean(cell.values))
    assert cell.se == pytest.approx(np.std(cell.values, ddof=1) / np.sqrt(7))
    assert cell.paper == 0.7
    assert found.outcomes[0].cells.cells[0].paper is None
    assert found.fresh == found.total == 7


def test_json_has_cells_and_claims() -> None:
    entry = works.entry(Work(works.coin, {"bias": 0.1}))
    held = reproduce(works.study(entry), [entry], Plan(seeds=3)).to_dict()
    assert json.loads(json.dumps(held)) == held
    assert held["cells"][1].keys() >= {"entry", "coin", "throws", "paper", "ours", "se"}
    assert held["claims"] == [
        {"entry": "figure1", "text": "ours is better", "verdict": "holds", "whose": "paper",
         "why": held["claims"][0]["why"], "held_equal": "the coin's <weight>."}
    ]  # fmt: skip
    assert held["versions"].keys() == {"python", "numpy", "scipy", "numba"}


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    entry = works.entry(Work(works.coin, {"bias": 0.1, "log": log}))
    study = works.study(entry)
    first = reproduce(study, [entry], Plan(seeds=4))
    again = reproduce(study, [entry], Plan(seeds=6))
    assert (first.fresh, again.fresh, again.total) == (4, 2, 6)
    assert len(Path(log).read_text().split()) == 6
    some = again.outcomes[0].cells.cells[0].values
    assert first.outcomes[0].cells.cells[0].values.tolist() == some[:4].tolist()
    assert reproduce(study, [entry], Plan(seeds=6, again=True)).fresh == 6


def test_other_parameters_seeds_and_code_are_other_runs() -> None:
    entry = works.entry(Work(works.coin, {"bias": 0.1}))
    other = works.entry(Work(works.coin, {"bias": 0.2}))
    study = works.study(entry)
    assert reproduce(study, [entry], Plan(seeds=2)).fresh == 2
    assert reproduce(study, [other], Plan(seeds=2)).fresh == 2
    assert reproduce(study, [entry], Plan(seeds=2, seed=1)).fresh == 2
    changed = replace(
        study, modules=("firstpage.papers.study.claims", "firstpage.papers.study.study")
    )
    assert reproduce(changed, [entry], Plan(seeds=2)).fresh == 2
    assert reproduce(study, [entry], Plan(seeds=2)).fresh == 0


def test_stopped_and_resumed_is_as_if_never_stopped(tmp_path: Path, monkeypatch) -> None:
    log = str(tmp_path / "log")
    entry = works.entry(Work(works.stops_at, {"log": log, "after": 3}), claims=works.nothing)
    study = works.study(entry)
    with pytest.raises(KeyboardInterrupt):
        reproduce(study, [entry], Plan(seeds=5))
    monkeypatch.setenv("GO_ON", "1")
    rest = reproduce(study, [entry], Plan(seeds=5))
    assert rest.fresh == 2
    whole = reproduce(study, [entry], Plan(seeds=5, again=True))
    assert (
        rest.outcomes[0].cells.cells[0].values.tolist()
        == whole.outcomes[0].cells.cells[0].values.tolist()
    )


def test_damaged_runs_are_done_again(shelf_of_its_own: Path) -> None:
    entry = works.entry(Work(works.coin, {"bias": 0.1}))
    study = works.study(entry)
    reproduce(study, [entry], Plan(seeds=3))
    first, second, _ = sorted(shelf_of_its_own.rglob("*.json"))
    first.write_text("{torn")
    second.write_text("[]")
    assert reproduce(study, [entry], Plan(seeds=3)).fresh == 2


@pytest.mark.slow
def test_processes_change_nothing() -> None:
    entry = works.entry(Work(works.coin, {"bias": 0.1}))
    study = works.study(entry)
    alone = reproduce(study, [entry], Plan(seeds=4))
    several = reproduce(study, [entry], Plan(seeds=4, jobs=2, again=True))
    assert several.fresh == 4
    assert alone.to_dict() == several.to_dict()


@pytest.mark.slow
def test_a_process_that_dies_is_told_in_a_line() -> None:
    entry = works.entry(Work(works.dies), claims=works.nothing)
    with pytest.raises(FirstpageError, match="run it again, with fewer --jobs"):
        reproduce(works.study(entry), [entry], Plan(seeds=2, jobs=2))


def test_a_stream_shares_its_numbers() -> None:
    one = works.entry(
        Work(works.coin, {"bias": 0.0}, "same"), Work(works.coin, {"bias": 1.0}, "same"),
        claims=works.nothing,
    )  # fmt: skip
    cells = reproduce(works.study(one), [one], Plan(seeds=3)).outcomes[0].cells
    values = cells.at(coin="theirs", throws=1)
    assert len(values) == 6  # two works, three runs each
    assert values[:3].tolist() == values[3:].tolist()
    apart = works.entry(
        Work(works.coin, {"bias": 0.0}, "one"), Work(works.coin, {"bias": 0.0}, "two"),
        claims=works.nothing,
    )  # fmt: skip
    values = (
        reproduce(works.study(apart), [apart], Plan(seeds=3))
        .outcomes[0]
        .cells.at(coin="theirs", throws=1)
    )
    assert len(set(values.tolist())) == 6


def test_entries_share_work(tmp_path: Path) -> None:
    work = Work(works.coin, {"bias": 0.1, "log": str(tmp_path / "log")})
    both = [works.entry(work), works.entry(work, name="figure2")]
    found = reproduce(works.study(*both), both, Plan(seeds=2))
    assert found.total == 2
    assert [len(o.cells) for o in found.outcomes] == [4, 4]


def test_missing_data_is_said_and_the_rest_is_done(tmp_path: Path) -> None:
    here = works.entry(Work(works.coin, {"bias": 0.1}))
    away = works.entry(Work(works.coin, {"bias": 0.1}, needs="web10k"), name="figure2")
    found = reproduce(works.study(here, away), [here, away], Plan(seeds=2, data=tmp_path))
    assert found.outcomes[0].claims[0].verdict == "holds"
    assert found.outcomes[1].claims[0].verdict == "cannot be tested"
    assert "MSLR-WEB10K" in found.outcomes[1].missing


def test_notes_of_runs_are_kept() -> None:
    entry = works.entry(Work(works.noting), claims=works.nothing)
    study = works.study(entry)
    assert reproduce(study, [entry], Plan(seeds=2)).notes == ["a word to a person"]
    assert reproduce(study, [entry], Plan(seeds=2)).notes == ["a word to a person"]


def test_progress_is_told() -> None:
    entry, seen = works.entry(Work(works.coin, {"bias": 0.1})), []
    reproduce(works.study(entry), [entry], Plan(seeds=2), lambda *at: seen.append(at))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_runs_of_old_code_are_swept(shelf_of_its_own: Path, monkeypatch) -> None:
    old = shelf_of_its_own / "made-up" / "0123"
    old.mkdir(parents=True)
    run.shelf("made-up", ("firstpage.papers.study.claims",))
    assert old.is_dir()
    monkeypatch.setattr(run, "OLD", -1.0)
    run.shelf("made-up", ("firstpage.papers.study.claims",))
    assert not old.exists()


def test_where_nothing_can_be_written_it_runs_all_the_same(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(run, "cache_folder", lambda: tmp_path / "file")
    entry = works.entry(Work(works.coin, {"bias": 0.1}))
    assert reproduce(works.study(entry), [entry], Plan(seeds=2)).fresh == 2


def test_haste_and_seeds_say_how_many_runs() -> None:
    work = Work(works.coin, {"bias": 0.1}, runs=9, quick=2)
    assert [plan.runs(work) for plan in (Plan(), Plan(fast=True), Plan(seeds=4, fast=True))] == [
        9,
        2,
        4,
    ]


def test_cells_are_found_by_labels() -> None:
    entry = works.entry(Work(works.coin, {"bias": 0.1}))
    cells = reproduce(works.study(entry), [entry], Plan(seeds=2)).outcomes[0].cells
    assert cells.names("throws") == [1, 2]
    with pytest.raises(KeyError, match="2 cells"):
        cells.at(coin="ours")


def folds(**how) -> list[Work]:
    return [Work(works.asked, {"fold": n}, f"fold {n}", **how) for n in (1, 2, 3)]


def test_queries_are_averaged_over_runs_and_lined_up_over_folds() -> None:
    entry = works.entry(*folds(), claims=works.nothing)
    found = reproduce(works.study(entry), [entry], Plan(seeds=2)).outcomes[0].cells
    cell = found.one(model="ours", measure="N@1")
    assert (len(cell.values), len(cell.queries)) == (6, 2 + 3 + 4)
    assert cell.ours == pytest.approx(np.mean(cell.values))  # the mean of the means of folds
    assert cell.se == pytest.approx(np.std(cell.queries, ddof=1) / 3)
    assert found.at(model="theirs", measure="N@3") == pytest.approx(0.5 * cell.queries)
    assert cell.to_dict()["queries"] == 9
    first = reproduce(works.study(entry), [entry], Plan(seeds=1)).outcomes[0].cells
    assert np.abs(first.one(model="ours", measure="N@1").queries - cell.queries).max() > 0


def test_what_has_no_chance_in_it_is_run_once() -> None:
    entry = works.entry(*folds(chance=False), claims=works.nothing)
    assert reproduce(works.study(entry), [entry], Plan(seeds=5)).total == 3


def test_a_data_set_beside_is_given_where_it_is(tmp_path: Path) -> None:
    for name in ("mq2007", "mq2007-list"):
        (tmp_path / name / "Fold1").mkdir(parents=True)
    (tmp_path / "mq2007-list" / "Fold1" / "test.txt").write_text("1 qid:1 1:0\n")
    work = Work(works.folders, needs="mq2007", beside="mq2007-list", chance=False)
    entry = works.entry(work, claims=works.nothing)
    assert entry.needs == ["mq2007"]

    def given() -> tuple[str, int]:
        found = reproduce(works.study(entry), [entry], Plan(data=tmp_path))
        return found.outcomes[0].cells.cells[0].where["coin"], found.fresh

    assert given() == ("mq2007, mq2007-list", 1)
    (tmp_path / "mq2007-list" / "Fold1" / "test.txt").write_text("2 qid:1 1:0\n")
    assert given()[1] == 1  # other data are another run
    (tmp_path / "mq2007-list").rename(tmp_path / "elsewhere")
    assert given() == ("mq2007, None", 1)
    assert given()[1] == 0
