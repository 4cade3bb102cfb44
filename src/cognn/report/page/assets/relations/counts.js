// The number of kept routes of a view at a layer (of all heads: the mean), of all its routes, and of nodes per action.
function countsOf(view, layer) {
  const actions = run.actions.map(() => 0);
  let kept = 0, routes = 0;
  for (const node of view.nodes) {
    actions[actionOf(layer, node)]++;
    for (let route = A.inPtr[node]; route < A.inPtr[node + 1]; route++) {
      if (!isChosen(route) || !view.inside[A.sender[route]]) continue;
      routes++;
      kept += headsOn(layer, route);
    }
  }
  return { actions, kept: kept / mostHeads(), routes };
}
