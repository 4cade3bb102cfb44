// Draws a view on a canvas. The faint lines of all edges do not depend on the layer, so they are cached as an image.

class Painter {
  constructor(canvas, view) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.faint = document.createElement("canvas");
    this.faintFor = "";
    this.show(view);
  }

  show(view) {
    this.view = view;
    this.fit();
  }

  fit() {
    const { left, right, top, bottom } = this.view.box;
    const { width, height } = this.size();
    const margin = 1.2;
    this.scale = Math.min(width / (right - left + 2 * margin), height / (bottom - top + 2 * margin), 60);
    this.x = width / 2 - (this.scale * (left + right)) / 2;
    this.y = height / 2 - (this.scale * (top + bottom)) / 2;
  }

  size() {
    return { width: this.canvas.clientWidth || 300, height: this.canvas.clientHeight || 200 };
  }

  zoom(factor, x, y) {
    const scale = Math.min(200, Math.max(0.2, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
  }

  centre(node) {
    const { width, height } = this.size();
    this.x = width / 2 - this.scale * this.view.positions[2 * node];
    this.y = height / 2 - this.scale * this.view.positions[2 * node + 1];
  }

  sees(node) {
    const { width, height } = this.size(), x = this.sx(node), y = this.sy(node);
    return x > 0 && y > 0 && x < width && y < height;
  }

  nodeAt(x, y) {
    let best = -1, nearest = Math.max(10, this.radius() + 3) ** 2;
    for (const node of this.view.nodes) {
      const dx = this.sx(node) - x, dy = this.sy(node) - y;
      const away = dx * dx + dy * dy;
      if (away < nearest) (nearest = away), (best = node);
    }
    return best;
  }

  sx(node) { return this.scale * this.view.positions[2 * node] + this.x; }
  sy(node) { return this.scale * this.view.positions[2 * node + 1] + this.y; }
  radius() { return Math.min(16, Math.max(1.4, (run.board ? 0.36 : 0.26) * this.scale)); }

  // look: { layer, color(node), reach: rows or null, chosen, markMines } and the colours ink, alpha, accent, grey, weakText
  paint(look) {
    const { width, height } = this.size();
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const pen = this.context;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.place(width, height);
    this.paintFaint(look, width, height, ratio);
    pen.drawImage(this.faint, 0, 0, width, height);
    if (run.layers) this.paintKept(look);
    this.paintNodes(look);
  }

  // Screen positions of all nodes, and the nodes and edges that are visible.
  place(width, height) {
    const { nodes } = this.view;
    this.px ??= new Float32Array(run.numNodes);
    this.py ??= new Float32Array(run.numNodes);
    const slack = 20;
    const onScreen = [];
    for (const node of nodes) {
      const x = this.sx(node), y = this.sy(node);
      this.px[node] = x;
      this.py[node] = y;
      if (x > -slack && y > -slack && x < width + slack && y < height + slack) onScreen.push(node);
    }
    this.onScreen = onScreen;
    const { a, b } = this.view;
    const pairs = [];
    for (let i = 0; i < a.length; i++) {
      const x1 = this.px[a[i]], x2 = this.px[b[i]], y1 = this.py[a[i]], y2 = this.py[b[i]];
      if ((x1 > 0 || x2 > 0) && (y1 > 0 || y2 > 0) && (x1 < width || x2 < width) && (y1 < height || y2 < height)) pairs.push(i);
    }
    this.pairs = pairs;
    // Many overlapping lines would merge into a black area: the more there are, the fainter each is.
    let length = 0;
    for (const i of pairs) length += Math.abs(this.px[a[i]] - this.px[b[i]]) + Math.abs(this.py[a[i]] - this.py[b[i]]);
    this.thin = Math.min(1, (0.8 * width * height) / length);
  }

  ink(look, name, share = 1) {
    return `rgba(${look.ink},${Math.max(0.006, share * look.alpha[name] * this.thin)})`;
  }

  paintFaint(look, width, height, ratio) {
    const key = [this.x, this.y, this.scale, width, height, ratio, look.ink, this.view.title].join();
    if (key === this.faintFor) return;
    this.faintFor = key;
    this.faint.width = Math.round(width * ratio);
    this.faint.height = Math.round(height * ratio);
    const pen = this.faint.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.strokeStyle = this.ink(look, "faint");
    pen.lineWidth = 1;
    const { a, b } = this.view;
    strokes(pen, this.pairs.length, (i) => {
      const pair = this.pairs[i];
      pen.moveTo(this.px[a[pair]], this.py[a[pair]]);
      pen.lineTo(this.px[b[pair]], this.py[b[pair]]);
    });
  }

  paintKept(look) {
    const { a, b, bits } = this.view;
    const now = look.reach && look.reach[look.layer].mask;
    const after = look.reach && look.layer + 1 < run.layers ? look.reach[look.layer + 1].mask : null;
    const goes = (sender, receiver) => !now || (now[sender] && (after ? after[receiver] : receiver === look.chosen));
    // Of all heads together, the more heads keep an edge, the darker it is: the lines are drawn by quarters of the heads.
    const most = mostHeads(), levels = most > 1 ? 4 : 1;
    const strong = Array.from({ length: levels }, () => []), weak = strong.map(() => []); // each: from, to, both ways
    for (const pair of this.pairs) {
      const u = a[pair], v = b[pair];
      const forth = bits[pair] & 1 && headsHeard(look.layer, u, v);
      const back = bits[pair] & 2 && headsHeard(look.layer, v, u);
      if (!forth && !back) continue;
      const level = Math.ceil((levels * Math.max(forth, back)) / most) - 1;
      const liveForth = forth && goes(u, v), liveBack = back && goes(v, u);
      if (liveForth || liveBack) strong[level].push(liveForth ? u : v, liveForth ? v : u, liveForth && liveBack ? 1 : 0);
      else weak[level].push(forth ? u : v, forth ? v : u, forth && back ? 1 : 0);
    }
    for (let level = 0; level < levels; level++) {
      const share = (level + 1) / levels;
      this.lines(weak[level], this.ink(look, "weak", share), 1);
      const accent = `rgba(${look.accent},${share * Math.min(1, 3000 / strong[level].length)})`;
      this.lines(strong[level], now ? accent : this.ink(look, "kept", share), now ? 1.6 : 1);
    }
  }

  // A message in both directions is a line, in one direction an arrow; if an arrow does not fit, half a line at the receiver.
  lines(ends, color, width) {
    const pen = this.context, { px, py } = this, rim = this.radius();
    pen.strokeStyle = pen.fillStyle = color;
    pen.lineWidth = width;
    const heads = [];
    strokes(pen, ends.length / 3, (i) => {
      const u = ends[3 * i], v = ends[3 * i + 1], both = ends[3 * i + 2];
      const dx = px[v] - px[u], dy = py[v] - py[u];
      if (both) {
        pen.moveTo(px[u], py[u]);
        pen.lineTo(px[v], py[v]);
        return;
      }
      const length = Math.abs(dx) + Math.abs(dy);
      const room = length > 2.6 * rim + 8;
      pen.moveTo(room ? px[u] : px[u] + dx / 2, room ? py[u] : py[u] + dy / 2);
      pen.lineTo(px[v], py[v]);
      if (room) heads.push(u, v);
    });
    pen.beginPath();
    for (let i = 0; i < heads.length; i += 2) {
      const dx = px[heads[i + 1]] - px[heads[i]], dy = py[heads[i + 1]] - py[heads[i]];
      const length = Math.hypot(dx, dy) || 1, ux = dx / length, uy = dy / length;
      const x = px[heads[i + 1]] - ux * (rim + 1), y = py[heads[i + 1]] - uy * (rim + 1), size = Math.min(9, 4 + rim / 3);
      pen.moveTo(x, y);
      pen.lineTo(x - ux * size - uy * size * 0.5, y - uy * size + ux * size * 0.5);
      pen.lineTo(x - ux * size + uy * size * 0.5, y - uy * size - ux * size * 0.5);
      pen.closePath();
    }
    pen.fill();
  }

  paintNodes(look) {
    const pen = this.context, size = this.radius(), { px, py } = this;
    const reached = look.reach && look.reach[look.layer].mask;
    const groups = new Map();
    for (const node of this.onScreen) {
      const color = reached && !reached[node] ? look.grey : look.color(node);
      if (!groups.has(color)) groups.set(color, []);
      groups.get(color).push(node);
    }
    const square = Boolean(run.board) || size < 2.5;
    for (const [color, members] of groups) {
      pen.fillStyle = color;
      pen.beginPath();
      for (const node of members) {
        if (square) pen.rect(px[node] - size, py[node] - size, 2 * size, 2 * size);
        else {
          pen.moveTo(px[node] + size, py[node]);
          pen.arc(px[node], py[node], size, 0, 2 * Math.PI);
        }
      }
      pen.fill();
    }
    if (run.board) this.paintBoard(look, reached, size);
    if (look.chosen >= 0 && this.view.inside[look.chosen]) {
      pen.strokeStyle = `rgb(${look.ink})`;
      pen.lineWidth = 3;
      pen.beginPath();
      if (run.board && size > 3.5) pen.rect(px[look.chosen] - size - 1, py[look.chosen] - size - 1, 2 * size + 2, 2 * size + 2);
      else pen.arc(px[look.chosen], py[look.chosen], size + 4, 0, 2 * Math.PI);
      pen.stroke();
    }
  }

  paintBoard(look, reached, size) {
    const pen = this.context, { px, py } = this;
    if (look.markMines && size > 3.5) { // smaller frames would hide the cell
      pen.strokeStyle = run.board.mine;
      pen.lineWidth = Math.max(1.2, size / 4);
      pen.beginPath();
      for (const node of this.onScreen) {
        if (!A.mine[node] || (reached && !reached[node])) continue;
        const half = size - pen.lineWidth / 2;
        pen.rect(px[node] - half, py[node] - half, 2 * half, 2 * half);
      }
      pen.stroke();
    }
    if (size < 5.5) return;
    pen.font = `${Math.round(size * 1.3)}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const node of this.onScreen) {
      pen.fillStyle = reached && !reached[node] ? look.weakText : "#000";
      pen.fillText(run.board.shown[A.shows[node]], px[node], py[node] + size * 0.08);
    }
  }
}

// Painting one path with very many lines is slow; several shorter paths are fast.
function strokes(pen, count, draw) {
  for (let start = 0; start < count; start += 1000) {
    pen.beginPath();
    const end = Math.min(count, start + 1000);
    for (let i = start; i < end; i++) draw(i);
    pen.stroke();
  }
}
