"""``python -m looms``, the command line."""

from looms.cli import main

main()
