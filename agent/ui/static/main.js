// The page: asks the agent every two seconds while it is visible, and draws what has changed.

import { APIError, get, setToken, takeToken } from "./api.js";
import { bars, chart, sample } from "./charts.js";
import { byID, bytes, clean, clock, count, duration, el, fit, plural, setText } from "./dom.js";
import { build, describe, isGone, rateOf, STATES } from "./model.js";
import { ring } from "./ring.js";
import { icon, sign } from "./shapes.js";
import * as table from "./table.js";
import { depth, tree } from "./tree.js";
import * as zones from "./zones.js";

const INTERVAL = 2000;
const SPAN = 3 * 60 * 1000; // of charts

// MEANINGS of what drawings have beside the shapes of states.
const MEANINGS = { self: "this agent", leader: "leader", first: "first hop", avoided: "fed around" };

const page = { status: null, members: null, tree: null, model: null, selected: "", samples: [], timer: 0, fleet: null, asking: false, askingRollouts: false };

// poll asks for the status, and for members and tree only if they are others now.
async function poll() {
  clearTimeout(page.timer);
  try {
    const status = await get("status");
    const same = page.status && placeOf(page.status) === placeOf(status);
    const [members, tree] = same ? [page.members, page.tree] : await Promise.all([get("members"), get("tree")]);
    if (members.view === status.view && tree.view === status.view) { // otherwise a view came meanwhile
      take(status, members, tree);
      show(null);
      if (status.agent.zone) pollFleet();
      pollRollouts();
    }
  } catch (error) {
    show(error);
    if (!(error instanceof APIError)) throw error; // a mistake of this page
    if (error.status === 401) return;
  }
  if (!document.hidden) page.timer = setTimeout(poll, INTERVAL);
}

// pollFleet asks for the zones. It takes a while if one does not answer, and holds up nothing.
async function pollFleet() {
  if (page.asking) return;
  page.asking = true;
  try {
    page.fleet = await get("fleet");
    drawFleet();
  } catch (error) {
    if (!(error instanceof APIError)) throw error; // a mistake of this page
    byID("zones-panel").hidden = false;
    setText(byID("zones-note"), clean(error.message));
  } finally {
    page.asking = false;
  }
}

// pollRollouts asks for the rollouts. It takes a while if the group has no quorum, and holds up nothing.
async function pollRollouts() {
  if (page.askingRollouts) return;
  page.askingRollouts = true;
  try {
    drawRollouts((await get("rollouts")).rollouts);
  } catch (error) {
    if (!(error instanceof APIError)) throw error; // a mistake of this page
  } finally {
    page.askingRollouts = false;
  }
}

// drawRollouts lists the rollouts, the newest first.
function drawRollouts(rollouts) {
  byID("rollouts-panel").hidden = rollouts.length === 0;
  setText(byID("rollouts-note"), `${plural(rollouts.filter((r) => !r.ended).length, "rollout")} under way`);
  byID("rollouts").replaceChildren(...rollouts.toReversed().map((r) => el("li", {},
    el("b", {}, fit(clean(r.name), 200)), ` ${clean(r.id)}: ${r.paused ? "paused, " : ""}${clean(r.phase)}, wave ${r.wave} of ${r.waves}, `
      + `${count(r.members.filter((m) => m.has).length)} of ${plural(r.members.length, "member")} have got it${r.reason ? `: ${clean(r.reason)}` : ""}`)));
}

function drawFleet() {
  if (!page.fleet) return;
  byID("zones-panel").hidden = false;
  setText(byID("zones-note"), zones.summary(page.fleet));
  drawing("zones", (width) => zones.zones(page.fleet, width));
  byID("zones-legend").replaceChildren(...Object.entries(zones.MEANINGS).map(([state, text]) => el("li", {}, icon(state), el("span", {}, text))));
  byID("zone-rows").replaceChildren(...zones.rows(page.fleet));
}

// placeOf tells when members or tree have changed.
const placeOf = (s) => JSON.stringify([s.view, s.rank, s.suspects.map((x) => x.rank), s.peers.filter((p) => p.stalled).map((p) => p.rank)]);

