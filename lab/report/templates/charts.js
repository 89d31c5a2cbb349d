// Line charts on uPlot: axes, number formats, colours.
"use strict";

const charts = (() => {
  const all = [];
  // The value of a variable of the style; a colour is its own value.
  const css = (name) => name.startsWith("--") ? getComputedStyle(document.documentElement).getPropertyValue(name).trim() : name;

  // Significant digits, three unless told, without trailing zeros.
  const short = (x, digits = 3) => String(Number(x.toPrecision(digits)));
  const us = (x, digits) => x < 1e3 ? short(x, digits) + " µs" : x < 1e6 ? short(x / 1e3, digits) + " ms" : short(x / 1e6, digits) + " s";
  const seconds = (x, digits) => x === 0 ? "0" : x < 1e-3 ? short(x * 1e6, digits) + " µs" : x < 1 ? short(x * 1e3, digits) + " ms" : short(x, digits) + " s";
  const count = (x, digits) => x < 1e4 ? short(x, digits) : x < 1e6 ? short(x / 1e3, digits) + "k" : x < 1e9 ? short(x / 1e6, digits) + "M" : short(x / 1e9, digits) + "G";
  const percent = (share, digits) => short(share * 100, digits) + "%";
  // The labels of an axis: as many digits as it takes for all to differ, 9 at most.
  const distinct = (kind, ticks) => {
    const known = ticks.filter((x) => x !== null);
    const differ = (digits) => new Set(known.map((x) => kind.text(x, digits))).size === new Set(known).size;
    const digits = [3, 4, 5, 6, 7, 8].find(differ) ?? 9;
    return ticks.map((x) => x === null ? "" : kind.text(x, digits));
  };
  // 1 / (1 - q) as a percentile: 100 is p99, 10,000 is p99.99.
  const percentile = (x) => {
    const q = 100 * (1 - 1 / x);
    return "p" + Number(q.toFixed(Math.max(0, Math.ceil(Math.log10(x) - 2 - 1e-9))));
  };

  // Powers of ten within a range, with 2 and 5 between them where there are few.
  const logTicks = (min, max) => {
    const steps = Math.log10(max / min) > 3.2 ? [1] : [1, 2, 5];
    const ticks = [];
    for (let decade = Math.floor(Math.log10(min)); decade <= Math.ceil(Math.log10(max)); decade++) {
      for (const step of steps) {
        const tick = Number((step * 10 ** decade).toPrecision(2));
        if (tick >= min * 0.999 && tick <= max * 1.001) ticks.push(tick);
      }
    }
    return ticks;
  };
  // Widens a range to 1, 2 or 5 times a power of ten.
  const logRange = (min, max) => {
    const below = [...logTicks(min / 10, min * 1.0001)].pop() ?? min;
    const above = logTicks(max * 0.9999, max * 10)[0] ?? max;
    return below < above ? [wide(below, min, -1), wide(above, max, 1)] : [below / 2, above * 2];
  };
  const wide = (tick, value, side) => (side < 0 ? value / tick : tick / value) > 3 ? value * (side < 0 ? 0.8 : 1.25) : tick;

  // Kinds of axes.
  const kinds = {
    latency: { log: true, text: us },
    percentile: { log: true, text: percentile, ticks: (min, max) => [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((x) => x >= min && x <= max * 1.001) },
    slower: { log: true, text: percent, ticks: (min, max) => [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6].filter((x) => x >= min * 0.999 && x <= max) },
    time: { text: seconds },
    count: { text: count, zero: true },
    bytes: { text: (x, digits) => x === 0 ? "0" : count(x, digits).replace(/[kMG]?$/, (prefix) => " " + prefix) + "B/s", zero: true },
    share: { text: percent, range: [0, 1] },
    plain: { text: short },
  };

  const extent = (lists) => {
    let min = Infinity, max = -Infinity;
    for (const list of lists) for (const x of list) if (x !== null && x !== undefined) { if (x < min) min = x; if (x > max) max = x; }
    return [min, max];
  };

  const limits = (kind, lists, given) => {
    let [min, max] = given ?? kind.range ?? extent(lists);
    if (min > max) [min, max] = kind.log ? [10, 1000] : [0, 1];
    if (kind.log) return given ?? logRange(min, max);
    if (kind.zero) { min = 0; max = max > 0 ? max * 1.06 : 1; }
    if (min === max) { const pad = Math.max(Math.abs(min) * 0.01, 1); min = min < 0 ? min - pad : Math.max(0, min - pad); max += pad; }
    else if (!kind.zero && !kind.range && !given) { const pad = (max - min) * 0.06; min -= pad; max += pad; if (min < 0) min = 0; }
    return [min, max];
  };
  // `lists` of a chart that changes are those that it has now.
  const scale = (kind, lists, given) => {
    const fixed = typeof lists === "function" ? null : limits(kind, lists, given);
    const range = (u, lo, hi) => zoomed(u, lo, hi, fixed ?? limits(kind, lists(u), given));
    return kind.log ? { time: false, distr: 3, log: 10, range } : { time: false, range };
  };
  // After a drag uPlot asks with what was chosen; at the beginning and after a double click, with all.
  const zoomed = (u, lo, hi, full) => u.chosen ? [lo, hi] : full;

  const axis = (kind, label, side) => {
    const one = {
      stroke: css("--soft"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      label: label || undefined, labelSize: 17, labelGap: 0, gap: 3, ticks: { show: false }, grid: { stroke: css("--faint"), width: 1 },
      values: (u, ticks) => distinct(kind, ticks),
      space: side === "x" ? 70 : 34, size: side === "x" ? 24 : (u, values) => Math.max(36, 12 + 7 * Math.max(0, ...(values ?? []).map((v) => v.length))),
    };
    if (kind.log) {
      one.splits = (u, index, min, max) => {
        const ticks = (kind.ticks ?? logTicks)(min, max);
        const room = Math.floor((side === "x" ? u.bbox.width : u.bbox.height) / devicePixelRatio / (side === "x" ? 56 : 26));
        return ticks.length > room ? ticks.filter((x) => Math.abs(Math.log10(x) - Math.round(Math.log10(x))) < 1e-6) : ticks;
      };
      one.filter = (u, splits) => splits;
    }
    return one;
  };

  // spec: x and y {kind, label, range}, xs, series [{label, color, values, fill, dash, step}], height, legend.
  function draw(figure, spec) {
    const holder = figure.querySelector(".plot");
    holder.replaceChildren();
    holder.setAttribute("role", "img");
    holder.setAttribute("aria-label", [...figure.querySelectorAll("figcaption h3, figcaption p")].map((one) => one.textContent.trim()).filter((text) => text).join(": "));
    // A latency of 0 cannot be drawn on a logarithmic axis.
    const kindOf = (axis) => typeof axis.kind === "string" ? kinds[axis.kind] : axis.kind;
    if (kindOf(spec.y).log) spec.series.forEach((one) => { one.values = one.values.map((v) => v > 0 ? v : null); });
    const known = (one) => one.values.filter((v) => v !== null && v !== undefined).length;
    // A line without a point would leave its name in the legend alone.
    if (!spec.live) spec = { ...spec, series: spec.series.filter((one) => known(one) > 0).map((one, i, all) => ({ ...one, dash: one.dash ?? dash(all, i) })) };
    const points = spec.series.reduce((sum, one) => sum + known(one), 0);
    figure.dataset.points = points;
    if (points === 0 && !spec.live) {
      holder.innerHTML = '<p class="none">Nothing to draw: no such requests, or no time passed.</p>';
      return;
    }
    const [xKind, yKind] = [kindOf(spec.x), kindOf(spec.y)];
    const height = () => spec.height ?? Math.min(270, Math.max(210, holder.clientWidth * 0.5));
    const options = {
      width: holder.clientWidth, height: height(),
      padding: [8, 24, 0, 0],
      scales: {
        x: scale(xKind, spec.live ? (u) => [u.data[0]] : [spec.xs], spec.x.range),
        y: scale(yKind, spec.live ? (u) => u.data.slice(1) : spec.series.map((one) => one.values), spec.y.range),
      },
      axes: [axis(xKind, spec.x.label, "x"), axis(yKind, spec.y.label, "y")],
      cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false } },
      legend: { live: true },
      series: [{ label: spec.x.short ?? spec.x.label, value: (u, x) => x === null || x === undefined ? "" : xKind.text(x) }, ...spec.series.map((one) => ({
        label: one.label, stroke: css(one.color), width: one.width ?? 1.8, dash: one.dash, points: { show: one.points ?? known(one) < 4 }, spanGaps: !!one.spanGaps,
        fill: one.fill ? css(one.color) + (one.fill === true ? "30" : one.fill) : undefined,
        paths: one.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (u, y, i, at) => at === null || at === undefined ? "" : y === null || y === undefined ? "none" : (spec.show ?? yKind.text)(one.shown ? one.shown[at] : y),
      }))],
      bands: spec.bands,
      hooks: {
        drawAxes: [(u) => (spec.x.marks ?? []).forEach((one) => mark(u, one)), (u) => spec.series.forEach((one) => { if (one.low) band(u, spec.xs, one); })],
        setSelect: [(u) => { if (u.select.width > 0) u.chosen = true; }],
        draw: [(u) => { if (spec.namesAt) names(u, spec); figure.dataset.drawn = "yes"; }],
      },
    };
    const plot = new uPlot(options, [spec.xs, ...spec.series.map((one) => one.values)], holder);
    exports.offer(figure, { svg: () => exports.lines(figure, plot, spec), csv: () => exports.values(plot, spec) });
    plot.over.addEventListener("dblclick", () => { plot.chosen = false; plot.setData(plot.data); }, true);
    new ResizeObserver(() => {
      if (holder.clientWidth > 0 && holder.clientWidth !== plot.width) plot.setSize({ width: holder.clientWidth, height: height() });
    }).observe(holder);
    return plot;
  }

  // A line that lies on an earlier one almost everywhere, nine points in ten, is dashed, so that both are seen.
  function dash(series, i) {
    const one = series[i];
    if (one.fill) return undefined;
    const at = one.values.flatMap((v, x) => v === null || v === undefined ? [] : [x]);
    const covers = series.slice(0, i).filter((other) => at.filter((x) => other.values[x] === one.values[x]).length >= 0.9 * at.length).length;
    return covers === 0 ? undefined : [12 / (covers + 1), 12 - 12 / (covers + 1)];
  }

  // Fills the interval around a line, from `low` to `high`; a point that stands alone has a bar.
  function band(u, xs, one) {
    const g = u.ctx;
    const at = (i, values) => [u.valToPos(xs[i], "x", true), u.valToPos(Math.max(values[i], u.scales.y.min), "y", true)];
    g.save();
    g.fillStyle = css(one.color) + "2c";
    let run = [];
    const fill = () => {
      const half = 4 * devicePixelRatio;
      if (run.length === 1) {
        const [[x, top], [, bottom]] = [at(run[0], one.high), at(run[0], one.low)];
        g.fillRect(x - half, top, 2 * half, bottom - top);
      } else if (run.length > 1) {
        g.beginPath();
        run.forEach((i) => g.lineTo(...at(i, one.high)));
        [...run].reverse().forEach((i) => g.lineTo(...at(i, one.low)));
        g.fill();
      }
      run = [];
    };
    xs.forEach((_, i) => { if (one.low[i] === null) fill(); else run.push(i); });
    fill();
    g.restore();
  }

  // A mark on the x axis: a line, or a band if it lasts.
  function mark(u, one) {
    const g = u.ctx, { left, top, width, height } = u.bbox;
    const at = (x) => Math.min(left + width, Math.max(left, u.valToPos(x, "x", true)));
    if (one.until < u.scales.x.min || one.from > u.scales.x.max) return;
    g.save();
    g.fillStyle = css(one.color) + (one.until > one.from ? "55" : "90");
    g.fillRect(at(one.from), top, Math.max(at(one.until) - at(one.from), devicePixelRatio), height);
    g.restore();
  }

  // Writes the name of each line above it at an x.
  function names(u, spec) {
    const at = spec.xs.findIndex((x) => x >= spec.namesAt);
    const g = u.ctx;
    g.save();
    g.font = `600 ${13 * devicePixelRatio}px system-ui, sans-serif`;
    g.textAlign = "left";
    g.textBaseline = "alphabetic";
    spec.series.forEach((one) => {
      if (at < 0 || one.values[at] === null) return;
      g.fillStyle = css(one.color);
      g.fillText(one.label, u.valToPos(spec.xs[at], "x", true), u.valToPos(one.values[at], "y", true) - 7 * devicePixelRatio);
    });
    g.restore();
  }

  // Draws now, and again when the page turns light or dark.
  function add(id, spec) {
    const figure = document.getElementById(id);
    if (!figure) return;
    let plot;
    const again = () => { plot?.destroy(); plot = draw(figure, spec); };
    again();
    all.push(again);
  }

  // As `add`, of a chart that changes: gives the function that draws other values, the xs and a list for each series.
  function live(id, spec) {
    const figure = document.getElementById(id);
    const log = kinds[spec.y.kind].log;
    let plot, xs = [], lists = spec.series.map(() => []);
    const again = () => {
      plot?.destroy();
      plot = draw(figure, { ...spec, live: true, xs, series: spec.series.map((one, i) => ({ ...one, values: lists[i], points: false })) });
    };
    again();
    all.push(again);
    return (nowXs, now) => {
      [xs, lists] = [nowXs, log ? now.map((list) => list.map((v) => v > 0 ? v : null)) : now];
      plot.setData([xs, ...lists]);
      figure.dataset.points = lists.reduce((sum, list) => sum + list.filter((v) => v !== null).length, 0);
    };
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => all.forEach((again) => again()));

  // Functions of a histogram {latency_us, requests}: rising latencies, and the number of requests with each.
  const sums = (histogram) => { let sum = 0; return histogram.requests.map((n) => sum += n); };

  // Latency at 1 / (1 - quantile), for each of `xs`; null if less than one request remains.
  const quantiles = (histogram, xs) => {
    const below = sums(histogram);
    const total = below[below.length - 1] ?? 0;
    let at = 0;
    return xs.map((x) => {
      if (x > total * 1.0000001) return null;
      const rank = Math.max(1, Math.ceil(total - total / x - 1e-6));
      while (below[at] < rank) at++;
      return histogram.latency_us[at];
    });
  };
  // Share of requests that took at most each of `xs`.
  const atMost = (histogram, xs) => {
    const below = sums(histogram);
    const total = below[below.length - 1] ?? 0;
    let at = -1;
    return xs.map((x) => {
      while (at + 1 < below.length && histogram.latency_us[at + 1] <= x) at++;
      return at < 0 ? 0 : below[at] / total;
    });
  };
  // Share that took longer, null beyond the slowest.
  const slower = (histogram, xs) => {
    let gone = false;
    return atMost(histogram, xs).map((share) => {
      if (gone) return null;
      gone = share >= 1;
      return gone ? null : 1 - share;
    });
  };
  const logSpaced = (min, max, count) => Array.from({ length: count + 1 }, (_, i) => min * (max / min) ** (i / count));

  // From blue to orange: for lines that are values of a number. Legible on light and on dark.
  const ramp = [[0x3b, 0x7d, 0xd8], [0x8a, 0x6f, 0xd1], [0xc6, 0x5b, 0x9b], [0xe0, 0x63, 0x3f]];
  const ramped = (share) => {
    const at = share * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2);
    const mixed = ramp[low].map((one, i) => Math.round(one + (ramp[low + 1][i] - one) * (at - low)));
    return "#" + mixed.map((one) => one.toString(16).padStart(2, "0")).join("");
  };
  return { add, live, ramped, css, kinds, short, us, seconds, count, percent, quantiles, atMost, slower, logSpaced, logRange, extent, again: all };
})();
