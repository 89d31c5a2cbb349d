// The dashboard's figures as words and tables.
"use strict";

const figures = (() => {
  const element = (id) => document.getElementById(id);
  const us = (x) => x === null || x === undefined ? "–" : charts.us(x);
  const plainUs = (x) => x === null || x === undefined ? "–" : x < 100 ? x.toFixed(2) : x.toFixed(1);
  const count = (x) => charts.kinds.count.text(Math.round(x));
  const bytes = (x) => charts.kinds.bytes.text(Math.round(x));
  const clock = (s) => s < 60 ? s.toFixed(1) + " s" : `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;

  const make = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };

  // Fills a table with a head and rows of text; the first cell of a row is its head. Cells that stay are left alone, so that what
  // is selected or read aloud does not jump.
  function table(id, head, rows) {
    const [top, body] = [element(id).tHead, element(id).tBodies[0]];
    if (top.dataset.of !== head.join("|")) {
      top.replaceChildren(make("tr"));
      top.rows[0].append(...head.map((text) => make("th", text, { scope: "col" })));
      top.dataset.of = head.join("|");
      body.replaceChildren();
    }
    while (body.rows.length > rows.length) body.lastChild.remove();
    rows.forEach((row, at) => {
      const line = body.rows[at] ?? body.appendChild(make("tr"));
      while (line.cells.length > row.length) line.lastChild.remove();
      row.forEach((text, nth) => {
        const cell = line.cells[nth] ?? line.appendChild(nth === 0 ? make("th", "", { scope: "row" }) : make("td"));
        if (cell.textContent !== text) cell.textContent = text;
      });
    });
  }

  function headline(frame, drive, second) {
    const [reads, writes] = second ?? [drive.reads, drive.writes];
    const shown = [
      ["reads a second", count(reads.iops)], ["writes a second", count(writes.iops)],
      ["throughput", bytes(reads.bytes_s + writes.bytes_s)],
      ["read p99", us(reads.latency_us.p99)], ["write p99", us(writes.latency_us.p99)],
      ["write amplification", drive.waf === null ? "–" : drive.waf.toFixed(2)],
      ["release lag p99", us(frame.release_lag_us.p99)],
      ["clients", String(frame.clients)],
    ];
    const list = element("headline");
    if (list.childElementCount !== shown.length) {
      list.replaceChildren(...shown.map(([name]) => { const item = make("div"); item.append(make("dt", name), make("dd", "–")); return item; }));
    }
    shown.forEach(([, value], at) => { list.children[at].lastChild.textContent = value; });
  }

  function latency(second) {
    const head = ["µs", "a second", "failed", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    const row = (name, { iops, errors, latency_us: l }) => [name, count(iops), String(errors), ...[l.mean, l.p50, l.p90, l.p99, l.p99_9, l.p99_99, l.max].map(plainUs)];
    const names = { flushes: "flushes, among the others", fua_writes: "FUA writes, among the writes" };
    table("latency-table", head, second.map((flow) => row(names[flow.kind] ?? flow.kind, flow)));
  }

  function counters(drive) {
    const rows = Object.entries(drive.counters).map(([name, value]) => {
      const rate = drive.rates[name];
      return [name.replace(/_total$/, "").replaceAll("_", " "), value.toLocaleString("en"), rate === undefined ? "" : count(rate)];
    });
    table("counters", ["counter", "now", "a second"], rows);
  }

  function faults(drive) {
    const rules = drive.faults ?? [];
    element("faults-table").hidden = rules.length === 0;
    element("no-faults").hidden = rules.length > 0;
    table("faults-table", ["rule", "operations struck", "that it matched"], rules.map(({ rule, struck, matched }) => [rule, struck.toLocaleString("en"), matched.toLocaleString("en")]));
  }

  // One sentence or two, for those who do not see the charts.
  function words(name, frame, drive, second) {
    const [reads, writes] = second ?? [drive.reads, drive.writes];
    const of = (what, flow) => flow.count === 0 ? `no ${what}` : `${count(flow.iops)} ${what} a second, median ${us(flow.latency_us.p50)}, p99 ${us(flow.latency_us.p99)}`;
    const rules = (drive.faults ?? []).length;
    return `Drive ${name}${drive.state ? ` (${drive.state})` : ""} at ${clock(frame.time_s)}: ${of("reads", reads)}; ${of("writes", writes)}. ` +
      `Garbage collection programs ${bytes(drive.rates.gc_moved_bytes_total ?? 0)}. ` +
      `Release lag p99 ${us(frame.release_lag_us.p99)}. ${rules === 0 ? "No faults." : `${rules} fault rule${rules > 1 ? "s" : ""}.`}`;
  }

  return { element, make, table, headline, latency, counters, faults, words, clock, us, count, bytes };
})();
