from firstpage.core.kernels.losses import hinge as hinge
from firstpage.core.kernels.losses import label_margin as label_margin
from firstpage.core.kernels.losses import lambdaloss as lambdaloss
from firstpage.core.kernels.losses import levels as levels
from firstpage.core.kernels.losses import listwise as listwise
from firstpage.core.kernels.losses import neighbors as neighbors
from firstpage.core.kernels.losses import pairs as pairs
from firstpage.core.kernels.losses import pairwise as pairwise
from firstpage.core.kernels.losses import permutations as permutations
from firstpage.core.kernels.losses import plrank as plrank
from firstpage.core.kernels.losses import preferences as preferences
from firstpage.core.kernels.losses import structural as structural
from firstpage.core.kernels.losses.breakpoints import measure_breakpoints as measure_breakpoints
from firstpage.core.kernels.losses.lambdaloss import LAMBDARANK as LAMBDARANK
from firstpage.core.kernels.losses.lambdaloss import LOSS2 as LOSS2
from firstpage.core.kernels.losses.pairs import voted_agreement as voted_agreement
from firstpage.core.kernels.losses.plrank import ADDITIVE as ADDITIVE
from firstpage.core.kernels.losses.plrank import CASCADE as CASCADE
from firstpage.core.kernels.losses.plrank import PRECISION as PRECISION
from firstpage.core.kernels.losses.plrank import TABLE as TABLE
from firstpage.core.kernels.losses.plrank import UNIT as UNIT
from firstpage.core.kernels.losses.plrank import true_order_values as true_order_values
from firstpage.core.kernels.losses.structural import (
    average_precision_hinge as average_precision_hinge,
)
