"""The permission decision: the one function that decides for the main conversation and all forks.

It runs nothing, and looks up only links and names on the disk. Invariants: deny rules count in every mode. A call that can't
be understood is never allowed. A fork cannot ask the user, so a question becomes a denial. A command that is allowed because
it only reads comes with a plan, and then the plan runs, not a shell.

The first that applies decides, in this order: an unreadable call · deny rules · a fork's list · mode all · memory files ·
mode read-only · ask rules · sensitive names · allow rules · the kind of tool.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ...core.blocks import ToolUse
from ...core.errors import PathRefused
from ...core.settings import Permissions
from ...disk.paths.memory_paths import GUARD, check_child, is_internal
from ...language.text import Text
from .patterns import Base, Bases
from .readonly.paths import within
from .readonly.plan import ReadOnlyPlan, plan_parts
from .readonly.tokenizer import CommandRefusal, split_command
from .request import (
    MOVING,
    READERS,
    WRITERS,
    Allow,
    AskUser,
    CallRequest,
    Deny,
    Mode,
    PermissionContext,
    UnclearCall,
    Verdict,
    read_call,
    readable,
    real,
)
from .rules import (
    PermissionRule,
    PermissionRules,
    allowing,
    holding,
    read_rules,
    rule_for_command,
    rule_for_host,
    rule_for_path,
    rule_for_recipient,
    rule_for_tool,
    unreadable_below,
)
from .sensitive import KEY_DIRECTORIES, holds_a_home, holds_keys, why_not_read, why_not_written
from .shell_rules import ShellPattern, allows, is_exactly

# These change nothing outside the conversation, and an agent's calls are judged one by one. A fork has no use for them.
_HARMLESS = frozenset({"TodoWrite", "Expand", "PastSearch", "Agent", "SendMessage"})
# Addresses of messages that leave the agents and mailboxes of this home.
_BEYOND = ("uds:", "bridge:")
_INTERNAL = Text("{path} is Lamina's own bookkeeping; `lamina memory log` shows the history of a memory.")
_FORK_TOOLS = "Read, Grep, Glob, read-only Bash, and Edit and Write of memory files"


class _Case(msgspec.Struct, frozen=True):
    """One call with everything needed to judge it."""

    request: CallRequest
    rules: PermissionRules
    context: PermissionContext
    bases: Bases
    roots: tuple[str, ...]


def decide(call: ToolUse, *, mode: Mode, rules: PermissionRules, context: PermissionContext) -> Verdict:
    try:
        request = read_call(call, context)
    except UnclearCall as unclear:
        return Deny(str(unclear))
    return judge(request, mode=mode, rules=rules, context=context)


def judge(request: CallRequest, *, mode: Mode, rules: PermissionRules, context: PermissionContext) -> Verdict:
    """Decide about a call that was already parsed. Its links were resolved then, so the judged path is the path that may be
    written."""
    try:
        return _judged(_Case(request, rules, context, _bases(context), readable(context)), mode)
    except OSError:
        return Deny(MOVING)


def _judged(case: _Case, mode: Mode) -> Verdict:
    request, rules, context = case.request, case.rules, case.context
    denied, rule = holding(rules.deny, request, case.bases)
    if denied == "yes" and rule is not None:
        form = Text("The rule {rule} forbids this.")
        if rule.problem:
            form = Text("The rule {rule} forbids this, which {problem}; fix it in the settings.")
        return Deny(Text(form, rule=rule.text, problem=Text.whole(rule.problem)))
    verdict = _for_fork(case) if context.fork else _for_mode(case, mode)
    if denied == "maybe" and rule is not None and isinstance(verdict, Allow):
        doubt = Text("This may do what the deny rule {text} forbids.", text=rule.text)
        return Deny(doubt) if context.fork else AskUser(doubt, firm=True)
    return verdict


def may_read(path: Path, *, rules: PermissionRules, context: PermissionContext) -> bool:
    """Tell whether a search may show this file: no deny or ask rule for reading covers it, and it contains no keys."""
    paths = (path, Path(os.path.realpath(path)))
    request = CallRequest("Read", {}, path=path, paths=paths)
    certainty, _ = holding((*rules.deny, *rules.ask), request, _bases(context))
    return certainty == "no" and not any(map(why_not_read, paths))


def _bases(context: PermissionContext) -> Bases:
    named: dict[Base, Path | None] = {
        "cwd": context.cwd,
        "settings": context.settings_root or context.cwd,
        "disk": Path(context.cwd.anchor),
        "home": context.home,
    }
    return {base: tuple(dict.fromkeys((path, real(path)))) for base, path in named.items() if path is not None}


def _for_fork(case: _Case) -> Allow | Deny:
    """Allow reading tools, read-only commands and memory files; deny everything else."""
    request, context = case.request, case.context
    certainty, rule = holding(case.rules.ask, request, case.bases)
    if certainty != "no" and rule is not None:
        return Deny(f"The rule {rule.text} requires confirmation, and a fork cannot ask the user.")
    if (file := context.only_edit) is not None:
        same = request.path == Path(os.path.abspath(file)) and request.paths[-1] == real(file.parent) / file.name
        if request.tool == "Edit" and same and not file.is_symlink():
            return Allow("Changes the one file it may change.")
        return Deny(f"Only Edit of {file} is allowed here.")
    if request.tool in WRITERS:
        problem = _not_memory(case)
        return Deny(problem) if problem else Allow("Changes a memory file.")
    if request.tool in READERS:
        problem = _not_readable(case)
        return Deny(problem) if problem else Allow("Only reads, inside the project.")
    if request.tool == "Bash":
        return _read_only_command(case)
    return Deny(f"{request.tool} is not available here. The available tools are {_FORK_TOOLS}.")


def _for_mode(case: _Case, mode: Mode) -> Verdict:
    if mode == "all":
        return Allow("Mode all allows every call that no deny rule forbids.")
    if case.request.tool in WRITERS and _not_memory(case) is None:
        return Allow("Changes a memory file.")
    verdict = _only_reading(case) if mode == "read-only" else _with_questions(case, mode)
    certainty, rule = holding(case.rules.ask, case.request, case.bases)
    if certainty != "no" and rule is not None and not isinstance(verdict, Deny):
        return AskUser(Text("The rule {text} requires confirmation.", text=rule.text), firm=True)
    return verdict


def _only_reading(case: _Case) -> Verdict:
    tool = case.request.tool
    if tool == "Bash":
        return _read_only_command(case)
    harmless = tool in _HARMLESS and not _goes_beyond(case.request)
    if tool in READERS or harmless or (tool not in WRITERS and case.context.tool_is_read_only(tool)):
        return _with_questions(case, "read-only")
    return Deny(Text("{tool} is denied in read-only mode. The user can change the mode.", tool=tool))


def _with_questions(case: _Case, mode: Mode) -> Verdict:
    request = case.request
    special = next(filter(None, map(why_not_written, request.paths)), None) if request.tool in WRITERS else None
    if special is None and request.tool in WRITERS:
        own = [str(real(place)) for place in (case.context.lamina_home, case.context.memory_dir) if place is not None]
        names = {name for path in request.paths for name in (str(path), os.path.realpath(path))}
        if any(within(name, place) for name in names for place in own):
            special = "Lamina stores its files there"
    if special is not None:
        return AskUser(Text("Changing {file} needs confirmation: {why}.", file=_named(case), why=Text.whole(special)), firm=True)
    if (rule := _allowing(case)) is not None:
        return Allow(f"Allowed by the rule {rule.text}.")
    return _by_kind(case, mode)


def _by_kind(case: _Case, mode: Mode) -> Verdict:
    request, context = case.request, case.context
    if request.tool in READERS and request.path is not None:
        problem = _not_readable(case)
        if problem is None:
            return Allow("Only reads, inside the project.")
        return AskUser(problem, _offer(case, rule_for_path(request.tool, request.path, context.cwd)))
    if request.tool in WRITERS and request.path is not None:
        inside = _is_inside(case)
        if inside and mode == "accept-edits":
            return Allow("Mode accept-edits allows changes inside the project.")
        form = Text("{tool} changes {file}." if inside else "{tool} changes {file}, which is outside the project.")
        rule = _offer(case, rule_for_path(request.tool, request.path, context.cwd))
        return AskUser(Text(form, tool=request.tool, file=_named(case)), rule)
    if request.tool == "Bash":
        verdict = _read_only_command(case)
        if isinstance(verdict, Allow):
            return verdict
        why = verdict.why if isinstance(request.plan, ReadOnlyPlan) else "The command may do more than read."
        return AskUser(why, _offer(case, rule_for_command(request.command or "")))
    if request.tool == "WebFetch":
        return AskUser(
            Text("This fetches from {host}.", host=request.host or "an unclear address"),
            _offer(case, rule_for_host(request.host)),
        )
    if _goes_beyond(request):
        to = str(request.arguments.get("to"))
        return AskUser(
            Text("This sends a message to another program: {to!r}.", to=to[:200]), _offer(case, rule_for_recipient(to))
        )
    if request.tool in _HARMLESS or context.tool_is_read_only(request.tool):
        return Allow("Changes nothing.")
    return AskUser(Text("{tool} may change something.", tool=request.tool), _offer(case, rule_for_tool(request.tool)))


def _goes_beyond(request: CallRequest) -> bool:
    """Tell whether a message goes to a socket or a bridge. Agents and mailboxes belong to the user's own sessions."""
    return request.tool == "SendMessage" and str(request.arguments.get("to")).lstrip().startswith(_BEYOND)


