"""The trail of a conversation: a digest of what was said so far, by which copies of a session are recognised.

A copied file, a fork and a branch begin with the words, calls and answers of another session. Their lines may have new ids and times, so
an answer is recognised by everything up to it. Sessions may also begin alike by chance: if nothing in an answer tells it from all others,
its time does. Pure.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from ..core.usage import Usage


class Trail(msgspec.Struct, frozen=True, array_like=True):
    digest: str = ""
    unique: bool = False  # whether something since the user's last words exists once in the world

    def asked(self, words: str) -> Trail:
        """Return the trail after a message of the user."""
        return Trail(short_digest(f"{self.digest}\nuser\n{words}"))

    def answered(self, words: str, id: str, time: str) -> Trail:
        """Return the trail after a part of an answer, with an id that the model's server gave it, if any."""
        unique = self.unique or bool(id)
        return Trail(short_digest(f"{self.digest}\n{id or words}\n{'' if unique else time}"), unique)

    def used(self, usage: Usage) -> Trail:
        """Return the trail after a response with this usage. A response may have nothing else in the file."""
        return Trail(short_digest(f"{self.digest}\nusage\n{usage}"), self.unique)


def short_digest(key: str) -> str:
    """Return ten hexadecimal digits: enough to distinguish the answers of sessions that begin alike."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
