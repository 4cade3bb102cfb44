// What is shown of the decisions: one relation or all, and one head or all.  Part 0 of the arrays has all together.
let relation = -1, head = 0, part = 0; // the relation or -1, the place of the head in run.shownHeads plus 1 or 0
const partOf = new Map(run.parts.map((pair, place) => [pair.join(), place]));
const allHeads = () => run.heads > 1 && head === 0;
const together = () => relation < 0 || allHeads();
const severalRelations = run.relations.length > 1;
const relationName = () => (!severalRelations ? "" : relation < 0 ? "all relations" : run.relations[relation]);
const headName = () =>
  [relationName(), run.heads === 1 ? "" : allHeads() ? `all ${run.heads} heads` : `head ${run.shownHeads[head - 1]}`].filter(Boolean).join(", ");
const actionOf = (layer, node) => A.action[(part * run.layers + layer) * run.numNodes + node];
const probabilityOf = (layer, node, action) =>
  A.probs[((part * run.layers + layer) * run.numNodes + node) * run.actions.length + action] / 65535;

// An entry of A.sender is a route: an edge in one relation, from who can send to who can hear.
const isChosen = (route) => relation < 0 || A.relation[route] === relation;
// If edges act, the probability that one is kept; of all heads the mean.
const chanceOn = (layer, route) => A.chance[(head * run.layers + layer) * run.numEdges + route] / 65535;
const headsOn = (layer, route) => (isChosen(route) ? A.kept[(head * run.layers + layer) * run.numEdges + route] : 0);

// The routes from a sender to a receiver, one for each edge and relation.
function routesBetween(sender, receiver) {
  let low = A.inPtr[receiver], high = A.inPtr[receiver + 1];
  const end = high, found = [];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (A.sender[middle] < sender) low = middle + 1;
    else high = middle;
  }
  for (; low < end && A.sender[low] === sender; low++) found.push(low);
  return found;
}

// The number of heads, of those chosen, in which a receiver hears a sender at a layer: the most of any chosen relation.
const headsHeard = (layer, sender, receiver) =>
  routesBetween(sender, receiver).reduce((most, route) => Math.max(most, headsOn(layer, route)), 0);
const mostHeads = () => (allHeads() ? run.heads : 1);

// The senders that a node hears at a layer, by relation.
function heardIn(node, layer, choose) {
  const by = new Map();
  for (let route = A.inPtr[node]; route < A.inPtr[node + 1]; route++) {
    if (!headsOn(layer, route)) continue;
    const known = by.get(A.relation[route]) ?? [];
    if (known[known.length - 1] !== A.sender[route]) known.push(A.sender[route]);
    by.set(A.relation[route], known);
  }
  if (!by.size) return ids([], choose);
  return el("div", {}, ...[...by].sort(([a], [b]) => a - b).map(([kind, senders]) =>
    el("div", { "data-relation": kind }, relation < 0 && severalRelations ? `${run.relations[kind]}: ` : "", ids(senders, choose))));
}
