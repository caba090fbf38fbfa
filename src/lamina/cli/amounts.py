"""Amounts as commands print them: in dollars at list price, or under a subscription in tokens by price class and in units."""

from __future__ import annotations

from ..core.settings import Billing
from ..core.usage import Usage
from ..language.wording import counted
from ..providers.amounts import Amount, units_of

# A head of a column, for both ways to pay.
HEADS: dict[Billing, str] = {"list": "cost", "subscription": "units"}
# The amount of a transcript without token counts, as on the page.
NO_COUNTS = "–"


def token_counts(usage: Usage) -> dict[str, int]:
    """Return the tokens of each price class, by a text for them; only uncached ones may be left out. They are never summed."""
    counts = {
        "{tokens} read": usage.cache_read,
        "{tokens} written": usage.cache_write,
        "{tokens} uncached": usage.input_tokens,
        "{tokens} output": usage.output_tokens,
    }
    return {text: count for text, count in counts.items() if count or text != "{tokens} uncached"}


def tokens_apart(usage: Usage) -> str:
    """Return the tokens of each price class that occurs, in whole numbers."""
    counts = {
        "read from the cache": usage.cache_read,
        "written": usage.cache_write,
        "uncached": usage.input_tokens,
        "output": usage.output_tokens,
    }
    return ", ".join(f"{counted(count, 'token')} {name}" for name, count in counts.items() if count) or "no tokens"


def cell(found: Amount, billing: Billing, digits: int = 4) -> str:
    """Return an amount for a column with one of HEADS."""
    if not (found.usage.total or found.usd):
        return NO_COUNTS
    if billing == "subscription":
        return f"{units_of(found.usage):,.0f}"
    return f"${found.usd:,.{digits}f}" if found.usd is not None else "?"
