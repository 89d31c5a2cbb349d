// The charts of the tour.
(() => {
  const { runs } = JSON.parse(document.getElementById("report").textContent);
  // Reads without waits take at most 80 us on this drive; the lines diverge from there.
  several.tails("tails", runs, "read", 400, 90);
  runs.forEach((run, i) => {
    const { dies, planes_per_die: planesPerDie, lanes, operations, slowest } = run;
    if (!slowest || operations.plane.length === 0) return timeline.none("dies-" + i);
    const done = slowest.submitted_s + slowest.latency_us / 1e6;
    const mark = { from: slowest.submitted_s, to: done, die: slowest.die, text: `slowest read: ${charts.us(slowest.latency_us)}` };
    timeline.add("dies-" + i, { dies, planesPerDie, lanes, laneHeight: 11, from: run.from_s, to: run.to_s, operations, mark });
  });
  document.documentElement.dataset.ready = "yes";
})();
