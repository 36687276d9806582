"""Words that make a sentence hard to understand, found in sources, tests and pages. Exits with 1 if there are any.

    python tools/plain_words.py

Write the noun that a roboticist uses (CONTRIBUTING.md, "How the code is written").
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = ("nobody", "somebody", "whoever", "anybody", "what is said", "that is none", "take place", "takes place",
         "leave alone", "left alone", "of people's", "how many such", "may not be had", "such as are")
FOUND = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in WORDS), re.IGNORECASE)
KINDS = (".py", ".md", ".js", ".html")


def main() -> int:
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split("\0")
    count = 0
    for name in names:
        path = ROOT / name
        if name.endswith(KINDS) and path.is_file() and path != Path(__file__).resolve():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                for match in FOUND.finditer(line):
                    print(f"{name}:{number}: {match[0]!r}: {line.strip()}")
                    count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
