function describe() {
  const view = painter.view;
  $("view-title").textContent = `Showing ${view.title}: ${number(view.nodes.length)} nodes, ${number(view.edges)} directed edges${run.bothWays ? ", each direction of travel counted" : ""}.`;
  const { actions, kept, routes } = countsOf(view, state.layer);
  const count = allHeads() ? `${number(Math.round(kept))} on average` : number(kept);
  const share = routes ? `${percent(kept / routes)} of the edges kept (${count})` : "no edges to keep";
  const counts = actions.map((count, a) => `${number(count)} ${run.actions[a].replace("hears", "hear")}`).join(", ");
  const where = [`Layer ${state.layer + 1} of ${run.layers}`, headName()].filter(Boolean).join(", ");
  $("layer-status").textContent = `${where}: ${share}; nodes: ${counts}.`;
  $("layer").value = state.layer + 1;
  $("layer").setAttribute("aria-valuetext", `layer ${state.layer + 1} of ${run.layers}`);
}
