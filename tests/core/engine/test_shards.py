"""Scaling of features in shards."""

from __future__ import annotations

import pytest

import firstpage as fp


@pytest.mark.parametrize("normalize", ["global minmax", "global standard"])
def test_global_scaling_over_shards_is_that_in_memory(tmp_path, normalize: str) -> None:
    data = fp.Synthetic(queries=30, docs="uniform(3, 9)", features=4, grades=3, seed=2).dataset()
    fp.write_shards(data, tmp_path / "s", rows=40)
    shards = fp.read_shards(tmp_path / "s")
    assert len(shards) > 2
    sharded, in_memory = (fp.ListMLE(normalize=normalize).fit(d) for d in (shards, data))
    assert sharded.transform_.shift == pytest.approx(in_memory.transform_.shift, rel=1e-12)
    assert sharded.transform_.scale == pytest.approx(in_memory.transform_.scale, rel=1e-12)
    assert sharded.predict(data) == pytest.approx(in_memory.predict(data), abs=1e-3)  # float32
