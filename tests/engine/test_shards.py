"""Shards as rankers take them."""

from __future__ import annotations

import pytest

import firstpage as fp


@pytest.mark.parametrize("how", ["global minmax", "global standard"])
def test_scaling_over_all_documents_is_that_of_the_whole(tmp_path, how: str) -> None:
    data = fp.Synthetic(queries=30, docs="uniform(3, 9)", features=4, grades=3, seed=2).dataset()
    fp.write_shards(data, tmp_path / "s", rows=40)
    shards = fp.read_shards(tmp_path / "s")
    assert len(shards) > 2
    parts, whole = (fp.ListMLE(normalize=how).fit(given) for given in (shards, data))
    assert parts.transform_.shift == pytest.approx(whole.transform_.shift, rel=1e-12)
    assert parts.transform_.scale == pytest.approx(whole.transform_.scale, rel=1e-12)
    assert parts.predict(data) == pytest.approx(whole.predict(data), abs=1e-3)  # float32
