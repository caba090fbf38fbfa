"""One row of the table of settings: a `Setting` is both the data about a setting and the typed way to its value.

On the class (`Settings.spill`) it is the row; on a value (`settings.spill`) it is what was resolved. So a setting is declared
once, and its key, type, default, names and rights cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, overload

from .kinds import Kind, Switch

T = TypeVar("T")

Source: TypeAlias = Literal[
    "argument", "managed", "command line", "environment", "local", "project", "user", "remote flag", "default", "rule"
]

# What files in the working tree may do to a setting. `less`: turn it off or lower it at any time; once trusted also raise it, but
# never above what the person's own settings say.
Tree: TypeAlias = Literal["never", "trusted", "less", "freely"]

# How the text of a variable is read. `value`: as the setting's own. `not`: a true word is false and the other way round. `off`: a
# true word is false, any other says nothing. `bash`: a number of characters for the tool Bash.
Means: TypeAlias = Literal["value", "not", "off", "bash"]


class Variable(NamedTuple):
    name: str
    means: Means = "value"


class Resolved(NamedTuple):
    """A value, the level it came from, and the file, variable or rule at that level."""

    value: Any
    source: Source
    detail: str = ""


class Finding(NamedTuple):
    """Something in the settings that was ignored, as one sentence; it never stops a session."""

    key: str
    source: str
    text: str


class Held:
    """What carries resolved values; the rows read from it."""

    __slots__ = ("_values",)
    _values: Mapping[str, Resolved]


class Setting(Generic[T]):
    """Set up once, when the class it stands in is made, and not changed after."""

    __slots__ = (
        "_own_variable",
        "bare",
        "default",
        "help",
        "key",
        "kind",
        "memory",
        "name",
        "remote",
        "spec",
        "tree",
        "variable_first",
        "variables",
    )

    def __init__(
        self,
        default: T,
        kind: Kind[Any],
        help: str,
        *,
        spec: str,
        tree: Tree,
        key: str = "",
        name: str = "",
        variables: tuple[Variable | str, ...] | None = None,  # None: LAMINA_ and the name
        remote: bool = False,  # a remote flag of this key may set it
        variable_first: bool = False,  # the environment stands before managed settings (S2)
        bare: bool = False,  # off in bare mode (F3)
        memory: bool = False,  # off while memory is off
    ) -> None:
        self.default = default
        self.kind = kind
        self.help = help
        self.spec = spec
        self.tree = tree
        self.key = key
        self.remote = remote
        self.variable_first = variable_first
        self.bare = bare
        self.memory = memory
        self.variables = tuple(Variable(item) if isinstance(item, str) else item for item in variables or ())
        self._own_variable = variables is None
        if name:
            self._take_name(name)

    def __set_name__(self, owner: type, name: str) -> None:
        self._take_name(name)

    def _take_name(self, name: str) -> None:
        self.name = name
        self.key = self.key or "lamina." + camel(name)
        if self._own_variable:
            self.variables = (Variable("LAMINA_" + name.upper()),)

    @overload
    def __get__(self, holder: None, owner: type) -> Setting[T]: ...
    @overload
    def __get__(self, holder: Held, owner: type) -> T: ...
    def __get__(self, holder: Held | None, owner: type) -> Setting[T] | T:
        if holder is None:
            return self
        value: T = holder._values[self.key].value
        return value

    @property
    def kills(self) -> bool:
        """A remote `false` turns this off whoever turned it on (F1)."""
        return self.remote and isinstance(self.kind, Switch)

    def shown(self, value: Any) -> object:
        """A JSON value that is safe to print."""
        return None if value is None else self.kind.show(value)

    def __repr__(self) -> str:
        return f"Setting({self.key})"


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def switch(default: bool, help: str, *, spec: str, tree: Tree, **options: Any) -> Setting[bool]:
    return Setting(default, Switch(), help, spec=spec, tree=tree, **options)
