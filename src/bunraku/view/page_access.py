"""Who may open the page of the viewer.

viser accepts every client. Here the handshake is checked first (`Guard`): pages of other origins, rebound DNS names
and, unless the page is on loopback, clients without the token are refused.
"""

from __future__ import annotations

import contextlib
import hmac
import http
import secrets
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from bunraku.errors import MissingExtra, ViewerError

try:
    from websockets import Headers
    from websockets.http11 import Response
except ImportError as error:
    raise MissingExtra('the viewer needs viser: pip install "bunraku[view]"') from error

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def listen(host: str, port: int) -> socket.socket:
    """A socket at this address and no other; a ViewerError if it is taken."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ViewerError(f"host {host}: no such address ({error.strerror or error})") from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(64)
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise ViewerError(f"port {port} of {host} cannot be used ({str(reason).lower()}): choose another one, or 0 "
                          "for any that is free") from None
    return found


class Guard:
    """Rejects handshakes and requests that do not come from the page itself."""

    def __init__(self, host: str, port: int):
        self.token = None if host in LOOPBACK else secrets.token_urlsafe(24)
        names = ("127.0.0.1", "localhost", "[::1]") if host in LOOPBACK else ()
        self.hosts = {f"{name}:{port}" for name in names} or None
        self.cookie = f"bunraku-{port}"

    def refusal(self, path: str, headers) -> str | None:
        """Reason for rejecting a request; None if it is accepted."""
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if self.hosts is not None and host not in self.hosts:  # a name that was made to mean this machine
            return f"this page is at {min(self.hosts)}, not at {host}"
        if origin is not None and urlsplit(origin).netloc != host:
            return f"pages of {origin} may not open this viewer"
        if self.token is not None and not any(hmac.compare_digest(given.encode(), self.token.encode())
                                              for given in self._given(path, headers)):
            return "the token in the address is missing or wrong: open the address that bunraku has printed"
        return None

    def _given(self, path: str, headers) -> list[str]:
        tokens = parse_qs(urlsplit(path).query).get("token", [])
        with contextlib.suppress(CookieError):
            cookies = SimpleCookie("; ".join(headers.get_all("Cookie")))
            if self.cookie in cookies:
                tokens.append(cookies[self.cookie].value)
        return tokens

    def process_request(self, serve_file):
        """A function for websockets: refuse, or go on with `serve_file`; the page keeps the token as a cookie."""
        def answer(connection, request):
            why = self.refusal(request.path, request.headers)
            if why is not None:
                return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", Headers({"Content-Type": "text/plain"}),
                                f"{why}\n".encode())
            response = serve_file(connection, request)
            if response is not None:
                response.headers["X-Content-Type-Options"] = "nosniff"
                response.headers["Referrer-Policy"] = "no-referrer"
                if self.token is not None:
                    response.headers["Set-Cookie"] = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            return response

        return answer
