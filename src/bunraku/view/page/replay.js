"use strict";
// Plays one motion. The page holds two gzipped blocks in base64: three.js, and the motion that view/replay.py wrote.
// window.replay is for scripts and tests: ready (a promise), time, playing, seek(t), play(), pause().
// The address may end in #t=SECONDS: the page then opens paused at that time.

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
const FLASH = 0.45;  // how long a change of structure is seen [s of the motion]
const $ = (id) => document.getElementById(id);

async function unpacked(id) {
  const bytes = Uint8Array.from(atob($(id).textContent), (c) => c.charCodeAt(0));
  $(id).remove();
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** Header and arrays of a motion. Every array is of whole numbers: its lowest bytes, then its second ones, and so on. */
function parsed(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  let at = 4 + size;
  const take = (n) => {
    const bytes = new Uint8Array(buffer, at, 4 * n), out = new Int32Array(n);
    at += 4 * n;
    for (let i = 0; i < n; i++) out[i] = bytes[i] | bytes[n + i] << 8 | bytes[2 * n + i] << 16 | bytes[3 * n + i] << 24;
    return out;
  };
  for (const link of header.links) {
    link.vertices = Float32Array.from(take(3 * link.points), (x) => x * header.unit);
    link.faces = Uint32Array.from(take(3 * link.triangles));
    for (let i = 1; i < link.faces.length; i++) link.faces[i] += link.faces[i - 1];
  }
  const rows = 7 * header.links.length, n = header.frames, poses = take(rows * n);
  for (let r = 0; r < rows; r++) {  // written as differences of differences over time
    for (let pass = 0; pass < 2; pass++) {
      for (let k = r * n + 1; k < (r + 1) * n; k++) poses[k] = poses[k] + poses[k - 1] | 0;
    }
  }
  header.poses = poses;
  header.arrows = take(7 * header.pairs.length * n);  // of each pair: point, arrow, 0 or 1 (sticks) or 2 (slides)
  return header;
}

class Stage {
  constructor(motion, canvas) {
    const T = THREE;
    this.motion = motion;
    this.renderer = new T.WebGLRenderer({ canvas, antialias: true });
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = T.PCFShadowMap;
    this.scene = new T.Scene();
    this.scene.background = new T.Color(motion.paper);
    this.camera = new T.PerspectiveCamera(28, 1, 0.01, 100);
    this.camera.up.set(0, 0, 1);
    this.controls = new T.OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.light();
    this.links = motion.links.map((link) => this.linkMesh(link));
    this.joints = motion.connections.map((c) => this.joint(c));
    this.arrows = motion.pairs.map(() => this.arrow());
    this.forces = true;  // whether arrows are shown
    this.centre = new T.Vector3();
    this.q = [new T.Quaternion(), new T.Quaternion()];
    this.home();
    this.moved = false;  // by hand
    this.controls.addEventListener("start", () => { this.moved = true; });
    canvas.addEventListener("dblclick", () => { this.moved = false; this.home(); });
  }

  light() {
    const T = THREE, m = this.motion, r = m.radius;
    this.scene.add(new T.HemisphereLight("#ffffff", "#cfc6b4", 2.1));
    const sun = this.sun = new T.DirectionalLight("#fff4e2", 2.2);
    sun.castShadow = true;
    sun.shadow.mapSize.set(2048, 2048);
    sun.shadow.radius = 3;
    sun.shadow.normalBias = 0.01 * r;
    Object.assign(sun.shadow.camera, { left: -1.5 * r, right: 1.5 * r, bottom: -1.5 * r, top: 1.5 * r, near: 0.1 * r, far: 12 * r });
    this.scene.add(sun, sun.target);
    this.floor = new T.Mesh(new T.PlaneGeometry(60 * r, 60 * r), new T.ShadowMaterial({ opacity: 0.16, depthWrite: false }));
    this.floor.receiveShadow = true;
    this.floor.renderOrder = 1;
    this.grid = this.lines(10 ** Math.round(Math.log10(r / 4)));
    this.scene.add(this.floor, this.grid);
  }

  /** A grid that fades outwards, of short lines: software GL drops long ones that reach behind the eye. */
  lines(cell) {
    const T = THREE, n = Math.ceil(5 * this.motion.radius / cell), places = [], colours = [];
    const near = new T.Color(this.motion.faint), far = new T.Color(this.motion.paper), tone = new T.Color();
    for (let i = -n; i <= n; i++) {
      for (let j = -n; j < n; j++) {
        for (const [x, y, dx, dy] of [[i, j, 0, 1], [j, i, 1, 0]]) {
          for (const [a, b] of [[x, y], [x + dx, y + dy]]) {
            places.push(a * cell, b * cell, 0);
            colours.push(...tone.lerpColors(near, far, Math.min(1, 0.25 + Math.hypot(a, b) / n)).toArray());
          }
        }
      }
    }
    const shape = new T.BufferGeometry();
    shape.setAttribute("position", new T.BufferAttribute(new Float32Array(places), 3));
    shape.setAttribute("color", new T.BufferAttribute(new Float32Array(colours), 3));
    this.cell = cell;
    return new T.LineSegments(shape, new T.LineBasicMaterial({ vertexColors: true }));
  }

  linkMesh(link) {
    const T = THREE, flat = new T.BufferGeometry();
    flat.setAttribute("position", new T.BufferAttribute(link.vertices, 3));
    flat.setIndex(new T.BufferAttribute(link.faces, 1));
    const shape = T.toCreasedNormals(flat, 0.7);
    const colours = new Float32Array(shape.attributes.position.count * 4), tone = new T.Color();
    let at = 0;
    for (const [triangles, red, green, blue, opacity] of link.tones) {
      tone.setRGB(red, green, blue, "srgb");
      for (let k = 0; k < 3 * triangles; k++, at += 4) colours.set([tone.r, tone.g, tone.b, opacity], at);
    }
    shape.setAttribute("color", new T.BufferAttribute(colours, 4));
    const mesh = new T.Mesh(shape, new T.MeshStandardMaterial({
      vertexColors: true, roughness: 0.62, transparent: link.tones.some((t) => t[4] < 1) }));
    mesh.castShadow = mesh.receiveShadow = true;
    this.scene.add(mesh);
    return mesh;
  }

  /** A small circle drawn over everything. */
  dot(r) {
    const T = THREE;
    const disc = (radius, colour, order) => {
      const mesh = new T.Mesh(new T.SphereGeometry(radius, 20, 12),
                              new T.MeshBasicMaterial({ color: colour, depthTest: false, transparent: true }));
      mesh.renderOrder = order;
      return mesh;
    };
    const dot = disc(r, this.motion.ink, 10);
    dot.add(disc(0.66 * r, this.motion.paper, 11));
    this.scene.add(dot);
    return dot;
  }

  joint(connection) {
    const T = THREE, r = Math.max(0.011 * this.motion.size, 0.005 * this.motion.radius);
    const ring = new T.Mesh(new T.RingGeometry(0.86 * r, r, 48), new T.MeshBasicMaterial({
      color: this.motion.accent, depthTest: false, transparent: true }));
    ring.renderOrder = 12;
    this.scene.add(ring);
    return { ...connection, dot: this.dot(r), ring, point: new T.Vector3(...connection.point) };
  }

  /** A contact force: shaft and head, both along z and of length 1, drawn over everything. */
  arrow() {
    const T = THREE, around = 12;
    return [1, 0].map((tip) => {
      const places = [], faces = [];
      for (let i = 0; i < around; i++) {
        const a = 2 * Math.PI * i / around, x = Math.cos(a), y = Math.sin(a), j = 2 * i, k = 2 * ((i + 1) % around);
        places.push(x, y, 0, tip * x, tip * y, 1);
        faces.push(j, k, k + 1, j, k + 1, j + 1);
      }
      const shape = new T.BufferGeometry();
      shape.setAttribute("position", new T.BufferAttribute(new Float32Array(places), 3));
      shape.setIndex(new T.BufferAttribute(new Uint32Array(faces), 1));
      const mesh = new T.Mesh(shape, new T.MeshBasicMaterial({ depthTest: false, transparent: true }));
      mesh.renderOrder = 8;
      this.scene.add(mesh);
      return mesh;
    });
  }

  /** Arrows as they are at frame k. */
  push(k) {
    const { arrows, frames: n, unit, size, sticks, slides } = this.motion, thick = 0.008 * size, head = 0.05 * size;
    this.arrows.forEach(([shaft, tip], i) => {
      const at = (j) => arrows[(7 * i + j) * n + k], mode = at(6);
      shaft.visible = tip.visible = this.forces && mode > 0;
      if (!shaft.visible) return;
      const along = new THREE.Vector3(at(3) * unit, at(4) * unit, at(5) * unit), length = along.length();
      const end = Math.min(head, 0.6 * length);
      along.divideScalar(length);
      shaft.position.set(at(0) * unit, at(1) * unit, at(2) * unit);
      tip.position.copy(shaft.position).addScaledVector(along, length - end);
      shaft.scale.set(thick, thick, length - end);
      tip.scale.set(0.42 * end, 0.42 * end, end);
      for (const mesh of [shaft, tip]) {
        mesh.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), along);
        mesh.material.color.set(mode === 1 ? sticks : slides);
      }
    });
  }

  /** The view of the start: the whole motion, or what moves if it goes far. */
  home() {
    const { azimuth: a, elevation: e, middle, follow, view: [wide, tall, deep], radius } = this.motion;
    const towards = new THREE.Vector3(-Math.sin(a) * Math.cos(e), -Math.cos(a) * Math.cos(e), Math.sin(e));
    const slope = Math.tan(this.camera.fov * Math.PI / 360), room = 0.74;  // of the height: the rest is title and bar
    const distance = Math.max(wide / (0.92 * slope * this.camera.aspect), tall / (room * slope)) + 0.35 * deep;
    const target = this.controls.target;
    if (follow) target.copy(this.centre);
    else target.set(...middle);
    target.z -= 0.06 * distance * slope;
    this.camera.position.copy(target).addScaledVector(towards, distance);
    this.camera.near = 0.01 * radius;
    this.camera.far = 100 * radius;
    this.camera.updateProjectionMatrix();
    this.controls.update();
  }

  resize() {
    const { clientWidth: w, clientHeight: h } = this.renderer.domElement;
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.renderer.setSize(w, h, false);
    this.camera.aspect = w / h;
    this.camera.updateProjectionMatrix();
    if (!this.moved) this.home();
  }

  /** Put everything where it is at frame k + s, between two frames. */
  pose(frame, t) {
    const { poses, frames: n, unit, turn } = this.motion;
    const k = Math.min(Math.floor(frame), n - 1), l = Math.min(k + 1, n - 1), s = frame - k, [a, b] = this.q;
    let mass = 0, x = 0, y = 0, z = 0;
    this.links.forEach((mesh, i) => {
      const row = 7 * i * n, at = (j) => (poses[row + j * n + k] * (1 - s) + poses[row + j * n + l] * s);
      mesh.position.set(at(0) * unit, at(1) * unit, at(2) * unit);
      a.set(at(4) * turn, at(5) * turn, at(6) * turn, at(3) * turn).normalize();
      mesh.quaternion.copy(a);
      mesh.updateMatrixWorld();
      const w = this.motion.links[i].weight;
      mass += w; x += w * mesh.position.x; y += w * mesh.position.y; z += w * mesh.position.z;
    });
    this.follow(x / mass, y / mass, z / mass);
    for (const joint of this.joints) this.mark(joint, t);
    this.push(k);
  }

  follow(x, y, z) {
    const m = this.motion;
    if (m.follow) {
      const dx = x - this.centre.x, dy = y - this.centre.y, dz = z - this.centre.z;
      this.controls.target.set(this.controls.target.x + dx, this.controls.target.y + dy, this.controls.target.z + dz);
      this.camera.position.set(this.camera.position.x + dx, this.camera.position.y + dy, this.camera.position.z + dz);
    }
    this.centre.set(x, y, z);
    const [cx, cy, cz] = m.follow ? [x, y, z] : m.middle;
    this.sun.target.position.set(cx, cy, cz);
    this.sun.position.set(cx - 1.6 * m.radius, cy - 2.2 * m.radius, cz + 4.5 * m.radius);
    this.floor.position.set(cx, cy, m.floor);
    this.grid.position.set(Math.round(cx / this.cell) * this.cell, Math.round(cy / this.cell) * this.cell, m.floor);
  }

  /** A connection: a dot while it lasts (if it is one to be marked), a ring that spreads when it is made or cut. */
  mark(joint, t) {
    const here = joint.dot.position.copy(joint.point);
    if (joint.link >= 0) here.applyMatrix4(this.links[joint.link].matrixWorld);
    joint.dot.visible = joint.seen && joint.spans.some(([from, to]) => from <= t && t < to);
    let since = Infinity;
    for (const [from, to] of joint.spans) {
      for (const at of [from, to]) if (at > this.motion.start && at < this.motion.end && t >= at) since = Math.min(since, t - at);
    }
    joint.ring.visible = since < FLASH;
    joint.ring.position.copy(here);
    joint.ring.quaternion.copy(this.camera.quaternion);
    joint.ring.scale.setScalar(1 + 9 * Math.sqrt(since / FLASH));
    joint.ring.material.opacity = 1 - since / FLASH;
  }

  draw() {
    this.controls.update();
    this.renderer.render(this.scene, this.camera);
  }
}

