"""`python -m deadheat.cli`."""

from deadheat.cli import main

main()
