// The list of items: sort, filter, page through, open.

const PAGE_SIZE = 50;

// --- Columns ---

const hasS = items.some((item) => item.s !== null);
const hasSs = items.some((item) => item.ss !== null);
const COLUMNS = [
  { key: "id", title: "Item", value: (item) => item.id, cell: (item) => openButton(item) },
  { key: "subtask", title: "Subtask", value: (item) => item.order, cell: (item) => item.title },
  { key: "language", title: "Lang.", value: (item) => item.language, cell: (item) => item.language },
  hasS && { key: "s", title: "S", numeric: true, value: (item) => item.s, cell: (item) => number(item.s) },
  { key: "lexical", title: "Lexical", numeric: true, value: (item) => item.lexical, cell: (item) => number(item.lexical) },
  hasSs && { key: "ss", title: "SS", numeric: true, value: (item) => item.ss, cell: (item) => number(item.ss) },
  { key: "contract", title: "Contract", style: "contract", value: contractOrder, cell: contractCell },
  { key: "answer", title: "Answer", value: (item) => item.snippet, style: "snippet", cell: answerCell },
].filter(Boolean);

function contractOrder(item) {
  return item.compliance === null ? null : item.compliance - item.violations.length / 1000;
}

function contractCell(item) {
  if (item.compliance === null) return "–";
  if (item.violations.length === 0) return "kept";
  return element("span", { class: "bad" }, item.violations.join(", "));
}

function answerCell(item) {
  if (item.failed) {
    const reasons = item.samples.filter((sample) => sample.failure).map((sample) => sample.failure[0]);
    return element("span", { class: "bad" }, "failed: ", shown([...new Set(reasons)].join(", ")));
  }
  if (item.unscored) return element("span", { class: "bad" }, "unscored: ", shown(item.unscored));
  if (!item.samples.length) return element("span", { class: "bad" }, "no answer");
  if (item.crisis) return element("em", {}, "about a crisis");
  return item.empty && !item.snippet ? element("em", {}, "empty") : element("bdi", { lang: item.language }, shown(item.snippet.replace(/\s+/g, " ")));
}

function openButton(item) {
  return element("button", {
    type: "button", class: "open", "aria-expanded": String(state.open.has(item.index)), onclick: (event) => toggle(item, event.currentTarget),
  }, shown(item.id));
}

// --- State, filters, order ---

const state = { sort: null, descending: false, page: 0, open: new Set(), chosen: items };
const control = Object.fromEntries(["text", "subtask", "language", "state", "violation"].map((name) => [name, document.getElementById("filter-" + name)]));

const STATES = {
  scored: (item) => !item.unscored && item.lexical !== null,
  unscored: (item) => Boolean(item.unscored) || item.lexical === null,
  failed: (item) => item.failed,
  kept: (item) => item.compliance === 1,
  broken: (item) => item.compliance !== null && item.compliance < 1,
  empty: (item) => item.empty,
  length: (item) => item.cut,
  crisis: (item) => item.crisis,
};

let folded = null; // lower-case paragraphs, made when something is first searched for

function searcher(query) {
  const wanted = query.toLowerCase();
  if (!folded) folded = data.paragraphs.map((text) => text.toLowerCase());
  const hits = new Set();
  folded.forEach((text, number) => { if (text.includes(wanted)) hits.add(number); });
  const own = (item) => [item.id, item.title, item.persona, ...item.references, ...item.tags, ...item.samples.flatMap(
    (sample) => (sample.reply ? [sample.reply.text, sample.reply.thinking || ""] : sample.failure.slice(0, 2)))];
  return (item) => item.messages.some(([, paragraphs]) => paragraphs.some((number) => hits.has(number)))
    || own(item).some((text) => text.toLowerCase().includes(wanted));
}

function choose() {
  const tests = [];
  if (control.text.value.trim()) tests.push(searcher(control.text.value.trim()));
  if (control.subtask.value) tests.push((item) => item.subtask === control.subtask.value);
  if (control.language.value) tests.push((item) => item.language === control.language.value);
  if (control.state.value) tests.push(STATES[control.state.value]);
  if (control.violation.value) tests.push((item) => item.violations.includes(control.violation.value));
  state.chosen = items.filter((item) => tests.every((test) => test(item)));
  if (state.sort) state.chosen.sort(comparison(state.sort, state.descending));
  state.page = 0;
  render();
}

