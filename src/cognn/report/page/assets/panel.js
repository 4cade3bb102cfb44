// The panel beside the canvas: outcome, features, decisions and explanation of the selected node.

const MOST_IDS = 24;

function panelOf(node, layer, reach, choose) {
  const item = itemOf(node);
  const title = byGraph ? `Node ${nodeName(node)} of graph ${itemName(item)}` : `Node ${nodeName(node)}`;
  const parts = [el("h3", { tabindex: "-1", id: "panel-title" }, title), outcomeOf(item), featuresOf(node)];
  if (run.layers) parts.push(layersOf(node, layer, reach, choose));
  parts.push(whyOf(node, item, choose));
  return parts;
}

function outcomeOf(item) {
  const k = A.output.length / A.label.length;
  const facts = el("dl", { class: "facts" });
  const fact = (name, value, id) => facts.append(el("dt", {}, name), el("dd", { id }, value));
  const ranked = run.kind === "binary" || run.kind === "multiclass";
  if (ranked) fact("Label", A.label[item] < 0 ? "none" : run.outputs[A.label[item]], "panel-label");
  fact("Part of split", PARTS[A.part[item]]);
  if (ranked) {
    const best = item * k;
    const spread = run.samples ? ` ± ${percent(A.spread[best])}` : "";
    fact("Prediction", `${run.outputs[A.output[best]]}, ${percent(A.value[best])}${spread}`, "panel-prediction");
  }
  if (A.right[item] >= 0) fact("Outcome", run.correctness[A.right[item]], "panel-outcome");
  const box = el("div", {}, facts);
  const head = ["output", ...(ranked ? [] : ["target"]), ranked ? "probability" : "prediction"];
  if (run.samples) head.push(`std over ${run.samples} samples`);
  const rows = [];
  for (let i = item * k; i < (item + 1) * k; i++) {
    const show = run.kind === "regression" ? number : (value) => percent(value);
    const row = [run.outputs[A.output[i]]];
    if (!ranked) row.push(Number.isNaN(A.target[i]) ? "none" : number(A.target[i]));
    row.push(show(A.value[i]));
    if (run.samples) row.push(show(A.spread[i]));
    rows.push(row);
  }
  const which = run.kind === "regression" ? `first ${k}` : `${k} most likely`;
  box.append(details(run.outputs.length > k ? `The ${which} of ${run.outputs.length} outputs` : "All outputs", table(head, rows), !ranked));
  return box;
}

function featuresOf(node) {
  const { names, words, perNode } = run.features;
  const rows = [];
  for (let i = 0; i < perNode; i++) {
    const column = A.featureColumn ? A.featureColumn[node * perNode + i] : i;
    const value = A.feature[node * perNode + i];
    const text = Number.isNaN(value) ? "missing" : words[column] ? words[column][value] : number(value);
    rows.push([names[column], text]);
  }
  const title = perNode < names.length ? `Features: the ${perNode} of ${names.length} farthest from the mean` : "Features";
  return details(title, table(["feature", "value"], rows), perNode <= 6);
}

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

function ids(nodes, choose) {
  const box = el("span", { class: "ids" });
  if (!nodes.length) box.append("none");
  for (const node of nodes.slice(0, MOST_IDS)) box.append(idButton(node, choose));
  if (nodes.length > MOST_IDS) box.append(` and ${number(nodes.length - MOST_IDS)} more`);
  return box;
}

function idButton(node, choose) {
  if (node < 0) return el("span", {}, nodeName(node));
  return el("button", { type: "button", class: "id", title: nodeName(node), onclick: () => choose(node) }, nodeName(node));
}

function whyOf(node, item, choose) {
  const box = el("section", { id: "panel-why" }, el("h4", {}, "Why this prediction"));
  if (!run.layers) return box.append(el("p", { class: "note" }, "This network has no actions.")), box;
  const known = run.why.find((one) => one.item === item);
  if (!known) {
    const text = `Not computed for this ${byGraph ? "graph" : "node"}, because it takes more forward passes of the model. ` +
      `Write the report with --why ${itemName(item)}, or call cognn.report.why.`;
    box.append(el("p", { class: "note" }, text));
    return box;
  }
  const best = known.value.indexOf(Math.max(...known.value));
  const regression = run.kind === "regression";
  const show = (value) => (regression ? number(value[0]) : percent(value[best]));
  const what = regression ? `${run.outputs[0]}` : `p(${run.outputs[best]})`;
  box.append(el("p", {}, `With unchanged decisions, ${what} = ${show(known.value)}. The tables show forward passes in which one decision is changed${run.heads > 1 ? `, in all ${run.heads} heads` : ""}.`));
  const change = (value) => (regression ? number(value) : percent(value));
  const silenced = known.silenced.slice(0, 20).map((one) => [
    idButton(one.node, choose), one.layers.map((l) => l + 1).join(" "), show(one.value), change(one.change),
  ]);
  box.append(el("h5", {}, byGraph ? "Nodes silenced at every layer" : "Neighbours that it hears, silenced at every layer"));
  box.append(silenced.length ? table(["silenced", "heard at layers", what, "change"], silenced) : el("p", {}, "It hears no other node."));
  const tried = known.silenced.length < known.heard ? `${known.silenced.length} that were tested, out of ${known.heard} that are heard` : `${known.heard} that are heard`;
  if (known.heard > silenced.length) box.append(el("p", { class: "note" }, `The ${silenced.length} with the largest change among the ${tried}.`));
  const flips = known.flipped.slice().sort((a, b) => b.change - a.change).slice(0, 12).map((one) => [
    String(one.layer + 1), `${run.heads > 1 ? "all heads" : run.actions[actionOf(one.layer, known.node)]} → ${run.actions[one.action]}`, show(one.value), change(one.change),
  ]);
  const whose = (byGraph ? `Action of node ${nodeName(known.node)} flipped` : "Its own action flipped") + (run.heads > 1 ? " in all heads" : "");
  box.append(el("h5", {}, whose), table(["layer", "action", what, "change"], flips));
  return box;
}

function headOf(names) {
  return el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name))));
}

function table(head, rows) {
  const body = el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell)))));
  return el("div", { class: "scroll" }, el("table", {}, headOf(head), body));
}

function details(title, content, open) {
  return el("details", open ? { open: "" } : {}, el("summary", {}, title), content);
}
