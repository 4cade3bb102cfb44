function describe() {
  const view = painter.view, total = `${number(view.nodes.length)} nodes, ${number(view.edges)} directed edges`;
  $("view-title").textContent = `Showing ${view.title}: ${total}.`;
  if (!run.layers) return;
  const { actions, kept } = countsOf(view, state.layer);
  const count = allHeads() ? `${number(Math.round(kept))} on average` : number(kept);
  const share = view.edges ? `${percent(kept / view.edges)} of the edges kept (${count})` : "no edges to keep";
  const counts = actions.map((count, a) => `${run.actions[a]} ${number(count)}`).join(", ");
  const where = `Layer ${state.layer + 1} of ${run.layers}` + (run.heads > 1 ? `, ${headName()}` : "");
  $("layer-status").textContent = `${where}: ${share}; ${allHeads() ? "most common actions: " : ""}${counts}.`;
  $("layer").value = state.layer + 1;
  $("layer").setAttribute("aria-valuetext", `layer ${state.layer + 1} of ${run.layers}`);
}

