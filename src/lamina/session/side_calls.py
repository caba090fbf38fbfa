"""Side calls of a session: the provider that answers summaries, notes, reviews and dreams."""

from __future__ import annotations

from threading import Event
from typing import ClassVar

from ..conversation.state import Conversation
from ..core.effects import Ask
from ..core.errors import ProviderError, SettingError
from ..core.reply import Reply
from ..providers import Provider, open_provider
from ..providers.offline import DEFAULT_TABLE
from .provider import offline


class SideCalls:
    _awaits: ClassVar[bool] = False  # whether an async-only client can be used
    _c: Conversation
    provider: Provider
    _answers_side: Provider | None

    @property
    def _side(self) -> Provider:
        """The provider for side calls (summaries, notes).

        This is the session's own provider if it has a client, else one opened with a key from the environment, else the offline
        provider; the last case adds a notice, once.
        """
        if self._answers_side is None:
            if self.provider.name == "offline":
                self._answers_side = offline(getattr(self.provider, "table", DEFAULT_TABLE))
            else:
                self._answers_side = self.provider if getattr(self.provider, "can_call", True) else self._found()
            if not self._awaits and getattr(self._answers_side, "only_async", False):
                self._c.notify(
                    "Summaries and notes are written by local rules instead of a model, because the client is async. "
                    "Use AsyncSession, or pass a sync client."
                )
                self._answers_side = offline()
        return self._answers_side

    def _found(self) -> Provider:
        try:
            return open_provider(f"{self.provider.name}:{self.provider.model}")
        except SettingError:
            self._c.notify(
                "Summaries and notes are written by local rules instead of a model, because no API key was found. Pass a client or "
                "set the key."
            )
            return offline()

    def _ask_side(self, ask: Ask, abort: Event) -> Reply:
        """Make a side call, from any thread. An abort returns at once and abandons the call."""
        from ..fork.model_call import ask_until

        return ask_until(abort, self._side, ask)

    def _typed(self, error: BaseException) -> ProviderError:
        """Convert an SDK's exception to a `ProviderError`."""
        if isinstance(error, ProviderError):
            return error
        from ..providers.faults import read_fault, typed_error

        return typed_error(read_fault(error), who=self.provider.name, now=0.0)
