"""`python -m lamina` is `lamina`.

For `-m`, Python looks for modules in the working directory first. A repository may have a `yaml.py` or an `asyncio.py` there, and
nothing of a repository runs unasked (Z10): the directory is taken off the path before anything else is imported.
"""

import os
import sys

try:
    here = os.getcwd()
except OSError:  # it was removed
    here = ""
if sys.path[:1] in ([""], [here]) and not sys.flags.safe_path:
    del sys.path[0]

from .cli import run  # only now

run()
