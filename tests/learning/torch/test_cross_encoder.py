"""The adapter for sentence-transformers: its trainer, on a tiny transformer made on the spot."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog", "fish", "bird", "good", "bad"]
TEXTS: list[list[Any]] = [["cat", "dog"], [["good cat", "bad cat", "fish"], ["bad", "good dog"]]]
LABELS: list[Any] = [torch.tensor([2.0, 1.0, 0.0]), torch.tensor([0.0, 1.0])]


class Stored(torch.nn.Module):  # type: ignore[name-defined]
    """A model that returns stored scores, in the place of a CrossEncoder."""

    num_labels = 1
    device = "cpu"

    def __init__(self, scores: list[float]) -> None:
        super().__init__()
        self.scores = torch.nn.Parameter(torch.tensor(scores))
        self.sizes: list[int] = []
        self.start = 0

    def preprocess(self, pairs: list[Any], **options: Any) -> dict[str, Any]:
        self.sizes.append(len(pairs))
        return {"rows": torch.arange(len(pairs))}

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        rows = features["rows"] + self.start
        self.start += len(rows)
        return {"scores": self.scores[rows].unsqueeze(-1)}


@pytest.mark.parametrize(("size", "sizes"), [(None, [2, 2, 1]), (4, [4, 1]), (-1, [5])])
def test_loss_of_lists_of_texts(size: int | None, sizes: list[int]) -> None:
    model = Stored([0.5, 1.0, -1.0, 0.2, 0.1])
    loss = fp.torch.CrossEncoderLoss(model, fp.torch.ListMLELoss(k=2), mini_batch_size=size)
    value = loss(TEXTS, LABELS)
    value.backward()
    assert model.sizes == sizes
    scores = torch.tensor([[0.5, 1.0, -1.0], [0.2, 0.1, 9.0]], requires_grad=True)
    labels = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 9.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    expected = fp.torch.ListMLELoss(k=2)(scores, labels, mask)
    expected.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(model.scores.grad, scores.grad[mask])


def test_lists_of_equal_length_and_an_activation() -> None:
    model = Stored([0.5, 1.0, -1.0, 0.2])
    loss = fp.torch.CrossEncoderLoss(
        model, fp.torch.ListNetLoss(), activation_fn=torch.nn.Tanh(), mini_batch_size=-1
    )
    value = loss([["a", "b"], [["c", "d"], ["e", "f"]]], [torch.tensor([1, 0])] * 2)
    scores = torch.tensor([[0.5, 1.0], [-1.0, 0.2]]).tanh()
    expected = fp.torch.ListNetLoss()(scores, torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    torch.testing.assert_close(value, expected)
    arrays = [np.array([1, 0])] * 2
    model.start = 0
    assert loss([["a", "b"], [["c", "d"], ["e", "f"]]], arrays) == value
    assert loss.get_config_dict()["loss"].startswith("ListNetLoss(k=None")


def test_mistakes() -> None:
    model = Stored([0.0])
    with pytest.raises(fp.DataError, match="loss must be a loss of"):
        fp.torch.CrossEncoderLoss(model, torch.nn.MSELoss())
    with pytest.raises(fp.DataError, match="a trainer needs one number"):
        fp.torch.CrossEncoderLoss(model, fp.torch.ListMLELoss(reduction="none"))
    with pytest.raises(fp.DataError, match="model must be a CrossEncoder"):
        fp.torch.CrossEncoderLoss(torch.nn.Linear(1, 1), fp.torch.ListMLELoss())
    several = Stored([0.0])
    several.num_labels = 3
    with pytest.raises(fp.DataError, match="one output label; it has 3"):
        fp.torch.CrossEncoderLoss(several, fp.torch.ListMLELoss())
    with pytest.raises(fp.DataError, match=r"mini_batch_size of .* at least 1; got 0"):
        fp.torch.CrossEncoderLoss(model, fp.torch.ListMLELoss(), mini_batch_size=0)
    loss = fp.torch.CrossEncoderLoss(model, fp.torch.ListMLELoss())
    for labels in (torch.zeros(2), [torch.tensor(1), torch.tensor(0)], None, [1, 0]):
        with pytest.raises(fp.DataError, match=r"needs the columns .* no list of labels per query"):
            loss(TEXTS, labels)
    with pytest.raises(fp.DataError, match="got one text per query instead of a list"):
        loss([["a"], ["bcd"]], [[1, 0, 2]])
    with pytest.raises(fp.DataError, match="a label of query 0 of the batch is not a number"):
        loss([["a"], [["b", "c"]]], [[1, None]])
    with pytest.raises(fp.DataError, match="got 3 columns of texts"):
        loss([["a"], ["b"], ["c"]], [torch.zeros(1)])
    with pytest.raises(fp.DataError, match="query 1 of the batch has 2 documents and 3 labels"):
        loss(TEXTS, [torch.zeros(3), torch.zeros(3)])
    with pytest.raises(fp.DataError, match="one list of documents and one of labels per query"):
        loss(TEXTS, [torch.zeros(3)])
    with pytest.raises(fp.DataError, match="there is no document"):
        loss([["a"], [[]]], [torch.zeros(0)])


@pytest.mark.filterwarnings("ignore")  # of libraries about each other
def test_trainer_of_sentence_transformers(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("sentence_transformers.cross_encoder")
        datasets = pytest.importorskip("datasets")
        transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=1,
    )
    torch.manual_seed(0)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    transformers.BertTokenizerFast(vocab=str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    model = library.CrossEncoder(str(tmp_path), num_labels=1, device="cpu")
    rows = {"query": TEXTS[0] * 4, "docs": TEXTS[1] * 4, "labels": [x.tolist() for x in LABELS] * 4}
    measure = fp.torch.RankingMeasure("NDCG@3")

    def ndcg() -> float:
        measure.reset()
        for query, texts, labels in zip(*TEXTS, LABELS, strict=True):
            scores = torch.as_tensor(model.predict([(query, text) for text in texts]))
            measure.update(scores.view(1, -1), labels.view(1, -1))
        return float(measure.compute())

    arguments = library.CrossEncoderTrainingArguments(
        output_dir=str(tmp_path / "out"),
        num_train_epochs=12,
        per_device_train_batch_size=4,
        learning_rate=0.05,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    loss = fp.torch.CrossEncoderLoss(model, fp.torch.ListMLELoss(k=2))
    before = float(loss(TEXTS, LABELS))
    trainer = library.CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=datasets.Dataset.from_dict(rows), loss=loss
    )
    trainer.train()
    assert float(loss(TEXTS, LABELS)) < before / 2
    assert ndcg() == 1.0