def _offer(case: _Case, rule: str | None) -> str | None:
    """Offer a rule only if it would allow this very call."""
    if rule is None:
        return None
    alone = msgspec.structs.replace(case, rules=read_rules(Permissions(allow=(rule,))))
    return rule if _allowing(alone) is not None else None


def _named(case: _Case) -> str:
    """Name the file for the question. If links in the project lead elsewhere, show the target, because the answer covers the
    target."""
    path, cwd = case.request.path, case.context.cwd
    if path is None:
        return "this"
    target = case.request.paths[-1]
    plain = real(cwd) / path.relative_to(cwd) if path.is_relative_to(cwd) else path
    return str(path) if target in (path, plain) else f"{path} (which leads to {target})"


def _is_inside(case: _Case) -> bool:
    path = str(case.request.paths[-1] if case.request.path is not None else real(case.context.cwd))
    return any(within(path, root) for root in case.roots)


def _not_readable(case: _Case) -> str | None:
    special = next(filter(None, map(why_not_read, case.request.paths)), None)
    if special is not None:
        return Text("Reading {file} needs confirmation: {why}.", file=_named(case), why=Text.whole(special))
    if (
        case.request.tool == "Grep"
        and case.request.path is not None
        and (problem := holds_keys(case.request.path, KEY_DIRECTORIES))
    ):
        return problem
    if any(_is_internal(path, case.context) for path in case.request.paths):
        return Text(_INTERNAL, path=_named(case))
    return None if _is_inside(case) else Text("{file} is outside the project.", file=_named(case))


