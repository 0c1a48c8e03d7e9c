from firstpage.torch.cross_encoder import CrossEncoderLoss as CrossEncoderLoss
from firstpage.torch.losses import FocusedNetLoss as FocusedNetLoss
from firstpage.torch.losses import ListMLELoss as ListMLELoss
from firstpage.torch.losses import ListNetLoss as ListNetLoss
from firstpage.torch.losses import RankCosineLoss as RankCosineLoss
from firstpage.torch.losses import RankNetLoss as RankNetLoss
from firstpage.torch.losses import SquaredErrorLoss as SquaredErrorLoss
from firstpage.torch.measures import RankingMeasure as RankingMeasure
