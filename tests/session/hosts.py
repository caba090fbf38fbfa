"""Hosts for sessions: what an agent loop offers, field by field."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.session.plain import AsyncSession, Session

from lamina.session.base import context_of, conversation_of


def lend(session: Session | AsyncSession, **fields: Any) -> None:
    """Lend these fields besides what is lent already."""
    context_of(session).lend(msgspec.structs.replace(conversation_of(session).host, **fields))