// Items without a value come last in either direction; equal ones keep the order of the split.
function comparison(column, descending) {
  return (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a.index - b.index;
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return (descending ? -order : order) || a.index - b.index;
  };
}

function sortBy(column) {
  state.descending = state.sort === column ? !state.descending : false;
  state.sort = column;
  choose();
}

// --- Drawing ---

const table = document.getElementById("item-table");
const pager = document.getElementById("pager");

function drawHead() {
  table.tHead.rows[0].replaceChildren(...COLUMNS.map((column) => {
    const sorted = state.sort === column ? (state.descending ? "descending" : "ascending") : "none";
    const button = element("button", { type: "button", onclick: () => { sortBy(column); table.tHead.rows[0].cells[COLUMNS.indexOf(column)].firstChild.focus(); } }, column.title);
    return element("th", { scope: "col", "aria-sort": sorted, class: column.numeric ? "num" : null }, button);
  }));
}

function drawRow(item) {
  const cells = COLUMNS.map((column) => element("td", { class: column.numeric ? "num" : column.style || null }, column.cell(item)));
  return element("tr", { class: "row", "data-index": item.index }, ...cells);
}

function render() {
  const from = state.page * PAGE_SIZE;
  const here = state.chosen.slice(from, from + PAGE_SIZE);
  drawHead();
  table.tBodies[0].replaceChildren(...here.flatMap((item) => (state.open.has(item.index) ? [drawRow(item), drawDetail(item)] : [drawRow(item)])));
  const of = state.chosen.length === items.length ? "" : ` of ${items.length.toLocaleString("en")}`;
  document.getElementById("count").textContent = `${state.chosen.length.toLocaleString("en")}${of} items`;
  drawPager(from, here.length);
}

function drawPager(from, length) {
  const pages = Math.ceil(state.chosen.length / PAGE_SIZE);
  const step = (label, to, off) => element("button", { type: "button", disabled: off, onclick: () => turn(to) }, label);
  pager.hidden = pages < 2;
  pager.replaceChildren(
    step("First", 0, state.page === 0), step("Previous", state.page - 1, state.page === 0),
    `${(from + 1).toLocaleString("en")} to ${(from + length).toLocaleString("en")}`,
    step("Next", state.page + 1, state.page >= pages - 1), step("Last", pages - 1, state.page >= pages - 1));
}

function turn(page) {
  state.page = page;
  render();
  document.getElementById("count").scrollIntoView({ block: "center" });
}

function toggle(item, button) {
  const row = button.closest("tr");
  if (state.open.delete(item.index)) row.nextElementSibling.remove();
  else {
    state.open.add(item.index);
    row.after(drawDetail(item));
    history.replaceState(null, "", "#item=" + encodeURIComponent(item.id));
  }
  button.setAttribute("aria-expanded", String(state.open.has(item.index)));
}

// --- Start ---

function options(select, pairs) {
  select.append(...pairs.map(([value, label]) => element("option", { value }, label)));
}

function start() {
  const rules = new Map();
  items.forEach((item) => item.violations.forEach((rule) => rules.set(rule, (rules.get(rule) || 0) + 1)));
  options(control.subtask, data.subtasks.filter(([name]) => items.some((item) => item.subtask === name)));
  options(control.language, [...new Set(items.map((item) => item.language))].sort().map((name) => [name, name]));
  options(control.violation, [...rules].sort((a, b) => b[1] - a[1]).map(([rule, n]) => [rule, `${rule} (${n})`]));
  let waiting = 0;
  control.text.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(choose, 150); });
  for (const name of ["subtask", "language", "state", "violation"]) control[name].addEventListener("change", choose);
  const form = document.getElementById("filters");
  form.addEventListener("reset", () => setTimeout(choose));
  form.addEventListener("submit", (event) => event.preventDefault());
  render();
  openFromAddress();
}

// An address can be typed by anyone: what is no encoded text is no item's id.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

// `report.html#item=ID` opens at that item.
function openFromAddress() {
  if (!location.hash.startsWith("#item=")) return;
  const id = decoded(location.hash.slice(6));
  const item = items.find((one) => one.id === id);
  if (!item) return;
  state.open.add(item.index);
  state.page = Math.floor(item.index / PAGE_SIZE);
  render();
  table.querySelector(`[data-index="${item.index}"]`).scrollIntoView({ block: "start" });
}

start();
window.addEventListener("hashchange", openFromAddress);
