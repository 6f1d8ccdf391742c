// Lines over the last minutes, and bars for views. Two lines of a chart differ in color and
// in dashes.

import { svg } from "./dom.js";
import { isGone } from "./model.js";

const HEIGHT = 130;
const LEFT = 8, TOP = 18, BOTTOM = 18;

// chart draws samples as lines: series are [field, class].
export function chart(samples, series, { span, base, write }, width) {
  const drawing = svg("svg", { width, height: HEIGHT, "aria-hidden": "true" });
  const last = samples.at(-1)?.time ?? 0;
  const top = nice(Math.max(1, ...samples.flatMap((s) => series.map(([field]) => s[field]))), base);
  const x = (time) => width - LEFT - ((last - time) / span) * (width - 2 * LEFT);
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  for (const part of [0, 0.5, 1]) drawing.append(svg("path", { class: "grid", d: `M${LEFT} ${y(part * top)}H${width - LEFT}` }));
  for (const [field, name] of series) {
    const points = samples.map((s) => `${x(s.time).toFixed(1)},${y(s[field]).toFixed(1)}`).join(" ");
    drawing.append(svg("polyline", { class: `line ${name}`, points }));
  }
  drawing.append(
    svg("text", { class: "label axis", x: LEFT, y: TOP - 5 }, write(top)),
    svg("text", { class: "label axis", x: LEFT, y: HEIGHT - 4 }, `${Math.round(span / 60000)} min ago`),
    svg("text", { class: "label axis", x: width - LEFT, y: HEIGHT - 4, "text-anchor": "end" }, "now"),
  );
  return drawing;
}

// nice rounds up to a number that reads well. Bytes have the base 1024.
function nice(n, base) {
  const unit = base ** Math.floor(Math.log(n) / Math.log(base));
  return unit * [1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 80, 100, 150, 200, 300, 500, 800, base].find((step) => step * unit >= n);
}

// sample shows how a line looks, for the text above a chart.
export const sample = (name) => svg("svg", { class: "sample", width: 26, height: 10, "aria-hidden": "true" }, svg("polyline", { class: `line ${name}`, points: "1,5 25,5" }));

// bars draws views: up for members that came, down for members that went.
export function bars(history, width) {
  const height = 64, middle = height / 2;
  const drawing = svg("svg", { width, height, role: "img", "aria-label": "Views: members that came and went; the list has the same" });
  const step = Math.min(48, (width - 16) / Math.max(1, history.length));
  const counts = history.map((v) => ({ view: v, gone: v.changes.filter(isGone).length, joined: v.changes.filter((c) => c.cause === "joined").length }));
  const most = Math.max(1, ...counts.map((c) => Math.max(c.gone, c.joined)));
  drawing.append(svg("path", { class: "grid", d: `M8 ${middle}H${width - 8}` }));
  counts.forEach(({ view, gone, joined }, i) => {
    const x = width - 8 - (history.length - i - 0.5) * step, w = Math.min(14, Math.max(2, step * 0.7));
    const bar = (n, name, up) => {
      const h = n === 0 ? 0 : 4 + (n / most) * (middle - 8);
      return h > 0 && svg("rect", { class: `bar ${name}`, x: x - w / 2, y: up ? middle - h : middle, width: w, height: h });
    };
    const tick = svg("path", { class: "tick", d: `M${x} ${middle - 3}v6` });
    const parts = [bar(joined, "joined", true), bar(gone, "gone", false), tick].filter(Boolean);
    drawing.append(svg("g", {}, svg("title", {}, `view ${view.number}: ${view.members} members, ${joined} joined, ${gone} gone`), ...parts));
  });
  return drawing;
}
