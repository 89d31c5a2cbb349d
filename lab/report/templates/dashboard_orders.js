// Orders about faults, from a dashboard that takes them: asked again, sent, and answered.
"use strict";

const orders = (() => {
  const { element } = figures;
  const token = document.querySelector('meta[name="token"]').content;
  let drive = null;

  async function send(order) {
    const reply = element("reply");
    try {
      const answer = await fetch("control", { method: "POST", headers: { "Content-Type": "application/json", "X-Nandscape-Token": token }, body: JSON.stringify(order) });
      const text = await answer.text();
      let told;
      try { told = JSON.parse(text); } catch { told = { error: text.trim() }; }
      reply.textContent = answer.ok ? `Done: ${told.name} has ${told.faults.length === 0 ? "no fault rules" : told.faults.map(({ rule }) => `“${rule}”`).join(", ")}.` : `Refused: ${told.error}`;
      reply.className = answer.ok ? "done" : "refused";
      if (answer.ok) element("rule").value = "";
    } catch (problem) {
      reply.textContent = `Not sent: ${problem.message}`;
      reply.className = "refused";
    }
  }

  // Asks whether an order is meant, and sends it.
  function ask(text, order) {
    const dialog = element("sure");
    element("sure-text").textContent = text;
    dialog.returnValue = "no";
    dialog.onclose = () => { if (dialog.returnValue === "yes") send(order); };
    dialog.showModal();
  }

  element("order").addEventListener("submit", (event) => {
    event.preventDefault();
    const rule = element("rule").value.trim();
    if (rule !== "") ask(`Inject “${rule}” into drive ${drive}? What it breaks may stay broken.`, { command: "fault", drive, rule });
  });
  element("clear").addEventListener("click", () => ask(`Remove all fault rules of drive ${drive}? Their effects so far remain.`, { command: "clear_faults", drive }));

  function begin(takesOrders) {
    const allowed = takesOrders && token !== "";
    element("order").hidden = !allowed;
    element("read-only").hidden = allowed;
  }
  function choose(name) {
    drive = name;
    element("rule-drive").textContent = name;
  }

  return { begin, choose };
})();
