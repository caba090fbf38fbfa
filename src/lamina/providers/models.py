"""What is known of models: windows and prices.

Owns models.json, a dated file written by scripts/generate_models.py and read at first use. A name is matched by its family, so
that dated ids, cloud prefixes and dotted versions find their model; a version the file does not hold is unknown, never priced as
its predecessor. Money is None where a price is unknown: a guess would look like a bill.
"""

from __future__ import annotations

import functools
import pathlib
import re

import msgspec

from ..core.usage import Usage

# Prices in units of one uncached input token. Reads and writes are the same for every model, so that two policies can be compared
# whatever model is replayed; an answer's price is the model's own, and five where that is unknown.
UNITS_READ = 0.1
UNITS_WRITE = 1.25
UNITS_WRITE_1H = 2.0
UNITS_OUTPUT = 5.0

PER = 1_000_000


class Prices(msgspec.Struct, frozen=True):
    """Dollars for a million tokens; a cache class without a price of its own is billed as input."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


class PricesAbove(Prices, frozen=True, kw_only=True):
    """What every token of a request costs when its prompt is longer than `start`."""

    start: int


class ModelInfo(msgspec.Struct, frozen=True):
    window: int
    name: str = ""
    max_output: int | None = None
    needs_header_for_1m: bool = False
    prices: Prices | None = None
    above: PricesAbove | None = None


class Cost(msgspec.Struct, frozen=True):
    usd: float | None = 0.0  # None: the model's prices are unknown
    units: float = 0.0  # prices of one uncached input token

    def __add__(self, other: Cost) -> Cost:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Cost(usd, self.units + other.units)


class Table(msgspec.Struct, frozen=True):
    date: str
    source: str
    models: dict[str, ModelInfo]
    aliases: dict[str, str]


_MAKERS = "anthropic|openai|google|meta|mistral|deepseek|moonshotai|minimax|zai|xai"
_CLOUD = re.compile(rf"^(?:[a-z]{{2,6}}(?:-gov)?\.)?(?:{_MAKERS})[.:]")
_TAIL = re.compile(r"(?:\[1m\]|:[\w.-]*|@[\w.-]*|-v\d+|-latest|-\d{8}|-\d{4}-\d{2}-\d{2})$")
_VERSION_DOT = re.compile(r"(?<=\d)\.(?=\d)")


def normal_name(model: str) -> str:
    """`us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `anthropic/claude-sonnet-4.5` → `claude-sonnet-4-5`."""
    name = _CLOUD.sub("", model.strip().lower().rsplit("/", 1)[-1])
    while (shorter := _TAIL.sub("", name)) != name:
        name = shorter
    return _VERSION_DOT.sub("-", name) if name.startswith("claude") else name


@functools.cache
def table() -> Table:
    return msgspec.json.decode(pathlib.Path(__file__).with_name("models.json").read_bytes(), type=Table)


@functools.lru_cache(maxsize=256)
def known(model: str) -> ModelInfo | None:
    """The model's entry, or None where the file does not hold it."""
    models, name = table().models, normal_name(model)
    name = table().aliases.get(name, name)
    while name not in models:
        name, dash, variant = name.rpartition("-")
        # A variant (`-chat`, `-preview`) is its model; another number is another model.
        if not dash or variant[:1].isdigit():
            return None
        name = table().aliases.get(name, name)
    return msgspec.structs.replace(models[name], name=name)


def cost(model: str, usage: Usage) -> Cost:
    """What one call cost, in money and in units of one uncached input token."""
    found = known(model)
    prices = _prices_for(found, usage) if found else None
    ratio = prices.output / prices.input if prices and prices.input > 0 else UNITS_OUTPUT
    five_minutes = usage.cache_write - usage.cache_write_1h
    units = (
        usage.input_tokens
        + usage.cache_read * UNITS_READ
        + five_minutes * UNITS_WRITE
        + usage.cache_write_1h * UNITS_WRITE_1H
        + usage.output_tokens * ratio
    )
    return Cost(_dollars(prices, usage) if prices else None, units)


def _prices_for(model: ModelInfo, usage: Usage) -> Prices | None:
    if model.above is not None and usage.prompt > model.above.start:
        return model.above
    return model.prices


def _dollars(prices: Prices, usage: Usage) -> float:
    write = prices.input if prices.cache_write is None else prices.cache_write
    hour = write if prices.cache_write_1h is None else prices.cache_write_1h
    read = prices.input if prices.cache_read is None else prices.cache_read
    total = (
        usage.input_tokens * prices.input
        + usage.cache_read * read
        + (usage.cache_write - usage.cache_write_1h) * write
        + usage.cache_write_1h * hour
        + usage.output_tokens * prices.output
    )
    return total / PER
