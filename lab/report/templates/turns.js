// The charts of runs on a storage engine.
(() => {
  const { runs, kinds } = JSON.parse(document.getElementById("report").textContent);
  several.tails("tails", runs, "read", 400);
  runs.forEach((run, i) => {
    const { lines, interval_s, took_s, parts_per_million, tokens_s } = run.turns;
    if (lines.length === 0) return timeline.none("turns-" + i);
    // Its beginning, where single turns can be told apart.
    const zoom = [0, Math.min(took_s, run.zoom_s)];
    timeline.add("turns-" + i, { what: "line", dies: lines, planesPerDie: 1, kinds, from: 0, to: took_s, zoom, windows: tokens_s, shares: { interval_s, parts_per_million } });
  });
  document.documentElement.dataset.ready = "yes";
})();
