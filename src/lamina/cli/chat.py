"""`lamina chat`: one prompt, one answer (-p), in a session that can be continued."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from .printing import document, printable, sentence

FORMATS = ("text", "json", "stream-json")


@click.command("chat")
@click.option("-p", "--print", "prompt", metavar="PROMPT", help="Answer PROMPT and exit; '-' reads it from standard input.")
@click.option("--model", metavar="M", help="Who answers: anthropic:MODEL, openai:MODEL or offline.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the newest session of this directory.")
@click.option("-r", "--resume", metavar="ID", help="Go on with the session ID (its beginning is enough) or a transcript file.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="The directory the session belongs to.")
def command(prompt: str | None, model: str | None, go_on: bool, resume: str | None, output_format: str, cwd: str) -> int:
    """Talk: -p PROMPT for one answer."""
    if go_on and resume:
        raise click.UsageError("--continue takes the newest session and --resume a named one: use one of the two.")
    prompt = _prompt(prompt)
    return _answer(prompt, model=model, go_on=go_on, resume=resume, output_format=output_format, cwd=Path(cwd).resolve())


def _prompt(prompt: str | None) -> str:
    if prompt == "-" or (prompt is None and not sys.stdin.isatty()):
        prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    if prompt is None or not prompt.strip():
        raise click.UsageError('there is nothing to answer: give a prompt, as in lamina -p "What do our tests run against?".')
    return prompt


def _answer(prompt: str, *, model: str | None, go_on: bool, resume: str | None, output_format: str, cwd: Path) -> int:
    from ..core.errors import LaminaError
    from ..disk.paths import slug
    from ..disk.settings_files import lamina_home, load_settings
    from ..disk.transcript import newest_transcript
    from ..providers import configured, open_provider
    from ..session import Session

    home = lamina_home(os.environ)
    settings = load_settings(cwd=cwd, home=home, environ=os.environ, command_line={})
    for finding in settings.findings:
        _notice(finding.text)
    again: Path | str | None = newest_transcript((home or Path()) / "projects", slug(cwd)) if go_on else resume
    spec = model or settings.model or settings.provider or configured(os.environ)
    provider = open_provider(spec, base_url=settings.base_url)
    if provider.name == "offline" and model is None and again is None:
        _notice("no provider is configured (ANTHROPIC_API_KEY or OPENAI_API_KEY), so the offline stand-in answers")
    with Session(provider, cwd=cwd, home=home, settings=settings, resume=again) as session:
        out = Output(output_format, session.id, provider.model, str(cwd))
        for notice in session.notices:
            _notice(notice)
        try:
            session.add_user(prompt)
            reply = session.ask(out.event)
            session.end_turn()
        except LaminaError as error:
            if output_format == "text":
                raise
            out.failed(str(error))
            return 1
        out.answered(reply.text, reply.blocks, session.usage)
        if session.trouble:
            _notice(session.trouble)
    return 0


class Output:
    """The three forms of an answer: text as it comes, one JSON document, or one event a line."""

    def __init__(self, form: str, session_id: str, model: str, cwd: str) -> None:
        self.form = form
        self.session_id = session_id
        self.model = model
        self._streamed = False
        if form == "stream-json":
            self._line({"type": "system", "subtype": "init", "session_id": session_id, "model": model, "cwd": cwd, "tools": []})

    def event(self, event: Mapping[str, Any]) -> None:
        delta = event.get("delta")
        if self.form == "text" and isinstance(delta, Mapping) and delta.get("type") == "text_delta":
            self._streamed = True
            sys.stdout.write(self._shown(str(delta["text"])))
            sys.stdout.flush()

    def answered(self, text: str, blocks: Any, usage: Any) -> None:
        from ..providers.models import cost

        if self.form == "text":
            sys.stdout.write("\n" if self._streamed else f"{self._shown(text)}\n")
            return
        content = [block.wire for block in blocks]
        if self.form == "stream-json":
            message = {"role": "assistant", "model": self.model, "content": content}
            self._line({"type": "assistant", "message": message, "session_id": self.session_id})
        self._line(self._result(text, is_error=False, usage=usage.wire(), dollars=cost(self.model, usage).usd))

    def failed(self, words: str) -> None:
        self._line(self._result(words, is_error=True, usage={}, dollars=None))

    def _result(self, text: str, *, is_error: bool, usage: dict[str, Any], dollars: float | None) -> dict[str, Any]:
        return {
            "type": "result",
            "subtype": "error" if is_error else "success",
            "result": text,
            "session_id": self.session_id,
            "is_error": is_error,
            "num_turns": 1,
            "usage": usage,
            "total_cost_usd": dollars or 0.0,
        }

    def _line(self, value: dict[str, Any]) -> None:
        print(document(value))

    def _shown(self, text: str) -> str:
        """A model's words are data to a terminal; to a file or a pipe they go as they are."""
        return printable(text) if sys.stdout.isatty() else text


def _notice(text: str) -> None:
    print(f"lamina: {sentence(text)}", file=sys.stderr)
