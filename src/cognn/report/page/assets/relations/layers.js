function layersOf(node, layer, reach, choose) {
  const body = el("tbody");
  for (let l = 0; l < run.layers; l++) {
    const action = actionOf(l, node);
    const cells = run.actions.map((_, a) => el("td", { class: a === action ? "taken number" : "number" }, (100 * probabilityOf(l, node, a)).toFixed(1)));
    const row = el("tr", l === layer ? { class: "current", "aria-current": "true" } : {});
    row.append(el("th", { scope: "row" }, String(l + 1)), el("td", {}, run.actions[action]), ...cells);
    row.append(el("td", {}, heardIn(node, l, choose)), el("td", { class: "number" }, number(reach[l].count)));
    body.append(row);
  }
  const head = ["layer", "action", ...run.actions.map((name) => `${name[0]} %`), "hears", "reach it"];
  const sheet = el("table", { id: "panel-layers" }, headOf(head), body);
  const shown = together() ? `Of ${headName()}: the most common action, mean probabilities, and what is heard in any of them. ` : "";
  const note = `${shown}Probabilities of ${run.actions.join(", ")}; the action taken is bold. ` +
    "“Reach it”: nodes whose state before this layer can still reach this node's output along the kept edges of what is chosen.";
  const box = el("section", {}, el("h4", {}, `Layer by layer, ${headName()}`), el("div", { class: "scroll" }, sheet), el("p", { class: "note" }, note));
  if (run.numNodes < run.allNodes && !byGraph) {
    const text = "This page holds part of the graph, and the table counts only nodes on it";
    box.append(el("p", { class: "note", id: "panel-part" }, `${text}; ${number(A.outside[node])} of the messages to this node could come from outside.`));
  }
  return box;
}
