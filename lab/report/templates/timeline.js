// The activity of each die, of each of several drives, or of each processor of a host, over time, one line each. Drag to zoom in, double-click to zoom out.
"use strict";

const timeline = (() => {
  const KINDS = ["read", "program", "gc", "erase", "transfer"];
  const NAMES = { read: "reading for the host", program: "programming for the host", gc: "garbage collection or wear levelling", erase: "erasing", transfer: "a transfer" };
  const tip = () => document.getElementById("tip");

  // Times for the axis: about `room` round steps between two times.
  const steps = (from, to, room) => {
    const raw = (to - from) / Math.max(1, room);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw * 0.999);
    const ticks = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to; n++) ticks.push(n * step);
    return { ticks, step };
  };
  const time = (s, step) => {
    const [unit, size] = step >= 0.1 ? ["s", 1] : step >= 1e-3 ? ["ms", 1e-3] : ["µs", 1e-6];
    const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
    return (s / size).toFixed(Math.min(3, digits)) + " " + unit;
  };

  // model: dies (labels), planesPerDie, from, to (seconds); shares or operations; kinds (names and colors of the shares, if not those of flash); windows (by line, [from, to]); mark {from, to, text, die}; marks of {from, until, color}.
  function add(id, model) {
    const figure = document.getElementById(id);
    if (!figure) return;
    const holder = figure.querySelector(".timeline");
    const canvas = holder.querySelector("canvas");
    const drag = document.createElement("div");
    drag.className = "drag";
    drag.hidden = true;
    holder.append(drag);
    let [from, to] = [model.from, model.to];
    let lanes = model.lanes ?? model.dies.map((_, die) => die);
    const kindsOf = model.kinds ? Object.keys(model.kinds) : KINDS;
    const top = model.mark ? 18 : 4;
    const LEFT = 118, BOTTOM = 22;

    const laneHeight = () => model.laneHeight ?? Math.max(7, Math.min(22, Math.floor(520 / lanes.length)));
    const x = (t, width) => LEFT + (t - from) / (to - from) * (width - LEFT - 8);
    const t = (px, width) => from + (px - LEFT) / (width - LEFT - 8) * (to - from);

    const size = () => [holder.clientWidth, top + lanes.length * laneHeight() + BOTTOM];
    function paint() {
      const [width, height] = size();
      const dpr = devicePixelRatio || 1;
      canvas.style.height = height + "px";
      canvas.width = Math.round(width * dpr);
      canvas.height = Math.round(height * dpr);
      const g = canvas.getContext("2d");
      g.scale(dpr, dpr);
      figure.dataset.points = paintOn(g, width, height);
      figure.dataset.drawn = "yes";
    }

    function paintOn(g, width, height) {
      const colors = Object.fromEntries(["ink", "soft", "faint", "line", "paper", ...kindsOf].map((name) => [name, charts.css(model.kinds?.[name] ?? "--" + name)]));
      g.font = "11px system-ui, sans-serif";
      axis(g, width, height, colors);
      labels(g, colors);
      g.save();
      g.beginPath();
      g.rect(LEFT, 0, width - LEFT - 8, height - BOTTOM);
      g.clip();
      if (model.windows) windows(g, width, colors);
      const drawn = model.shares ? shares(g, width, colors) : operations(g, width, colors);
      for (const one of model.marks ?? []) {
        g.globalAlpha = one.until > one.from ? 0.4 : 0.7;
        g.fillStyle = charts.css(one.color);
        g.fillRect(x(one.from, width), top - 2, Math.max(x(one.until, width) - x(one.from, width), 1), height - BOTTOM - top + 2);
      }
      g.globalAlpha = 1;
      if (model.mark) mark(g, width, height, colors);
      g.restore();
      return drawn;
    }

    const csv = () => {
      const head = model.shares ? [model.what ?? "die", "from_s", ...kindsOf.filter((kind) => model.shares.parts_per_million[kind]).map((kind) => kind + "_ppm")] : ["die", "plane", "kind", "start_s", "duration_us"];
      return exports.csv([head, ...(model.shares ? shareRows() : operationRows())]);
    };
    const shareRows = () => lanes.flatMap((die) => {
      const { from_s = 0, interval_s, parts_per_million: parts } = model.shares;
      const kinds = kindsOf.filter((kind) => parts[kind]);
      return parts[kinds[0]][die].map((_, i) => [model.dies[die], from_s + i * interval_s, ...kinds.map((kind) => parts[kind][die][i])]);
    });
    const operationRows = () => model.operations.plane.map((plane, i) => {
      const ops = model.operations, die = Math.floor(plane / model.planesPerDie);
      return [model.dies[die], ops.kind[i] === 4 ? "" : plane % model.planesPerDie, KINDS[ops.kind[i]], ops.from_s + ops.start_ns[i] / 1e9, ops.duration_ns[i] / 1e3];
    });

    function axis(g, width, height, colors) {
      const { ticks, step } = steps(from, to, Math.floor((width - LEFT) / 110));
      g.textAlign = "center";
      g.textBaseline = "alphabetic";
      for (const tick of ticks) {
        const px = x(tick, width);
        g.strokeStyle = colors.faint;
        g.beginPath();
        g.moveTo(px, top);
        g.lineTo(px, height - BOTTOM + 3);
        g.stroke();
        g.fillStyle = colors.soft;
        const text = time(tick, step);
        const half = g.measureText(text).width / 2;
        g.fillText(text, Math.min(px, width - half - 1), height - 6);
      }
    }

    function labels(g, colors) {
      const lane = laneHeight();
      g.textAlign = "right";
      g.textBaseline = "middle";
      let last = -99;
      lanes.forEach((die, row) => {
        const y = top + row * lane;
        g.fillStyle = colors.faint;
        g.fillRect(LEFT, y + lane - 1, holder.clientWidth - LEFT - 8, 1);
        if (y - last < 13) return;
        last = y;
        label(g, model.dies[die], y + lane / 2, colors.soft);
      });
      const row = lanes.indexOf(model.mark?.die);
      if (row < 0) return;
      // Where labels are left out, that of the marked die takes the place of its neighbours.
      const y = top + row * lane + lane / 2;
      g.fillStyle = colors.paper;
      g.fillRect(0, y - 12, LEFT - 6, 24);
      g.font = "600 11px system-ui, sans-serif";
      label(g, model.dies[model.mark.die], y, colors.ink);
      g.font = "11px system-ui, sans-serif";
    }

    // A label's middle is half a line from the edge at least, so that the topmost is whole.
    function label(g, text, y, color) {
      g.fillStyle = color;
      g.fillText(text, LEFT - 8, Math.max(7, y));
    }

    // A window is a pale field over its line, if it is wide enough to be seen apart.
    function windows(g, width, colors) {
      const lane = laneHeight();
      g.fillStyle = colors.ink;
      lanes.forEach((die, row) => {
        for (const [begin, end] of model.windows[die]) {
          const [left, right] = [x(begin, width), x(end, width)];
          if (end < from || begin > to || right - left < 2) continue;
          g.globalAlpha = 0.13;
          g.fillRect(left, top + row * lane, right - left, lane - 1);
          g.globalAlpha = 1;
        }
      });
    }

    // Each interval of a die is a small column: the shares of its kinds of work, idle above. Shares above 0 are at
    // least one pixel high; if a column gets too high, its largest part is reduced.
    function shares(g, width, colors) {
      const { from_s = 0, interval_s, parts_per_million: parts } = model.shares;
      const lane = laneHeight();
      let drawn = 0;
      lanes.forEach((die, row) => {
        const count = parts[kindsOf[0]][die].length;
        const first = Math.max(0, Math.floor((from - from_s) / interval_s)), last = Math.min(count, Math.ceil((to - from_s) / interval_s));
        for (let i = first; i < last; i++) {
          const left = x(from_s + i * interval_s, width), right = x(Math.min(from_s + (i + 1) * interval_s, model.to), width);
          const kinds = kindsOf.filter((kind) => parts[kind]?.[die][i] > 0);
          if (kinds.length === 0) continue;
          const heights = kinds.map((kind) => Math.max(1, parts[kind][die][i] / 1e6 * (lane - 1)));
          const over = heights.reduce((sum, h) => sum + h, 0) - (lane - 1);
          if (over > 0) heights[heights.indexOf(Math.max(...heights))] -= over;
          let y = top + (row + 1) * lane - 1;
          kinds.forEach((kind, n) => {
            g.fillStyle = colors[kind];
            g.fillRect(left, y - heights[n], Math.max(right - left, 1), heights[n]);
            y -= heights[n];
            drawn++;
          });
        }
      });
      return drawn;
    }

    function operations(g, width, colors) {
      const ops = model.operations;
      const lane = laneHeight(), per = (lane - 2) / model.planesPerDie;
      const rows = new Map(lanes.map((die, row) => [die, row]));
      let drawn = 0;
      for (let i = 0; i < ops.plane.length; i++) {
        const row = rows.get(Math.floor(ops.plane[i] / model.planesPerDie));
        if (row === undefined) continue;
        const start = ops.from_s + ops.start_ns[i] / 1e9, end = start + ops.duration_ns[i] / 1e9;
        if (end < from || start > to) continue;
        const left = x(start, width), right = x(end, width);
        g.fillStyle = colors[KINDS[ops.kind[i]]];
        // A transfer has its channel's whole lane.
        const [within, high] = ops.kind[i] === 4 ? [0, lane - 2] : [ops.plane[i] % model.planesPerDie, per];
        g.fillRect(left, top + row * lane + 1 + within * per, Math.max(right - left - 0.4, 0.6), Math.max(high - 0.5, 1));
        drawn++;
      }
      return drawn;
    }

    function mark(g, width, height, colors) {
      const [left, right] = [x(model.mark.from, width), x(model.mark.to, width)];
      g.fillStyle = colors.ink;
      g.globalAlpha = 0.06;
      g.fillRect(left, top - 2, right - left, height - BOTTOM - top + 2);
      g.globalAlpha = 1;
      g.strokeStyle = colors.ink;
      g.lineWidth = 1;
      for (const px of [left, right]) { g.beginPath(); g.moveTo(px, top - 5); g.lineTo(px, height - BOTTOM); g.stroke(); }
      g.beginPath(); g.moveTo(left, top - 4.5); g.lineTo(right, top - 4.5); g.stroke();
      const row = lanes.indexOf(model.mark.die);
      if (row >= 0) frame(g, left, right, top + row * laneHeight());
      g.textBaseline = "alphabetic";
      g.textAlign = "left";
      const size = g.measureText(model.mark.text).width;
      g.fillText(model.mark.text, Math.max(LEFT + 2, Math.min((left + right - size) / 2, width - 10 - size)), top - 8);
    }

    // A frame around the marked die's line, while the request was in work.
    function frame(g, left, right, y) {
      const bottom = y + laneHeight() - 0.5;
      g.lineWidth = 1.5;
      g.beginPath();
      g.moveTo(left, y - 0.5); g.lineTo(right, y - 0.5); g.lineTo(right, bottom); g.lineTo(left, bottom); g.lineTo(left, y - 0.5);
      g.stroke();
      g.lineWidth = 1;
    }

    // The text for the item under the pointer.
    function told(px, py) {
      const row = Math.floor((py - top) / laneHeight());
      if (px < LEFT || row < 0 || row >= lanes.length) return null;
      const die = lanes[row], at = t(px, holder.clientWidth);
      if (model.shares) {
        const { from_s = 0, interval_s, parts_per_million: shares } = model.shares;
        const i = Math.floor((at - from_s) / interval_s);
        if (!(i >= 0 && i < shares[kindsOf[0]][die].length)) return null;
        const { step } = steps(from, to, 100);
        const busy = kindsOf.filter((kind) => shares[kind]).map((kind) => [kind, shares[kind][die][i] / 1e4]).filter(([, share]) => share > 0);
        const idle = Math.max(0, 100 - busy.reduce((sum, [, share]) => sum + share, 0));
        const parts = [...busy.map(([kind, share]) => `${kind === "gc" ? "GC" : kind} ${charts.percent(share / 100)}`), `idle ${Number(idle.toFixed(4))}%`];
        const inWindow = model.windows?.[die].some(([begin, end]) => begin <= at && at < end) ? ", in its window" : "";
        return `${model.dies[die]}, ${charts.seconds(interval_s)} from ${time(from_s + i * interval_s, step)}: ${parts.join(", ")}${inWindow}`;
      }
      const ops = model.operations, per = (laneHeight() - 2) / model.planesPerDie;
      const within = Math.min(model.planesPerDie - 1, Math.max(0, Math.floor((py - top - row * laneHeight() - 1) / per)));
      const isChannel = die >= (model.diesOnly ?? model.dies.length);
      const plane = die * model.planesPerDie + (isChannel ? 0 : within);
      const where = isChannel ? model.dies[die] : `${model.dies[die]} plane ${within}`;
      const slack = (to - from) / holder.clientWidth;
      for (let i = 0; i < ops.plane.length; i++) {
        const start = ops.from_s + ops.start_ns[i] / 1e9, end = start + ops.duration_ns[i] / 1e9;
        if (ops.plane[i] === plane && at >= start - slack && at <= end + slack) {
          return `${where}: ${NAMES[KINDS[ops.kind[i]]]}, ${charts.us(ops.duration_ns[i] / 1e3)}`;
        }
      }
      return `${where}: idle`;
    }

    const zoom = (a, b) => {
      const least = 2e-6;
      if (b - a < least) { const middle = (a + b) / 2; [a, b] = [middle - least / 2, middle + least / 2]; }
      const span = Math.min(b - a, model.to - model.from);
      from = Math.min(Math.max(a, model.from), model.to - span);
      to = from + span;
      paint();
    };
    let begun = null;
    const position = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("pointerdown", (event) => { begun = position(event)[0]; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = position(event);
      if (begun !== null) {
        drag.hidden = Math.abs(px - begun) < 4;
        drag.style.left = Math.max(LEFT, Math.min(px, begun)) + "px";
        drag.style.width = Math.abs(px - begun) + "px";
      }
      const text = told(px, py);
      tip().hidden = text === null;
      tip().textContent = text ?? "";
      tip().style.left = Math.min(event.clientX + 14, innerWidth - 300) + "px";
      tip().style.top = event.clientY + 16 + "px";
    });
    canvas.addEventListener("pointerup", (event) => {
      const px = position(event)[0], width = holder.clientWidth;
      if (begun !== null && Math.abs(px - begun) >= 4) zoom(t(Math.min(px, begun), width), t(Math.max(px, begun), width));
      begun = null;
      drag.hidden = true;
    });
    canvas.addEventListener("pointerleave", () => { tip().hidden = true; });
    canvas.addEventListener("dblclick", () => zoom(model.from, model.to));
    const by = (factor) => { const middle = (from + to) / 2, half = (to - from) / 2 * factor; zoom(middle - half, middle + half); };
    const shift = (share) => zoom(from + share * (to - from), to + share * (to - from));
    const actions = { in: () => by(0.5), out: () => by(2), left: () => shift(-0.5), right: () => shift(0.5), all: () => zoom(model.from, model.to) };
    figure.querySelectorAll("button[data-do]").forEach((button) => button.addEventListener("click", actions[button.dataset.do]));
    const select = figure.querySelector("select");
    if (select) {
      const channels = [...new Set(model.dies.map((name) => name.split(" die ")[0]))];
      select.append(...["all dies", ...channels].map((name) => new Option(name, name)));
      select.addEventListener("change", () => {
        lanes = model.dies.map((_, die) => die).filter((die) => select.value === "all dies" || model.dies[die].startsWith(select.value + " die"));
        paint();
      });
    }
    if (model.zoom) [from, to] = model.zoom;
    exports.offer(figure, { svg: () => exports.picture(figure, ...size(), (g) => paintOn(g, ...size())), csv });
    paint();
    let seen = holder.clientWidth;
    new ResizeObserver(() => { if (holder.clientWidth !== seen) { seen = holder.clientWidth; paint(); } }).observe(holder);
    charts.again.push(paint);
    // Draws another model of the same dies.
    return (next) => {
      Object.assign(model, next);
      [from, to] = [model.from, model.to];
      paint();
    };
  }

  // There is nothing to show.
  function none(id) {
    const figure = document.getElementById(id);
    if (!figure) return;
    figure.dataset.points = 0;
    figure.querySelectorAll(".controls, .key").forEach((part) => part.remove());
    figure.querySelector(".timeline").innerHTML = '<p class="none">Nothing to draw: no operation of the flash took time.</p>';
  }

  return { add, none };
})();
