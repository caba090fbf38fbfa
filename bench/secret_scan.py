"""Secrets in texts as memories have them: how many are removed, and how many innocent texts are changed, beside detect-secrets.

`secret_texts.tsv` has one text a line. The secret is between ⟦ and ⟧; `{a36}` and the like stand for random characters, drawn anew from a
fixed seed, so that no scanner of repositories takes the file for a leak. A third of it, drawn by lot, was held out: nobody looked at its
results while the rules were changed. A secret counts as found if no part of it that is longer than four characters is left. For
detect-secrets, a finding that touches the secret is enough. The result of each text is written to `secret_results.tsv`.

    pip install detect-secrets && python bench/secret_scan.py
"""

from __future__ import annotations

import csv
import random
import re
import string
import sys
import tempfile
import uuid
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src")]

from lamina.memory.store.secrets import redact  # noqa: E402  # the tree must be on the path first

LETTERS = {
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "d": string.digits,
    "h": "0123456789abcdef",
    "p": string.ascii_letters + string.digits + "!#%*+-=?_",
    "t": string.ascii_uppercase + "234567",
    "u": string.ascii_uppercase + "234567",
    "w": string.ascii_letters + string.digits + "-_",
    "z": string.ascii_letters + string.digits,
}
# Parts of a secret up to this length say nothing.
HARMLESS = 4


class Item(NamedTuple):
    id: str
    secret: str  # empty for an innocent text
    group: str
    held_out: bool
    text: str


def main() -> None:
    rows, items = [], load(ROOT / "bench" / "secret_texts.tsv")
    for item in items:
        ours = removed(item) if item.secret else redact(item.text).text != item.text
        rows.append((item, ours, found_by_detect_secrets(item)))
    with open(ROOT / "bench" / "secret_results.tsv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(("id", "is", "group", "held out", "lamina", "detect-secrets"))
        for item, ours, theirs in rows:
            is_secret = "secret" if item.secret else "innocent"
            held = "yes" if item.held_out else "no"
            table.writerow((item.id, is_secret, item.group, held, *("found" if one else "not found" for one in (ours, theirs))))
    print(f"{'':<34}{'Lamina':>10}{'detect-secrets':>18}")
    for title, secrets, held_out in (
        ("secrets found", True, None),
        ("  of those held out", True, True),
        ("innocent texts changed or flagged", False, None),
        ("  of those held out", False, True),
    ):
        part = [row for row in rows if bool(row[0].secret) == secrets and held_out in (None, row[0].held_out)]
        ours, theirs = (f"{sum(row[which] for row in part)} of {len(part)}" for which in (1, 2))
        print(f"{title:<34}{ours:>10}{theirs:>18}")


def load(path: Path) -> list[Item]:
    """Fill the templates, the same way in every run."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    items = []
    for name, _, group, held_out, template in rows:
        text = _filled(template.replace("\\n", "\n"), random.Random(name))
        secret = re.search("⟦(.*)⟧", text, re.DOTALL)
        items.append(Item(name, secret[1] if secret else "", group, held_out == "yes", re.sub("[⟦⟧]", "", text)))
    return items


def _filled(template: str, draw: random.Random) -> str:
    return re.sub(r"\{(?:uuid|[a-z]\d+)\}", lambda found: _fill(found[0][1:-1], draw), template)


def _fill(form: str, draw: random.Random) -> str:
    if form == "uuid":
        return str(uuid.UUID(int=draw.getrandbits(128), version=4))
    kind, count = form[0], int(form[1:])
    filled = [draw.choice(LETTERS[kind]) for _ in range(count)]
    if kind == "p" and count > HARMLESS:  # as people are made to choose them: a digit and a sign are among them
        filled[1], filled[count // 2] = draw.choice(string.digits), draw.choice("!#%*+?")
    if kind == "z":  # an invisible character splits it
        filled.insert(count // 2, "\u200b")
    return "".join(filled)


def removed(item: Item) -> bool:
    left = re.sub(r"\[secret removed: [^\]]*\]", "", redact(item.text).text)
    return not any(item.secret[at : at + HARMLESS + 1] in left for at in range(max(1, len(item.secret) - HARMLESS)))


def found_by_detect_secrets(item: Item) -> bool:
    """Scan the text as a file of a memory, with the tool's default plugins and filters."""
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings

    with default_settings(), tempfile.TemporaryDirectory() as place:
        file = Path(place) / "memory.md"
        file.write_text(item.text, encoding="utf-8")
        found = {one.secret_value for one in scan_file(str(file))}
    if not item.secret:
        return bool(found)
    values = [value for value in found if value]
    key = item.text.startswith("-----BEGIN") and bool(values)  # it names the first line of a private key
    return key or any(value in item.secret or item.secret in value for value in values)


if __name__ == "__main__":
    main()
