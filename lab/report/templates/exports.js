// Charts as files: a picture to be copied, SVG, and CSV. Three buttons on each figure.
"use strict";

const exports = (() => {
  const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const n = (x) => Number(x.toFixed(2));
  const measure = document.createElement("canvas").getContext("2d");

  // Stands for a canvas, and writes what is drawn as SVG. As much of it as charts and timelines use.
  function drawing(width, height) {
    const parts = [];
    const ANCHOR = { left: "start", center: "middle", right: "end" }, BASE = { middle: "central", alphabetic: "alphabetic" };
    let path = "", area = null, clips = 0, dash = "";
    const saved = [];
    const g = {
      font: "11px system-ui, sans-serif", fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, textAlign: "left", textBaseline: "alphabetic",
      scale() {}, setLineDash(list) { dash = list.length === 0 ? "" : ` stroke-dasharray="${list.map(n).join(" ")}"`; },
      save() { saved.push([clips, { ...g }]); },
      restore() { const [count, before] = saved.pop(); while (clips > count) { parts.push("</svg>"); clips--; } Object.assign(g, before); },
      rect(x, y, w, h) { area = [x, y, w, h]; },
      clip() { const [x, y, w, h] = area.map(n); parts.push(`<svg x="${x}" y="${y}" width="${w}" height="${h}" viewBox="${x} ${y} ${w} ${h}">`); clips++; },
      beginPath() { path = ""; area = null; },
      moveTo(x, y) { path += `M${n(x)} ${n(y)}`; },
      lineTo(x, y) { path += `${path === "" ? "M" : "L"}${n(x)} ${n(y)}`; },
      stroke() { parts.push(`<path d="${path}" fill="none" stroke="${g.strokeStyle}" stroke-width="${g.lineWidth}" opacity="${g.globalAlpha}"${dash}/>`); },
      fill() { parts.push(`<path d="${path}" fill="${g.fillStyle}" opacity="${g.globalAlpha}"/>`); },
      fillRect(x, y, w, h) { parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${g.fillStyle}" opacity="${g.globalAlpha}"/>`); },
      fillText(text, x, y) { parts.push(`<text x="${n(x)}" y="${n(y)}" fill="${g.fillStyle}" text-anchor="${ANCHOR[g.textAlign]}" dominant-baseline="${BASE[g.textBaseline]}" style="font: ${escaped(g.font)}">${escaped(text)}</text>`); },
      measureText(text) { measure.font = g.font; return measure.measureText(text); },
      text: () => `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join("\n")}</svg>\n`,
    };
    return g;
  }

  const title = (figure) => figure.querySelector("h3")?.textContent ?? figure.id;

  // A picture with its title above, on paper: `draw` draws into a width from y = 0 and tells the height that it takes.
  function picture(figure, width, height, draw) {
    const g = drawing(width, height + 34);
    g.fillStyle = charts.css("--paper");
    g.fillRect(0, 0, width, height + 34);
    g.fillStyle = charts.css("--ink");
    g.font = "600 14px system-ui, sans-serif";
    g.fillText(title(figure), 8, 20);
    const inner = drawing(width, height);
    draw(inner);
    return g.text().replace(/<\/svg>\n$/, inner.text().replace("<svg ", '<svg y="34" ') + "</svg>\n");
  }

  // The lines of a chart of uPlot, with its axes and a key.
  function lines(figure, plot, spec) {
    const dpr = devicePixelRatio || 1, over = plot.over;
    const [left, top, wide, high] = [over.offsetLeft, over.offsetTop, over.clientWidth, over.clientHeight];
    const x = (v) => left + plot.valToPos(v, "x"), y = (v) => top + plot.valToPos(Math.max(v, plot.scales.y.min), "y");
    const seen = spec.series.map((one, i) => ({ ...one, values: plot.data[i + 1] })).filter((_, i) => plot.series[i + 1].show);
    const below = top + high + 26 + (spec.x.label ? 18 : 0), height = below + 22 * Math.ceil(seen.length / 4) + 6;
    return picture(figure, Math.round(plot.bbox.width / dpr + left + 24), height, (g) => {
      for (const [axis, at] of [[plot.axes[0], "x"], [plot.axes[1], "y"]]) {
        (axis._splits ?? []).forEach((split, i) => {
          const text = axis._values?.[i];
          if (split === null || text === "" || text === null || text === undefined) return;
          g.strokeStyle = charts.css("--faint");
          g.beginPath();
          if (at === "x") { g.moveTo(x(split), top); g.lineTo(x(split), top + high); } else { g.moveTo(left, y(split)); g.lineTo(left + wide, y(split)); }
          g.stroke();
          g.fillStyle = charts.css("--soft");
          g.textAlign = at === "x" ? "center" : "right";
          g.textBaseline = at === "x" ? "alphabetic" : "middle";
          g.fillText(text, at === "x" ? x(split) : left - 5, at === "x" ? top + high + 16 : y(split));
        });
      }
      g.textAlign = "left";
      g.textBaseline = "alphabetic";
      g.fillText(spec.y.label ?? "", left, Math.max(10, top - 2));
      if (spec.x.label) { g.textAlign = "center"; g.fillText(spec.x.label, left + wide / 2, top + high + 34); }
      g.save();
      g.beginPath();
      g.rect(left, top, wide, high);
      g.clip();
      for (const one of spec.x.marks ?? []) {
        g.globalAlpha = one.until > one.from ? 0.33 : 0.6;
        g.fillStyle = charts.css(one.color);
        g.fillRect(x(one.from), top, Math.max(x(one.until) - x(one.from), 1), high);
      }
      g.globalAlpha = 1;
      for (const one of seen) line(g, plot.data[0], one, { x, y, floor: top + high });
      g.restore();
      g.textAlign = "left";
      seen.forEach((one, i) => {
        const [at, row] = [left + (i % 4) * (wide / 4), below + 8 + 22 * Math.floor(i / 4)];
        g.fillStyle = charts.css(one.color);
        g.fillRect(at, row - 7, 14, 3);
        g.fillStyle = charts.css("--ink");
        g.fillText(one.label, at + 19, row);
      });
    });
  }

  function line(g, xs, one, { x, y, floor }) {
    let run = [];
    const end = () => {
      if (run.length === 0) return;
      if (one.low) {
        g.globalAlpha = 0.17;
        g.fillStyle = charts.css(one.color);
        g.beginPath();
        run.forEach((i) => g.lineTo(x(xs[i]), y(one.high[i])));
        [...run].reverse().forEach((i) => g.lineTo(x(xs[i]), y(one.low[i])));
        g.fill();
      }
      if (one.fill) {
        g.globalAlpha = one.fill === true ? 0.19 : 0.8;
        g.fillStyle = charts.css(one.color);
        g.beginPath();
        g.moveTo(x(xs[run[0]]), floor);
        run.forEach((i) => g.lineTo(x(xs[i]), y(one.values[i])));
        g.lineTo(x(xs[run[run.length - 1]]), floor);
        g.fill();
      }
      g.globalAlpha = 1;
      g.strokeStyle = charts.css(one.color);
      g.lineWidth = one.width ?? 1.8;
      g.setLineDash(one.dash ?? []);
      g.beginPath();
      run.forEach((i, nth) => {
        if (one.step && nth > 0) g.lineTo(x(xs[i]), y(one.values[run[nth - 1]]));
        g.lineTo(x(xs[i]), y(one.values[i]));
      });
      g.stroke();
      g.setLineDash([]);
      if (run.length === 1) { g.fillStyle = charts.css(one.color); g.fillRect(x(xs[run[0]]) - 2, y(one.values[run[0]]) - 2, 4, 4); }
      run = [];
    };
    xs.forEach((_, i) => { const v = one.values[i]; if (v === null || v === undefined) { if (!one.spanGaps) end(); } else run.push(i); });
    end();
  }

  const field = (value) => value === null || value === undefined ? "" : /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  const csv = (rows) => rows.map((row) => row.map(field).join(",")).join("\n") + "\n";
  // The values of a chart: x, then a column for each line, with its interval where it has one.
  const values = (plot, spec) => {
    const columns = spec.series.flatMap((one, i) => {
      const own = { name: one.label, values: one.shown ?? plot.data[i + 1] };
      return one.low ? [own, { name: `${one.label}, low`, values: one.low }, { name: `${one.label}, high`, values: one.high }] : [own];
    });
    return csv([[spec.x.label || spec.x.short, ...columns.map(({ name }) => name)], ...Array.from(plot.data[0], (x, i) => [x, ...columns.map((one) => one.values[i])])]);
  };

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const png = (svg) => new Promise((done, failed) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => blob ? done(blob) : failed(new Error("no picture")), "image/png");
    };
    image.onerror = () => failed(new Error("no picture"));
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  });

  // Puts the buttons on a figure, once. `forms` has functions that give it as `svg` and as `csv`.
  function offer(figure, forms) {
    figure.forms = forms;
    if (figure.querySelector(".exports")) return;
    const group = document.createElement("div");
    group.className = "exports";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", `${title(figure)} as a file`);
    const button = (text, label, act) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.title = label;
      made.setAttribute("aria-label", `${label}: ${title(figure)}`);
      made.addEventListener("click", () => act(made));
      group.append(made);
    };
    const name = (figure.closest("main, body").querySelector("h1")?.textContent ?? "chart").toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60) + "-" + figure.id;
    const said = (button, text) => { const was = button.dataset.text ??= button.textContent; button.textContent = text; setTimeout(() => { button.textContent = was; }, 1500); };
    button("Copy", "Copy as a picture", async (made) => {
      try {
        await navigator.clipboard.write([new ClipboardItem({ "image/png": png(figure.forms.svg()) })]);
        said(made, "Copied");
      } catch { said(made, "Not allowed here"); }
    });
    button("SVG", "Save as SVG", () => save(name + ".svg", "image/svg+xml", figure.forms.svg()));
    button("CSV", "Save the values as CSV", () => save(name + ".csv", "text/csv", figure.forms.csv()));
    figure.querySelector("figcaption").after(group);
  }

  return { offer, lines, values, picture, csv };
})();
