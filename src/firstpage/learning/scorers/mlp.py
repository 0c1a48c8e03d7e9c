"""A network with one hidden layer: the simple case of `Network`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from firstpage.core import Ints, check_number
from firstpage.learning.scorers.network import BoundNetwork, Network

if TYPE_CHECKING:
    from firstpage.data import Features


@dataclass(frozen=True)
class MLP:
    """Network with one hidden layer: relu(x W + b) v + c over standardized features.

    It is `Network(layers=(hidden,))`.  Fitting needs the package torch; scoring does not.

    Parameters
    ----------
    hidden : int, default 64
        The number of units of the hidden layer, at least 1.
    device : str, default "cpu"
        Where it is fitted: "cpu", "cuda" or any other device of PyTorch.

    Raises
    ------
    ParameterError
        If `hidden` is not an integer of at least 1.
    DataError
        On fitting, if the device cannot be used.
    MissingDependency
        On fitting, if torch is not installed.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.ListMLE(scorer="mlp(hidden=32)")
    """

    hidden: int = 64
    device: str = "cpu"
    additive: ClassVar[Literal[False]] = False
    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number(self, "hidden", 1, integer=True)
        object.__setattr__(self, "device", str(self.device))

    def bind(self, X: Features, offsets: Ints | None = None, seed: int = 0) -> BoundNetwork:
        """Set the scorer up on features."""
        return Network((int(self.hidden),), device=self.device).bind(X, offsets, seed)
