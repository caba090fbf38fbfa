"""Run `python -m lamina` as `lamina`.

With `-m`, Python searches the working directory for modules first. A repository may contain a `yaml.py` or an `asyncio.py`, and
code from a repository must never run without the user's consent. So this module removes the working directory from the path
before it imports anything else.
"""

import os
import sys

try:
    here = os.getcwd()
except OSError:  # the working directory was removed
    here = ""
if sys.path[:1] in ([""], [here]) and not sys.flags.safe_path:
    del sys.path[0]

from .cli import run  # imported only after the path is safe

run()
