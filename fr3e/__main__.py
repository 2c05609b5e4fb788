"""`python -m fr3e` is the `fr3e` command; the pipeline uses it so that a stage runs with a chosen interpreter."""

from fr3e.cli import main

main()
