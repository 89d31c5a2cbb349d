// The charts of a run on an array.
(() => {
  const { virtual_s, details, drives } = JSON.parse(document.getElementById("report").textContent);
  const { histogram, series, cycle } = details;
  const color = (i) => "--run" + (1 + i % 7);
  const middle = series.t_s.map((t) => t + Math.min(series.interval_s, Math.max(virtual_s - t, 0)) / 2);
  const x = { kind: "time", label: "drive time", short: "time", range: [0, Math.max(virtual_s, 1e-9)] };
  for (const way of ["read", "write"]) {
    if (!(way in histogram)) continue;
    const of = drives.map((drive, i) => ({ label: drive.name, histogram: drive.histogram?.[way], color: color(i) }));
    several.tails("tails-" + way, [{ label: "array", histogram: histogram[way], color: "--run0" }, ...of], way);
    const over = series.by[way];
    charts.add("latency-" + way, {
      x, y: { kind: "latency", label: way + " latency" }, xs: middle,
      series: [["max", "max_us"], ["p99.9", "p99_9_us"], ["p99", "p99_us"], ["p50", "p50_us"]].map(([label, key]) => ({
        label, color: "--" + label.replace(".", "_"), values: over?.[key] ?? middle.map(() => null), spanGaps: true, width: 1.5,
      })),
    });
  }
  const { whole, around, slowest, rows } = details.drives;
  const names = rows.map(({ drive, range }) => drives[drive].name + (range === null ? "" : " range " + range));
  const over = (id, shares, from, to, mark) => {
    const windows = shares.windows_s.some((of) => of.length > 0) ? shares.windows_s : undefined;
    timeline.add(id, { what: "drive", dies: names, from, to, shares, windows, mark, laneHeight: Math.max(14, Math.min(34, Math.floor(520 / names.length))) });
  };
  if (virtual_s > 0) over("over-run", whole, 0, virtual_s);
  else timeline.none("over-run");
  if (slowest && around) {
    const end = slowest.submitted_s + slowest.latency_us / 1e6;
    const until = around.from_s + around.parts_per_million.read[0].length * around.interval_s;
    over("over-slowest", around, Math.max(0, around.from_s), Math.min(until, virtual_s), { from: slowest.submitted_s, to: end, text: "the slowest " + slowest.direction });
  }
  if (cycle) {
    const parts = cycle.busy[0].length;
    charts.add("cycle", {
      x: { kind: "plain", label: "windows since the cycle began", short: "windows", range: [0, cycle.windows] },
      y: { kind: "share", label: "share of time", range: [0, Math.max(0.01, ...cycle.busy.flat().filter((v) => v !== null)) * 1.06] },
      xs: Array.from({ length: parts }, (_, i) => (i + 0.5) / cycle.parts),
      series: cycle.busy.map((values, i) => ({ label: drives[i].name, color: color(i), values, fill: "30", width: 1.5 })),
      show: (share) => (share * 100).toFixed(2) + "%",
    });
    const t = cycle.length_ms.map((_, i) => Math.min((i + 0.5) * cycle.interval_s, virtual_s));
    charts.add("windows", {
      x, y: { kind: "latency", label: "length of windows" }, xs: t,
      series: [{ label: "length", color: "--gc", values: cycle.length_ms.map((ms) => ms === null ? null : ms * 1e3), spanGaps: true }],
    });
  }
  document.documentElement.dataset.ready = "yes";
})();
