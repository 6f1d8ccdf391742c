// The zones of a fleet: what each says of itself, and how each reaches the others. A link is a
// cell, from the zone of its row to that of its column. In a small fleet a cell has words; in
// a large one it has a shape alone, and only zones that need attention have names.

import { clean, count, duration, el, fit, plural, svg } from "./dom.js";
import { icon, shape } from "./shapes.js";

const WORDS = 100; // pixels from which on a cell has words
const LATE = 12000; // ms; zones send summaries every five seconds
const LAG = 1000; // messages
const NAME = 120; // room for the names of rows

// MEANINGS of the shapes of links.
export const MEANINGS = { suspected: "cut", slow: "late", left: "not known", alive: "up to date" };

const heardOf = (link) => link.heard_ns / 1e6;

// linkState tells how a link is, or that its lead has not answered.
function linkState(link) {
  if (!link) return "left";
  if (!link.connected || link.heard_ns < 0) return "suspected";
  return link.lag > LAG || heardOf(link) > LATE ? "slow" : "alive";
}

function zoneState(zone) {
  if (zone.error) return "suspected";
  return zone.healthy ? "alive" : "slow";
}

const STATE_NAMES = { suspected: "not reachable", slow: "trouble", alive: "healthy" };

function linkText(link) {
  if (!link) return "not known";
  if (link.heard_ns < 0) return "never heard";
  return `${plural(link.lag, "message")} behind, heard ${duration(heardOf(link))} ago`;
}

// zones draws all links.
export function zones(fleet, width) {
  const list = fleet.zones, n = list.length, words = (width - NAME) / n >= WORDS;
  const cell = words ? Math.min(150, (width - NAME) / n) : Math.max(5, Math.min(20, (width - NAME) / n));
  const row = words ? 46 : cell, top = words ? 26 : 8, height = top + n * row + 8;
  const drawing = svg("svg", { width, height, role: "img", "aria-label": `Links between ${n} zones; the table has the zones` });
  list.forEach((from, i) => {
    const links = new Map(from.links.map((link) => [link.zone, link]));
    const y = top + (i + 0.5) * row;
    if (words) drawing.append(svg("text", { class: "label axis", x: NAME + (i + 0.5) * cell, y: 14, "text-anchor": "middle" }, fit(`to ${clean(from.zone)}`, cell - 10)));
    else drawing.append(svg("path", { class: "guide", d: `M${NAME} ${y.toFixed(1)}H${(NAME + n * cell).toFixed(1)}` }));
    list.forEach((to, j) => {
      if (i !== j) drawing.append(...link(from, to, links.get(to.zone), NAME + (j + 0.5) * cell, y, cell, words));
    });
  });
  drawing.append(...names(list, fleet.zone, row, top, height));
  return drawing;
}

// link draws a cell.
function link(from, to, link, x, y, cell, words) {
  const state = linkState(link);
  const title = svg("title", {}, `${clean(from.zone)} to ${clean(to.zone)}: ${MEANINGS[state]}, ${linkText(link)}`);
  if (!words) return [svg("g", {}, title, shape(state, x, y, Math.max(1.6, cell * (state === "alive" ? 0.22 : 0.36))))];
  const lines = link && link.heard_ns >= 0 ? [`lag ${count(link.lag)}`, `${duration(heardOf(link))} ago`] : [MEANINGS[state], ""];
  return [
    svg("g", {}, title, shape(state, x - cell / 2 + 14, y - 7, 5)),
    ...lines.map((line, i) => svg("text", { class: `label ${state}`, x: x - cell / 2 + 26, y: y - 3 + 15 * i }, fit(line, cell - 32))),
  ];
}

// names are those of rows: of all where there is room, and otherwise of this zone and of those
// that need attention, as many as fit.
function names(list, own, row, top, height) {
  let below = -Infinity;
  const shown = [];
  list.forEach((zone, i) => {
    const y = top + (i + 0.5) * row;
    const urgent = zone.zone === own || zoneState(zone) !== "alive";
    if (row < 14 && !urgent || y - below < 14 || y + 5 > height) return;
    below = y;
    const name = clean(zone.zone), here = `${name} (here)`, room = NAME - 14;
    const text = zone.zone === own && fit(here, room) === here ? here : fit(name, room);
    shown.push(svg("text", { class: `label ${zoneState(zone)}`, x: NAME - 10, y: y + 4, "text-anchor": "end" }, text));
  });
  return shown;
}

const URGENCY = { suspected: 0, slow: 1, alive: 2 };

// rows lists the zones, those that need attention first.
export function rows(fleet) {
  const sorted = fleet.zones.toSorted((a, b) => URGENCY[zoneState(a)] - URGENCY[zoneState(b)] || (a.zone < b.zone ? -1 : 1));
  return sorted.map((zone) => {
    const state = zoneState(zone), lead = zone.delegates.find((d) => d.lead);
    const others = zone.delegates.filter((d) => !d.lead).map((d) => clean(d.id)).join(", ");
    const told = zone.seconds < 0 ? "never" : zone.seconds === 0 ? "now" : `${duration(zone.seconds * 1000)} ago`;
    const cell = (text, name) => el("td", { class: name, title: text }, text);
    return el("tr", { "data-state": state },
      el("td", { title: zone.error ? clean(zone.error) : "" }, icon(state), clean(zone.zone)), cell(STATE_NAMES[state]),
      cell(count(zone.members), "number"), cell(told), cell(lead ? clean(lead.id) : "–"), cell(zone.error ? clean(zone.error) : others, "wide"));
  });
}

// summary says in a line how the fleet is.
export function summary(fleet) {
  const members = fleet.zones.reduce((sum, z) => sum + z.members, 0);
  const states = fleet.zones.flatMap((from) => fleet.zones.filter((to) => to !== from).map((to) => linkState(from.links.find((l) => l.zone === to.zone))));
  const bad = Object.keys(MEANINGS).filter((s) => s !== "alive").map((s) => [states.filter((t) => t === s).length, MEANINGS[s]]).filter(([n]) => n > 0);
  const links = `${plural(states.length, "link")}${bad.length ? `, ${bad.map(([n, what]) => `${count(n)} ${what}`).join(", ")}` : ", all up to date"}`;
  return `${plural(fleet.zones.length, "zone")}, ${plural(members, "member")}; ${links}. A row sends to the columns, which have the same order.`;
}
