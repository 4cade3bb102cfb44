// What every page needs: its data, elements, numbers as text, and the theme.

const page = JSON.parse(document.getElementById("page-data").textContent);
const $ = (id) => document.getElementById(id);
const number = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString());

// Elements are built from text, never from markup, so names from a user's files cannot run as code.
function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key === "style") Object.assign(node.style, value);
    else if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const dark = () => document.documentElement.dataset.theme === "dark";

function theme(changed) {
  const wants = window.matchMedia("(prefers-color-scheme: dark)");
  const set = (name) => {
    document.documentElement.dataset.theme = name;
    $("theme").textContent = name === "dark" ? "Light theme" : "Dark theme";
    replot();
    changed();
  };
  $("theme").addEventListener("click", () => set(dark() ? "light" : "dark"));
  wants.addEventListener("change", () => set(wants.matches ? "dark" : "light"));
  set(wants.matches ? "dark" : "light");
}
