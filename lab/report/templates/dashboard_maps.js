// The dashboard's pictures of dies, channels and blocks.
"use strict";

const maps = (() => {
  const KINDS = [["read", "--read"], ["write", "--write"], ["gc", "--gc"], ["tables", "--metadata"]];
  const LEFT = 118, BOTTOM = 22;
  const lane = (count) => Math.max(5, Math.min(18, Math.floor(440 / count)));
  const tip = figures.element("tip");

  // A canvas of the width of its holder, cleared and scaled to the screen.
  function canvasOf(id, height) {
    const canvas = figures.element(id).querySelector("canvas");
    const width = canvas.parentElement.clientWidth, dpr = devicePixelRatio || 1;
    canvas.style.height = height + "px";
    [canvas.width, canvas.height] = [Math.round(width * dpr), Math.round(height * dpr)];
    const g = canvas.getContext("2d");
    g.scale(dpr, dpr);
    g.font = "11px system-ui, sans-serif";
    figures.element(id).dataset.drawn = "yes";
    return { g, width, height };
  }

  function labels(g, names, high, width) {
    g.textAlign = "right";
    g.textBaseline = "middle";
    let last = -99;
    names.forEach((name, row) => {
      g.fillStyle = charts.css("--faint");
      g.fillRect(LEFT, (row + 1) * high - 1, width - LEFT, 1);
      if (row * high - last < 13) return;
      last = row * high;
      g.fillStyle = charts.css("--soft");
      // Half a line from the edge at least, so that the topmost is whole.
      g.fillText(name, LEFT - 8, Math.max(7, row * high + high / 2));
    });
  }

  // The text for the pointer over a canvas, by a function of its place.
  function point(id, told) {
    const canvas = figures.element(id).querySelector("canvas");
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const text = told(event.clientX - box.left, event.clientY - box.top, box.width);
      tip.hidden = text === null;
      tip.textContent = text ?? "";
      tip.style.left = Math.min(event.clientX + 14, innerWidth - 300) + "px";
      tip.style.top = event.clientY + 16 + "px";
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  let shown = null;
  const names = (layout) => [...layout.dies, ...layout.channels];
  // The shares of a frame by row: dies, then channels.
  const share = (drive, kind, row, dies) => row < dies ? drive.dies[kind][row] : drive.channels[kind][row - dies];

  function strip(history, d, layout) {
    shown = { history, d, layout };
    const height = names(layout).length * lane(names(layout).length) + BOTTOM;
    const { g, width } = canvasOf("strip", height);
    figures.element("strip").dataset.points = stripOn(g, width, height);
    const svg = () => exports.picture(figures.element("strip"), width, height, (g) => stripOn(g, width, height));
    exports.offer(figures.element("strip"), { svg, csv: stripCsv });
  }

  // Draws it, and tells how many parts it has.
  function stripOn(g, width, height) {
    const { history, d, layout } = shown, all = names(layout), high = lane(all.length);
    g.font = "11px system-ui, sans-serif";
    labels(g, all, high, width);
    const now = history[history.length - 1].wall_s;
    const x = (s) => LEFT + (s - now + 60) / 60 * (width - LEFT);
    let drawn = 0;
    for (const [kind, color] of KINDS) {
      g.fillStyle = charts.css(color);
      for (const frame of history) {
        const drive = frame.drives[d];
        if (!drive.dies) continue;
        const left = Math.max(LEFT, x(frame.wall_s - frame.interval_s)), right = x(frame.wall_s);
        all.forEach((_, row) => {
          const busy = share(drive, kind, row, layout.dies.length);
          if (busy === 0) return;
          // Stacked from the bottom of the row, in the order of the kinds.
          let below = 0;
          for (const [other] of KINDS) { if (other === kind) break; below += share(drive, other, row, layout.dies.length); }
          const tall = Math.max(1, busy / 100 * (high - 1));
          const bottom = Math.min(below / 100, 1) * (high - 1);
          g.fillRect(left, Math.max(row * high, (row + 1) * high - 1 - bottom - tall), Math.max(0.5, right - left + 0.3), tall);
          drawn++;
        });
      }
    }
    g.fillStyle = charts.css("--soft");
    g.textBaseline = "alphabetic";
    for (const s of [-60, -40, -20, 0]) {
      g.textAlign = s === 0 ? "right" : s === -60 ? "left" : "center";
      g.fillText(s === 0 ? "now" : `${-s} s ago`, x(now + s), height - 6);
    }
    return drawn;
  }

  function stripCsv() {
    const { history, d, layout } = shown;
    const rows = history.filter((frame) => frame.drives[d].dies).flatMap((frame) => names(layout).map((name, row) =>
      [name, frame.wall_s - frame.interval_s, frame.wall_s, ...KINDS.map(([kind]) => share(frame.drives[d], kind, row, layout.dies.length))]));
    return exports.csv([["lane", "from_s", "to_s", ...KINDS.map(([kind]) => kind + "_percent")], ...rows]);
  }

  point("strip", (px, py, width) => {
    if (shown === null) return null;
    const { history, d, layout } = shown, all = names(layout);
    const row = Math.floor(py / lane(all.length));
    const at = history[history.length - 1].wall_s - 60 * (1 - (px - LEFT) / (width - LEFT));
    const frame = history.find((one) => at <= one.wall_s && at > one.wall_s - one.interval_s);
    if (row < 0 || row >= all.length || px < LEFT || !frame?.drives[d].dies) return null;
    const busy = KINDS.map(([kind]) => [kind, share(frame.drives[d], kind, row, layout.dies.length)]).filter(([, of]) => of > 0);
    return `${all[row]}: ${busy.map(([kind, of]) => `${kind === "gc" ? "GC" : kind} ${of}%`).join(", ") || "idle"}`;
  });

  function stripTable(history, d, layout) {
    const last = history.slice(-4).map((frame) => frame.drives[d]).filter((drive) => drive.dies);
    const rows = names(layout).map((name, row) => {
      const busy = KINDS.map(([kind]) => last.reduce((sum, drive) => sum + share(drive, kind, row, layout.dies.length), 0) / Math.max(1, last.length));
      return [name, ...busy.map((of) => of.toFixed(0)), Math.max(0, 100 - busy.reduce((sum, of) => sum + of, 0)).toFixed(0)];
    });
    figures.table("strip-table", ["%", "reads", "writes", "GC and wear", "tables", "idle"], rows);
  }

  // Operations of a few milliseconds, drawn as in the page of a run.
  let scopeOf = null, draw = null;
  function scope(told, layout) {
    const planes = layout.planes_per_die, dies = layout.dies.length;
    const plane = told.lane.map((lane) => lane < dies * planes ? lane : (dies + lane - dies * planes) * planes);
    const operations = { from_s: 0, plane, kind: told.kind, start_ns: told.start_ns, duration_ns: told.duration_ns };
    const model = { from: 0, to: Math.max(told.length_us, 1) / 1e6, operations };
    if (scopeOf !== layout) {
      scopeOf = layout;
      figures.element("scope").querySelector(".timeline").replaceChildren(figures.make("canvas", undefined, { role: "img", "aria-label": "Every operation of a few milliseconds, by die and channel" }));
      draw = timeline.add("scope", { ...model, dies: names(layout), diesOnly: dies, planesPerDie: planes });
    } else {
      draw(model);
    }
    const text = `Operations of the arrays and transfers on the channels that ended within ${charts.us(told.length_us)} from ${figures.clock(told.from_s)} of drive time, captured anew each second: ${told.lane.length} of them.`;
    figures.element("scope-text").textContent = text;
  }

  let worn = null;
  function wear(told, layout) {
    worn = { told, layout };
    const height = told.dies.length * lane(told.dies.length) + 4, { g, width } = canvasOf("wear", height);
    const { least, most } = wearOn(g, width);
    exports.offer(figures.element("wear"), { svg: () => exports.picture(figures.element("wear"), width, height, (g) => wearOn(g, width)), csv: wearCsv });
    figures.element("wear").dataset.points = told.dies.length;
    const bad = told.dies.reduce((sum, die) => sum + die.bad, 0);
    figures.element("wear-text").textContent = `Erases of ${told.blocks_per_group === 1 ? "each block" : `the most worn block of each group of ${told.blocks_per_group} neighbours`}, a line for each die: from ${least} (pale) to ${most} (strong). ${bad === 0 ? "No block is bad." : `${bad} blocks are bad; where no good one is left, it is black, or white on a dark page.`}`;
    figures.table("wear-table", ["erases", "least worn", "mean", "most worn", "bad blocks"], told.dies.map((die, row) => [layout.dies[row], String(die.least), die.mean.toFixed(2), String(die.most), String(die.bad)]));
  }

  // Draws it, and tells the least and the most erases.
  function wearOn(g, width) {
    const { told, layout } = worn, high = lane(told.dies.length);
    g.font = "11px system-ui, sans-serif";
    labels(g, layout.dies, high, width);
    const least = Math.min(...told.dies.map((die) => die.least)), most = Math.max(...told.dies.map((die) => die.most));
    told.dies.forEach((die, row) => die.groups.forEach((erases, nth) => {
      const wide = (width - LEFT) / die.groups.length;
      const block = (color, depth) => {
        [g.fillStyle, g.globalAlpha] = [charts.css(color), depth];
        g.fillRect(LEFT + nth * wide, row * high, Math.max(wide - 1, 1), high - 1);
      };
      block(erases === null ? "--ink" : "--panel", 1);
      if (erases !== null) block("--erase", 0.1 + 0.9 * (erases - least) / Math.max(1, most - least));
    }));
    g.globalAlpha = 1;
    return { least, most };
  }

  function wearCsv() {
    const { told, layout } = worn;
    const rows = told.dies.flatMap((die, row) => die.groups.map((erases, nth) => [layout.dies[row], nth * told.blocks_per_group, told.blocks_per_group, erases]));
    return exports.csv([["die", "first_block", "blocks", "most_erases"], ...rows]);
  }

  point("wear", (px, py, width) => {
    if (worn === null) return null;
    const row = Math.floor(py / lane(worn.told.dies.length)), die = worn.told.dies[row];
    const nth = Math.floor((px - LEFT) / (width - LEFT) * (die?.groups.length ?? 0));
    if (!die || px < LEFT || die.groups[nth] === undefined) return null;
    const from = nth * worn.told.blocks_per_group;
    const blocks = worn.told.blocks_per_group === 1 ? `block ${from}` : `blocks ${from} to ${from + worn.told.blocks_per_group - 1}`;
    return `${worn.layout.dies[row]}, ${blocks}: ${die.groups[nth] === null ? "all bad" : `${die.groups[nth]} erases at most`}`;
  });

  return { strip, stripTable, scope, wear };
})();
