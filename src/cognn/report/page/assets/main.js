function legend() {
  const entries = {
    action: run.actions.map((name, a) => [run.colors.actions[a], name]),
    class: run.board ? [[run.board.free, "free"], [run.board.mine, "mine"]]
      : run.classes.names.slice(0, run.colors.series.length).map((name, i) => [run.colors.series[i], name]),
    correctness: [[run.colors.right, run.correctness[1]], [run.colors.wrong, run.correctness[0]]],
  }[state.by];
  const swatches = entries.map(([color, name]) => el("li", {}, el("i", { style: { background: color } }), name));
  const more = run.classes.names.length - run.colors.series.length;
  if (!run.board && state.by === "class" && more > 0) swatches.push(el("li", {}, `${number(more)} more classes repeat these colours`));
  if (run.board && state.by !== "class") swatches.push(el("li", {}, el("i", { class: "frame", style: { borderColor: run.board.mine } }), "mine (visible when zoomed in)"));
  const lines = run.layers ? [el("li", {}, "line: message in both directions"), el("li", {}, "arrow: in one direction"), el("li", {}, "faint: no message")] : [];
  if (allHeads()) lines.push(el("li", {}, "darker line: more heads"));
  $("legend").replaceChildren(...swatches, ...lines);
}

function setLayer(layer) {
  state.layer = Math.max(0, Math.min(run.layers - 1, layer));
  repaint();
  describe();
  const rows = document.querySelectorAll("#panel-layers tbody tr");
  rows.forEach((row, l) => {
    row.classList.toggle("current", l === state.layer);
    if (l === state.layer) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  });
}

// Called when another head is chosen: everything that tells of the decisions is drawn again.
function showHead() {
  redrawDecisions();
  legend();
  if (state.chosen >= 0) choose(state.chosen);
  else repaint();
  describe();
  document.dispatchEvent(new Event("repaint-gallery"));
}

function play() {
  if (state.playing) clearInterval(state.playing);
  state.playing = state.playing ? null : setInterval(() => setLayer((state.layer + 1) % run.layers), 900);
  $("play").textContent = state.playing ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", String(Boolean(state.playing)));
}

function choose(node, focus = false) {
  const view = painter.view;
  if (byGraph && !view.inside[node]) openGraph(graphOf(node));
  else if (!state.whole && !byGraph && (!view.inside[node] || focus)) painter.show(neighbourhood(node));
  state.chosen = node;
  state.reach = run.layers ? reaches(node) : null;
  $("panel").replaceChildren(...panelOf(node, state.layer, state.reach, (other) => choose(other, true)));
  if (focus) {
    if (run.board && painter.scale < 22) painter.zoom(22 / painter.scale, 0, 0); // large enough to read the numbers
    if (run.board || !painter.sees(node)) painter.centre(node);
    $("panel-title").focus({ preventScroll: true });
  }
  repaint();
  describe();
}

function release() {
  state.chosen = -1;
  state.reach = null;
  $("panel").replaceChildren(...welcome());
  repaint();
}

function welcome() {
  const text = byGraph
    ? "Select a graph in the gallery, then click one of its nodes."
    : `Click a node, or search for its id, to see its features, its prediction, ${run.edgesAct ? "the edges into it that are kept" : "its action"} at every layer, and the nodes it heard.`;
  const parts = [el("h3", { id: "panel-title" }, "No node selected"), el("p", {}, text)];
  if (run.why.length) {
    const buttons = run.why.map((one) => el("button", { type: "button", class: "id", onclick: () => (byGraph ? openGraph(one.item, true) : choose(one.item, true)) },
      `${itemName(one.item)} (${A.right[one.item] < 0 ? "no label" : run.correctness[A.right[one.item]]})`));
    parts.push(el("h4", {}, "Explained predictions"), el("p", { class: "ids", id: "explained" }, ...buttons));
  }
  return parts;
}

function search(text) {
  const wanted = text.trim(), found = [];
  const count = byGraph ? numGraphs() : run.numNodes;
  const open = (item) => (byGraph ? openGraph(item, true) : choose(item, true));
  if (!wanted) return $("found").replaceChildren();
  for (let item = 0; item < count; item++) {
    const name = itemName(item);
    if (name === wanted) {
      $("found").replaceChildren();
      return open(item);
    }
    if (found.length < 8 && name.includes(wanted)) found.push(item);
  }
  const answer = found.length ? ["No exact match. Did you mean ", ...found.map((item) => el("button", { type: "button", class: "id", onclick: () => open(item) }, itemName(item)))]
    : [`No ${byGraph ? "graph" : "node"} on this page is called “${wanted}”.`];
  $("found").replaceChildren(...answer);
}

function openGraph(item, explain = false) {
  painter.show(graphView(item));
  document.querySelectorAll("#gallery button").forEach((b) => b.setAttribute("aria-pressed", String(Number(b.dataset.item) === item)));
  const known = run.why.find((one) => one.item === item);
  if (explain) choose(known ? known.node : A.graphPtr[item], true);
  else release();
  describe();
}

