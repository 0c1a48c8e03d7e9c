"""`threads` limits training, validation, prediction and all libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.patience import PATIENCE

# CPU seconds of threads other than the calling one, which do not depend on the load of the
# machine.
NOTHING = 0.001  # seconds
MEASURE = """
import json, sys, time, warnings

warnings.simplefilter("ignore")
import firstpage as fp
from firstpage.learning.rankers.registry import RANKERS
from firstpage.learning.rankers.fit import fit

data = fp.Synthetic(queries=60, docs=40, features=15, grades=3).dataset()
train, valid = data[:40], data[40:]
shards = fp.write_shards(valid, sys.argv[1], 1000)
NOTHING = float(sys.argv[2])
few = {"RankBoost": {"rounds": 5}, "AdaRank": {"rounds": 5}, "FocusedBoost": {"rounds": 5},
       "CoordinateAscent": {"restarts": 1, "max_iter": 3},
       "LambdaMART": {"scorer": "trees(count=10)"}}
cases = {name: (name, few.get(name, {})) for name in RANKERS}
for library in ("lightgbm", "xgboost"):
    scorer = {"scorer": f"trees(count=10, library={library})"}
    cases[library] = "ListNet", scorer
    cases[f"{library}, scaled"] = "ListNet", {**scorer, "normalize": "minmax"}


def others_once(call):
    every, mine = time.process_time(), time.thread_time()
    call()
    return time.process_time() - every - (time.thread_time() - mine)


def others(call):
    # The first call may load a library, whose threads run for a moment before they sleep.
    first = others_once(call)
    return first if first <= NOTHING else others_once(call)


def measure(name, threads):
    used = {}
    ranker = fp.ranker(cases[name][0], threads=threads, **cases[name][1])
    used[f"{name}: fit"] = others(lambda: ranker.fit(train, valid=valid))
    used[f"{name}: predict"] = others(lambda: ranker.predict(valid))
    used[f"{name}: shards"] = others(lambda: ranker.predict(shards))
    used[f"{name}: score"] = others(lambda: ranker.score(valid))
    used[f"{name}: score of shards"] = others(lambda: ranker.score(shards))
    ranker.save(f"{sys.argv[1]}.json")
    loaded = fp.load(f"{sys.argv[1]}.json")
    used[f"{name}: loaded"] = others(lambda: loaded.predict(valid))
    return used


one, two = {}, {}
fit.VALUES_PER_THREAD = 1  # these data are small
for name in cases:
    one |= measure(name, 1)
for library in ("lightgbm", "xgboost"):
    ranker = fp.ListNet(scorer=f"trees(count=2, library={library})", threads=2)
    two[library] = others_once(lambda: ranker.fit(train))
print(json.dumps([one, two]))
"""


def test_one_thread_uses_no_other_threads(tmp_path) -> None:
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "shards"), str(NOTHING)]
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "OPENBLAS_"))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=settings)
    assert done.returncode == 0, done.stderr
    one, two = json.loads(done.stdout)
    assert len(one) > 90
    assert {name: seconds for name, seconds in one.items() if seconds > NOTHING} == {}
    if len(os.sched_getaffinity(0)) > 1:  # further threads are detected
        assert all(seconds > NOTHING for seconds in two.values())
