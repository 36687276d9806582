"""Words that make a sentence hard to understand, found in sources, tests and pages. Exits with 1 if there are any.

    python tools/plain_words.py

Write the noun that a roboticist uses (CONTRIBUTING.md, "How the code is written").
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = ("nobody", "somebody", "whoever", "anybody", "what is said", "that is none", "take place", "takes place",
         "leave alone", "left alone", "of people's", "how many such", "may not be had", "such as are")
FOUND = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in WORDS), re.IGNORECASE)
KINDS = (".py", ".md")
FOLDERS = ("src", "tests", "docs", "examples", "tools")


def pages() -> list[Path]:
    """All texts of the project that people write."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    return sorted([*ROOT.glob("*.md"), *found])


def main() -> int:
    count = 0
    for path in pages():
        if path != Path(__file__).resolve():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                for match in FOUND.finditer(line):
                    print(f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: {line.strip()}")
                    count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
