"""Docs that can't lag behind: commands, links, words and the tree in the documents are those of the product."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from lamina.cli.main import lamina_command as command

ROOT = Path(__file__).parent.parent
SKIPPED = {".git", ".venv", "venv", "build", "dist", "node_modules", "site"}
READMES = ("README.md", "README.zh-CN.md")
TRY_IT = re.compile(r'pip install \. && lamina -p ".+"')
TEST_IT = 'pip install ".[test]" && pytest'

FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`(?:[^`\n]|\n(?!\n))+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
TREE_LINE = re.compile(r"^(?P<indent> {2,4})(?P<name>\w+(?:/|\.py)) *(?P<missing>·?)", re.MULTILINE)

# Written in two halves, so that this file may be searched too.
REGISTRY_HOSTS = [
    first + second for first, second in (("pypi", ".org"), ("python", "hosted.org"), ("npm", "js.com"), ("npm", "js.org"))
]

# The words that code, messages and docs have agreed on; the glossary may define more.
# fmt: off
WORDS = {
    "attachment", "boundary", "break", "checkpoint", "count", "dream", "fork", "index", "log", "mailbox", "note", "pin", "policy",
    "prefix", "preview", "recall", "receipt", "record", "result", "revoke", "scope", "snapshot", "summary", "topic", "view",
    "window",
}
# fmt: on


def documents() -> list[Path]:
    found = [path for path in ROOT.rglob("*.md") if not SKIPPED.intersection(path.relative_to(ROOT).parts)]
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(ROOT).parts[:-1]))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def shell_lines(text: str) -> Iterator[str]:
    """Each command of the shell blocks of a document, without prompts and comments."""
    for block in FENCE.finditer(text):
        if block["language"] in ("sh", "bash", "console"):
            lines = (line.removeprefix("$ ").strip() for line in block["body"].splitlines())
            yield from (line for line in lines if line and not line.startswith("#"))


def lamina_calls(text: str) -> Iterator[list[str]]:
    """The arguments of every `lamina …` in the shell blocks, also behind `&&` and `|`."""
    for line in shell_lines(text):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.wordchars += "[]=~,:"
        call: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";&|<>()"):
                if call[:1] == ["lamina"]:
                    yield call[1:]
                call = []
            else:
                call.append(word)


def misuse(command: click.Command, words: list[str], parent: click.Context | None = None) -> str | None:
    """What is wrong with the words of a call, or None; nothing is run. Without a command's name `chat` is meant."""
    context = click.Context(command, parent=parent, **command.context_settings)
    index = 0
    while index < len(words):
        index = _first_foreign(words, _options(command, context), start=index)
        if not isinstance(command, click.Group):
            if index < len(words) and words[index].startswith("-") and words[index] != "-":
                return f"unknown option {words[index]}"
            index += 1
        elif index < len(words):
            named = not words[index].startswith("-")
            inner = command.get_command(context, words[index] if named else "chat")
            if inner is None:
                return f"unknown {'subcommand' if named else 'option'} {words[index]}"
            return misuse(inner, words[index + named :], context)
    stands_alone = isinstance(command, click.Group) and (
        command.invoke_without_command or command.get_command(context, "chat") is not None
    )
    if isinstance(command, click.Group) and not words and not stands_alone:
        return f"{command.name} needs a subcommand"
    return None


def _options(command: click.Command, context: click.Context) -> dict[str, bool]:
    """Option → whether it takes a value."""
    options = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]
    return {
        name: not option.is_flag and not option.count for option in options for name in (*option.opts, *option.secondary_opts)
    }


def _first_foreign(words: list[str], own: dict[str, bool], start: int) -> int:
    index = start
    while index < len(words) and (name := words[index].split("=")[0]) in own:
        index += 2 if own[name] and "=" not in words[index] else 1
    return index


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_begins_with_the_two_set_up_commands(readme: str) -> None:
    first = FENCE.search((ROOT / readme).read_text("utf-8"))
    assert first is not None
    try_it, test_it = first["body"].splitlines()
    assert TRY_IT.fullmatch(try_it)
    assert test_it == TEST_IT


def test_both_readmes_name_the_same_commands() -> None:
    """The texts in quotation marks are in the language of the page."""
    english, chinese = (
        [re.sub(r'"[^"]*"', '"…"', line) for line in shell_lines((ROOT / readme).read_text("utf-8"))] for readme in READMES
    )
    assert english == chinese


def test_both_readmes_state_the_same_figures() -> None:
    """Money and shares anywhere, and every number in the columns of results. Other numbers may be words."""

    def figures(readme: str) -> tuple[list[str], list[list[str]]]:
        text = (ROOT / readme).read_text("utf-8")
        results = [
            line.split("|")[2:-1] for line in text.splitlines() if line.startswith("|") and "bench/" in line.split("|")[-2]
        ]
        return re.findall(r"\$\d[\d.,]*\d|\d[\d.,]*%", text), [re.findall(r"\d[\d.,]*", " ".join(cells)) for cells in results]

    english, chinese = map(figures, READMES)
    assert english == chinese
    assert len(english[1]) > 3


