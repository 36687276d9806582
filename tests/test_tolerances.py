"""Every threshold has one meaning."""

import ast
import inspect
from collections import Counter

from bunraku import tolerances


def test_each_name_is_given_once_with_its_meaning():
    """A second value would silently replace the first one."""
    body = ast.parse(inspect.getsource(tolerances)).body
    at = [k for k, line in enumerate(body) if isinstance(line, ast.Assign)]
    names = Counter(target.id for k in at for target in body[k].targets if isinstance(target, ast.Name))
    assert [name for name, count in names.items() if count > 1] == []
    for k in at:
        assert isinstance(body[k + 1], ast.Expr), ast.unparse(body[k])
