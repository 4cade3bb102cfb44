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
    if (A.featureColumn && Number.isNaN(value)) continue;  // a node with fewer features than others
    const text = Number.isNaN(value) ? "missing" : words[column] ? words[column][value] : number(value);
    rows.push([names[column], text]);
  }
  const title = perNode < names.length ? `Features: the ${perNode} of ${names.length} farthest from the mean` : "Features";
  return details(title, table(["feature", "value"], rows), perNode <= 6);
}