function showGallery() {
  if (!byGraph) return $("gallery-section").remove();
  const cards = [];
  for (let item = 0; item < numGraphs(); item++) {
    const outcome = A.right[item] < 0 ? "no label" : run.correctness[A.right[item]];
    const picture = el("canvas", { class: "thumb", "aria-hidden": "true" });
    const button = el("button", { type: "button", "data-item": item, "data-right": A.right[item], "aria-pressed": "false", onclick: () => openGraph(item) },
      picture, el("span", {}, `graph ${itemName(item)}`), el("span", { class: `outcome outcome-${A.right[item]}` }, outcome));
    cards.push({ item, button, picture });
  }
  $("gallery").append(...cards.map((card) => card.button));
  const paintOne = (card) => new Painter(card.picture, graphView(card.item)).paint({ ...look(), reach: null, chosen: -1 });
  const paintAll = () => cards.forEach((card) => !card.button.hidden && paintOne(card));
  document.addEventListener("repaint-gallery", paintAll);
  requestAnimationFrame(paintAll);
  $("gallery-filter").addEventListener("change", (event) => {
    for (const { button } of cards) button.hidden = event.target.value !== "all" && button.dataset.right !== event.target.value;
    paintAll();
  });
}

function pointer(canvas) {
  let from = null, moved = false;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    from = at(event);
    moved = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [x, y] = at(event);
    if (Math.abs(x - from[0]) + Math.abs(y - from[1]) < 4 && !moved) return;
    moved = true;
    painter.x += x - from[0];
    painter.y += y - from[1];
    from = [x, y];
    requestAnimationFrame(repaint);
  });
  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = at(event);
    from = null;
    if (moved) return;
    const node = painter.nodeAt(x, y);
    if (node >= 0) choose(node);
    else release();
  });
  // Until the canvas has been clicked, the wheel scrolls the page.
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    painter.zoom(Math.exp(-event.deltaY / 400), ...at(event));
    requestAnimationFrame(repaint);
  }, { passive: false });
}

function keys(canvas) {
  const { width, height } = { width: () => canvas.clientWidth / 2, height: () => canvas.clientHeight / 2 };
  const does = {
    ArrowLeft: () => (painter.x += 40), ArrowRight: () => (painter.x -= 40),
    ArrowUp: () => (painter.y += 40), ArrowDown: () => (painter.y -= 40),
    "+": () => painter.zoom(1.3, width(), height()), "=": () => painter.zoom(1.3, width(), height()),
    "-": () => painter.zoom(1 / 1.3, width(), height()), 0: () => painter.fit(),
    "]": () => run.layers && setLayer(state.layer + 1), "[": () => run.layers && setLayer(state.layer - 1),
    " ": () => run.layers && play(), Escape: release,
    Enter: () => {
      const node = painter.nodeAt(width(), height());
      if (node >= 0) choose(node, true);
    },
  };
  canvas.addEventListener("keydown", (event) => {
    if (!does[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    does[event.key]();
    repaint();
  });
}

async function start() {
  theme(() => {
    if (painter) repaint();
    document.dispatchEvent(new Event("repaint-gallery"));
  });
  await unpack();
  const canvas = $("canvas");
  if (!run.layers) {
    state.by = "correctness";
    document.querySelectorAll(".needs-layers").forEach((part) => part.remove());
  }
  state.whole = run.drawFull && run.opensFull;
  painter = new Painter(canvas, byGraph ? graphView(0) : state.whole ? fullView() : neighbourhood(worthSeeing()));
  for (const input of document.querySelectorAll("input[name=color]")) {
    input.checked = input.value === state.by;
    input.addEventListener("change", () => {
      state.by = input.value;
      repaint();
      legend();
      document.dispatchEvent(new Event("repaint-gallery"));
    });
  }
  if (run.layers) {
    $("layer").max = run.layers;
    $("layer").addEventListener("input", (event) => setLayer(Number(event.target.value) - 1));
    $("play").addEventListener("click", play);
    $("reach").addEventListener("change", (event) => {
      state.onlyReach = event.target.checked;
      repaint();
    });
  }
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    search($("search-text").value);
  });
  const middle = () => [canvas.clientWidth / 2, canvas.clientHeight / 2];
  $("zoom-in").addEventListener("click", () => (painter.zoom(1.4, ...middle()), repaint()));
  $("zoom-out").addEventListener("click", () => (painter.zoom(1 / 1.4, ...middle()), repaint()));
  $("fit").addEventListener("click", () => (painter.fit(), repaint()));
  if (byGraph || !run.drawFull) $("whole").remove();
  else {
    const name = () => ($("whole").textContent = state.whole ? "Neighbourhood" : "Whole graph");
    $("whole").addEventListener("click", () => {
      state.whole = !state.whole;
      painter.show(state.whole ? fullView() : neighbourhood(state.chosen < 0 ? worthSeeing() : state.chosen));
      name();
      repaint();
      describe();
    });
    name();
  }
  pointer(canvas);
  keys(canvas);
  release();
  legend();
  describe();
  showGallery();
  if (byGraph) openGraph(0);
  new ResizeObserver(() => repaint()).observe(canvas);
  // The second frame starts when the graph is on the screen.
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("explorer-painted")));
  document.documentElement.dataset.ready = "true";
}

function showTraining() {
  document.getElementById("training-charts").append(...page.training.map(chartCard));
  if (!page.scores.length) document.getElementById("predictions").remove();
  else document.getElementById("score-charts").append(...page.scores.map(chartCard));
  document.getElementById("kept-chart").append(...page.keptChart.map(chartCard));
}

showTraining();
showDecisions();
showHeads(showHead);
start();
