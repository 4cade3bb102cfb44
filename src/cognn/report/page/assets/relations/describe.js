function describe() {
  const view = painter.view, ways = number(view.edges);
  $("view-title").textContent = `Showing ${view.title}: ${number(view.nodes.length)} nodes, ${ways} directed edges${run.bothWays ? ", each direction of travel counted" : ""}.`;
  const { actions, kept, routes } = countsOf(view, state.layer);
  const count = allHeads() ? `${number(Math.round(kept))} on average` : number(kept);
  const share = routes ? `${percent(kept / routes)} of the edges kept (${count})` : "no edges to keep";
  const counts = actions.map((count, a) => `${run.actions[a]} ${number(count)}`).join(", ");
  $("layer-status").textContent = `Layer ${state.layer + 1} of ${run.layers}, ${headName()}: ${share}; ${together() ? "most common actions: " : ""}${counts}.`;
  $("layer").value = state.layer + 1;
  $("layer").setAttribute("aria-valuetext", `layer ${state.layer + 1} of ${run.layers}`);
}
