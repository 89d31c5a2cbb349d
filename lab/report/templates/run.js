// The charts of one run. All figures come from the report in the page; nothing is recomputed here.
"use strict";

(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const { histogram, series, drive } = report.details;
  const ways = ["read", "write", "trim", "flush", "fua"].filter((way) => way in histogram);
  const names = { fua: "write, FUA" };

  // Latencies: by percentile, and as a distribution.
  const most = Math.max(10, ...ways.map((way) => report.latency_us[way].count));
  const deep = Math.min(1e6, most);
  const ends = Math.min(1e6, 10 ** Math.ceil(Math.log10(deep)));
  const grid = [...new Set([...charts.logSpaced(1, deep, 420), 2, 10, 100, 1e3, 1e4, 1e5, 1e6])].filter((x) => x <= deep).sort((a, b) => a - b);
  charts.add("percentiles", {
    x: { kind: "percentile", label: "percentile", range: [1, ends * 1.3] },
    y: { kind: "latency", label: "latency" },
    xs: grid,
    series: ways.map((way) => ({ label: names[way] ?? way, color: "--" + way, values: charts.quantiles(histogram[way], grid) })),
  });
  const [least, longest] = charts.extent(ways.map((way) => histogram[way].latency_us));
  const latencies = charts.logSpaced(...(least < Infinity ? charts.logRange(Math.max(least, 1e-3), Math.max(longest, 1e-3)) : [1, 10]), 420);
  charts.add("cdf", {
    x: { kind: "latency", label: "latency", range: [latencies[0], latencies[latencies.length - 1]] },
    y: { kind: "share", label: "share of requests" },
    xs: latencies,
    series: ways.map((way) => ({ label: names[way] ?? way, color: "--" + way, step: true, values: charts.atMost(histogram[way], latencies) })),
  });

  // Without drive time there are no charts over time.
  if (!(report.virtual_s > 0)) {
    for (const list of [...Object.values(series.by), drive]) for (const key of Object.keys(list)) if (Array.isArray(list[key]) && key !== "t_s") list[key] = list[key].map(() => null);
    for (const cause of Object.keys(drive.busy_die)) drive.busy_die[cause] = drive.t_s.map(() => null);
  }

  // Over time. Each value is drawn at the middle of its interval.
  const middle = series.t_s.map((t) => t + Math.min(series.interval_s, Math.max(report.virtual_s - t, 0)) / 2);
  const span = [0, Math.max(report.virtual_s, 1e-9)];
  // Outages and struck faults stand on every time axis.
  const { faults = [], outages = [] } = report.details.marks ?? {};
  const marks = [
    ...outages.map(({ from_s, until_s }) => ({ from: from_s, until: until_s, color: "--power" })),
    ...faults.flatMap(({ at_s }) => at_s.map((at) => ({ from: at, until: at, color: "--fault" }))),
  ];
  const x = { kind: "time", label: "drive time", short: "time", range: span, marks };
  for (const way of ["read", "write"]) {
    const of = series.by[way];
    charts.add("latency-" + way, {
      x, y: { kind: "latency", label: way + " latency" }, xs: middle,
      series: [["max", "max_us"], ["p99.9", "p99_9_us"], ["p99", "p99_us"], ["p50", "p50_us"]].map(([label, key]) => ({
        label, color: "--" + label.replace(".", "_"), values: of?.[key] ?? middle.map(() => null), spanGaps: true, width: 1.5,
      })),
    });
  }
  const rates = (key) => ways.filter((way) => series.by[way]).map((way) => ({ label: names[way] ?? way, color: "--" + way, values: series.by[way][key], fill: "18" }));
  charts.add("iops", { x, y: { kind: "count", label: "requests a second" }, xs: middle, series: rates("iops") });
  charts.add("bytes", { x, y: { kind: "bytes", label: "bytes a second" }, xs: middle, series: rates("bytes_per_s") });

  // The drive.
  const causes = [["host_read", "host reads", "--read"], ["host_write", "host writes", "--program"], ["gc", "GC", "--gc"], ["wear", "wear levelling", "--wear"], ["metadata", "metadata", "--metadata"], ["read_modify_write", "read-modify-writes", "--fill"], ["retry", "retries", "--retry"], ["fault", "faults", "--fault"]];
  const there = causes.filter(([cause]) => drive.busy_die[cause]?.some((share) => share > 0));
  // Drawn from the top down, so that each covers what is below it: its own share and those under it.
  const stacked = there.map((_, upto) => drive.t_s.map((_, i) => drive.busy_die[there[0][0]][i] === null ? null : there.slice(0, upto + 1).reduce((sum, [cause]) => sum + drive.busy_die[cause][i], 0)));
  charts.add("busy", {
    x, y: { kind: "share", label: "share of time" }, xs: drive.t_s,
    series: there.map(([cause, label, color], i) => ({ label, color, values: stacked[i], shown: drive.busy_die[cause], fill: "cc", width: 0.6, step: false })).reverse(),
    show: (share) => (share * 100).toFixed(1) + "%",
    bands: there.slice(1).map((_, i) => ({ series: [i + 1, i + 2] })),
  });
  charts.add("free", { x, y: { kind: "plain", label: "erased blocks" }, xs: drive.t_s, series: [{ label: "free blocks", color: "--read", values: drive.free_blocks, step: true }] });
  charts.add("wear", {
    x, y: { kind: "plain", label: "erases of a block" }, xs: drive.t_s,
    series: [["most worn", "erases_max", "--max"], ["mean", "erases_mean", "--mean"], ["least worn", "erases_min", "--p50"]].map(([label, key, color]) => ({ label, color, values: drive[key], step: true })),
  });
  charts.add("waf", { x, y: { kind: "plain", label: "write amplification" }, xs: drive.t_s, series: [{ label: "since the look before", color: "--gc", values: drive.waf }] });

  // Activity of dies.
  const { dies, planes_per_die: planesPerDie, shares, slowest, operations } = report.details.timeline;
  if (report.virtual_s > 0) timeline.add("dies", { dies, planesPerDie, from: 0, to: span[1], shares, marks });
  else timeline.none("dies");
  if (!(slowest && operations.plane.length > 0)) timeline.none("around");
  if (slowest && operations.plane.length > 0) {
    const ends = operations.start_ns.map((start, i) => start + operations.duration_ns[i]);
    const from = operations.from_s, to = from + ends.reduce((a, b) => Math.max(a, b)) / 1e9;
    const done = slowest.submitted_s + slowest.latency_us / 1e6;
    const mark = { from: slowest.submitted_s, to: done, die: slowest.die, text: `slowest ${slowest.direction}: ${charts.us(slowest.latency_us)}` };
    // Opens with five latencies on each side of the request; "All" shows all recorded operations.
    const last = Math.max(to, done), first = Math.min(from, mark.from), room = 5 * (done - mark.from);
    const zoom = room > 0 ? [Math.max(first, mark.from - room), Math.min(last, done + room)] : undefined;
    timeline.add("around", { dies, planesPerDie, from: first, to: last, operations, mark, zoom });
  }
  // Activity of the host's processors.
  const { processors } = report.details;
  if (processors) {
    const kinds = { user: "--read", kernel: "--program", softirq: "--wear", interrupt: "--gc", switch: "--erase", cold: "--metadata", spin: "--retry" };
    timeline.add("processors", { dies: processors.names, planesPerDie: 1, what: "processor", kinds, from: 0, to: span[1], shares: processors });
  }
  document.documentElement.dataset.ready = "yes";
})();
