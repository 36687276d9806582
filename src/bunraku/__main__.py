"""`python -m bunraku`: the command line."""

import sys

from bunraku.cli import main

if __name__ == "__main__":
    sys.exit(main())
