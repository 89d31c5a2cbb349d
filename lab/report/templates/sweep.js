// The figures of a sweep: lines over a parameter, with the intervals over seeds.
(() => {
  const { drawings } = JSON.parse(document.getElementById("report").textContent);
  const { short, us, seconds, count, percent } = charts;

  const bytes = (x, digits) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (x >= 1024 && unit < units.length - 1) { x /= 1024; unit++; }
    return short(x, digits) + " " + units[unit];
  };
  const texts = { us, seconds, share: percent, number: count, bytes: (x, digits) => count(x, digits) + "B/s" };
  const units = { us, share: percent, number: count, bytes };

  const color = (drawing, i) => {
    const lines = drawing.series.length;
    if (!drawing.lines) return drawing.way ? "--" + drawing.way : "--run1";
    return drawing.lines.numeric && lines > 2 ? charts.ramped(i / (lines - 1)) : "--run" + (i + 1) % 8;
  };

  // All panels of a figure have the same axes. Figures that span more than a decade are drawn logarithmically.
  const range = (figure) => {
    const own = drawings.filter((drawing) => drawing.figure === figure);
    const lists = own.flatMap((drawing) => drawing.series.flatMap((one) => [one.values, one.high]));
    const [least, most] = charts.extent(lists);
    if (!(most >= least)) return { log: false, range: [0, 1] };
    const log = least > 0 && most / least > 10;
    return { log, range: log ? charts.logRange(least, most) : [Math.min(0, least), most > 0 ? most * 1.06 : 1] };
  };

  for (const drawing of drawings) {
    const { log, range: given } = range(drawing.figure);
    const numbers = drawing.x.numbers;
    const xs = numbers ?? drawing.x.names.map((_, i) => i);
    const wide = numbers && numbers[0] > 0 && numbers[numbers.length - 1] / numbers[0] >= 16;
    const xKind = numbers
      ? { log: wide, text: units[drawing.x.unit] }
      : { text: (x) => drawing.x.names[x] ?? "" };
    charts.add(drawing.id, {
      x: { kind: xKind, label: drawing.x.label, range: wide ? charts.logRange(xs[0], xs[xs.length - 1]) : undefined },
      y: { kind: { log, text: texts[drawing.y.kind] }, label: drawing.y.label, range: given },
      xs, height: 300,
      series: drawing.series.map((one, i) => ({
        ...one, label: drawing.lines ? `${drawing.lines.name} ${one.label}` : drawing.y.label,
        color: color(drawing, i), dash: i >= 8 ? [6, 4] : undefined, points: true, width: 2,
      })),
    });
  }

  // A click on a head sorts by its column, numbers as numbers; a second click turns it round.
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    table.querySelectorAll("thead th").forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.key;
      const compare = (one, other) => key(one) !== undefined && key(other) !== undefined
        ? Number(key(one)) - Number(key(other))
        : (key(one) === undefined) - (key(other) === undefined) || one.cells[column].textContent.localeCompare(other.cells[column].textContent);
      [...body.rows].sort((one, other) => (down ? -1 : 1) * compare(one, other)).forEach((row) => body.append(row));
    }));
  }
  document.documentElement.dataset.ready = "yes";
})();
