// The number of kept directed edges of a view at a layer (of all heads: the mean), and the number of nodes per action.
function countsOf(view, layer) {
  const actions = run.actions.map(() => 0);
  let kept = 0;
  for (const node of view.nodes) {
    actions[actionOf(layer, node)]++;
    for (let e = A.inPtr[node]; e < A.inPtr[node + 1]; e++) {
      const sender = A.sender[e];
      if (view.inside[sender]) kept += headsHeard(layer, sender, node);
    }
  }
  return { actions, kept: kept / mostHeads() };
}
