// What a node hears at every layer: how many of the messages that it could, how likely they are, and from whom.
function layersOf(node, layer, reach, choose) {
  const body = el("tbody");
  for (let l = 0; l < run.layers; l++) {
    let kept = 0, routes = 0, chance = 0;
    for (let route = A.inPtr[node]; route < A.inPtr[node + 1]; route++) {
      if (!isChosen(route)) continue;
      routes++;
      kept += headsOn(l, route) > 0;
      chance += chanceOn(l, route);
    }
    const row = el("tr", l === layer ? { class: "current", "aria-current": "true" } : {});
    row.append(el("th", { scope: "row" }, String(l + 1)), el("td", { class: "number" }, `${number(kept)} of ${number(routes)}`));
    row.append(el("td", { class: "number" }, routes ? (100 * chance / routes).toFixed(1) : ""));
    row.append(el("td", {}, heardIn(node, l, choose)), el("td", { class: "number" }, number(reach[l].count)));
    body.append(row);
  }
  const sheet = el("table", { id: "panel-layers" }, headOf(["layer", "edges kept", "kept, mean %", "hears", "reach it"]), body);
  const note = (allHeads() ? `Of ${headName()}: an edge counts as kept if any head keeps it. ` : "") +
    "“Edges kept” are those into this node, “kept, mean %” is the mean of their probabilities. " +
    "“Reach it”: nodes whose state before this layer can still reach this node's output along kept edges.";
  const title = ["Layer by layer", headName()].filter(Boolean).join(", ");
  const box = el("section", {}, el("h4", {}, title), el("div", { class: "scroll" }, sheet), el("p", { class: "note" }, note));
  if (run.numNodes < run.allNodes && !byGraph) {
    const text = "This page holds part of the graph, and the table counts only nodes on it";
    box.append(el("p", { class: "note", id: "panel-part" }, `${text}; ${number(A.outside[node])} of the messages to this node could come from outside.`));
  }
  return box;
}
