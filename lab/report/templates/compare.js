// The charts of a comparison.
(() => {
  const { runs, places } = JSON.parse(document.getElementById("report").textContent);
  const color = (i) => places === null ? "--run" + i % 8 : charts.ramped(places[i]);
  for (const way of ["read", "write"]) {
    const of = runs.map((run, i) => ({ label: run.label, histogram: run[way], seeds: run.seeds[way], color: color(i) }));
    several.tails("tails-" + way, of, way, way === "read" ? 360 : 260);
    several.percentiles("percentiles-" + way, of, way);
  }
  document.documentElement.dataset.ready = "yes";
})();
