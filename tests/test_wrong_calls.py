"""The page of wrong calls: every call on it raises an error of bunraku's, with the message that the page shows."""

import re

import pytest

import bunraku as bk
import wrong_calls
from bunraku.jit import JIT_OFF

ALL = [call for calls in wrong_calls.CALLS.values() for call in calls]


def test_there_are_a_hundred_and_none_twice():
    assert len(set(ALL)) == len(ALL) >= 100


@pytest.mark.skipif(JIT_OFF, reason="the page is about compiled actuations")
def test_the_page_shows_what_each_call_raises():
    raised = [wrong_calls.made(call) for call in ALL]
    for call, error in zip(ALL, raised, strict=True):
        assert isinstance(error, bk.BunrakuError), (call, error)
        said = str(error)
        assert len(said.split()) >= 5, (call, said)
        assert not re.search(r"0x[0-9a-f]{6}|/tmp|<class|<function", said), (call, said)
    assert wrong_calls.PAGE.read_text() == wrong_calls.page(raised), "run python tests/support/wrong_calls.py"