/** Energy over time behind the slider, changes of structure as upright lines, and a line at the present. */
class Timeline {
  constructor(motion, canvas) {
    this.motion = motion;
    this.canvas = canvas;
    this.back = document.createElement("canvas");
  }

  resize() {
    const scale = Math.min(devicePixelRatio, 2), m = this.motion, { clientWidth: w, clientHeight: h } = this.canvas;
    for (const canvas of [this.canvas, this.back]) [canvas.width, canvas.height] = [w * scale, h * scale];
    Object.assign(this, { w, h, scale });
    const c = this.back.getContext("2d"), foot = 5;
    c.scale(scale, scale);
    const all = m.energy.flatMap(({ values }) => values), low = Math.min(...all), span = Math.max(...all) - low || 1;
    c.fillStyle = m.faint;
    c.fillRect(0, h - foot, w, 1);
    for (const event of m.events) {
      c.fillStyle = m.ink;
      c.fillRect(this.x(event.t) - 0.5, 14, 1, h - foot - 14);
    }
    c.lineWidth = 1.5;
    c.lineJoin = "round";
    for (const { colour, values } of m.energy) {
      c.strokeStyle = colour;
      c.beginPath();
      values.forEach((v, k) => c.lineTo(this.x(m.start + (m.end - m.start) * k / (values.length - 1)),
                                        18 + (h - foot - 22) * (1 - (v - low) / span)));
      c.stroke();
    }
    c.font = "11px system-ui, DejaVu Sans, sans-serif";
    let at = 2;
    for (const { name, colour } of w > 260 ? m.energy : []) {
      c.fillStyle = colour;
      c.fillText(name, at, 11);
      at += c.measureText(name).width + 10;
    }
  }

