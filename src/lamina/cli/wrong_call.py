"""The sentences of wrong calls: what click found, in plain words, with what to do about it."""

from __future__ import annotations

import click

from .options import did_you_mean


def reword(error: click.ClickException) -> click.ClickException:
    """Return the error with a sentence that says what to do; errors of our own are unchanged."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    usage = f"Run `{context.command_path} --help`" if context is not None else "Add --help"
    parameter = error.param if isinstance(error, click.BadParameter) else None
    name = parameter.get_error_hint(context) if parameter is not None else ""
    match error:
        case click.MissingParameter(param=click.Parameter(param_type_name=kind, type=click.Choice(choices=accepted))):
            return click.UsageError(f"Missing {kind} {name}. Use one of {', '.join(accepted)}.")
        case click.MissingParameter(param=click.Parameter(param_type_name=kind)):
            return click.UsageError(f"Missing {kind} {name}. {usage} for usage.")
        case click.BadParameter(param=click.Parameter(type=click.IntRange() | click.FloatRange() as numbers)):
            return click.UsageError(f"Invalid value for {name}: use {_range(numbers)}.")
        case click.BadParameter() if name:
            return click.UsageError(f"Invalid value for {name}: {error.message.rstrip('.')}.")
        case click.NoSuchOption(option_name=given):
            # Without a command, the options are those of `chat` and two of `lamina` itself.
            known = [name for each in (context.command.params if context is not None else ()) for name in each.opts]
            hint = did_you_mean(given, [*known, "--help", "--version"], f"{usage} to list the options.")
            return click.UsageError(f"No such option {given!r}. {hint}")
        case click.BadOptionUsage() | click.UsageError(message=str()) if error.message.startswith(("Option ", "Got unexpected")):
            return click.UsageError(f"{error.message.rstrip('.')}. {usage} for usage.")
        case _:
            return error


def _range(kind: click.IntRange | click.FloatRange) -> str:
    number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    if kind.max is not None:
        return f"{number} from {kind.min:,} to {kind.max:,}"
    return f"{number} {'above' if kind.min_open else 'of at least'} {kind.min:,}"
