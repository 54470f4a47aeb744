"""`python -m bucketwire` is `bucketwire`."""

from bucketwire.cli.main import main

main()
