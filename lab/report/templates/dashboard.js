// The dashboard: listens to the server's stream, keeps the last minute, and has it drawn.
"use strict";

(() => {
  const { element } = figures;
  const MOST = 240;
  let hello = null, history = [], wear = null, operations = null, second = null, paused = false, waiting = null;
  const d = () => Math.max(0, element("drive").selectedIndex);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const say = (text) => { if (element("state").textContent !== text) element("state").textContent = text; };

  function begin(told) {
    [hello, history, wear, operations, second] = [told, [], null, null, null];
    const select = element("drive"), name = select.value;
    select.replaceChildren(...told.drives.map((drive) => new Option(drive.name, drive.name)));
    if (told.drives.some((drive) => drive.name === name)) select.value = name;
    orders.begin(told.takes_orders);
    chosen();
    say("Live. Figures come four times a second.");
  }

  function chosen() {
    const { name, layout } = hello.drives[d()];
    orders.choose(name);
    second = null;
    element("no-inside").hidden = layout !== null;
    element("inside-charts").hidden = element("wear").hidden = layout === null;
    element("dies-left-out").textContent = layout?.dies_left_out > 0 ? `The first ${layout.dies.length} dies are shown, ${layout.dies_left_out} are not.` : "";
    show();
  }

  // What changes with every frame.
  function show() {
    waiting = null;
    if (history.length === 0) return;
    const frame = history[history.length - 1], drive = frame.drives[d()], { layout } = hello.drives[d()];
    const behind = Math.max(0, frame.wall_s - frame.time_s);
    element("times").textContent = `drive time ${figures.clock(frame.time_s)}, wall clock ${figures.clock(frame.wall_s)}${behind > 0.05 ? `: the model is ${charts.seconds(behind)} behind` : ""}`;
    lines.show(history, d());
    if (layout) maps.strip(history, d(), layout);
    if (second === null || frame.drives[d()].last_second) rarely(frame, drive, layout);
    if (layout && operations?.drives[d()].lane && operations.isNew) { operations.isNew = false; maps.scope(operations.drives[d()], layout); }
    document.documentElement.dataset.ready = "yes";
  }

  // What changes once a second, so that it can be read.
  function rarely(frame, drive, layout) {
    second = drive.last_second ?? ["reads", "writes", "others"].map((kind) => ({ kind, ...drive[kind] }));
    figures.headline(frame, drive, second);
    figures.latency(second);
    figures.counters(drive);
    figures.faults(drive);
    lines.went(history, d());
    if (layout) maps.stripTable(history, d(), layout);
    if (layout && wear?.[d()]) maps.wear(wear[d()], layout);
  }

  // Draws with the screen; a frame that comes before the last one was drawn is drawn with it. Calm pages draw once a second.
  function soon(frame) {
    if (paused || waiting !== null || (calm.matches && !frame.drives[d()].last_second && history.length > 1)) return;
    waiting = requestAnimationFrame(show);
  }

  function listen() {
    const events = new EventSource("events");
    const on = (name, take) => events.addEventListener(name, (event) => take(JSON.parse(event.data)));
    on("hello", begin);
    on("frame", (frame) => {
      if (history.length > 0 && frame.wall_s <= history[history.length - 1].wall_s) return;
      history.push(frame);
      if (history.length > MOST) history.shift();
      soon(frame);
    });
    on("wear", (told) => { wear = told; });
    on("operations", (told) => { operations = told; operations.isNew = true; });
    on("full", ({ max }) => say(`${max} pages are open already, which is as many as the server tells. This one tries again every five seconds; close another one.`));
    events.addEventListener("error", () => {
      if (events.readyState === EventSource.CLOSED) { say("The server answers no more. Load the page again."); return; }
      if (hello !== null) say("The server has gone. Trying to reach it again.");
    });
  }

  element("drive").addEventListener("change", () => { if (operations) operations.isNew = true; chosen(); });
  element("pause").addEventListener("click", () => {
    paused = !paused;
    element("pause").setAttribute("aria-pressed", String(paused));
    element("pause").textContent = paused ? "Go on" : "Pause";
    if (!paused) show();
  });
  element("tell").addEventListener("click", () => {
    const frame = history[history.length - 1];
    element("told").textContent = frame ? figures.words(hello.drives[d()].name, frame, frame.drives[d()], second) : "Nothing has come yet.";
  });
  // With the screen's width or colours all is drawn again.
  const anew = () => { second = null; show(); };
  addEventListener("resize", anew);
  charts.again.push(anew);
  listen();
})();
