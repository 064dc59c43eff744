"""``python -m smara`` is the command line."""

from smara.surfaces.cli import main

main()
