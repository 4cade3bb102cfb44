// The senders that a node hears at a layer, in any of the chosen heads, in ascending order.
function heardBy(node, layer) {
  const heard = [];
  for (let e = A.inPtr[node]; e < A.inPtr[node + 1]; e++) {
    const sender = A.sender[e];
    if (heard[heard.length - 1] !== sender && headsHeard(layer, sender, node)) heard.push(sender);
  }
  return heard;
}

// The nodes that can still reach a node: a mask over all nodes for every layer, as in Trace.reaches.
function reaches(node) {
  const rows = new Array(run.layers);
  let members = [node];
  let inside = new Uint8Array(run.numNodes);
  inside[node] = 1;
  for (let layer = run.layers - 1; layer >= 0; layer--) {
    const next = inside.slice();
    for (const member of members.slice()) {
      for (let e = A.inPtr[member]; e < A.inPtr[member + 1]; e++) {
        const sender = A.sender[e];
        if (!next[sender] && headsHeard(layer, sender, member)) {
          next[sender] = 1;
          members.push(sender);
        }
      }
    }
    rows[layer] = { mask: next, count: members.length };
    inside = next;
  }
  return rows;
}

const percent = (value, digits = 1) => `${(100 * value).toFixed(digits)} %`;
