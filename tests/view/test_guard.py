"""Who may open the viewer: real HTTP requests and websocket clients against a stage that runs."""

import http.client
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import bunraku as bk

viser = pytest.importorskip("viser")
msgspec = pytest.importorskip("msgspec")
client = pytest.importorskip("websockets.sync.client")
from viser import _messages  # noqa: E402
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402

SUBPROTOCOL = f"viser-v{viser.__version__}"


def pendulum():
    m = bk.Mechanism(name="pendulum")
    m.add_link("rod", "ground", bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=(0.05, 0.05, 0.001))
    return bk.Simulation(m, q=[0.5], record=1.0)


@contextmanager
def stage(host="127.0.0.1"):
    opened = bk.view(pendulum(), host=host, port=0, block=False, browser=False)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def local():
    with stage() as opened:
        yield opened


@pytest.fixture(scope="module")
def shared():
    """Open to other machines."""
    with stage("0.0.0.0") as opened:
        yield opened


def connect(opened, *, origin=None, query="", headers=None, host="127.0.0.1"):
    return client.connect(f"ws://{host}:{opened.screen.port}/{query}", origin=origin, subprotocols=[SUBPROTOCOL],
                          additional_headers=headers, max_size=None, proxy=None, close_timeout=0.2)


def get(opened, path="/", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", opened.screen.port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace"), answer.headers
    finally:
        connection.close()


def send(socket_, message):
    socket_.send(msgspec.msgpack.encode(message.as_serializable_dict()))


def camera():
    """What a page sends first; from then on it is a client."""
    return _messages.ViewerCameraMessage(wxyz=(1.0, 0, 0, 0), position=(0.0, 0, 5), fov=1.0, near=0.1, far=10.0,
                                         image_height=100, image_width=100, look_at=(0.0, 0, 0),
                                         up_direction=(0.0, 0, 1))


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def goes_on(opened):
    t = opened.source.t
    return wait_for(lambda: opened.source.t > t + 0.05)


# -- addresses ---------------------------------------------------------------------------------------------------------


def test_by_default_nothing_listens_at_other_addresses(local):
    port = local.screen.port
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    found = [row[1] for row in rows if row[3] == "0A"]
    assert f"0100007F:{port:04X}" in found
    assert f"00000000:{port:04X}" not in found


def test_the_page_and_its_websocket_are_served_on_loopback(local):
    status, page, headers = get(local)
    assert status == 200
    assert "<html" in page.lower() or headers["Content-Encoding"] == "gzip"
    with connect(local, origin=f"http://127.0.0.1:{local.screen.port}") as socket_:
        assert len(socket_.recv()) > 100  # the scene


@pytest.mark.parametrize("origin", ["http://evil.example", "https://127.0.0.1.evil.example", "http://localhost:1",
                                    "null", "file://"])
def test_foreign_origins_are_refused(local, origin):
    with pytest.raises(InvalidStatus) as caught:
        connect(local, origin=origin)
    assert caught.value.response.status_code == 403


def test_names_that_were_made_to_mean_this_machine_are_refused(local):
    status, text, _ = get(local, Host="evil.example")
    assert status == 403
    assert "evil.example" in text
    sock = socket.create_connection(("127.0.0.1", local.screen.port))
    with sock, pytest.raises(InvalidStatus) as caught:
        client.connect("ws://evil.example/", sock=sock, origin="http://evil.example", subprotocols=[SUBPROTOCOL])
    assert caught.value.response.status_code == 403


def test_files_outside_the_page_are_not_served(local):
    for path in ("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%5c..%5cetc/passwd"):
        assert get(local, path)[0] == 404


# -- token -------------------------------------------------------------------------------------------------------------


def token(opened):
    return urlsplit(opened.url).query


def test_on_loopback_no_token_is_needed_elsewhere_it_is_long_and_new(local, shared):
    assert token(local) == ""
    assert len(token(shared)) > len("token=") + 30
    with stage("0.0.0.0") as other:
        assert token(other) != token(shared)


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?tokens=1", "?token=\u00e9"])
def test_a_wrong_or_missing_token_is_refused(shared, query):
    status, text, headers = get(shared, "/" + query.encode("utf-8").decode("latin-1").replace("\u00c3\u00a9", "%C3%A9"))
    assert status == 403
    assert "token" in text
    assert headers["Set-Cookie"] is None
    if query.isascii():
        with pytest.raises(InvalidStatus) as caught:
            connect(shared, query=query)
        assert caught.value.response.status_code == 403


def test_the_page_with_the_token_hands_it_on_as_a_cookie_of_this_page_only(shared):
    status, _, headers = get(shared, f"/?{token(shared)}")
    assert status == 200
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    with connect(shared, headers={"Cookie": cookie.split(";")[0]}) as socket_:
        assert len(socket_.recv()) > 100
    with pytest.raises(InvalidStatus):
        connect(shared, headers={"Cookie": cookie.split(";")[0]}, origin="http://evil.example")
    with pytest.raises(InvalidStatus):
        connect(shared, headers={"Cookie": cookie.split(";")[0] + "x"})


