"""Load the settings in force in a directory, the same way for every surface, and notice when they change.

Files of the working tree count as far as the user trusts the tree. The value that is returned can refresh itself: a stat of each file
tells whether anything changed, and then everything is loaded again, trust included. Nothing is written here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.flags import Flags
from ...core.settings import Settings
from ..regular_file import stamp_of
from ..settings_files import MANAGED_PATH, TRUST_NAME, lamina_home, load_settings, settings_paths


def settings_in_force(
    cwd: str | os.PathLike[str] = ".",
    *,
    home: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    managed_path: str | Path = MANAGED_PATH,
    command_line: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    remote: Flags | None = None,
) -> Settings:
    """Return the settings of `cwd`; without `environ`, those of the process's environment at each look."""
    variables = os.environ if environ is None else environ
    where = Path(cwd).absolute()
    own = Path(home) if home is not None else None
    base = own or lamina_home(variables)
    paths = settings_paths(cwd=where, environ=variables, home=own, managed_path=managed_path)
    watched = [path for path in (paths.managed, paths.user, paths.project, paths.local, paths.flags) if path is not None]
    watched += [base / TRUST_NAME] if base is not None else []

    def load() -> Settings:
        stamps = [stamp_of(path) for path in watched]  # before the files are read: a change in between is found at the next look

        def refreshed(settings: Settings) -> Settings:
            if [stamp_of(path) for path in watched] != stamps:
                return load()
            return settings.with_remote(remote) if callable(remote) else settings

        def loaded(trusted: bool) -> Settings:
            return load_settings(
                cwd=where,
                environ=variables,
                home=own,
                managed_path=managed_path,
                command_line=command_line,
                arguments=arguments,
                trusted=trusted,
                remote=remote,
                refresh=refreshed,
            )

        if base is None or not os.path.lexists(base / TRUST_NAME):
            return loaded(False)
        from .trust import while_trusted

        return while_trusted(base, where, loaded)

    return load()
