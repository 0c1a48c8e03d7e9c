"""Ranking losses for the CrossEncoderTrainer of sentence-transformers."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from firstpage.core import DataError, check_number
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.ranking_loss import RankingLoss

if TYPE_CHECKING:
    from torch import Tensor


COLUMNS = (
    "a ranking loss needs the columns query, docs (a list of texts) and labels (a list of numbers)"
)


def _are_lists(labels: Any) -> bool:
    """Return whether there is a list, an array or a tensor of labels per query."""
    return isinstance(labels, list | tuple) and all(
        isinstance(values, list | tuple) or getattr(values, "ndim", 0) == 1 for values in labels
    )


def _numbers(at: int, values: Any) -> Tensor:
    """Return the labels of a query as a tensor."""
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"a label of query {at} of the batch is not a number ({error}).") from error


class CrossEncoderLoss(torch.nn.Module):
    """A ranking loss for the CrossEncoderTrainer of sentence-transformers.

    It reads what the listwise losses of sentence-transformers read: a data set with the columns
    query, docs (a list of texts) and labels (a list of numbers).  Lists may differ in length.
    Documents need not be sorted.

    Parameters
    ----------
    model : CrossEncoder
        The model, with one output label.
    loss : RankingLoss
        A loss of this package, such as ``ListMLELoss(k=10)``.
    activation_fn : Module, optional
        Applied to the scores before the loss; by default nothing is.
    mini_batch_size : int, optional
        How many pairs of query and document go through the model at once; by default as many as
        there are queries in the batch, and with -1 all.  The loss is always that of whole lists.

    Raises
    ------
    DataError
        If the model or the loss is none, the model has several output labels, or a mini-batch has
        no size; on use, if columns do not fit.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> class Constant(torch.nn.Module):  # instead of sentence_transformers.CrossEncoder
    ...     num_labels, device = 1, "cpu"
    ...     def preprocess(self, pairs, **options):
    ...         return {"ids": torch.zeros(len(pairs), 1)}
    ...     def forward(self, features):
    ...         return {"scores": features["ids"]}
    >>> loss = fp.torch.CrossEncoderLoss(Constant(), fp.torch.ListMLELoss(k=1))
    >>> texts = [["a query"], [["a document", "another", "a third"]]]
    >>> round(float(loss(texts, [torch.tensor([1.0, 0.0, 0.0])])), 3)  # log 3
    1.099
    """

    def __init__(
        self,
        model: Any,
        loss: RankingLoss,
        *,
        activation_fn: Any = None,
        mini_batch_size: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(loss, RankingLoss):
            raise DataError(
                f"loss must be a loss of fp.torch, such as ListMLELoss(); got {loss!r}."
            )
        if loss.reduction == "none":
            raise DataError("a trainer needs one number: choose reduction='mean' or 'sum'.")
        if not hasattr(model, "preprocess") or not hasattr(model, "num_labels"):
            raise DataError(
                "model must be a CrossEncoder of sentence-transformers 6 or newer; got "
                f"{type(model).__name__}."
            )
        if model.num_labels != 1:
            raise DataError(
                f"model must have one output label; it has {model.num_labels}. "
                "Create it with num_labels=1."
            )
        self.model, self.loss = model, loss
        self.activation_fn = activation_fn
        self.mini_batch_size = mini_batch_size
        if mini_batch_size not in (None, -1):
            check_number(self, "mini_batch_size", 1, integer=True)

    def forward(
        self,
        inputs: list[Any],
        labels: list[Any],
        prompt: str | None = None,
        task: str | None = None,
    ) -> Tensor:
        """Return the loss of a batch of queries.

        Parameters
        ----------
        inputs : list
            The queries, and for each of them the list of its documents.
        labels : list of Tensor
            The labels of the documents of each query.
        prompt : str, optional
            Passed to the model.
        task : str, optional
            Passed to the model.

        Returns
        -------
        Tensor
            One number.

        Raises
        ------
        DataError
            If there are not two columns of inputs, or labels do not fit the documents.
        """
        if not _are_lists(labels) or len(inputs) != 2:
            raise DataError(
                f"{COLUMNS}; got {len(inputs)} columns of texts and "
                f"{'lists of labels' if _are_lists(labels) else 'no list of labels'} per query."
            )
        queries, documents = inputs
        if any(isinstance(texts, str) for texts in documents):
            raise DataError(f"{COLUMNS}; got one text per query instead of a list.")
        lengths = [len(texts) for texts in documents]
        if not sum(lengths):
            raise DataError("the batch is empty: there is no document.")
        if not len(queries) == len(lengths) == len(labels):
            raise DataError(
                f"there must be one list of documents and one of labels per query; got "
                f"{len(queries)} queries, {len(lengths)} and {len(labels)}."
            )
        for at, (count, values) in enumerate(zip(lengths, labels, strict=True)):
            if count != len(values):
                raise DataError(
                    f"query {at} of the batch has {count} documents and {len(values)} labels."
                )
        tensors = [_numbers(at, values) for at, values in enumerate(labels)]
        pairs = [
            (query, text) for query, texts in zip(queries, documents, strict=True) for text in texts
        ]
        size = self.mini_batch_size or len(queries)
        size = size if size > 0 else len(pairs)
        options = {
            name: value for name, value in (("prompt", prompt), ("task", task)) if value is not None
        }
        scores = []
        for start in range(0, len(pairs), size):
            features = self.model.preprocess(pairs[start : start + size], **options)
            features = {
                name: value.to(self.model.device) if isinstance(value, torch.Tensor) else value
                for name, value in features.items()
            }
            scores.append(self.model(features)["scores"].view(-1))
        flat = scores[0] if len(scores) == 1 else torch.cat(scores)
        if self.activation_fn is not None:
            flat = self.activation_fn(flat)
        if min(lengths) == max(lengths):
            return self.loss(flat.view(len(lengths), -1), torch.stack(tensors).to(flat.device))
        offsets = torch.tensor([0, *accumulate(lengths)])
        return self.loss(flat, torch.cat(tensors).to(flat.device), offsets=offsets)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the parameters, as they appear in the model card.

        Returns
        -------
        dict of str to object
            The loss, the activation and the size of mini-batches.
        """
        return {
            "loss": repr(self.loss),
            "activation_fn": None if self.activation_fn is None else repr(self.activation_fn),
            "mini_batch_size": self.mini_batch_size,
        }
