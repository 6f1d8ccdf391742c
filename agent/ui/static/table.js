// The table of members: found by text, sorted by a column, one of them selected.

import { byID, bytes, clean, count, duration, el, setText } from "./dom.js";
import { describe, STATES } from "./model.js";
import { icon } from "./shapes.js";

// columns have a title, the text of a member, and what it is sorted by.
const columns = [
  { title: "State", by: (m) => STATES.indexOf(m.state) },
  { title: "Rank", number: true, text: (m) => String(m.rank), by: (m) => m.rank },
  { title: "Name", by: (m) => m.name.toLowerCase() },
  { title: "Heard", number: true, text: (m, now) => (m.state === "alive" && now - m.heard > QUIET ? "" : age(m.heard, now)), by: (m) => m.heard || (m.self ? Infinity : 0) },
  { title: "Lag", number: true, text: (m) => (m.lag ? count(m.lag) : ""), by: (m) => -m.lag },
  { title: "Queue", number: true, text: (m) => (m.queue ? bytes(m.queue) : ""), by: (m) => -m.queue },
  { title: "Domain", text: (m) => m.zone, by: (m) => m.zone },
];

// QUIET in ms: a member that is alive, and no neighbor, may have nothing to say for longer.
const QUIET = 5000;

const age = (time, now) => (Number.isNaN(time) ? "" : duration(now - time));

const className = (column) => (column.number ? "number" : column.title.toLowerCase());

const order = { column: columns[0], down: false };
const rowsByKey = new Map();

// setUp makes the heads and listens to the search.
export function setUp(changed) {
  byID("search").addEventListener("input", changed);
  byID("columns").append(...columns.map((column) => {
    const sort = () => {
      order.down = order.column === column && !order.down;
      order.column = column;
      changed();
    };
    return (column.head = el("th", { scope: "col", class: className(column) }, el("button", { type: "button", onclick: sort }, column.title)));
  }));
}

// update shows the members.
export function update(model, select) {
  const words = byID("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = model.list.filter((m) => matches(m, words));
  const { by } = order.column, sign = order.down ? -1 : 1;
  found.sort((a, b) => sign * compare(by(a), by(b)) || a.rank - b.rank);
  const rows = found.map((m) => rowOf(m, model.now, select));
  const body = byID("rows");
  if (rows.length !== body.children.length || rows.some((row, i) => body.children[i] !== row)) body.replaceChildren(...rows);
  forget(model.list);
  for (const c of columns) c.head.setAttribute("aria-sort", c !== order.column ? "none" : order.down ? "descending" : "ascending");
  setText(byID("found"), words.length > 0 ? `${found.length} of ${model.list.length}` : "");
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

const matches = (m, words) => {
  const text = [m.name, m.state, ...m.roles, m.address, m.zone, m.tags, `rank ${m.rank}`].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
};

// rowOf returns the row of a member, the same one each time.
function rowOf(m, now, select) {
  let row = rowsByKey.get(m.key);
  if (!row) {
    row = el("tr", { onclick: () => select(m.key) }, ...columns.map((c) => el("td", { class: className(c) })));
    row.children[2].append(el("button", { type: "button", class: "pick" }, m.name), el("span", { class: "roles" }));
    rowsByKey.set(m.key, row);
  }
  if (row.dataset.state !== m.state) {
    row.dataset.state = m.state;
    row.children[0].replaceChildren(icon(m.state), el("span", {}, m.state));
  }
  row.children[2].title = m.name;
  setText(row.children[2].lastChild, m.roles.join(", "));
  row.classList.toggle("selected", m.selected === true);
  columns.forEach((c, i) => c.text && setText(row.children[i], c.text(m, now)));
  return row;
}

// forget removes rows of members that are no longer listed.
function forget(list) {
  if (rowsByKey.size <= list.length) return;
  const keys = new Set(list.map((m) => m.key));
  for (const key of rowsByKey.keys()) if (!keys.has(key)) rowsByKey.delete(key);
}

// details shows all that is known of the selected member.
export function details(m, now, close) {
  const box = byID("details");
  box.hidden = !m;
  if (!m) return;
  const facts = Object.entries(factsOf(m, now)).filter(([, value]) => value);
  box.replaceChildren(
    el("h3", {}, icon(m.state), el("span", {}, m.name), el("button", { type: "button", onclick: close, "aria-label": "Close" }, "✕")),
    el("dl", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
  );
}

function factsOf(m, now) {
  const { peer, suspect, change } = m;
  const by = suspect?.by?.length ? `, by rank ${suspect.by.join(", ")}` : "";
  return {
    State: [m.state, ...m.roles.filter((role) => role !== "observer")].join(", "),
    Suspected: suspect && `for ${duration(now - Date.parse(suspect.since))}${by}: ${clean(suspect.cause)}`,
    Removed: change && `${duration(now - m.goneAt)} ago with view ${m.view}: ${describe(change)}`,
    Role: m.change ? "" : m.observer ? "observer: it does not count for the quorum" : "voter",
    Rank: String(m.rank),
    Address: m.address,
    "Failure domain": m.zone,
    Tags: m.tags,
    "Seen joining": Number.isNaN(m.since) ? "" : `${duration(now - m.since)} ago`,
    "Last heard": Number.isNaN(m.heard) ? "" : `${duration(now - m.heard)} ago`,
    Connection: peer && (peer.connected ? "open" : "none"),
    Waiting: peer && `${bytes(peer.queued_bytes)} to be sent, ${bytes(peer.unread_bytes)} unread there`,
    Lag: peer && `${count(peer.lag)} segments of this agent not there, ${count(peer.missing)} of it not here${peer.stalled ? "; it does not answer, broadcasts go around it" : ""}`,
    Traffic: peer && `${bytes(peer.bytes_sent)} sent, ${bytes(peer.bytes_received)} received`,
  };
}