def _is_internal(path: Path, context: PermissionContext) -> bool:
    """Tell whether a path leads into the bookkeeping of a memory. A dream works on a copy there, which is its memory."""
    own = (context.memory_dir, real(context.memory_dir)) if context.memory_dir is not None else ()
    return is_internal(path, below=next((place for place in own if path.is_relative_to(place)), Path(path.anchor)))


def _not_memory(case: _Case) -> str | None:
    """Return why the file is not a memory file. A relative path counts from the working directory, as it does for the tool."""
    memory, request = case.context.memory_dir, case.request
    if memory is None:
        return "This session has no memory directory."
    if request.tool not in ("Edit", "Write"):
        return f"{request.tool} can't change memory files; use Edit or Write."
    spelled = os.path.join(case.context.cwd, request.spelled)
    try:
        child = check_child(memory, spelled)
    except PathRefused as refused:
        return str(refused)
    if child.suffix != ".md":
        return f"{spelled} is not a memory file; its name must end in .md."
    inside = within(str(request.paths[-1]), str(real(memory)))
    return None if inside else f"{spelled} leads out of the memory directory."


def _read_only_command(case: _Case) -> Allow | Deny:
    plan = case.request.plan
    if not isinstance(plan, ReadOnlyPlan):
        return Deny(plan.why if plan is not None else "The command is missing.")
    problem = _looks_too_far(plan, case)
    return Deny(problem) if problem else Allow("Only reads, inside the project.", plan)


def _looks_too_far(plan: ReadOnlyPlan, case: _Case) -> str | None:
    """Return why a planned command goes too far: it reads keys, or searches files that a rule restricts."""
    for place in plan.reads:
        path = Path(place.path)
        if special := why_not_read(path):
            return Text("Reading {path} needs confirmation: {why}.", path=path, why=Text.whole(special))
        if _is_internal(path, case.context):
            return Text(_INTERNAL, path=path)
        if place.contents and place.tree:
            if (path / GUARD).exists():
                return Text("{path} contains Lamina's own bookkeeping, such as old versions; use the Grep tool.", path=path)
            if problem := holds_keys(path) or holds_a_home(path):
                return problem
            if rule := unreadable_below((*case.rules.deny, *case.rules.ask), path, case.bases):
                return Text("The rule {rule} may restrict files below {path}; use the Grep tool.", rule=rule.text, path=path)
    return None


def _allowing(case: _Case) -> PermissionRule | None:
    """Return the rule that allows the call. Each part of a command line must be allowed, by a rule or because it only reads."""
    if (rule := allowing(case.rules.allow, case.request, case.bases)) is not None or case.request.command is None:
        return rule
    shell = [(rule, rule.specifier) for rule in case.rules.allow if isinstance(rule.specifier, ShellPattern)]
    if exact := next((rule for rule, pattern in shell if is_exactly(pattern, case.request.command)), None):
        return exact
    parts = split_command(case.request.command)
    used: PermissionRule | None = None
    for part in () if isinstance(parts, CommandRefusal) else parts:
        match = next((rule for rule, pattern in shell if allows(pattern, part)), None)
        if match is None:
            alone = msgspec.structs.replace(part, joint="")
            plan = plan_parts((alone,), "", cwd=case.context.cwd, roots=case.roots)
            # A shell runs this part, not its plan, and inserts matching names for a wildcard unchanged: `*` may become
            # `-delete`.
            turns = any(0 in word.wild for word in part.words)
            # An earlier command may have changed the directory, so a plan is valid only if it names no file.
            moved = used is not None and not isinstance(plan, CommandRefusal) and plan.reads
            if isinstance(plan, CommandRefusal) or moved or turns or _looks_too_far(plan, case):
                return None
        used = used or match
    return used
