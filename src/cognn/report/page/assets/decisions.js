// Shows the charts of the chosen grouping and head; set by showDecisions.
let redrawDecisions = () => {};

function showDecisions() {
  const box = document.getElementById("decision-charts"), choice = document.getElementById("decisions-by");
  const names = Object.keys(page.decisions);
  if (!names.length) return document.querySelectorAll('#decisions, nav a[href="#decisions"]').forEach((part) => part.remove());
  for (const name of names) choice.append(el("option", { value: name }, name === "all" ? "all nodes" : `by ${name}`));
  const show = () => {
    drawn.forEach((_, target) => box.contains(target) && drawn.delete(target));
    const charts = run.heads > 1 && !allHeads() ? page.headDecisions[run.shownHeads[part - 1]] : page.decisions;
    box.replaceChildren(...charts[choice.value].map(chartCard));
  };
  choice.addEventListener("change", show);
  redrawDecisions = show;
  show();
}
