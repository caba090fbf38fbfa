"""`python -m lamina` is `lamina`."""

from lamina.cli.main import main

main()
