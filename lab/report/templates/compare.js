// The charts of a comparison.
(() => {
  const { runs } = JSON.parse(document.getElementById("report").textContent);
  for (const way of ["read", "write"]) {
    const of = runs.map((run) => ({ label: run.label, histogram: run[way] }));
    several.tails("tails-" + way, of, way, way === "read" ? 360 : 260);
    several.percentiles("percentiles-" + way, of, way);
  }
  document.documentElement.dataset.ready = "yes";
})();
