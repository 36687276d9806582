"""Required type and content of error messages."""

import re

import pytest


def refused(kind, *words):
    """The block raises exactly this kind of error, and the message holds all the words."""
    return pytest.raises(kind, match="".join(f"(?s:(?=.*{re.escape(word)}))" for word in words))
