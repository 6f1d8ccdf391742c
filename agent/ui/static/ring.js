// The ring: members in order of rank, as correction sees them. A large ring is a band of
// several lanes, so that dots stay large enough to have a shape.

import { svg } from "./dom.js";
import { ALL, circle, interesting, labels } from "./labels.js";
import { mark } from "./shapes.js";

const LANE = 90; // ranks in a lane before there is another one

export function ring(model, width, select) {
  const { x, y, height, radius } = circle(width);
  const lanes = Math.ceil(model.slots / LANE);
  const dot = model.slots <= ALL ? 8 : model.slots <= LANE ? 5 : model.slots <= 3 * LANE ? 3 : 2.5;
  const step = Math.min(4 * dot, (radius * 0.5) / lanes);
  const at = (rank) => {
    const angle = (2 * Math.PI * rank) / model.slots - Math.PI / 2;
    const r = radius - (rank % lanes) * step;
    return { x: x + r * Math.cos(angle), y: y + r * Math.sin(angle) };
  };
  const drawing = svg("svg", { width, height, role: "img", "aria-label": `The ring of ${model.size} members; the table has the same` });
  drawing.append(svg("circle", { class: "guide", cx: x, cy: y, r: radius - ((lanes - 1) * step) / 2 }));
  const points = new Map();
  for (let rank = 0; rank < model.slots; rank++) {
    const member = model.byRank.get(rank), p = at(rank);
    if (!member) drawing.append(svg("circle", { class: "hole", cx: p.x.toFixed(1), cy: p.y.toFixed(1), r: Math.min(2, dot / 2) }));
    else points.set(member, { ...p, member });
  }
  const named = interesting([...points.keys()]);
  const shown = model.size <= ALL ? [...points.values()] : named.map((m) => points.get(m));
  drawing.append(labels(shown, { width, height, x, y, radius }));
  const special = new Set(named);
  for (const p of points.values()) if (!special.has(p.member)) drawing.append(mark(p.member, p.x, p.y, dot, select));
  for (const m of named.reverse()) drawing.append(mark(m, points.get(m).x, points.get(m).y, Math.max(dot, 5), select));
  return drawing;
}
