"""viser's server on a socket of ours, behind a guard.

viser accepts every client; here the handshake is checked first (`page_access.py`). Share requests, which would open a
public tunnel, have no effect.

viser does not support gamepads: a script is added to its page (`page/device.js`), which sends their state to a separate
websocket at the same address, behind the same guard. This and `viser_adapter.py` are the only files that use viser.
"""

from __future__ import annotations

import contextlib
import gzip
import http
import io
import socket
import threading
from importlib.resources import files
from types import SimpleNamespace
from urllib.parse import urlsplit

from bunraku.errors import MissingExtra, ViewerError
from bunraku.view.page_access import Guard

try:
    import viser
    import websockets.asyncio.server
    import websockets.datastructures
    import websockets.exceptions
    from viser.infra import _infra
    from websockets import Headers
    from websockets.http11 import Response
except ImportError as error:
    raise MissingExtra('the viewer needs viser: pip install "bunraku[view]"') from error

LARGEST_MESSAGE = 2**20   # bytes from a client: gestures and values of controls are small
DEVICE = "/bunraku-device"       # address of the websocket for gamepads and 3-D mice; with .js that of its script


class _Server(viser.ViserServer):
    def request_share_url(self, verbose: bool = True) -> str | None:
        """No client can open a public tunnel."""
        return None


_one_at_a_time = threading.Lock()


def _with_script(serve_file):
    """viser's page with our script at its end, and the script."""
    script = (files("bunraku.view") / "page" / "device.js").read_bytes()
    pages: dict[bool, bytes] = {}  # with and without gzip
    tag = f'<script src="{DEVICE}.js"></script>'.encode()

    def answer(connection, request):
        path = urlsplit(request.path).path
        if path == f"{DEVICE}.js":
            return Response(http.HTTPStatus.OK, "OK", Headers({"Content-Type": "text/javascript; charset=utf-8",
                                                               "Content-Length": str(len(script))}), script)
        response = serve_file(connection, request)
        if response is not None and response.status_code == http.HTTPStatus.OK and path in ("/", "/index.html"):
            zipped = response.headers.get("Content-Encoding") == "gzip"
            if zipped not in pages:
                page = (gzip.decompress(response.body) if zipped else response.body) + tag
                pages[zipped] = gzip.compress(page) if zipped else page
            response.body = pages[zipped]
            del response.headers["Content-Length"]
            response.headers["Content-Length"] = str(len(response.body))
        return response

    return answer


def serve(listener: socket.socket, guard: Guard, title: str, from_device) -> viser.ViserServer:
    """viser on a socket of ours, behind a guard; `from_device` handles the websocket of devices."""
    guarded = threading.Event()

    def guarded_serve(handler, host, port, *, process_request, **settings):
        guarded.set()
        settings["max_size"] = LARGEST_MESSAGE

        async def either(connection):
            own = urlsplit(connection.request.path).path == DEVICE
            await (from_device if own else handler)(connection)

        return websockets.asyncio.server.serve(
            either, sock=listener, process_request=guard.process_request(_with_script(process_request)), **settings)

    stand_in = SimpleNamespace(asyncio=SimpleNamespace(server=SimpleNamespace(
        serve=guarded_serve, ServerConnection=websockets.asyncio.server.ServerConnection)),
        exceptions=websockets.exceptions, datastructures=websockets.datastructures)
    host, port = listener.getsockname()[:2]
    with _one_at_a_time:
        original, _infra.websockets = _infra.websockets, stand_in  # type: ignore[assignment]
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # its banner: we say where the page is
                server = _Server(host=host, port=port, label=title, verbose=False)
        except BaseException:
            listener.close()
            raise
        finally:
            _infra.websockets = original
    if not guarded.is_set():
        server.stop()
        raise ViewerError(f"viser {viser.__version__} cannot be guarded against foreign pages: "
                          'pip install "viser>=1.1,<1.2"')
    return server
