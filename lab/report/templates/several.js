// Several runs in one chart.
"use strict";

const several = (() => {
  // Runs with a line of their own, each with its colour.
  const drawn = (runs) => runs.map((run, i) => ({ color: "--run" + i % 8, ...run })).filter((run) => run.histogram);
  // The least and the most at each x of what several seeds have; nothing where there is one.
  const spread = (seeds, of) => {
    if (!seeds || seeds.length < 2 || seeds.some((one) => one === null)) return {};
    const lists = seeds.map(of);
    const pick = (best) => lists[0].map((_, i) => { const known = lists.map((list) => list[i]).filter((v) => v !== null); return known.length === 0 ? null : best(...known); });
    return { low: lists[0].map((_, i) => lists.every((list) => list[i] === null) ? null : Math.min(...lists.map((list) => list[i] ?? 0))), high: pick(Math.max) };
  };
  // Share of requests that took longer than a latency, one line a run. `runs` have label and histogram.
  const tails = (id, runs, what, height, namesAt) => {
    const seen = drawn(runs);
    if (seen.length === 0) return;
    const [least, longest] = charts.extent(seen.map((run) => run.histogram.latency_us.filter((us) => us > 0)));
    const [from, to] = charts.logRange(least, longest);
    const xs = charts.logSpaced(from, to, 600);
    const most = Math.max(...seen.map((run) => run.histogram.requests.reduce((a, b) => a + b, 0)));
    const deepest = 0.7 / most;
    charts.add(id, {
      x: { kind: "latency", label: what + " latency", short: "latency", range: [from, to] },
      y: { kind: "slower", label: `share of ${what}s that take longer`, range: [deepest, namesAt ? 2 : 1.2] },
      xs, height, namesAt,
      series: seen.map((run) => ({ label: run.label, color: run.color, step: true, width: 2.2, values: charts.slower(run.histogram, xs), ...spread(run.seeds, (one) => charts.slower(one, xs)) })),
    });
  };
  // Latency by percentile, one line a run.
  const percentiles = (id, runs, what) => {
    const seen = drawn(runs);
    if (seen.length === 0) return;
    const most = Math.max(10, ...seen.map((run) => run.histogram.requests.reduce((a, b) => a + b, 0)));
    const deep = Math.min(1e6, most), ends = Math.min(1e6, 10 ** Math.ceil(Math.log10(deep)));
    const xs = [...new Set([...charts.logSpaced(1, deep, 420), 2, 10, 100, 1e3, 1e4, 1e5, 1e6])].filter((x) => x <= deep).sort((a, b) => a - b);
    charts.add(id, {
      x: { kind: "percentile", label: "percentile", range: [1, ends * 1.3] },
      y: { kind: "latency", label: what + " latency" },
      xs,
      series: seen.map((run) => ({ label: run.label, color: run.color, values: charts.quantiles(run.histogram, xs) })),
    });
  };
  return { tails, percentiles };
})();