// take makes an answer the current one. Counters begin anew with a new membership.
function take(status, members, tree) {
  if (page.status && page.status.id === status.id && page.status.stats.bytes_sent <= status.stats.bytes_sent) {
    page.samples.push(rateOf(page.status, status));
  } else {
    page.samples = [];
  }
  page.samples = page.samples.filter((s) => s.time >= Date.parse(status.time) - SPAN);
  Object.assign(page, { status, members, tree });
  draw();
}

// show says what is wrong, if anything.
function show(error) {
  byID("ask").hidden = error?.status !== 401;
  byID("main").hidden = !page.model;
  byID("main").classList.toggle("old", error !== null);
  const lost = page.status && !page.status.quorum.ok;
  let text = "";
  if (error && error.status !== 401) text = `Trouble: ${error.message.split("\n").map(clean).join("\n")}.${page.model ? ` Below is how it was at ${clock(page.model.now)}.` : ""}`;
  else if (lost) text = lostText(page.status);
  else if (page.status?.ended) text = `This agent is no longer a member: ${clean(page.status.ended)}`;
  if (!error && page.status) text = [text, ...page.status.agent.warnings.map((w) => `Warning: ${clean(w.text)}. Next: ${clean(w.next)}.`)].filter(Boolean).join("\n");
  setText(byID("trouble"), text);
  byID("trouble").hidden = text === "";
}

// lostText says what a lost quorum means, and what to do.
function lostText({ quorum, suspects }) {
  const names = suspects.slice(0, 6).map((s) => fit(clean(s.id), 160)).join(", ") + (suspects.length > 6 ? ` and ${suspects.length - 6} more` : "");
  const causes = [...new Set(suspects.map((s) => clean(s.cause)))].slice(0, 2).join("; ");
  return `The quorum is lost: ${quorum.reachable} reachable, ${quorum.needed} needed. No view can be decided, and broadcasts fail. `
    + `Not reachable: ${names || "members that were never heard"}${causes ? ` (${causes})` : ""}. `
    + (quorum.arbiter?.state === "unavailable" ? `The arbiter does not answer: ${clean(quorum.arbiter.cause)}. ` : "")
    + `Start ${Math.max(1, quorum.needed - quorum.reachable)} of them again, or repair the connection to them. If they are lost for good: pleach force-view.`;
}

function draw() {
  const model = (page.model = build(page.status, page.members, page.tree));
  for (const m of model.list) m.selected = m.key === page.selected;
  header(model);
  figures(model);
  byID("main").hidden = false; // before drawings are measured
  drawing("ring", (width) => ring(model, width, select));
  drawing("tree", (width) => tree(model, width, select));
  legend(model);
  charts(model);
  views(model);
  table.update(model, select);
  table.details(model.list.find((m) => m.selected), model.now, () => select(""));
}

const drawing = (id, make) => byID(id).replaceChildren(make(byID(id).clientWidth));

function select(key) {
  page.selected = page.selected === key ? "" : key;
  draw();
}

function header({ status }) {
  const { quorum } = status;
  setText(byID("group"), clean(status.group) || "Pleach");
  document.title = `${clean(status.group)} · Pleach`;
  byID("quorum").className = quorum.ok ? "ok" : "lost";
  setText(byID("quorum"), `${quorum.ok ? "✓ quorum" : "✕ no quorum"}: ${quorum.reachable} of ${status.members > quorum.voters ? plural(quorum.voters, "voter") : status.members} reachable, ${quorum.needed} needed${arbiterText(status)}`);
  setText(byID("self"), `seen by ${clean(status.id)} (rank ${status.rank}), version ${clean(status.agent.version) || "unknown"}, at ${clock(status.time)}`);
}

// arbiterText is the last answer of the arbiter; an agent of an earlier version has none.
function arbiterText({ quorum: { arbiter }, time }) {
  const ago = (at) => `${duration(Date.parse(time) - Date.parse(at))} ago`;
  switch (arbiter?.state) {
    case "not-asked": return "; arbiter not asked yet";
    case "granted": return `; arbiter granted view ${arbiter.view} ${ago(arbiter.since)}`;
    case "refused": return `; arbiter refused view ${arbiter.view} ${ago(arbiter.since)}`;
    case "unavailable": return `; arbiter unavailable, last call ${ago(arbiter.last_call)}`;
    default: return "";
  }
}

