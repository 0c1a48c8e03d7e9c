"""Names of papers and entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstpage.papers.study.registry import (
    STUDIES,
    chosen,
    data_folder,
    fingerprint,
    inventory,
    listing,
    missing,
    study,
)
from firstpage.registry import ParameterError

DOCS = Path(__file__).parents[3] / "docs"
WORKS = {  # as they were when the figures of docs/papers were made
    "cheng2014.training": "compared likelihood scaled",
    "lan2013.lists": "graded listed",
    "lan2013.tails": "curves",
    "niu2012.edges": "equal_scores on_letor",
    "niu2012.labeling": "agreement alarms effort growth",
    "niu2012.learned": "on_letor on_study",
    "niu2012.voted": "agreement effort seconds",
    "xia2009.training": "likelihood other simulated",
    "zhou2013.active": "editors real_lists simulated",
    "zhou2013.news": "amounts counts methods subsets tied",
    "zhou2013.web": "by_difference learning noisy",
    "zhou2013.worlds": "by_difference coherence learning optimal random_orders regraded_some reversed_some",
}


def test_every_figure_that_needs_no_private_data_is_there() -> None:
    wanted = {"table1", *(f"figure{n}" for n in range(1, 24))}
    assert set(study("zhou2013").entries) == wanted


def test_works_keep_the_names_that_their_random_numbers_come_from() -> None:
    works = [w for name in STUDIES for e in study(name).entries.values() for w in e.works]
    assert {work.name for work in works} == {
        f"firstpage.studies.{module}:{function}"
        for module, functions in WORKS.items()
        for function in functions.split()
    }


@pytest.mark.parametrize("name", STUDIES)
def test_every_entry_says_what_its_claims_hold_equal(name: str) -> None:
    for entry in study(name).entries.values():
        assert len(entry.held_equal.split()) > 8, entry.name
        assert entry.held_equal.endswith("."), entry.name


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_of_claims_lists_what_every_entry_holds_equal(name: str) -> None:
    section = (DOCS / "claims.md").read_text().split(f"\n### {name}\n")[1].split("\n#")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    listed = {entry: text for entries, text in rows for entry in entries.strip("| ").split(", ")}
    for entry in study(name).entries.values():
        assert listed[f"`{entry.name}`"].removesuffix(" |") == entry.held_equal
    assert (DOCS / "papers" / f"{name}.md").read_text().count("**What is held equal.**") == 1


def test_names_are_found_as_people_write_them() -> None:
    for name in ("zhou2013/figure7", "Zhou2013/Figure-7", "zhou2013/fig7", "zhou2013/fig. 7"):
        assert [e.name for e in chosen([name])[0][1]] == ["figure7"]
    both = chosen(["zhou2013/figure2", "zhou2013/figure6", "zhou2013/figure2"])[0][1]
    assert [e.name for e in both] == ["figure2", "figure6"]
    assert len(chosen(["zhou2013/figure2", "zhou2013"])[0][1]) == 24


def test_wrong_names_have_a_suggestion() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'zhou2013'"):
        chosen(["zhou2012"])
    with pytest.raises(
        ParameterError, match=r"no entry of zhou2013 'figur7'\. Did you mean 'figure7'"
    ):
        chosen(["zhou2013/figur7"])


def test_the_list_says_what_is_missing(tmp_path: Path) -> None:
    rows = {name: lost for name, _, lost in listing(tmp_path)}
    assert rows["zhou2013/figure2"] == ""
    assert rows["zhou2013/figure14"].startswith("needs MSLR-WEB10K (or mslr-web10k-5k) in ")
    sample = tmp_path / "mslr-web10k-5k"
    sample.mkdir()
    assert missing(["web10k"], tmp_path)  # an empty folder is no data set
    (sample / "train.txt").write_text("")
    assert not missing(["web10k", "web30k"], tmp_path)
    states = {each["data"]: each["state"] for each in inventory(tmp_path)}
    assert states["MSLR-WEB10K"] == "mslr-web10k-5k stands for it"
    assert states["TD2003"] == "missing"
    (tmp_path / "TD2003" / "Data" / "Fold1").mkdir(parents=True)
    assert {each["data"]: each["state"] for each in inventory(tmp_path)}["TD2003"] == "there"


def test_data_are_given_or_named_by_the_environment(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("FIRSTPAGE_DATA", raising=False)
    assert data_folder(None) is None
    monkeypatch.setenv("FIRSTPAGE_DATA", str(tmp_path))
    assert data_folder(None) == tmp_path
    assert data_folder(Path("other")) == Path("other")
    assert missing(["web10k"], None).endswith("FIRSTPAGE_DATA")


def test_fingerprints_change_with_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1")
    first = fingerprint(tmp_path)
    (tmp_path / "a.txt").write_text("2")
    second = fingerprint(tmp_path)
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    assert len({first, second, fingerprint(tmp_path)}) == 3
