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
