from firstpage.learning.solvers.boosting.boosting import ROUNDING_EPS as ROUNDING_EPS
from firstpage.learning.solvers.boosting.boosting import BoostingState as BoostingState
from firstpage.learning.solvers.boosting.boosting import (
    InMemoryBoostingState as InMemoryBoostingState,
)
from firstpage.learning.solvers.boosting.boosting import boosting_step as boosting_step
from firstpage.learning.solvers.cutting_plane.one_slack import MAX_AGE as MAX_AGE
from firstpage.learning.solvers.cutting_plane.one_slack import CuttingPlane as CuttingPlane
from firstpage.learning.solvers.cutting_plane.one_slack import Planes as Planes
from firstpage.learning.solvers.cutting_plane.one_slack import check_penalty as check_penalty
from firstpage.learning.solvers.descent import RATES as RATES
from firstpage.learning.solvers.gpu.objective import device_objective as device_objective
from firstpage.learning.solvers.gpu.tensors import torch as torch
from firstpage.learning.solvers.lbfgs import LBFGS as LBFGS
from firstpage.learning.solvers.objective import BlockObjective as BlockObjective
from firstpage.learning.solvers.score_space import relative_gap as relative_gap
from firstpage.learning.solvers.solver import FRESH_START as FRESH_START
from firstpage.learning.solvers.solver import ProgressCallback as ProgressCallback
from firstpage.learning.solvers.solver import Resume as Resume
from firstpage.learning.solvers.solver import SolverResult as SolverResult
from firstpage.learning.solvers.solver import never_stop as never_stop
