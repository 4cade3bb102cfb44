// Plotly charts, each with its table and a CSV download; drawn when they scroll into view.

const drawn = new Map(); // element -> figure, to redraw when the theme changes
const waiting = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    waiting.unobserve(entry.target);
    plot(entry.target);
  }
}, { rootMargin: "200px" });

// Plotly comes last in the file, so that the graph does not wait for it.
const watch = (target) => (document.readyState === "complete" ? waiting.observe(target) : addEventListener("load", () => waiting.observe(target)));

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function plot(target) {
  const figure = drawn.get(target);
  if (!figure) return;
  const axis = { gridcolor: color("--line"), zerolinecolor: color("--line"), linecolor: color("--line") };
  const layout = {
    ...figure.layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: color("--text"), family: "system-ui, sans-serif", size: 12 },
    xaxis: { ...axis, ...figure.layout.xaxis },
    yaxis: { ...axis, ...figure.layout.yaxis },
  };
  Plotly.react(target, figure.data, layout, { responsive: true, displayModeBar: false });
}

const replot = () => drawn.forEach((_, target) => target.classList.contains("js-plotly-plot") && plot(target));

function chartCard(chart) {
  const target = el("div", { class: "plot", role: "img", "aria-label": chart.alt });
  drawn.set(target, chart.figure);
  watch(target);
  const short = chart.rows.slice(0, 200).map((row) => row.map(cellText));
  const more = chart.rows.length > 200 ? el("p", { class: "note" }, `The first 200 of ${number(chart.rows.length)} rows; the CSV has all.`) : null;
  const save = el("button", { type: "button", onclick: () => download(chart) }, "Download CSV");
  return el("figure", { class: "card", "data-chart": chart.key }, el("figcaption", {}, chart.title), target,
    details("Table", el("div", {}, save, table(chart.columns, short), more), false));
}

const cellText = (cell) => (cell === null ? "" : typeof cell === "number" ? number(cell) : cell);

function csvOf(chart) {
  const quoted = (cell) => {
    let text = cell === null ? "" : String(cell);
    if (typeof cell === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`; // a spreadsheet would evaluate it as a formula
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [chart.columns, ...chart.rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function download(chart) {
  const address = URL.createObjectURL(new Blob([csvOf(chart)], { type: "text/csv" }));
  el("a", { href: address, download: `${chart.key}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
