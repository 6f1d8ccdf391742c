// What the page knows of the group: members with a state and a place in ring and tree, put
// together from the answers of the API.

import { clean } from "./dom.js";

// STATES, the most urgent first. Each has a shape of its own in drawings (shapes.js).
export const STATES = ["suspected", "slow", "gone", "left", "alive"];

// A member is slow if broadcasts go around it, or much waits for it.
const SLOW_QUEUE = 1 << 20;
const SLOW_LAG = 64; // as pleach status has it

// GONE_FOR is how long in ms a member is shown that is no longer in the view.
const GONE_FOR = 5 * 60 * 1000;

// build puts the answers together.
export function build(status, members, tree) {
  const now = Date.parse(status.time);
  const peers = new Map(status.peers.map((p) => [p.rank, p]));
  const suspects = new Map(status.suspects.map((s) => [s.rank, s]));
  const list = members.members.map((m) => memberOf(m, peers.get(m.rank), suspects.get(m.rank), members));
  const byRank = new Map(list.map((m) => [m.rank, m]));
  for (const gone of recentlyGone(status.history, now, list)) {
    list.push(gone);
    if (!byRank.has(gone.rank)) byRank.set(gone.rank, gone);
  }
  return { now, status, list, byRank, slots: members.slots, size: members.members.length, tree: layTree(tree, byRank), root: tree.root };
}

function memberOf(m, peer, suspect, { self, leader }) {
  const state = suspect ? "suspected" : isSlow(peer) ? "slow" : "alive";
  const roles = [m.rank === self && "self", m.rank === leader && "leader", m.observer && "observer"].filter(Boolean);
  return {
    ...m, peer, suspect, state, roles, key: `${m.rank} ${m.incarnation} ${m.id}`, name: nameOf(m), self: m.rank === self,
    zone: clean(m.failure_domain), tags: clean(m.meta), address: clean(m.address), since: Date.parse(m.since),
    lag: peer?.lag ?? 0, queue: (peer?.queued_bytes ?? 0) + (peer?.unread_bytes ?? 0), heard: Date.parse(peer?.last_heard),
  };
}

const nameOf = (m) => clean(m.id) || "(no name)";

const isSlow = (peer) => peer && (peer.stalled || peer.queued_bytes >= SLOW_QUEUE || peer.lag >= SLOW_LAG);

// recentlyGone lists members that were removed a short time ago, and are not back.
function* recentlyGone(history, now, present) {
  const known = new Set(present.map((m) => m.id));
  for (const view of history.toReversed()) {
    if (now - Date.parse(view.time) > GONE_FOR) return;
    for (const c of view.changes) {
      if (!isGone(c) || known.has(c.id)) continue;
      known.add(c.id);
      yield {
        rank: c.rank, id: c.id, name: nameOf(c), state: c.cause === "left" ? "left" : "gone", roles: [], key: `gone ${view.number} ${c.rank}`,
        goneAt: Date.parse(view.time), change: c, view: view.number, zone: "", tags: "", address: "", lag: 0, queue: 0, since: NaN, heard: NaN,
      };
    }
  }
}

export const isGone = (change) => change.cause !== "joined" && change.cause !== "changed";

// describe writes a change of a view in words.
export function describe(change) {
  let text = change.cause;
  for (const by of change.by ?? []) text += ` by rank ${by}`;
  return clean(change.detail ? `${text}: ${change.detail}` : text);
}

// layTree makes nodes of the edges, each with its children in order of rank.
function layTree(tree, byRank) {
  const nodes = new Map();
  const node = (rank) => {
    if (!nodes.has(rank)) nodes.set(rank, { rank, member: byRank.get(rank), children: [], avoided: false });
    return nodes.get(rank);
  };
  for (const edge of tree.edges) {
    const child = node(edge.rank);
    child.avoided = edge.avoided === true;
    node(edge.parent).children.push(child);
  }
  return node(tree.root);
}

// rateOf returns what has happened each second between two answers.
export function rateOf(before, status) {
  const seconds = (Date.parse(status.time) - Date.parse(before.time)) / 1000;
  const rate = (field) => (seconds > 0 ? Math.max(0, status.stats[field] - before.stats[field]) / seconds : 0);
  return {
    time: Date.parse(status.time), delivered: rate("delivered_bytes"), broadcast: rate("broadcast_bytes"), network: rate("bytes_sent") + rate("bytes_received"),
    deliveredMessages: rate("delivered"), broadcastMessages: rate("broadcast"),
    lag: Math.max(0, ...status.peers.map((p) => p.lag)), missing: Math.max(0, ...status.peers.map((p) => p.missing)),
  };
}
