// The explorer: connects slider, colours, search, pointer and keys to the canvas and the panel.

const state = { layer: 0, by: "action", chosen: -1, reach: null, onlyReach: true, playing: null };
let painter = null;

function look() {
  const classes = run.colors.series, board = run.board;
  const colors = {
    action: (node) => run.colors.actions[actionOf(state.layer, node)],
    class: (node) => {
      const code = A.label[itemOf(node)];
      if (board && code >= 0) return code ? board.mine : board.free;
      return code < 0 ? "#bbbbbb" : classes[code % classes.length];
    },
    correctness: (node) => {
      const code = A.right[itemOf(node)];
      return code < 0 ? "#bbbbbb" : code ? run.colors.right : run.colors.wrong;
    },
  };
  const ink = dark() ? "220,220,220" : "30,30,30";
  return {
    layer: state.layer, chosen: state.chosen, color: colors[state.by],
    reach: state.onlyReach ? state.reach : null,
    markMines: Boolean(board) && state.by !== "class",
    ink, alpha: { kept: 0.55, weak: 0.22, faint: 0.09 }, accent: dark() ? "124,196,255" : "0,114,178",
    grey: dark() ? "#3a3f46" : "#e2e4e7", weakText: dark() ? "#777" : "#aaa",
  };
}

function repaint() {
  painter.paint(look());
}

