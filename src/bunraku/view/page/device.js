/* Reads gamepads and 3-D mice of this machine and sends them to the viewer (view/device.py), 60 times a second while
   they move, ten times while they rest. A page without a device opens no connection. */
(() => {
  const RESEND = 100, RETRY = 1000;  // [ms]
  let socket = null, sent = "", at = 0, opened = -Infinity, timer = null;

  const devices = () => document.hidden ? [] : [...navigator.getGamepads()].filter((pad) => pad && pad.connected).map(
    (pad) => ({id: pad.id, mapping: pad.mapping, axes: pad.axes.map((a) => +a.toFixed(4)),
               buttons: pad.buttons.map((b) => +b.value.toFixed(4))}));

  const open = (now) => {
    opened = now;
    socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/bunraku-device`);
    socket.onclose = () => { socket = null; sent = ""; };
  };

  const poll = () => {
    const now = performance.now(), found = devices(), text = JSON.stringify(found);
    if (socket === null) {
      if (found.length && now - opened > RETRY) open(now);
    } else if (socket.readyState === WebSocket.OPEN && (text !== sent || (found.length && now - at > RESEND))) {
      socket.send(text);
      sent = text;
      at = now;
    }
  };

  const start = () => { timer = timer ?? setInterval(poll, 1000 / 60); };  // goes on: unplugged is a message, too
  if (navigator.getGamepads) {
    window.addEventListener("gamepadconnected", start);
    if ([...navigator.getGamepads()].some((pad) => pad)) start();
  }
})();
