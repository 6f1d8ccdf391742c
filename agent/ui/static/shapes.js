// A state has a shape of its own, so that it can be told without color: ● alive, ■ slow,
// ▲ suspected, ✕ gone, ○ left. An outer circle is this agent, an outer diamond the leader.

import { svg } from "./dom.js";

const round = (n) => Math.round(n * 10) / 10;

// outlines are the paths of shapes of radius r around a point.
const outlines = {
  alive: circle,
  left: circle,
  slow: (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  suspected: (x, y, r) => `M${x} ${y - 1.3 * r}L${x + 1.2 * r} ${y + 0.9 * r}H${x - 1.2 * r}z`,
  gone: (x, y, r) => `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`,
};

function circle(x, y, r) {
  return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
}

const diamond = (x, y, r) => `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`;

// shape draws a state.
export function shape(state, x, y, r) {
  return svg("path", { class: `shape ${state}`, d: outlines[state](round(x), round(y), round(r)) });
}

// mark draws a member with its roles, as something that can be selected.
export function mark(member, x, y, r, select) {
  const node = svg("g", { class: "mark", onclick: () => select(member.key) }, svg("title", {}, summary(member)));
  if (member.selected) node.append(svg("path", { class: "halo", d: circle(round(x), round(y), r + 7) }));
  if (member.self) node.append(svg("path", { class: "role", d: circle(round(x), round(y), r + 3.5) }));
  if (member.roles.includes("leader")) node.append(svg("path", { class: "role", d: diamond(round(x), round(y), r + (member.self ? 9 : 5.5)) }));
  node.append(shape(member.state, x, y, r));
  return node;
}

// icon is a shape for text, 14 pixels wide.
export function icon(state) {
  return svg("svg", { class: "icon", width: 14, height: 14, "aria-hidden": "true" }, shape(state, 7, 7, 4));
}

// sign is a mark of a role or a line of the tree, for text.
export function sign(name) {
  const role = { self: circle, leader: diamond }[name];
  const path = role ? { class: "role", d: role(9, 8, name === "self" ? 5 : 7) } : { class: `edge ${name}`, d: "M0 8H18" };
  return svg("svg", { class: "icon", width: 18, height: 16, "aria-hidden": "true" }, svg("path", path));
}

export const summary = (m) => `${m.name}: ${[m.state, ...m.roles].join(", ")}, rank ${m.rank}`;
