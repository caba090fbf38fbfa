"""Lamina, a seven-layer memory for LLM agents.

This module lists the public names and imports each one on first use, so `import lamina` itself is almost free.
Names that are not listed here are private.
"""

# Type checkers also recognise this spelling, and it avoids importing typing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .agent.agent import Agent as Agent
    from .conversation.compaction.commit import Compacted as Compacted
    from .conversation.window.thresholds import WindowState as WindowState
    from .core import blocks as blocks
    from .core import errors as errors
    from .core import records as records
    from .core.errors import LaminaError as LaminaError
    from .core.policy import Policy as Policy
    from .core.policy import named_policy as named_policy
    from .core.records import Message as Message
    from .core.records import Record as Record
    from .core.reply import Reply as Reply
    from .core.settings import Settings as Settings
    from .core.usage import Usage as Usage
    from .fork.host import Host as Host
    from .history.query import SearchResult as SearchResult
    from .history.query import search as search
    from .layers.l4_compact.plan import Pivot as Pivot
    from .layers.l4_compact.step import CompactionPreview as CompactionPreview
    from .memory.memory import Memory as Memory
    from .session.edits import Decision as Decision
    from .session.edits import TurnInView as TurnInView
    from .session.edits import UndoneTurn as UndoneTurn
    from .session.methods import SessionStatus as SessionStatus
    from .session.session import AsyncSession as AsyncSession
    from .session.session import Session as Session
    from .tools.tool import ExpandedPage as ExpandedPage

__version__ = "0.1.0"

# Maps each public name to its module. If the module has the same name, the name refers to the module itself.
_PLACES = {
    "Agent": "agent.agent",
    "AsyncSession": "session.session",
    "Compacted": "conversation.compaction.commit",
    "CompactionPreview": "layers.l4_compact.step",
    "Decision": "session.edits",
    "ExpandedPage": "tools.tool",
    "Host": "fork.host",
    "LaminaError": "core.errors",
    "Memory": "memory.memory",
    "Message": "core.records",
    "Pivot": "layers.l4_compact.plan",
    "Policy": "core.policy",
    "Record": "core.records",
    "Reply": "core.reply",
    "SearchResult": "history.query",
    "Session": "session.session",
    "SessionStatus": "session.methods",
    "Settings": "core.settings",
    "TurnInView": "session.edits",
    "UndoneTurn": "session.edits",
    "Usage": "core.usage",
    "WindowState": "conversation.window.thresholds",
    "blocks": "core.blocks",
    "errors": "core.errors",
    "named_policy": "core.policy",
    "records": "core.records",
    "search": "history.query",
}

__all__ = ["__version__", *_PLACES]

# Hidden from type checkers, which would otherwise accept every misspelt name as an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        place = _PLACES.get(name)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f".{place}", __name__)
        value: object = module if place.endswith(f".{name}") else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
