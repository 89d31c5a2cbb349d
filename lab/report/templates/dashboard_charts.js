// The dashboard's lines over the last minute, and the bars of where the mean latency goes.
"use strict";

const lines = (() => {
  const ago = { text: (x) => x === 0 ? "now" : x === -60 ? "" : charts.short(-x) + " s ago" };
  const x = { kind: ago, label: "", short: "time", range: [-60, 0] };
  const tail = [["p50", "--p50", "p50"], ["p99", "--p99", "p99"], ["p99.9", "--p99_9", "p99_9"], ["max", "--max", "max"]];
  const latency = (id, of) => ({
    id, y: { kind: "latency", label: "latency" },
    series: tail.map(([label, color, key]) => ({ label, color, of: (frame, drive) => of(frame, drive)[key] })),
  });
  const drawn = [
    latency("reads-us", (frame, drive) => drive.reads.latency_us),
    latency("writes-us", (frame, drive) => drive.writes.latency_us),
    { id: "iops", y: { kind: "count", label: "requests a second" }, series: [
      { label: "reads", color: "--read", of: (frame, drive) => drive.reads.iops },
      { label: "writes", color: "--write", of: (frame, drive) => drive.writes.iops }] },
    { id: "bytes", y: { kind: "bytes", label: "" }, series: [
      { label: "read", color: "--read", of: (frame, drive) => drive.reads.bytes_s },
      { label: "written", color: "--write", of: (frame, drive) => drive.writes.bytes_s }] },
    { id: "gc-bytes", y: { kind: "bytes", label: "" }, series: [
      { label: "collection", color: "--gc", of: (frame, drive) => drive.rates.gc_moved_bytes_total ?? null },
      { label: "host", color: "--write", of: (frame, drive) => drive.rates.host_written_bytes_total ?? null }] },
    { id: "free", y: { kind: "plain", label: "blocks" }, series: [{ label: "free blocks", color: "--read", of: (frame, drive) => drive.counters.free_blocks ?? null }] },
    latency("lag", (frame) => frame.release_lag_us),
    latency("gap", (frame) => frame.poll_gap_us),
  ];
  drawn.forEach((chart) => { chart.show = charts.live(chart.id, { x, y: chart.y, series: chart.series.map(({ label, color }) => ({ label, color })) }); });

  function show(history, d) {
    const now = history[history.length - 1].wall_s;
    const xs = history.map((frame) => frame.wall_s - now);
    drawn.forEach((chart) => chart.show(xs, chart.series.map(({ of }) => history.map((frame) => of(frame, frame.drives[d])))));
  }

  // As the pages of runs have them.
  const stages = { firmware: "--firmware", transfer: "--transfer", ecc: "--ecc", link: "--link" };
  const causes = { host_read: ["host reads", "--read"], host_write: ["host writes", "--write"], gc: ["GC", "--gc"], wear: ["wear levelling", "--wear"], read_modify_write: ["read-modify-writes", "--fill"], metadata: ["tables and logs", "--metadata"], power: ["power outages", "--power"], retry: ["retries", "--retry"], fault: ["faults", "--fault"] };
  const WORDS = { queue: "queue", die_wait: "die", channel_wait: "channel" };
  const part = ([stage, cause]) => cause === null
    ? { name: stage, color: stages[stage] ?? "--array", wait: false }
    : { name: `wait for the ${WORDS[stage]} behind ${causes[cause][0]}`, color: causes[cause][1], wait: true };
  const layerColors = ["--trim", "--program", "--erase"];

  // The mean of each part of the last ten seconds: [{name, color, wait, us}].
  function means(history, d, which) {
    const sums = new Map();
    let requests = 0;
    for (const frame of history.slice(-40)) {
      const went = frame.drives[d].went[which];
      requests += went.requests;
      for (const [stage, cause, us] of went.parts) {
        const key = `${stage} ${cause}`;
        if (!sums.has(key)) sums.set(key, { ...part([stage, cause]), us: 0 });
        sums.get(key).us += us;
      }
      (went.layers ?? []).forEach(([layer, us], at) => {
        const key = `layer ${layer}`;
        if (!sums.has(key)) sums.set(key, { name: key, color: layerColors[at % layerColors.length], wait: false, us: 0 });
        sums.get(key).us += us;
      });
    }
    return { requests, parts: [...sums.values()].map((one) => ({ ...one, us: one.us / requests })) };
  }

  function went(history, d) {
    const all = [["reads", 0], ["writes", 1]].map(([name, which]) => ({ name, ...means(history, d, which) })).filter((bar) => bar.requests > 0);
    const total = (bar) => bar.parts.reduce((sum, { us }) => sum + us, 0);
    const most = Math.max(...all.map(total), 1e-9);
    const holder = figures.element("went");
    if (all.length === 0) {
      holder.replaceChildren(figures.make("p", "No reads or writes in the last ten seconds.", { class: "none" }));
      return figures.table("went-table", ["µs"], []);
    }
    const bars = all.map((bar) => {
      const row = figures.make("div", undefined, { class: "bar" });
      const name = figures.make("div", bar.name, { class: "name" });
      name.append(figures.make("small", charts.us(total(bar))));
      const stack = figures.make("div", undefined, { class: "stack", style: `width: ${100 * total(bar) / most}%`, role: "img", "aria-label": `${bar.name}: ${bar.parts.map(({ name, us }) => `${name} ${charts.us(us)}`).join(", ")}` });
      stack.append(...bar.parts.map(({ name, color, wait, us }) => figures.make("span", undefined, { class: wait ? "hatched" : "", style: `flex: ${us} 0 0; background-color: var(${color})`, title: `${name}: ${charts.us(us)}` })));
      row.append(name, stack);
      return row;
    });
    const known = new Map(all.flatMap((bar) => bar.parts).map((one) => [one.name, one]));
    const key = figures.make("ul", undefined, { class: "key" });
    key.append(...[...known.values()].map(({ name, color, wait }) => {
      const item = figures.make("li");
      item.append(figures.make("i", undefined, { class: wait ? "hatched" : "", style: `background-color: var(${color})` }), name);
      return item;
    }));
    holder.replaceChildren(...bars, key);
    const of = (bar, name) => bar.parts.find((one) => one.name === name)?.us ?? 0;
    table(all, known, of, total);
  }

  function table(all, known, of, total) {
    const rows = [...known.keys()].map((name) => [name, ...all.map((bar) => of(bar, name).toFixed(2))]);
    figures.table("went-table", ["µs", ...all.map((bar) => bar.name)], [...rows, ["sum", ...all.map((bar) => total(bar).toFixed(2))]]);
  }

  return { show, went };
})();
