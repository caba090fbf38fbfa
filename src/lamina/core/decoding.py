"""The errors of decoding. They are apart from our own errors, which can be imported without a library."""

from __future__ import annotations

import msgspec

# What decoding raises for bytes or text that are damaged, no JSON or MessagePack, not UTF-8, or nested too deeply.
UNDECODABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
