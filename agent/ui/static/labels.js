// Names beside a circle, without overlaps: those of each side are moved apart up and down,
// and a thin line leads from a name to its dot.

import { fit, svg } from "./dom.js";

const SPACING = 16;
const GAP = 16;
const NAME = 100; // the room for names beside a circle

// ALL is the largest group in which all members have names in drawings.
export const ALL = 16;

// circle says where a drawing of a width has its circle.
export function circle(width) {
  const radius = Math.max(60, Math.min(200, width / 2 - NAME)), height = 2 * radius + 84;
  return { x: width / 2, y: height / 2, height, radius };
}

// interesting returns the members that have names in the drawing of a large group, the most
// interesting first.
export function interesting(list) {
  const urgency = (m) => (m.selected ? 0 : m.self ? 1 : m.state === "suspected" ? 2 : m.roles.length > 0 ? 3 : m.state === "slow" ? 4 : m.state === "alive" ? 9 : 5);
  return list.filter((m) => urgency(m) < 9).sort((a, b) => urgency(a) - urgency(b) || a.rank - b.rank);
}

export const nameWithRoles = (m) => (m.roles.length > 0 ? `${m.name} (${m.roles.join(", ")})` : m.name);

// labels draws names of points {x, y, member} around a circle. The first ones are the most
// important: if there is no room, the last ones are left out.
export function labels(points, { width, height, x, y, radius }) {
  const layer = svg("g", { class: "labels" });
  for (const side of [-1, 1]) {
    let own = points.filter((p) => (p.x < x ? -1 : 1) === side);
    const room = Math.floor((height - 2 * SPACING) / SPACING);
    const omitted = own.length > room ? own.length - room + 1 : 0;
    own = own.slice(0, own.length - omitted).sort((a, b) => a.y - b.y);
    const heights = spread(own.map((p) => p.y), SPACING, height - SPACING - (omitted ? SPACING : 0));
    own.forEach((p, i) => layer.append(...label(p, side, heights[i], { width, x, y, radius })));
    if (omitted) {
      layer.append(svg("text", { class: "label more", x: side < 0 ? 4 : width - 4, y: height - 4, "text-anchor": side < 0 ? "start" : "end" }, `and ${omitted} more`));
    }
  }
  return layer;
}

// spread moves sorted heights apart, between two bounds.
function spread(heights, low, high) {
  const out = [];
  heights.forEach((h, i) => out.push(Math.max(h, low, i > 0 ? out[i - 1] + SPACING : low)));
  for (let i = out.length - 1, bound = high; i >= 0; i--, bound = out[i + 1] - SPACING) out[i] = Math.min(out[i], bound);
  return out;
}

function label(point, side, height, { width, x, y, radius }) {
  const outline = Math.sqrt(Math.max(0, (radius + GAP) ** 2 - (height - y) ** 2));
  const start = x + side * Math.max(outline, GAP);
  const room = (side < 0 ? start : width - start) - 8;
  const whole = nameWithRoles(point.member);
  const text = fit(whole, room) === whole ? whole : fit(point.member.name, room); // the shape tells roles, too
  return [
    svg("path", { class: "lead", d: `M${point.x.toFixed(1)} ${point.y.toFixed(1)}L${start.toFixed(1)} ${height.toFixed(1)}` }),
    svg("text", { class: `label ${point.member.state}`, x: start + side * 4, y: height + 4, "text-anchor": side < 0 ? "end" : "start" }, text),
  ];
}
