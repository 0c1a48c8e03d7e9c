from firstpage.learning.torch import device as device
from firstpage.learning.torch.any_loss import AnyLoss as AnyLoss
from firstpage.learning.torch.cross_encoder import CrossEncoderLoss as CrossEncoderLoss
from firstpage.learning.torch.listwise_losses import ListMLELoss as ListMLELoss
from firstpage.learning.torch.listwise_losses import ListNetLoss as ListNetLoss
from firstpage.learning.torch.listwise_losses import RankCosineLoss as RankCosineLoss
from firstpage.learning.torch.listwise_losses import SquaredErrorLoss as SquaredErrorLoss
from firstpage.learning.torch.measure_losses import LambdaRankLoss as LambdaRankLoss
from firstpage.learning.torch.measure_losses import PLRankLoss as PLRankLoss
from firstpage.learning.torch.measures import RankingMeasure as RankingMeasure
from firstpage.learning.torch.pairwise_losses import FocusedNetLoss as FocusedNetLoss
from firstpage.learning.torch.pairwise_losses import RankNetLoss as RankNetLoss

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "AnyLoss",
    "CrossEncoderLoss",
    "FocusedNetLoss",
    "LambdaRankLoss",
    "ListMLELoss",
    "ListNetLoss",
    "PLRankLoss",
    "RankCosineLoss",
    "RankNetLoss",
    "RankingMeasure",
    "SquaredErrorLoss",
]
