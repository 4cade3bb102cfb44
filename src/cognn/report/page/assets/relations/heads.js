// The choice of a relation and of a head above the graph, the heat maps, and what the edge at the pointer carries.

function showHeads(changed) {
  document.getElementById("head-note").textContent = page.headNote;
  document.getElementById("head-maps").append(...page.headMaps.map(chartCard));
  const heads = document.getElementById("graph-head");
  const kinds = el("select", { id: "graph-relation", style: { maxWidth: "20rem" } }, el("option", { value: -1 }, "all relations"),
    ...run.relations.map((name, place) => el("option", { value: place }, name)));
  heads.parentNode.before(el("label", { class: "tool" }, "Relation ", kinds));
  heads.append(el("option", { value: 0 }, heads.dataset.all), ...run.shownHeads.map((one, place) => el("option", { value: place + 1 }, `head ${one}`)));
  if (run.heads === 1) heads.parentNode.remove();
  if (!severalRelations) kinds.parentNode.remove();
  // The page of many relations has no room for each pair of a relation and a head: the older choice gives way.
  const set = (one, other) => {
    const known = partOf.has([Number(kinds.value), Number(heads.value)].join());
    if (!known) other.value = other === kinds ? "-1" : "0";
    [relation, head] = [Number(kinds.value), Number(heads.value)];
    part = partOf.get([relation, head].join());
    changed();
  };
  kinds.addEventListener("change", () => set(kinds, heads));
  heads.addEventListener("change", () => set(heads, kinds));
  hoverEdges(document.getElementById("canvas"));
}

function hoverEdges(canvas) {
  const tip = el("div", { id: "edge-tip", role: "tooltip", hidden: "", style: {
    position: "absolute", pointerEvents: "none", zIndex: "3", padding: ".3rem .6rem", borderRadius: "6px", fontSize: ".8rem",
    background: "var(--card)", border: "1px solid var(--line)", color: "var(--text)", maxWidth: "22rem",
  } });
  canvas.parentNode.append(tip);
  canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const pair = event.buttons || !painter ? -1 : pairAt(painter, x, y);
    tip.hidden = pair < 0;
    if (pair < 0) return;
    tip.replaceChildren(...wordsOf(painter.view.a[pair], painter.view.b[pair]).map((line) => el("div", {}, line)));
    const wide = canvas.offsetLeft + canvas.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${Math.min(canvas.offsetLeft + x + 14, wide)}px`;
    tip.style.top = `${canvas.offsetTop + y + 14}px`;
  });
}

// The pair of nodes whose line is nearest to a point of the canvas, or -1; a node at the point hides its lines.
function pairAt(shown, x, y) {
  const node = shown.nodeAt(x, y);
  if (node >= 0 && Math.hypot(shown.px[node] - x, shown.py[node] - y) <= shown.radius()) return -1;
  let best = -1, nearest = 6;
  for (const pair of shown.pairs) {
    const u = shown.view.a[pair], v = shown.view.b[pair];
    const dx = shown.px[v] - shown.px[u], dy = shown.py[v] - shown.py[u];
    const along = Math.max(0, Math.min(1, ((x - shown.px[u]) * dx + (y - shown.py[u]) * dy) / (dx * dx + dy * dy || 1)));
    const away = Math.hypot(shown.px[u] + along * dx - x, shown.py[u] + along * dy - y);
    if (away < nearest) (nearest = away), (best = pair);
  }
  return best;
}

// A line for each chosen route between two nodes: who sends to whom, in which relation, and whether a message went.
function wordsOf(u, v) {
  const lines = [];
  for (const [sender, receiver] of [[u, v], [v, u]]) {
    for (const route of routesBetween(sender, receiver)) {
      if (!isChosen(route)) continue;
      const count = headsOn(state.layer, route);
      const heard = !count ? "no message" : allHeads() ? `a message in ${count} of ${run.heads} heads` : "a message";
      const kind = severalRelations ? `, ${run.relations[A.relation[route]]}` : "";
      const likely = run.edgesAct ? ` (kept with ${percent(chanceOn(state.layer, route))})` : "";
      lines.push(`${nodeName(sender)} → ${nodeName(receiver)}${kind}: ${heard}${likely}`);
    }
  }
  return lines.length ? lines : [`no edge of ${relationName()}`];
}
