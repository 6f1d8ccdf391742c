// The tree along which broadcasts of this agent travel. A small one has a row for each
// member; a large one grows from the middle outward.

import { fit, svg } from "./dom.js";
import { ALL, circle, interesting, labels, nameWithRoles } from "./labels.js";
import { mark } from "./shapes.js";

// WEIGHT below 1 gives small subtrees a larger share of the circle than their size.
const WEIGHT = 0.85;

// LEAST is the share of the first hop's smallest subtrees: there, the circle is narrow.
const LEAST = 0.04;

export function tree(model, width, select) {
  const depth = place(model.tree);
  const drawing = svg("svg", { width, height: circle(width).height, role: "img", "aria-label": `The tree of ${model.size} members, ${depth} levels below this agent` });
  if (model.size <= ALL) rows(drawing, model, depth, width, select);
  else radial(drawing, model, depth, width, select);
  return drawing;
}

// place numbers nodes from above (row), weighs their subtrees, and returns the depth of the
// deepest one.
function place(root) {
  let row = 0, deepest = 0;
  const visit = (node, depth) => {
    node.depth = depth;
    node.row = row++;
    deepest = Math.max(deepest, depth);
    node.children.forEach((child) => visit(child, depth + 1));
    node.weight = Math.max(1, node.children.reduce((sum, child) => sum + child.weight, 0) ** WEIGHT);
  };
  visit(root, 0);
  return deepest;
}

// turn gives each subtree a share of the circle by its weight: from and to are in 0 to 1.
function turn(node, from, to) {
  node.angle = Math.PI * (from + to) - Math.PI / 2;
  const weights = node.children.map((child) => Math.max(child.weight, node.depth === 0 ? LEAST * node.weight : 0));
  const share = (to - from) / weights.reduce((sum, weight) => sum + weight, 0);
  node.children.forEach((child, i) => {
    turn(child, from, from + share * weights[i]);
    from += share * weights[i];
  });
}

// depth returns how many levels a tree has below its root.
export const depth = (node) => node.children.reduce((d, child) => Math.max(d, 1 + depth(child)), 0);

function* below(node) {
  yield node;
  for (const child of node.children) yield* below(child);
}

function rows(drawing, model, depth, width, select) {
  const whole = circle(width).height;
  const height = Math.min(34, (whole - 16) / model.size);
  const indent = Math.min(56, (width - 220) / Math.max(1, depth));
  const top = (whole - height * model.size) / 2 + height / 2;
  const marks = svg("g");
  for (const node of below(model.tree)) {
    node.x = 24 + node.depth * indent;
    node.y = top + node.row * height;
    for (const child of node.children) {
      const y = top + child.row * height, x = 24 + child.depth * indent;
      drawing.append(svg("path", { class: edge(child), d: `M${node.x} ${node.y}V${y - 6}q0 6 6 6H${x}` }));
    }
    marks.append(mark(node.member, node.x, node.y, Math.min(7, height / 3), select));
    const text = `${nameWithRoles(node.member)} ${node.member.state === "alive" ? "" : node.member.state}`;
    marks.append(svg("text", { class: `label ${node.member.state}`, x: node.x + 18, y: node.y + 4 }, fit(text.trim(), width - node.x - 26)));
  }
  drawing.append(marks);
}

function radial(drawing, model, depth, width, select) {
  const { x, y, height, radius } = circle(width);
  const dot = model.size <= 64 ? 4 : model.size <= 200 ? 3 : 2;
  turn(model.tree, 0, 1);
  const out = (level) => radius * (level / depth) ** 0.65; // the first levels need the room
  const at = (node, level = node.depth) => ({ x: x + out(level) * Math.cos(node.angle), y: y + out(level) * Math.sin(node.angle) });
  for (let level = 1; level <= depth; level++) drawing.append(svg("circle", { class: "guide", cx: x, cy: y, r: out(level) }));
  const nodes = [...below(model.tree)], points = new Map();
  const write = (p) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`;
  for (const node of nodes) {
    points.set(node.member, { ...at(node), member: node.member });
    for (const child of node.children) {
      const middle = (node.depth + child.depth) / 2;
      drawing.append(svg("path", { class: edge(child), d: `M${write(at(node))}C${write(at(node, middle))} ${write(at(child, middle))} ${write(at(child))}` }));
    }
  }
  const named = interesting([...points.keys()]), special = new Set(named);
  drawing.append(labels(named.map((m) => points.get(m)), { width, height, x, y, radius }));
  for (const p of points.values()) if (!special.has(p.member)) drawing.append(mark(p.member, p.x, p.y, dot, select));
  for (const m of named.reverse()) drawing.append(mark(m, points.get(m).x, points.get(m).y, Math.max(dot, 4.5), select));
}

// edge is dashed to a member that is fed around.
const edge = (child) => (child.avoided ? "edge avoided" : child.depth === 1 ? "edge first" : "edge");
