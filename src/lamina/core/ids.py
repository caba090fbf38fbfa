"""Ids of records and sessions: random UUIDs (version 4) as text.

`uuid.uuid4` makes an object first and its module asks what platform this is; every record needs an id, and only its text.
"""

from __future__ import annotations

from os import urandom

# The two bits of the variant leave four digits where it stands.
VARIANT = "89ab"


def new_id() -> str:
    digits = urandom(16).hex()
    variant = VARIANT[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