  x(t) { return 1 + (this.w - 2) * (t - this.motion.start) / (this.motion.end - this.motion.start || 1); }

  draw(t) {
    const c = this.canvas.getContext("2d"), x = this.x(t), m = this.motion;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.clearRect(0, 0, this.canvas.width, this.canvas.height);
    c.drawImage(this.back, 0, 0);
    c.scale(this.scale, this.scale);
    c.fillStyle = m.accent;
    c.fillRect(x - 1, 0, 2, this.h - 5);
    c.beginPath();
    c.arc(x, this.h - 5, 4.5, 0, 7);
    c.fill();
  }
}

class Player {
  constructor(motion) {
    Object.assign(this, { motion, time: motion.start, playing: false, stale: true, last: null });
    this.stage = new Stage(motion, $("stage"));
    this.line = new Timeline(motion, $("line").querySelector("canvas"));
    this.slider = $("line").querySelector("input");
    this.slider.max = motion.frames - 1;
    document.querySelector("#head h1").textContent = motion.title;
    this.items = motion.events.map((event) => {
      const item = document.createElement("li"), button = document.createElement("button"), at = document.createElement("time");
      at.textContent = `${event.t.toFixed(2)} s`;
      button.append(at, event.text);
      button.addEventListener("click", () => this.seek(event.t));
      item.append(button);
      $("events").append(item);
      return item;
    });
    this.box = $("forces").querySelector("input");
    $("forces").hidden = !motion.pairs.length;
    for (const name of ["sticks", "slides"]) $("forces").querySelector(`.${name}`).style.color = motion[name];
    for (const speed of SPEEDS) $("speed").append(new Option(`${speed}×`, speed, speed === 1, speed === 1));
    this.listen();
    this.resize();
    this.stage.pose(0, this.time);
    this.stage.home();
    const asked = /[#&]t=([-+.\deE]+)/.exec(location.hash);
    if (asked) this.seek(Number(asked[1]));
    else if (!matchMedia("(prefers-reduced-motion: reduce)").matches && motion.frames > 1) this.play();
    this.icon();
    requestAnimationFrame((now) => this.tick(now));
  }

  listen() {
    $("play").addEventListener("click", () => this.toggle());
    this.box.addEventListener("change", () => { this.stage.forces = this.box.checked; this.stale = true; });
    this.slider.addEventListener("input", () => this.seek(this.motion.start + this.slider.value / this.motion.fps));
    addEventListener("resize", () => this.resize());
    this.stage.controls.addEventListener("change", () => { this.stale = true; });
    addEventListener("keydown", (event) => {
      const own = event.target.tagName;  // buttons and lists have keys of their own
      if (own === "SELECT" || (own === "BUTTON" && event.key === " ")) return;
      const step = { ArrowLeft: -1, ArrowRight: 1, ",": -1, ".": 1 }[event.key];
      if (event.key === " ") this.toggle();
      else if (step) this.seek(this.time + step / this.motion.fps);
      else if (event.key === "f") this.box.click();
      else if (event.key === "Home") this.seek(this.motion.start);
      else if (event.key === "End") this.seek(this.motion.end);
      else return;
      event.preventDefault();
    });
  }

  resize() {
    this.stage.resize();
    this.line.resize();
    this.stale = true;
  }

  play() {
    if (this.time >= this.motion.end) this.time = this.motion.start;
    this.playing = true;
    this.last = null;
    this.icon();
  }

  pause() {
    this.playing = false;
    this.icon();
  }

  toggle() { if (this.playing) this.pause(); else this.play(); }

  seek(t) {
    this.pause();
    this.time = Math.min(Math.max(t, this.motion.start), this.motion.end);
    this.stale = true;
  }

  icon() {
    $("play").querySelector("path").setAttribute("d", this.playing ? "M4 2h4v14H4zM10 2h4v14h-4z" : "M5 2l11 7-11 7z");
  }

  tick(now) {
    const { start, end, fps } = this.motion;
    if (this.playing) {
      const passed = this.last === null ? 0 : Math.min((now - this.last) / 1000, 0.25);
      this.time += passed * Number($("speed").value);
      if (this.time > end + 0.8) this.time = start;  // the end is seen for a moment, then again from the start
      this.stale = true;
    }
    this.last = now;
    if (this.stage.controls.update()) this.stale = true;
    if (this.stale) {
      const t = Math.min(this.time, end);
      this.stage.pose((t - start) * fps, t);
      this.stage.draw();
      this.line.draw(t);
      this.slider.value = Math.round((t - start) * fps);
      $("now").textContent = `${t.toFixed(2)} s`;
      this.items.forEach((item, k) => item.classList.toggle("past", this.motion.events[k].t <= t));
      this.stale = false;
    }
    requestAnimationFrame((next) => this.tick(next));
  }
}

async function open() {
  if (!window.DecompressionStream) throw new Error("This page needs a browser of 2023 or later.");
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await unpacked("three"));
  document.head.append(script);
  const player = new Player(parsed(await unpacked("motion")));
  window.replay = Object.assign(player, { ready: window.replay.ready });
}

window.replay = {
  ready: open().catch((error) => {
    $("fault").style.display = "grid";
    $("fault").textContent = /WebGL/.test(error) ? "This page needs WebGL, which this browser has switched off." : String(error);
    throw error;
  }),
};
