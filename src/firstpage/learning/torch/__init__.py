"""Ranking losses and measures for PyTorch.

>>> import torch
>>> import firstpage as fp
>>> loss = fp.torch.ListMLELoss(k=10)
>>> scores = torch.zeros(2, 3, requires_grad=True)
>>> loss(scores, torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0]])).backward()
>>> scores.grad.shape
torch.Size([2, 3])

PyTorch is imported when a name of this package is first used.  The names are listed in
`__init__.pyi`.
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
