"""Names of papers and entries."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from firstpage.core.registry import ParameterError
from firstpage.papers.niu2012 import comparison
from firstpage.papers.study.registry import (
    STUDIES,
    data_folder,
    dataset_records,
    folder_digest,
    list_entries,
    load_study,
    missing_data,
    select_entries,
)
from firstpage.papers.zhou2013 import study as zhou_study

DOCS = Path(__file__).parents[3] / "docs"
HELD_EQUAL_OF_CLAIMS = {  # of claims that compare something else than their entry
    "niu2012": [comparison.DESCRIBED.texts[n] for n in ("FIXED_BETA_EQUAL", "LETOR_HELD_EQUAL")],
    "zhou2013": [zhou_study.DESCRIBED.texts["EQUAL_NUMBER_HELD"]],
}


def test_zhou2013_has_all_figures_and_table_1() -> None:
    expected = {"table1", *(f"figure{n}" for n in range(1, 24))}
    assert set(load_study("zhou2013").entries) == expected


def test_random_streams_have_the_names_of_their_functions() -> None:
    experiments = [
        experiment
        for name in STUDIES
        for entry in load_study(name).entries.values()
        for experiment in entry.experiments
    ]
    assert experiments
    for experiment in experiments:
        assert resolve_name(experiment.function_name) is experiment.function
        # A stream with a name of its own is named after its data, not after code.
        assert not re.search(r"[.:_]\w*[a-z]", experiment.stream), experiment.stream


@pytest.mark.parametrize("name", STUDIES)
def test_every_entry_has_held_equal(name: str) -> None:
    for entry in load_study(name).entries.values():
        assert len(entry.held_equal.split()) > 8, entry.name
        assert entry.held_equal.endswith("."), entry.name


@pytest.mark.parametrize("name", STUDIES)
def test_docs_list_held_equal_of_every_entry(name: str) -> None:
    section = (DOCS / "claims.md").read_text().split(f"\n### {name}\n")[1].split("\n#")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    listed = {entry: text for entries, text in rows for entry in entries.strip("| ").split(", ")}
    for entry in load_study(name).entries.values():
        assert listed[f"`{entry.name}`"].removesuffix(" |") == entry.held_equal
    claim_texts = [
        text.removesuffix(" |") for entries, text in rows if entries.startswith("| claims of")
    ]
    assert claim_texts == HELD_EQUAL_OF_CLAIMS.get(name, [])
    assert (DOCS / "papers" / f"{name}.md").read_text().count("**What is held equal.**") == 1


def test_spelling_variants_of_names_are_accepted() -> None:
    for name in ("zhou2013/figure7", "Zhou2013/Figure-7", "zhou2013/fig7", "zhou2013/fig. 7"):
        assert [e.name for e in select_entries([name])[0][1]] == ["figure7"]
    both = select_entries(["zhou2013/figure2", "zhou2013/figure6", "zhou2013/figure2"])[0][1]
    assert [e.name for e in both] == ["figure2", "figure6"]
    assert len(select_entries(["zhou2013/figure2", "zhou2013"])[0][1]) == 24


def test_unknown_names_have_a_suggestion() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'zhou2013'"):
        select_entries(["zhou2012"])
    with pytest.raises(
        ParameterError, match=r"no entry of zhou2013 'figur7'\. Did you mean 'figure7'"
    ):
        select_entries(["zhou2013/figur7"])


def test_list_has_missing_data(tmp_path: Path) -> None:
    rows = {name: missing for name, _, missing in list_entries(tmp_path)}
    assert rows["zhou2013/figure2"] == ""
    assert rows["zhou2013/figure14"].startswith("needs MSLR-WEB10K (or mslr-web10k-5k) in ")
    sample = tmp_path / "mslr-web10k-5k"
    sample.mkdir()
    assert missing_data(["web10k"], tmp_path)  # an empty folder is not a data set
    (sample / "train.txt").write_text("")
    assert not missing_data(["web10k", "web30k"], tmp_path)
    statuses = {record["name"]: record["status"] for record in dataset_records(tmp_path)}
    assert statuses["MSLR-WEB10K"] == "substituted by mslr-web10k-5k"
    assert statuses["TD2003"] == "missing"
    (tmp_path / "TD2003" / "Data" / "Fold1").mkdir(parents=True)
    assert {record["name"]: record["status"] for record in dataset_records(tmp_path)}[
        "TD2003"
    ] == "available"


def test_data_folder_defaults_to_the_environment(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("FIRSTPAGE_DATA", raising=False)
    assert data_folder(None) is None
    monkeypatch.setenv("FIRSTPAGE_DATA", str(tmp_path))
    assert data_folder(None) == tmp_path
    assert data_folder(Path("other")) == Path("other")
    assert missing_data(["web10k"], None).endswith("FIRSTPAGE_DATA")


def test_digest_changes_with_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1")
    first = folder_digest(tmp_path)
    (tmp_path / "a.txt").write_text("2")
    second = folder_digest(tmp_path)
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    assert len({first, second, folder_digest(tmp_path)}) == 3
