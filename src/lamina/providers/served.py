"""Ask an OpenAI-compatible server for the names and windows of the models it serves.

The server is asked only if nothing else knows: for a base URL without a model's name, or a model that models.json does not list. It
gets one short request with a time limit. If it does not answer, or states no window, the defaults apply.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import urlsplit

# A local server answers in milliseconds; a session must not wait for one that does not.
TIMEOUT_SECONDS = 2.0
# Thousands of models.
MAX_BYTES = 4 << 20
# The names that servers give the window of a model in their list: vLLM, OpenRouter, Groq, LM Studio, Mistral.
WINDOW_KEYS = ("max_model_len", "context_length", "context_window", "loaded_context_length", "max_context_length")


class ServedModel(NamedTuple):
    name: str
    window: int | None = None


def served_model(base_url: str, *, model: str | None = None, key: str | None = None) -> ServedModel | None:
    """Return the model of this name that the server serves, or its first one; None where it does not say."""
    listed = _get(f"{base_url.rstrip('/').removesuffix('/v1')}/v1/models", key)
    entries = listed.get("data") if isinstance(listed, dict) else None
    rows = (
        [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
        if isinstance(entries, list)
        else []
    )
    row = next((entry for entry in rows if model in (None, entry["id"])), rows[0] if len(rows) == 1 else None)
    return ServedModel(row["id"], _window(row, base_url, key)) if row is not None else None


def _window(row: dict[str, Any], base_url: str, key: str | None) -> int | None:
    stated = next((row[name] for name in WINDOW_KEYS if _is_window(row.get(name))), None)
    if stated is None and isinstance(row.get("meta"), dict):
        # llama.cpp lists the window that the model was trained with; the one it was started with is among its properties.
        parts = urlsplit(base_url)
        properties = _get(f"{parts.scheme}://{parts.netloc}/props", key)
        settings = properties.get("default_generation_settings") if isinstance(properties, dict) else None
        stated = settings.get("n_ctx") if isinstance(settings, dict) else None
    return stated if _is_window(stated) else None


def _is_window(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _get(url: str, key: str | None) -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as answer:
            return json.loads(answer.read(MAX_BYTES))
    except (OSError, ValueError):  # refused, slow, not JSON
        return None
