function ids(nodes, choose) {
  const box = el("span", { class: "ids" });
  if (!nodes.length) box.append("none");
  for (const node of nodes.slice(0, MOST_IDS)) box.append(idButton(node, choose));
  if (nodes.length > MOST_IDS) box.append(` and ${number(nodes.length - MOST_IDS)} more`);
  return box;
}

function idButton(node, choose) {
  if (node < 0) return el("span", {}, nodeName(node));
  return el("button", { type: "button", class: "id", title: nodeName(node), onclick: () => choose(node) }, nodeName(node));
}