def test_both_readmes_lead_to_the_same_pages() -> None:
    english, chinese = (
        {link["target"].split("#")[0] for link in LINK.finditer((ROOT / readme).read_text("utf-8"))} - set(READMES)
        for readme in READMES
    )
    assert english == chinese


def test_the_security_page_promises_exactly_what_the_specification_calls_built() -> None:
    promised = re.findall(r"^\| (Z\d+) \|", (ROOT / "docs" / "security.md").read_text("utf-8"), re.MULTILINE)
    built = re.findall(r"^- (Z\d+) \(built", (ROOT / "docs" / "spec.md").read_text("utf-8"), re.MULTILINE)
    assert promised == built


def test_commands_in_the_docs_exist() -> None:
    for document in documents():
        calls = lamina_calls(document.read_text("utf-8"))
        wrong = {shlex.join(["lamina", *words]): problem for words in calls if (problem := misuse(command, words))}
        assert wrong == {}, named(document)


@click.group("lamina")
@click.option("--bare", is_flag=True)
def _example() -> None: ...


@_example.command("chat")
@click.option("-p", "prompt")
@click.option("--continue", "resume", is_flag=True)
def _chat() -> None: ...


@_example.group("sessions")
def _sessions() -> None: ...


@_sessions.command("show")
@click.argument("session")
@click.option("--json", is_flag=True)
def _show() -> None: ...


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('lamina -p "Hello & goodbye"', None),
        ("lamina --bare --continue -p Hello", None),
        ("lamina sessions show --json 1234", None),
        ("pip install . && lamina --verbose", "unknown option --verbose"),
        ("lamina memory list", "unknown subcommand memory"),
        ("lamina sessions", "sessions needs a subcommand"),
        ("lamina sessions show 1234 --yaml | head", "unknown option --yaml"),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str, problem: str | None) -> None:
    [words] = lamina_calls(f"```sh\n{line}\n```\n")
    assert misuse(_example, words) == problem


def test_relative_links_lead_somewhere() -> None:
    for document in documents():
        text = CODE.sub("", document.read_text("utf-8"))
        targets = [link["target"] for link in LINK.finditer(text)]
        relative = [unquote(target.split("#")[0]) for target in targets if not re.match(r"[a-z]+:|#", target)]
        assert [target for target in relative if not (document.parent / target).exists()] == [], named(document)


def test_no_document_or_source_names_a_package_registry() -> None:
    paths = [
        path
        for path in ROOT.rglob("*")
        if path.suffix in {".md", ".py", ".toml", ".json", ".tsv", ".txt", ".sh", ".yml", ".yaml", ""} and path.is_file()
    ]
    own = [
        path for path in paths if not any(part.startswith(".") or part in SKIPPED for part in path.relative_to(ROOT).parts[:-1])
    ]
    assert len(own) > len(documents())
    texts = {named(path): path.read_text("utf-8", errors="replace") for path in [*own, ROOT / ".ci" / "run"]}
    assert [(name, host) for name, text in texts.items() for host in REGISTRY_HOSTS if host in text] == []


def test_the_glossary_defines_each_agreed_word_once_and_in_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    words = [row.split("|")[1].strip() for row in text.splitlines() if row.startswith("| ")][1:]
    assert WORDS - set(words) == set()
    assert words == sorted(set(words))


def test_a_word_the_glossary_sets_aside_is_not_itself_defined() -> None:
    rows = [row.split("|") for row in (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines() if row.startswith("| ")][1:]
    defined = {row[1].strip() for row in rows}
    aside = {word.strip() for row in rows for word in row[3].split(",")}
    assert defined & aside == set()


def test_the_changelog_has_an_unreleased_section() -> None:
    sections = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert sections.count("Unreleased") == 1


def test_the_tree_in_the_architecture_page_is_the_tree_on_disk() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tree = next(block["body"] for block in FENCE.finditer(text) if block["body"].startswith("src/lamina/"))
    drawn: dict[str, bool] = {}  # path → drawn as present
    parent = ""
    for line in TREE_LINE.finditer(tree):
        if len(line["indent"]) < 4:
            parent = line["name"]
        drawn[line["name"] if parent == line["name"] else parent + line["name"]] = not line["missing"]
    package = ROOT / "src" / "lamina"
    assert {name: _present(package / name) for name in drawn} == drawn, "move the dot in docs/architecture.md"
    rooms = [path for path in package.iterdir() if path.name not in ("__pycache__", "py.typed") and _present(path)]
    assert {f"{room.name}/" if room.is_dir() else room.name for room in rooms} - set(drawn) == set(), "draw the new room"


def _present(path: Path) -> bool:
    return any(path.rglob("*.py")) if path.is_dir() else path.is_file()


def test_a_module_that_a_page_names_is_there() -> None:
    places = (ROOT, ROOT / "src", ROOT / "src" / "lamina")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        modules = set(re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)\b", page.read_text("utf-8")))
        assert {name for name in modules if not any((place / name).is_file() for place in places)} == set(), page.name
