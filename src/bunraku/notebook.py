"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

FOLDED = 12  # rows from which a table is folded
MOST = 200   # rows that are shown


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a title; text is escaped, numbers are to the right, long tables are folded."""
    rows = list(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows[:MOST])
    more = f"<p>... and {len(rows) - MOST} more</p>" if len(rows) > MOST else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    if len(rows) <= FOLDED:
        return f"<p>{escape(title)}</p>{table if rows else ''}"
    return f"<details><summary>{escape(title)}</summary>{table}</details>"


def _cell(value) -> str:
    if isinstance(value, (int, float)):
        return f'<td style="text-align: right">{value:.6g}</td>'
    text = str(value)
    depth = len(text) - len(text.lstrip())
    return f'<td style="text-align: left">{"&nbsp;" * depth}{escape(text.lstrip())}</td>'
