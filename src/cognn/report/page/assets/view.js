// A view is what the canvas shows: a set of nodes with positions, and the pairs of them joined by edges.

const MOST_IN_VIEW = 150;

function makeView(nodes, positions, title) {
  const inside = new Uint8Array(run.numNodes);
  for (const node of nodes) inside[node] = 1;
  const joined = (sender, receiver) => {
    let low = A.inPtr[receiver], high = A.inPtr[receiver + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (A.sender[middle] < sender) low = middle + 1;
      else high = middle;
    }
    return low < A.inPtr[receiver + 1] && A.sender[low] === sender;
  };
  // Both directions of an edge are one pair: bit 1 is from a to b, bit 2 from b to a.
  const a = [], b = [], bits = [];
  let edges = 0;
  for (const receiver of nodes) {
    let last = -1;
    for (let e = A.inPtr[receiver]; e < A.inPtr[receiver + 1]; e++) {
      const sender = A.sender[e];
      if (!inside[sender]) continue;
      edges++;
      if (sender === receiver || sender === last) continue;
      last = sender;
      const both = joined(receiver, sender);
      if (both && sender > receiver) continue;
      a.push(sender);
      b.push(receiver);
      bits.push(both ? 3 : 1);
    }
  }
  let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
  for (const node of nodes) {
    const x = positions[2 * node], y = positions[2 * node + 1];
    left = Math.min(left, x), right = Math.max(right, x), top = Math.min(top, y), bottom = Math.max(bottom, y);
  }
  const box = nodes.length ? { left, right, top, bottom } : { left: 0, right: 1, top: 0, bottom: 1 };
  return {
    nodes, inside, positions, title, edges, box,
    a: Uint32Array.from(a), b: Uint32Array.from(b), bits: Uint8Array.from(bits),
  };
}

function range(first, last) {
  const out = new Uint32Array(last - first);
  for (let i = 0; i < out.length; i++) out[i] = first + i;
  return out;
}

const fullView = () => makeView(range(0, run.numNodes), A.position, run.numNodes < run.allNodes ? "the part on this page" : "the full graph");

function graphView(item) {
  const title = `graph ${itemName(item)}`;
  return makeView(range(A.graphPtr[item], A.graphPtr[item + 1]), A.position, title);
}

// The nodes around a root in rings by hops, against the direction of the edges: all that it could hear from.
function neighbourhood(root) {
  const hop = new Map([[root, 0]]), parent = new Map(), nodes = [root];
  let left = 0;
  for (let i = 0; i < nodes.length; i++) {
    for (let e = A.inPtr[nodes[i]]; e < A.inPtr[nodes[i] + 1]; e++) {
      const sender = A.sender[e];
      if (hop.has(sender)) continue;
      if (nodes.length >= MOST_IN_VIEW) {
        left++;
        continue;
      }
      hop.set(sender, hop.get(nodes[i]) + 1);
      parent.set(sender, nodes[i]);
      nodes.push(sender);
    }
    if (left) break;
  }
  // The sector of a node is proportional to its number of leaves; crowded rings get a larger radius.
  const leaves = new Map(), children = new Map(nodes.map((node) => [node, []]));
  for (const node of nodes.slice(1)) children.get(parent.get(node)).push(node);
  for (const node of nodes.slice().reverse()) {
    leaves.set(node, Math.max(1, children.get(node).reduce((sum, child) => sum + leaves.get(child), 0)));
  }
  const deepest = hop.get(nodes[nodes.length - 1]);
  const crowd = new Array(deepest + 1).fill(0);
  for (const node of nodes) crowd[hop.get(node)]++;
  const radius = [0];
  for (let h = 1; h <= deepest; h++) radius.push(Math.max(radius[h - 1] + 1.6, crowd[h] / (2 * Math.PI)));
  const positions = new Float32Array(2 * run.numNodes), start = new Map([[root, 0]]);
  for (const node of nodes) {
    let angle = start.get(node);
    const middle = angle + (Math.PI * leaves.get(node)) / leaves.get(root);
    positions[2 * node] = radius[hop.get(node)] * Math.cos(middle);
    positions[2 * node + 1] = radius[hop.get(node)] * Math.sin(middle);
    for (const child of children.get(node)) {
      start.set(child, angle);
      angle += (2 * Math.PI * leaves.get(child)) / leaves.get(root);
    }
  }
  const rest = left ? ` (at most ${MOST_IN_VIEW} are shown)` : "";
  const title = `${nodes.length} nodes within ${deepest} hops of ${nodeName(root)}${rest}`;
  return makeView(Uint32Array.from(nodes).sort(), positions, title);
}

// The node whose neighbourhood the page opens on: of the explained ones, or else of some, the one with about as many
// nodes around it as are clear to see.
const CLEAR = 60;

function worthSeeing() {
  const step = Math.max(1, Math.floor(run.numNodes / 40));
  const some = run.why.length ? run.why.map((one) => one.node) : Array.from(range(0, run.numNodes)).filter((node) => node % step === 0);
  const away = (node) => Math.abs(Math.log(neighbourhood(node).nodes.length / CLEAR));
  return some.map((node) => [away(node), node]).reduce((a, b) => (b[0] < a[0] ? b : a))[1];
}
