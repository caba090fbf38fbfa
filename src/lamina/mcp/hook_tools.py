"""The tools that hooks of Claude Code call in the running server, in milliseconds.

They are not in the list of tools, so they take no room in the model's window; Claude Code calls them by name. Invariant: they fail open.
Their answer is the JSON of a hook, or `{}` for no answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from threading import Thread
from typing import Any

import msgspec

from ..disk.prompt_claim import claim_for_server
from .hook_input import MOST_CHARS, HookInput, hook_answer, read_hook_input
from .hook_run import REVIEW, SWITCH, reviews_turns, start_child, wants_review
from .project import ServedProject

NOTHING = "{}"
PROMPT, RESULT, STOP = "hook_prompt", "hook_result", "hook_stop"
HOOK_TOOLS = (PROMPT, RESULT, STOP)


# What the first prompt needs, what the first tool result needs, and what the end of a turn needs.
AT_START = ("lamina.mcp.hook_recall",)
FOR_RESULTS = ("lamina.mcp.hook_results",)
FOR_REVIEW = ("lamina.mcp.hook_review", "lamina.layers.l5_extract.offline")


def load_ahead(modules: tuple[str, ...]) -> None:
    """Load modules in a thread, while the client is busy with something else."""
    if not all(module in sys.modules for module in modules):
        Thread(target=lambda: list(map(import_module, modules)), name="lamina-load", daemon=True).start()


def answer_hook(project: ServedProject, tool: str, arguments: Mapping[str, Any]) -> str:
    """Answer a call of a hook. An error becomes an empty answer."""
    try:
        if os.environ.get(SWITCH):
            return NOTHING
        given = read_hook_input(arguments)
        match tool:
            case "hook_prompt":
                return _prompt(project, given)
            case "hook_result":
                return _result(project, given)
            case _:
                return _stop(project, given, arguments)
    except Exception:  # noqa: BLE001  # a hook never disturbs the agent it runs in
        return NOTHING


def _prompt(project: ServedProject, given: HookInput) -> str:
    if not claim_for_server(os.getppid(), given.prompt):
        return NOTHING
    from .hook_recall import recall_for_prompt

    text = recall_for_prompt(project, given, MOST_CHARS)
    load_ahead((*FOR_RESULTS, *(FOR_REVIEW if reviews_turns(project) else ())))
    return hook_answer("UserPromptSubmit", additionalContext=text) if text else NOTHING


def _result(project: ServedProject, given: HookInput) -> str:
    from .hook_results import replaced_output

    output = replaced_output(project.settings, given)
    return hook_answer("PostToolUse", updatedToolOutput=output) if output is not None else NOTHING


def _stop(project: ServedProject, given: HookInput, arguments: Mapping[str, Any]) -> str:
    """Review the turn: at once by rules, in a child process by a model."""
    if wants_review(project, given):
        from .hook_review import review_turn, side_provider

        if side_provider(project.settings).name == "offline":
            review_turn(project, given)
        else:
            start_child(REVIEW, "claude-code", msgspec.json.encode(dict(arguments)))
    return NOTHING
