"""`python -m h2htalk`."""

from h2htalk.cli import main

main()
