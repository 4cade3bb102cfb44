// The data of the page: JSON that describes the run, and one deflated block of arrays.

const KINDS = { u1: Uint8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, f4: Float32Array };
const PARTS = ["not in the split", "training", "validation", "test"];

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
