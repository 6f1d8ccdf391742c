// Elements, and text that is safe to show. Names, tags and causes come from other machines:
// they become text nodes and attributes here, never markup.

const SVG = "http://www.w3.org/2000/svg";

// el makes an HTML element. A handler is an attribute such as onclick with a function.
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// svg makes an SVG element.
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return node;
}

export const byID = (id) => document.getElementById(id);

// setText changes text only where it differs, so that a selection in it stays.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// UNSEEN are characters that change how the text around them looks: controls, and those
// that reverse the direction of writing or have no width.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

// clean makes every character of a text from outside visible.
export const clean = (text) => String(text ?? "").replace(UNSEEN, "\ufffd");

const ruler = document.createElement("canvas").getContext("2d");

// fit shortens a text to a width in pixels, in the font of labels.
export function fit(text, width) {
  ruler.font = "600 12px system-ui, sans-serif";
  const letters = Array.from(text.slice(0, 400));
  if (letters.length < 400 && ruler.measureText(text).width <= width) return text;
  let low = 0, high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ruler.measureText(letters.slice(0, middle).join("") + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return letters.slice(0, low).join("") + "…";
}

// bytes writes a number of bytes.
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

// count writes a number.
export const count = (n) => Math.round(n).toLocaleString("en-US");

// plural writes a number of things.
export const plural = (n, thing) => `${count(n)} ${thing}${n === 1 ? "" : "s"}`;

// duration writes milliseconds as people say them.
export function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

// clock writes the time of day.
export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
