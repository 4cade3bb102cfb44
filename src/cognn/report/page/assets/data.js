// The data of the page: JSON that describes the run, and one deflated block of arrays.

const KINDS = { u1: Uint8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, f4: Float32Array };
const PARTS = ["not in the split", "training", "validation", "test"];

const page = JSON.parse(document.getElementById("page-data").textContent);
const run = page.explorer;
const A = {}; // the arrays, by name

async function unpack() {
  const text = atob(document.getElementById("page-block").textContent.trim());
  const raw = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) raw[i] = text.charCodeAt(i);
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  for (const [name, [kind, start, length]] of Object.entries(run.arrays)) {
    A[name] = new KINDS[kind](buffer, start, length);
  }
}

// Elements are built from text, never from markup, so names from a user's files cannot run as code.
function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key === "style") Object.assign(node.style, value);
    else if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const byGraph = run.level === "graph";
const numGraphs = () => A.graphPtr.length - 1;
const itemName = (item) => (run.names ? run.names[item] : String(item));

function graphOf(node) {
  let low = 0, high = numGraphs() - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (A.graphPtr[middle] <= node) low = middle;
    else high = middle - 1;
  }
  return low;
}

const itemOf = (node) => (byGraph ? graphOf(node) : node);
const nodeName = (node) =>
  node < 0 ? "a node outside this page" : byGraph ? String(node - A.graphPtr[graphOf(node)]) : itemName(node);
// The decisions have a part for each choice of a head: part 0 is the only head, or all heads together.
let part = 0;
const allHeads = () => run.heads > 1 && part === 0;
const headName = () => (allHeads() ? `all ${run.heads} heads` : `head ${run.shownHeads[part - 1]}`);
const actionOf = (layer, node) => A.action[(part * run.layers + layer) * run.numNodes + node];
const probabilityOf = (layer, node, action) =>
  A.probs[((part * run.layers + layer) * run.numNodes + node) * run.actions.length + action] / 65535;
const listens = (action) => run.listens[action];
const broadcasts = (action) => run.broadcasts[action];

// The number of ones among 32 bits: sums of 2, 4 and 8 bits at a time.
function onesIn(bits) {
  const pairs = bits - ((bits >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

// The number of heads, of those chosen, in which a receiver hears a sender at a layer.
const words = Math.ceil(run.heads / 32);
function headsHeard(layer, sender, receiver) {
  if (!allHeads()) return broadcasts(actionOf(layer, sender)) && listens(actionOf(layer, receiver)) ? 1 : 0;
  const from = (layer * run.numNodes + sender) * words, to = (layer * run.numNodes + receiver) * words;
  let count = 0;
  for (let w = 0; w < words; w++) count += onesIn(A.broadcastBits[from + w] & A.listenBits[to + w]);
  return count;
}
const mostHeads = () => (allHeads() ? run.heads : 1);

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
const number = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString());
