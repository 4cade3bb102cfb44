function layersOf(node, layer, reach, choose) {
  const body = el("tbody");
  for (let l = 0; l < run.layers; l++) {
    const action = actionOf(l, node);
    const heard = heardBy(node, l);
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    const cells = [];
    for (let a = 0; a < run.actions.length; a++) {
      const p = probabilityOf(l, node, a);
      bar.append(el("i", { style: { width: `${100 * p}%`, background: run.colors.actions[a] } }));
      cells.push(el("td", { class: a === action ? "taken number" : "number" }, (100 * p).toFixed(1)));
    }
    const row = el("tr", l === layer ? { class: "current", "aria-current": "true" } : {});
    row.append(el("th", { scope: "row" }, String(l + 1)), el("td", {}, run.actions[action], bar), ...cells);
    row.append(el("td", {}, ids(heard, choose)), el("td", { class: "number" }, number(reach[l].count)));
    body.append(row);
  }
  const head = ["layer", "action", ...run.actions.map((name) => `${name[0]} %`), "hears", "reach it"];
  const sheet = el("table", { id: "panel-layers" }, headOf(head), body);
  const together = allHeads() ? `Of ${headName()}: the most common action, mean probabilities, and what is heard in any head. ` : "";
  const note = `${together}Probabilities of ${run.actions.join(", ")}; the action taken is bold. ` +
    "“Reach it”: nodes whose state before this layer can still reach this node's output along kept edges.";
  const box = el("section", {}, el("h4", {}, run.heads > 1 ? `Layer by layer, ${headName()}` : "Layer by layer"), el("div", { class: "scroll" }, sheet), el("p", { class: "note" }, note));
  if (run.numNodes < run.allNodes && !byGraph) {
    const text = "This page holds part of the graph, and the table counts only nodes on it";
    box.append(el("p", { class: "note", id: "panel-part" }, `${text}; ${number(A.outside[node])} of the edges into this node come from outside.`));
  }
  return box;
}