# -- devices -----------------------------------------------------------------------------------------------------------


def device_socket(opened, **settings):
    path, query = "bunraku-device", settings.pop("query", "")
    return connect(opened, query=path + query, **settings)


def test_the_page_carries_our_script_in_either_encoding(local):
    plain, zipped = get(local)[1], get(local, **{"Accept-Encoding": "gzip"})
    assert plain.count("/bunraku-device.js") == 1
    assert zipped[2]["Content-Encoding"] == "gzip"
    status, script, headers = get(local, "/bunraku-device.js")
    assert status == 200
    assert headers["Content-Type"].startswith("text/javascript")
    assert "getGamepads" in script
    assert get(local, "/bunraku-device.js", Host="evil.example")[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
def test_devices_of_foreign_pages_are_refused(local, origin):
    with pytest.raises(InvalidStatus) as caught:
        device_socket(local, origin=origin)
    assert caught.value.response.status_code == 403


def test_devices_need_the_token_where_the_page_does(shared):
    with pytest.raises(InvalidStatus) as caught:
        device_socket(shared)
    assert caught.value.response.status_code == 403
    with device_socket(shared, query=f"?{token(shared)}") as socket_:
        socket_.send("[]")


def test_a_device_is_heard_until_its_page_is_gone(local):
    steering = local.hands._steering
    with device_socket(local, origin=f"http://127.0.0.1:{local.screen.port}") as socket_:
        socket_.send('[{"id": "x", "mapping": "", "axes": [1, 0, 0, 0, 0, 1], "buttons": []}]')
        assert wait_for(lambda: len(steering) == 1)
        (_, velocity), = steering.values()
        assert np.linalg.norm(velocity[:3]) == pytest.approx(1.0)
        assert velocity[5] == pytest.approx(-1.0)
        socket_.socket.shutdown(socket.SHUT_RDWR)  # no farewell
        assert wait_for(lambda: not steering)


@pytest.mark.parametrize("data", ["", "{", b"\xff" * 10, "[" * 9000, "x" * 100_000])
def test_nonsense_from_a_device_ends_its_connection_only(local, data):
    with device_socket(local) as socket_:
        socket_.send(data)
        with pytest.raises(ConnectionClosed):
            socket_.recv(timeout=5.0)
    with connect(local) as socket_:
        send(socket_, camera())
        assert goes_on(local)


# -- clients -----------------------------------------------------------------------------------------------------------


def test_a_share_request_opens_no_tunnel(local, monkeypatch):
    asked = threading.Event()
    monkeypatch.setattr("viser._viser.ViserTunnel", lambda *_: asked.set())
    with connect(local) as socket_:
        send(socket_, camera())
        send(socket_, _messages.ShareUrlRequest())
        assert not asked.wait(0.5)
        assert local.screen._server._share_tunnel is None
        assert goes_on(local)


def test_a_client_that_vanishes_while_it_pulls_lets_go(local):
    sim = local.source.simulation
    socket_ = connect(local)
    send(socket_, camera())
    assert wait_for(lambda: local.screen.watched)
    drag = _messages.SceneNodeDragMessage(
        name="/links/0", instance_index=0, phase="start", start_position=(0.0, 0, -0.5), start_screen_pos=(0.5, 0.5),
        end_position=(0.5, 0.0, -0.5), end_screen_pos=(0.6, 0.5), button="left", modifier=None)
    send(socket_, drag)
    assert wait_for(lambda: "rod" in sim._running.acting.pulls)
    socket_.socket.shutdown(socket.SHUT_RDWR)  # no farewell
    assert wait_for(lambda: not sim._running.acting.pulls)
    assert goes_on(local)


def test_a_client_that_floods_leaves_the_simulation_running(local):
    with connect(local) as socket_:
        send(socket_, camera())
        drag = _messages.SceneNodeDragMessage(
            name="/links/0", instance_index=0, phase="update", start_position=(0.0, 0, 0), start_screen_pos=(0.5, 0.5),
            end_position=(0.5, 0.0, -0.5), end_screen_pos=(0.6, 0.5), button="left", modifier=None)
        data = msgspec.msgpack.encode(drag.as_serializable_dict())
        for _ in range(5000):
            socket_.send(data)
        assert goes_on(local)
    assert goes_on(local)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data", [b"", b"\xff" * 100, msgspec.msgpack.encode({"type": "NoSuchMessage"}), "text",
                                  b"\x00" * (2**20 + 1)], ids=["empty", "noise", "unknown", "text", "large"])
def test_nonsense_ends_its_own_connection_at_most(local, data):
    with connect(local) as socket_:
        send(socket_, camera())
        socket_.send(data)
        time.sleep(0.05)
    assert goes_on(local)
    with connect(local) as socket_:
        assert len(socket_.recv()) > 100


def test_a_client_that_never_reads_does_not_hold_up_the_simulation(local):
    with connect(local) as socket_:
        send(socket_, camera())
        before = local.source.t
        assert wait_for(lambda: local.source.t > before + 0.5)
    assert np.isfinite(local.source.state[0]).all()
