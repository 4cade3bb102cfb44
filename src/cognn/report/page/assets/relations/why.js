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
  box.append(el("p", {}, `With unchanged decisions, ${what} = ${show(known.value)}. The tables show forward passes in which one decision is changed${run.everywhere ? `, ${run.everywhere}` : ""}.`));
  const change = (value) => (regression ? number(value) : percent(value));
  const silenced = known.silenced.slice(0, 20).map((one) => [
    idButton(one.node, choose), one.layers.map((l) => l + 1).join(" "), show(one.value), change(one.change),
  ]);
  box.append(el("h5", {}, byGraph ? "Nodes silenced at every layer" : "Neighbours that it hears, silenced at every layer"));
  box.append(silenced.length ? table(["silenced", "heard at layers", what, "change"], silenced) : el("p", {}, "It hears no other node."));
  const tried = known.silenced.length < known.heard ? `${known.silenced.length} that were tested, out of ${known.heard} that are heard` : `${known.heard} that are heard`;
  if (known.heard > silenced.length) box.append(el("p", { class: "note" }, `The ${silenced.length} with the largest change among the ${tried}.`));
  const flips = known.flipped.slice().sort((a, b) => b.change - a.change).slice(0, 12).map((one) => [
    String(one.layer + 1), run.edgesAct ? edgeOf(one, known.node, choose) : `→ ${run.drawn[one.action]}`, show(one.value), change(one.change),
  ]);
  if (run.edgesAct) {
    const into = `${byGraph ? `Edges into node ${nodeName(known.node)}` : "Edges into it"}, kept instead of dropped or dropped instead of kept${run.everywhere ? ` ${run.everywhere}` : ""}`;
    box.append(el("h5", {}, into), flips.length ? table(["layer", "edge", what, "change"], flips) : el("p", {}, "It has none."));
    return box;
  }
  const whose = (byGraph ? `Action of node ${nodeName(known.node)} flipped` : "Its own action flipped") + (run.everywhere ? ` ${run.everywhere}` : "");
  box.append(el("h5", {}, whose), table(["layer", "action", what, "change"], flips));
  return box;
}

// An edge that was flipped: its sender, and what was done with it instead.
function edgeOf(flip, receiver, choose) {
  return el("span", {}, "from ", idButton(flip.sender, choose), run.drawn[flip.action] === "KEEP" ? " kept" : " dropped");
}
