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

