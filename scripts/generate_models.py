"""Write src/lamina/providers/models.json: windows and prices of the models people use.

    python scripts/generate_models.py [--date YYYY-MM-DD]

Needs the package genai-prices in the environment that runs it; Lamina itself never imports it. What that package does not hold
(largest answer, which windows need a header) stands in the tables below. A key is the start of a
model's name; the longest key that fits wins.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from lamina.providers.models import normal_name  # noqa: E402  the one rule for names, shared with the reader of the file

TARGET = ROOT / "src" / "lamina" / "providers" / "models.json"

# Makers whose own price list is taken; resellers repeat them under prefixed names, which the reader strips.
MAKERS = ("anthropic", "openai", "google", "deepseek", "mistral", "x-ai", "moonshotai", "zai", "minimax")

# Not for a conversation in text.
OTHER_USES = re.compile(
    r"image|audio|tts|realtime|transcribe|embed|ocr|live|voice|voxtral|whisper|moderation|search|instruct|computer-use"
    r"|deep-research|robotics|omni|nano-banana|:free|:extended|\bft[:.-]|-her$|-preview-0|cyber|rosalind|gemini-pro|flash-1\.5"
)

# The largest answer a model gives (from the makers' model pages); others are left unknown.
MAX_OUTPUT = {
    "claude-2": 4_096,
    "claude-3-haiku": 4_096,
    "claude-3-sonnet": 4_096,
    "claude-3-opus": 4_096,
    "claude-3-5": 8_192,
    "claude-3-7-sonnet": 64_000,
    "claude-sonnet-4-0": 64_000,
    "claude-sonnet-4-5": 64_000,
    "claude-haiku-4-5": 64_000,
    "claude-opus-4-0": 32_000,
    "claude-opus-4-1": 32_000,
    "claude-opus-4-5": 64_000,
    "claude-opus-4-": 128_000,
    "claude-": 128_000,
    "gpt-3.5": 4_096,
    "gpt-4": 8_192,
    "gpt-4-turbo": 4_096,
    "gpt-4o": 16_384,
    "gpt-4.1": 32_768,
    "gpt-5": 128_000,
    "gpt-6": 128_000,
    "o1": 100_000,
    "o3": 100_000,
    "o4": 100_000,
    "gemini-2.5": 65_536,
    "gemini-3": 65_536,
}

# These models have 200,000 tokens unless a request asks for more, with the header or the suffix of the name.
HEADER_FOR_1M = ("claude-sonnet-4-0", "claude-sonnet-4-5")

# Windows the source leaves out.
WINDOWS = {
    "gemini-2.5-pro": 1_048_576,
    "gemini-3-pro-preview": 1_048_576,
    "gemini-3.1-pro-preview": 1_048_576,
    "glm-4.5": 131_072,
    "glm-4.6": 200_000,
    "glm-4.7": 200_000,
    "glm-5": 200_000,
    "glm-5.1": 200_000,
    "kimi-k2": 131_072,
}


def longest(table: dict[str, int], name: str) -> int | None:
    fits = [key for key in table if name.startswith(key)]
    return table[max(fits, key=len)] if fits else None


def price(value: Any) -> tuple[float | None, float | None, int | None]:
    """Per million tokens: base, above the last threshold, that threshold."""
    if value is None:
        return None, None, None
    if hasattr(value, "tiers"):
        last = value.tiers[-1]
        return float(value.base), float(last.price), int(last.start)
    return float(value), None, None


def prices_of(found: Any) -> tuple[dict[str, float], dict[str, float], int | None]:
    base: dict[str, float] = {}
    above: dict[str, float] = {}
    start: int | None = None
    names = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    for name in names:
        low, high, threshold = price(getattr(found, f"{name}_mtok", None))
        if low is not None:
            base[name] = low
        if high is not None:
            above[name], start = high, threshold
    return base, above, start


def spellings(clause: Any) -> list[str]:
    """Every literal name a match clause accepts."""
    if hasattr(clause, "or_"):
        return [name for part in clause.or_ for name in spellings(part)]
    literal = getattr(clause, "equals", None) or getattr(clause, "starts_with", None)
    return [literal] if isinstance(literal, str) and not literal.endswith(("@", "-", "2025")) else []


def row(name: str, model: Any, moment: datetime.datetime) -> dict[str, Any] | None:
    window = model.context_window or WINDOWS.get(name)
    base, above, start = prices_of(model.get_prices(moment))
    if window is None or "input" not in base or "output" not in base:
        return None
    entry: dict[str, Any] = {"window": 200_000 if name in HEADER_FOR_1M else window}
    if (largest := longest(MAX_OUTPUT, name)) is not None:
        entry["max_output"] = min(largest, window)
    if name in HEADER_FOR_1M:
        entry["needs_header_for_1m"] = True
    entry["prices"] = base
    if start is not None:
        entry["above"] = {"start": start, **base, **above}
    return entry


def collect(moment: datetime.datetime) -> tuple[dict[str, Any], dict[str, str]]:
    from genai_prices.data import providers

    models: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    makers = {provider.id: provider for provider in providers}
    for maker in MAKERS:
        for model in makers[maker].models:
            name = normal_name(model.id)
            if OTHER_USES.search(model.id.lower()) or name in models or (maker == "google" and "claude" in name):
                continue
            if (entry := row(name, model, moment)) is None:
                continue
            models[name] = entry
            aliases.update({normal_name(other): name for other in spellings(model.match)})
    # A name without a number (`grok`, `gemini-pro`) moves from model to model: no price holds for it.
    return models, {other: name for other, name in sorted(aliases.items()) if other not in models and re.search(r"\d", other)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write src/lamina/providers/models.json from genai-prices.")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="the day whose prices are taken")
    day = parser.parse_args().date
    # Noon: some makers give a discount at night.
    models, aliases = collect(datetime.datetime.fromisoformat(f"{day}T12:00:00+00:00"))
    source = f"genai-prices {importlib.metadata.version('genai-prices')}, and the tables in scripts/generate_models.py"
    lines = [f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(models.items())]
    text = (
        "{\n"
        f'  "date": {json.dumps(day)},\n'
        f'  "source": {json.dumps(source)},\n'
        '  "models": {\n' + ",\n".join(lines) + "\n  },\n"
        '  "aliases": {\n' + ",\n".join(f"    {json.dumps(a)}: {json.dumps(n)}" for a, n in aliases.items()) + "\n  }\n}\n"
    )
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET}: {len(models)} models, {len(aliases)} other names, {len(text):,} bytes")


if __name__ == "__main__":
    main()
