"""The memories of Codex: sections of its files, read again when a file changed."""

from __future__ import annotations

import os
from contextlib import suppress

from ..disk.regular_file import FileStamp, open_regular, stamp
from ..history.memories import MOST_BYTES, SourceMemory, read_memories
from ..history.places import memory_files
from ..memory.recall.rank import Corpus, Ranked, SearchDocument
from ..memory.store.topic import Topic
from ..memory.store.topic_files import TopicHeader, sort_newest_first
from .memory_places import Place


class CodexMemories:
    def __init__(self) -> None:
        self._sections: dict[str, tuple[FileStamp, list[SourceMemory]]] = {}

    def sections(self, place: Place) -> list[SourceMemory]:
        found = list[SourceMemory]()
        for origin, path, _ in memory_files({"codex": place.path.parent}, []):
            with suppress(OSError), open_regular(path, follow=False) as opened:
                info = os.fstat(opened.fileno())
                state = stamp(info)
                known = self._sections.get(path)
                if known is None or known[0] != state:
                    known = (state, list(read_memories(origin, path, opened.read(MOST_BYTES), info.st_mtime)))
                    self._sections[path] = known
                found += known[1]
        return found

    def headers(self, place: Place) -> list[TopicHeader]:
        """Return the sections as heads of memories, newest first."""
        return sort_newest_first([_header(at, one) for at, one in enumerate(self.sections(place))])

    def search(self, place: Place, query: str, most: int) -> tuple[list[tuple[TopicHeader, Ranked]], int]:
        """Return the sections that match, best first, and how many there are in all."""
        sections = self.sections(place)
        documents = [SearchDocument(one.path, one.name, one.description, one.body) for one in sections]
        ranked = Corpus(documents).rank(query, most)
        return [(_header(each.at, sections[each.at]), each._replace(at=at)) for at, each in enumerate(ranked)], len(sections)

    def find(self, place: Place, file: str) -> tuple[Topic, str] | None:
        """Return a section as a memory, with the path of its file."""
        for at, one in enumerate(self.sections(place)):
            if _header(at, one).file == file:
                return Topic(file, one.name, one.description, None, one.body, {}, one.modified), one.path
        return None


def _header(at: int, one: SourceMemory) -> TopicHeader:
    return TopicHeader(f"{os.path.basename(one.path)}/{at}", one.name, one.description, None, one.modified, 0, 0, 0)
