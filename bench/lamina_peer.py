"""Lamina behind the adapter interface of a benchmark for context management (see context.py); it holds no policy of its own.

    make("classic"), make("lean"), make("classic,notes=off"): a policy's name, then switches of Settings
    make("balanced,automatic=on"): behind a provider whose cache needs no marks, as Chat Completions
    make("balanced,binds=off"): with a model that does not bind its thinking, so results are shown once; the default model does

The harness plays a recorded session: `append` takes what was said, `prepare` gives the request that would leave now, `render` puts
it into the harness's own blocks. Calls beside the conversation (summaries, notes) are answered here: a summary with the harness's own
text, so that every system's summary is of one size, anything else by the offline functions. Each is reported with the blocks it sent,
which share the conversation's prefix and are priced so.

`common` is the harness's module; it is on the path only when the harness runs this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import common

import lamina
from lamina.core.cache import BREAK_HEADER, ONCE_HEADER
from lamina.core.errors import NothingToSend, WindowFull
from lamina.core.fence import escape
from lamina.core.reply import Reply, read_response
from lamina.core.settings import Settings
from lamina.providers import Capabilities
from lamina.session.base import conversation_of
from lamina.session.provider import offline

# No window at all, for the harness's timing of a check that never compacts.
ENDLESS = 1_000_000_000
SUMMARY = "<analysis>as asked</analysis>\n<summary>\n{}\n</summary>"
# A session whose background work takes longer than this is stuck.
PATIENCE = 60.0


class Answering:
    """A provider that answers calls beside the conversation and keeps count of them."""

    name, model = "anthropic", "claude-sonnet-4-5"
    can_call = True

    def __init__(self, *, automatic: bool = False, binds: bool = True) -> None:
        marked = Capabilities("messages", cache_marks=True, thinking=True, binds_thinking=binds)
        self.capabilities = Capabilities("chat") if automatic else marked
        self.calls: list[Any] = []
        self._offline = offline()
        self._summaries = 0

    def render(self, request: dict[str, Any]) -> dict[str, Any]:
        return request

    def read(self, response: object) -> Reply:
        return read_response(response)

    def ask(self, request: dict[str, Any], *, purpose: str = "chat", **_: Any) -> Reply:
        if purpose == "summary":
            self._summaries += 1
            reply = self._said(SUMMARY.format(common.fake_summary(self._summaries)))
        else:
            reply = self._offline.ask(request, purpose=purpose)
        sent = blocks_of(request)
        said = sum(len(str(block.wire)) for block in reply.blocks)
        chars = sum(map(common.block_chars, sent))
        self.calls.append(common.SummaryCall(chars, common.SUMMARY_CHARS if purpose == "summary" else said, sent))
        return reply

    async def ask_async(self, request: dict[str, Any], **options: Any) -> Reply:
        return self.ask(request, **options)

    def _said(self, words: str) -> Reply:
        usage = {"input_tokens": 1, "output_tokens": common.SUMMARY_CHARS // common.CHARS_PER_TOKEN}
        content = [{"type": "text", "text": words}]
        return read_response({"id": f"s{self._summaries}", "content": content, "stop_reason": "end_turn", "usage": usage})


class LaminaPeer(common.Adapter):  # type: ignore[misc]  # the harness has no types
    def __init__(self, variant: str) -> None:
        policy, *switches = (variant or "classic").split(",")
        self.policy = policy
        self.switches = {name: value == "on" for name, _, value in (switch.partition("=") for switch in switches)}
        self.automatic = self.switches.pop("automatic", False)
        self.binds = self.switches.pop("binds", True)
        self.name = f"lamina {variant or 'classic'}"
        self.note = "lamina.Session, transcript written, calls beside it answered by fixed text"
        self.stopped = False

    def start(self, system: str, tools: list[dict[str, Any]], limit_tokens: int | None, workdir: str) -> None:
        if limit_tokens is None:
            self.switches |= {"auto_compact": False}
        self.provider = Answering(automatic=self.automatic, binds=self.binds)
        self.session = lamina.Session(
            self.provider,
            instructions=False,
            memory=False,
            system=system,
            tools=tools,
            home=Path(workdir),
            cwd=workdir,
            policy=self.policy,
            window=limit_tokens or ENDLESS,
            settings=Settings(**self.switches),
        )
        self.number = 0
        self.before: list[Any] = []  # the blocks of the request before
        self.shown: set[tuple[str, str]] = set()  # the key and text of each block of the last request
        self.unannounced = 0

    def convert(self, message: dict[str, Any], usage: dict[str, int] | None) -> dict[str, Any]:
        # Work in the background is waited for here, where nothing is timed, so that a run can be repeated.
        for name in ("notes", "summary"):
            conversation_of(self.session).background.wait(name, PATIENCE)
        if message["role"] != "assistant":
            return message
        self.number += 1
        used = usage or {"read": 0, "write": 1, "output": 1}
        calls = any(block["type"] == "tool_use" for block in message["content"])
        return {
            "id": f"msg_{self.number}",
            "role": "assistant",
            "model": self.provider.model,
            "content": message["content"],
            "stop_reason": "tool_use" if calls else "end_turn",
            "usage": {
                "input_tokens": 0,
                "cache_read_input_tokens": used["read"],
                "cache_creation_input_tokens": used["write"],
                "output_tokens": used["output"],
            },
        }

    def append(self, native: dict[str, Any]) -> None:
        if native["role"] == "assistant":
            self.session.after_call(native)
            return
        for block in native["content"]:
            if block["type"] == "tool_result":
                self.session.add_tool_result(block["tool_use_id"], block["content"])
        said = [block for block in native["content"] if block["type"] == "text" and block["text"].strip()]
        if said:
            try:
                self.session.add_user(said)
            except WindowFull:
                self.stopped = True

    def prepare(self) -> dict[str, Any]:
        try:
            return self.session.before_call()
        except (WindowFull, NothingToSend) as error:
            raise SystemExit(f"{self.name} stops at call {self.number + 1}: {error}") from error

    def render(self, prepared: dict[str, Any]) -> list[Any]:
        """Here, where nothing is timed, it is also looked whether a break was announced."""
        blocks = blocks_of(prepared)
        broken = blocks[: len(self.before)] != self.before
        headers = prepared.get("extra_headers", {})
        self.unannounced += broken and BREAK_HEADER not in headers
        # The prefix that the next request repeats ends before the first result that is shown once.
        once = next((at for at, block in enumerate(blocks) if block[1] and block[1] == headers.get(ONCE_HEADER)), None)
        self.before = blocks[:once]
        self.shown = {(block[1], block[2]) for block in blocks}
        return blocks

    def keeps(self, key: str, text: str) -> bool:
        """A result with a tag of the prompt's own in it is sent whole, but for the first character of the tag."""
        return bool(key) and "<" in text and (key, escape(text)) in self.shown

    def take_summary_calls(self) -> list[Any]:
        calls, self.provider.calls = self.provider.calls, []
        return calls

    def close(self) -> None:
        self.session.close()
        self.note = f"{self.session.status.cache_breaks} breaks announced, {self.unannounced} not; {self.note}"
        if self.unannounced:
            raise SystemExit(f"{self.name} broke the prefix {self.unannounced} times without a word")


def blocks_of(request: dict[str, Any]) -> list[Any]:
    """The harness's blocks: system and tools are counted by the harness itself."""
    found: list[Any] = []
    for message in request["messages"]:
        for block in message["content"]:
            match block["type"]:
                case "text":
                    found.append(common.text_block(message["role"], block["text"]))
                case "tool_use":
                    found.append(common.use_block(block["id"], block["name"], block["input"]))
                case "tool_result":
                    content = block["content"]
                    words = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                    found.append(common.result_block(block["tool_use_id"], words))
                case kind:
                    found.append((kind, "", str(block)))
    return found


def make(variant: str) -> LaminaPeer:
    return LaminaPeer(variant)
