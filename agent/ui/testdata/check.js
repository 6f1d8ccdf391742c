// What a test wants to know of the page, as attributes of <html>: labels that overlap or
// leave their drawing, what is wider than the window, and errors.

const root = document.documentElement;
const errors = [];

for (const name of ["error", "unhandledrejection", "securitypolicyviolation"]) {
  addEventListener(name, (e) => errors.push(`${name}: ${e.message ?? e.reason ?? e.violatedDirective}`), true);
}

const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;

function check() {
  const overlaps = [];
  let count = 0;
  for (const drawing of document.querySelectorAll(".drawing > svg, .chart > svg")) {
    const bounds = drawing.getBoundingClientRect();
    const labels = [...drawing.querySelectorAll(".label")].map((node) => ({ text: node.textContent, box: node.getBoundingClientRect() }));
    count += labels.length;
    labels.forEach(({ text, box }, i) => {
      if (box.left < bounds.left - 1 || box.right > bounds.right + 1 || box.top < bounds.top - 1 || box.bottom > bounds.bottom + 1) overlaps.push(`${text} leaves its drawing`);
      for (const other of labels.slice(0, i)) if (meet(box, other.box)) overlaps.push(`${text} meets ${other.text}`);
    });
  }
  for (const node of document.querySelectorAll("header > *, .panel, #facts > p")) {
    if (node.getBoundingClientRect().right > root.clientWidth + 1) overlaps.push(`${node.id || node.tagName} leaves the window`);
  }
  root.dataset.labels = count;
  root.dataset.overlaps = overlaps.slice(0, 5).join("; ");
  root.dataset.errors = errors.slice(0, 5).join("; ");
  root.dataset.zones = document.querySelectorAll("#zone-rows > tr").length;
  root.dataset.rollouts = document.querySelectorAll("#rollouts > li").length;
  root.dataset.rows = document.querySelectorAll("#rows > tr").length;
}

setInterval(check, 1000);
