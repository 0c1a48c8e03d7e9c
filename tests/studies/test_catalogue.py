"""Names of papers and entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstpage.errors import DataError
from firstpage.names import PartError
from firstpage.studies.catalogue import chosen, listing, study
from firstpage.studies.sources import data_folder, fingerprint, missing


def test_every_figure_that_needs_no_private_data_is_there() -> None:
    wanted = {"table1", *(f"figure{n}" for n in range(1, 24))}
    assert set(study("zhou2013").entries) == wanted


def test_names_are_found_as_people_write_them() -> None:
    for name in ("zhou2013/figure7", "Zhou2013/Figure-7", "zhou2013/fig7", "zhou2013/fig. 7"):
        assert [e.name for e in chosen([name])[1]] == ["figure7"]
    both = chosen(["zhou2013/figure2", "zhou2013/figure6", "zhou2013/figure2"])[1]
    assert [e.name for e in both] == ["figure2", "figure6"]
    assert len(chosen(["zhou2013/figure2", "zhou2013"])[1]) == 24


def test_wrong_names_have_a_suggestion() -> None:
    with pytest.raises(PartError, match="Did you mean 'zhou2013'"):
        chosen(["zhou2012"])
    with pytest.raises(PartError, match=r"no entry of zhou2013 'figur7'\. Did you mean 'figure7'"):
        chosen(["zhou2013/figur7"])
    with pytest.raises(DataError, match="one paper at a time"):
        chosen(["zhou2013", "xia2009/table1"])


def test_the_list_says_what_is_missing(tmp_path: Path) -> None:
    rows = {name: lost for name, _, lost in listing(tmp_path)}
    assert rows["zhou2013/figure2"] == ""
    assert rows["zhou2013/figure14"].startswith("needs MSLR-WEB10K (or mslr-web10k-5k) in ")
    (tmp_path / "mslr-web10k-5k").mkdir()
    assert not any(lost for _, _, lost in listing(tmp_path))


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
