"""Sentences and messages drawn at random, to be read aloud by an engineer who does not know this project.

    python tools/draw_sentences.py --seed 1 --count 20

Prints sentences of pages, docstrings and comments, then error and warning messages, each with its place. A sentence
that is not understood at first reading is rewritten (CONTRIBUTING.md, "How the code is written").
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
END = re.compile(r"(?<=[.:!?])\s+(?=[A-Z`*\"(])")
SAYS = re.compile(r"(Error|Warning|warn|refuse|note|fail|error)$")  # names of what is called with a message


def sentences(text: str) -> Iterator[str]:
    """Sentences of running text; tables, code and headings are left out."""
    for paragraph in re.split(r"\n\s*\n", text):
        if not re.match(r"\s*([|#>]|```|    |!\[|\w+ {2,})", paragraph):
            yield from (found for found in END.split(" ".join(paragraph.split())) if len(found.split()) > 5)


def of_page(path: Path) -> Iterator[str]:
    yield from sentences(re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL))


def of_module(path: Path) -> Iterator[str]:
    """Its docstrings, those of constants included, and comments."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from sentences(node.value.value)
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT and not token.string.startswith(("# --", "# type", "# noqa")):
                yield from sentences(token.string.lstrip("# "))


def messages(path: Path) -> Iterator[str]:
    """Texts that calls such as `StateError(...)` and `warn(...)` are given; values stand as {}."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and SAYS.search(getattr(node.func, "id", getattr(node.func, "attr", ""))):
            for given in node.args:
                if isinstance(given, (ast.JoinedStr, ast.Constant)) and len((said := _text(given)).split()) > 5:
                    yield said


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    asked = parser.parse_args()
    pages = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    modules = sorted((ROOT / "src").rglob("*.py"))
    chance = random.Random(asked.seed)
    drawn = [(path, text) for path in pages for text in of_page(path)]
    drawn += [(path, text) for path in modules for text in of_module(path)]
    said = [(path, text) for path in modules for text in messages(path)]
    for title, found in (("Sentences", drawn), ("Messages", said)):
        print(f"{title} ({len(found)} in all)")
        for path, text in chance.sample(found, asked.count):
            print(f"  {path.relative_to(ROOT)}: {text}")


if __name__ == "__main__":
    main()
