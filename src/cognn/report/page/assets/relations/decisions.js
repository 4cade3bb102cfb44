// The charts have a choice of their own: all relations and heads, one relation, or one head.
let redrawDecisions = () => {};

function showDecisions() {
  const box = document.getElementById("decision-charts"), choice = document.getElementById("decisions-by");
  const which = document.getElementById("decisions-head");
  which.style.maxWidth = "20rem"; // names may be long
  for (const name of Object.keys(page.decisions)) choice.append(el("option", { value: name }, name === "all" ? `all ${run.edgesAct ? "edges" : "nodes"}` : `by ${name}`));
  which.append(el("option", { value: -1 }, page.allTogether), ...page.headDecisions.map(([name], place) => el("option", { value: place }, name)));
  if (!page.headDecisions.length) which.parentNode.remove();
  const show = () => {
    drawn.forEach((_, target) => box.contains(target) && drawn.delete(target));
    const charts = which.value === "-1" ? page.decisions : page.headDecisions[which.value][1];
    box.replaceChildren(...charts[choice.value].map(chartCard));
  };
  choice.addEventListener("change", show);
  which.addEventListener("change", show);
  show();
}