function figures({ status }) {
  const rate = page.samples.at(-1), { queues, stats } = status;
  const facts = [
    ["members", count(status.members)],
    ["view", count(status.view)],
    ["suspected", count(status.suspects.length)],
    ["delivered", rate ? `${count(rate.deliveredMessages)} msg/s` : `${count(stats.delivered)} msg`],
    ["broadcast", rate ? `${count(rate.broadcastMessages)} msg/s` : `${count(stats.broadcast)} msg`],
    ["network", rate ? `${bytes(rate.network)}/s` : bytes(stats.bytes_sent + stats.bytes_received)],
    ["in inbox", bytes(queues.inbox_bytes)],
    ["to be sent", bytes(queues.outbox_bytes)],
    ["in flight", bytes(queues.in_flight_bytes)],
  ];
  byID("facts").replaceChildren(...facts.map(([name, value]) => el("p", {}, el("b", {}, value), name)));
}

function legend(model) {
  const observers = model.list.filter((m) => m.observer).length;
  setText(byID("ring-note"), `${plural(model.size, "member")} in order of rank${observers > 0 ? `, of which ${plural(observers, "observer")}` : ""}${model.slots > model.size ? `, ${plural(model.slots - model.size, "free rank")}` : ""}`);
  setText(byID("tree-note"), `of broadcasts of this agent: ${plural(depth(model.tree), "hop")} deep`);
  const shown = STATES.map((state) => [state, model.list.filter((m) => m.state === state).length]).filter(([, n]) => n > 0);
  byID("legend").replaceChildren(...shown.toReversed().map(([state, n]) => el("li", {}, icon(state), el("span", {}, `${count(n)} ${state}`))));
}

function charts({ status }) {
  const rate = page.samples.at(-1);
  byID("throughput-note").replaceChildren(
    sample("first"), `delivered ${bytes(rate?.delivered ?? 0)}/s `, sample("second"), `sent ${bytes(rate?.broadcast ?? 0)}/s`);
  drawing("throughput", (width) => chart(page.samples, [["delivered", "first"], ["broadcast", "second"]], { span: SPAN, base: 1024, write: (n) => `${bytes(n)}/s` }, width));
  const worst = status.peers.reduce((a, b) => (b.lag > (a?.lag ?? 0) ? b : a), null);
  byID("lag-note").replaceChildren(
    sample("first"), worst ? `${fit(clean(worst.id), 120)} lacks ${count(worst.lag)} ` : "no member lacks any ",
    sample("second"), `this agent ${count(rate?.missing ?? 0)}`);
  drawing("lag", (width) => chart(page.samples, [["lag", "first"], ["missing", "second"]], { span: SPAN, base: 10, write: (n) => plural(Math.round(n), "segment") }, width));
}

// views lists the last ones, the newest first.
function views({ status, now }) {
  setText(byID("views-note"), `${plural(status.stats.views, "view")} since this agent became a member; up: joined, down: gone`);
  drawing("bars", (width) => bars(status.history, width));
  byID("views").replaceChildren(...status.history.toReversed().map((view) => {
    const head = el("span", { class: "when" }, el("b", {}, `view ${view.number}`), ` ${clock(view.time)}, ${duration(now - Date.parse(view.time))} ago, ${plural(view.members, "member")}`);
    const changes = view.changes.map((c) => el("li", {}, changeIcon(c), el("b", {}, fit(clean(c.id), 200)), ` ${describe(c)}`));
    if (view.omitted) changes.push(el("li", {}, `and ${view.omitted} more`));
    return el("li", {}, head, el("ul", {}, ...changes));
  }));
}

const changeIcon = (c) => (isGone(c) ? icon(c.cause === "left" ? "left" : "gone") : el("span", { class: "plus" }, c.cause === "joined" ? "+" : "~"));

byID("marks").append(...["self", "leader", "first", "avoided"].map((name) => el("li", {}, sign(name), el("span", {}, MEANINGS[name]))));
takeToken();
table.setUp(() => page.model && draw());
byID("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byID("token").value);
  byID("token").value = "";
  poll().then(() => setText(byID("wrong"), byID("ask").hidden ? "" : "The agent refuses this token: is it the one of its token-file?"));
});
addEventListener("hashchange", () => {
  takeToken();
  poll();
});
document.addEventListener("visibilitychange", () => !document.hidden && poll());
addEventListener("resize", () => {
  if (page.model) draw();
  drawFleet();
});
poll();
