// The list of items, its filters, and the address that names what is shown.

const PAGE_SIZE = 50;
const MEASURES = new Map([["s", 100], ["lexical", 100], ["ss", 100], ["rating", 1], ["j", 1]]); // and their scales
const BITS = new Map([["failed", 1], ["empty", 2], ["cut", 4], ["people", 8], ["unjudged", 16]]);
const STATES = ["scored", "unscored", "kept", "broken", ...BITS.keys(), "crisis"];
const TAGS = ["emotion", "complexity", "interaction", "risk"];
const [RUNS, CHOICES] = [["run1", "run2", "run3"], ["split", "by", "subtask", "lang", "state", "rule", "tag"]];
const splits = new Map(page.splits.map(([key, label, runs]) => [key, { key, label, runs: runs.map(([run, name, version]) => ({ key: run, label: name, version })) }]));
const splitOf = new Map([...splits.values()].flatMap((one) => one.runs.map((run) => [run.key, one])));
const [at, control] = ["", "choose-"].map((start) => (name) => document.getElementById(start + name));
const table = at("item-table");
// What the address says, the data of its split, the places of the items that pass, and whose note on a crisis was opened.
let [state, split, found, opened] = [null, null, [], null];
let turn = 0; // of drawings: one that had to wait may be out of date

function read(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (name, allowed) => (allowed && !allowed.has(given.get(name)) ? "" : given.get(name) || "");
  const named = [...new Set(text("run").split(","))].filter((key) => splitOf.has(key));
  const of = splits.get(text("split")) || splitOf.get(named[0]) || splits.values().next().value;
  const own = named.map((key) => of.runs.find((run) => run.key === key)).filter(Boolean);
  const runs = own.length ? own.slice(0, 3) : of.runs.slice(0, page.alone ? 3 : 2);
  const sort = text("sort").replace(/^-/, "");
  return {
    split: of, runs, q: text("q"), subtask: text("subtask"), lang: text("lang"), tag: text("tag"), rule: text("rule", rules), by: text("by", MEASURES),
    state: text("state", new Set(STATES)), differ: runs.length > 1 && text("differ") === "1", descending: text("sort").startsWith("-"), item: page.alone || given.get("item"),
    sort: ["id", "difference", ...runs.map((run) => run.key)].includes(sort) ? sort : "", page: Math.max(1, Number.parseInt(text("page"), 10) || 1),
  };
}

function address(changes) {
  const to = { ...state, ...changes };
  const values = { run: to.runs.map((run) => run.key).join(","), split: splits.size > 1 ? to.split.key : "", q: to.q, subtask: to.subtask, lang: to.lang, state: to.state, rule: to.rule,
    tag: to.tag, differ: to.differ ? "1" : "", by: to.by, sort: to.sort && (to.descending ? "-" : "") + to.sort, page: to.page > 1 ? String(to.page) : "", item: to.item };
  return "#" + new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== "")).toString().replaceAll("%2C", ",");
}

function go(changes, how = "pushState") {
  history[how](null, "", address(changes));
  return show();
}

const scoresOf = () => state.runs.map((run) => split.scores.get(run.key));
const measure = () => state.by || [...MEASURES.keys()].find((name) => scoresOf().some((one) => one.numbers.get(name).some((value) => value !== null))) || "s";
const known = (values) => values.filter((value) => value !== null);
const spread = (values) => (known(values).length > 1 ? Math.max(...known(values)) - Math.min(...known(values)) : null);

function stateTest(name, scores) {
  if (name === "crisis") return (n) => split.crisis[n] === 1;
  if (BITS.has(name)) return (n) => scores.some((one) => (one.flags[n] & BITS.get(name)) !== 0);
  if (name === "scored") return (n) => scores.every((one) => one.flags[n] !== null && one.unscored[n] === null);
  if (name === "unscored") return (n) => scores.some((one) => one.unscored[n] !== null);
  return (n) => scores.some((one) => one.compliance[n] !== null && (one.compliance[n] === 10000) === (name === "kept"));
}

async function textTest(query) {
  const [prompts, ...texts] = await Promise.all([loadPrompts(split.key), ...state.runs.map((run) => loadTexts(run.key))]);
  prompts.lower ||= prompts.paragraphs.map((text) => text.toLowerCase());
  prompts.own ||= prompts.references.map((own, n) => [split.ids[n], ...own].join("\n").toLowerCase());
  for (const one of texts) one.lower ||= one.items.map((own) => (own || []).map((sample) => sample.answer || "").join("\n").toLowerCase());
  const hits = prompts.lower.map((text) => text.includes(query));
  const prompted = (messages) => messages && messages.some(([role, own]) => role !== "system" && own.some((n) => hits[n]));
  const versions = [...new Set(state.runs.map((run) => prompts.versions[run.version]))];
  return (n) => prompts.own[n].includes(query) || texts.some((one) => one.lower[n].includes(query)) || versions.some((one) => prompted(one[n]));
}

async function choose() {
  const scores = scoresOf();
  const columns = scores.map((one) => one.numbers.get(measure()));
  const tests = [(n) => scores.some((one) => one.flags[n] !== null)];
  if (state.subtask) tests.push((n) => split.subtask[n] === state.subtask);
  if (state.lang) tests.push((n) => split.language[n] === state.lang);
  if (state.tag) tests.push((n) => split.tags.some((column, k) => TAGS[k] + ":" + column[n] === state.tag));
  if (state.state) tests.push(stateTest(state.state, scores));
  if (state.rule) tests.push((n) => scores.some((one) => one.violations[n].includes(state.rule)));
  const kinds = (n) => new Set(scores.map((one) => (one.unscored[n] || "") + "|" + one.violations[n].join(" "))).size;
  if (state.differ) tests.push((n) => kinds(n) > 1 || spread(columns.map((column) => column[n])) >= (MEASURES.get(measure()) === 1 ? 5000 : 1000)); // a tenth of the scale
  if (state.q.trim()) tests.push(await textTest(state.q.trim().toLowerCase()));
  const passing = split.ids.map((_, n) => n).filter((n) => tests.every((test) => test(n)));
  return state.sort ? sorted(passing, columns) : passing;
}

// Items without a value come last in either direction; equal ones keep the order of the split.
function sorted(passing, columns) {
  const run = columns[state.runs.findIndex((one) => one.key === state.sort)];
  const keys = split.ids.map((id, n) => (run ? run[n] : state.sort === "id" ? id : spread(columns.map((column) => column[n]))));
  const order = (x, y) => (x === y ? 0 : x === null ? 1 : y === null ? -1 : (x < y) === state.descending ? 1 : -1);
  return passing.sort((a, b) => order(keys[a], keys[b]) || a - b);
}

function drawHead() {
  const columns = [["id", words.id], ...state.runs.map((run) => [run.key, run.label]),
    ...(state.runs.length > 1 ? [["difference", words.difference]] : []), ["", words.contract], ["", words.gist]];
  return element("tr", {}, columns.map(([key, title]) => {
    const own = state.sort === key;
    const sort = () => go({ sort: key, descending: own ? !state.descending : key === "difference", page: 1 });
    const button = element("button", { type: "button", "data-sort": key, onclick: sort }, element("bdi", {}, shown(title)));
    return !key ? element("th", { scope: "col" }, title) : element("th", { scope: "col", class: key === "id" ? null : "num", "aria-sort": own ? (state.descending ? "descending" : "ascending") : "none" }, button);
  }));
}

function drawRow(n) {
  const [scores, scale] = [scoresOf(), MEASURES.get(measure())];
  const [values, broken] = [scores.map((one) => one.numbers.get(measure())[n]), [...new Set(scores.flatMap((one) => one.violations[n]))]];
  const cells = scores.map((one, k) => element("td", { class: "num" }, one.unscored[n] ? element("span", { class: "bad" }, shown(word(words.reasons, one.unscored[n]))) : number(values[k], scale),
    one.flags[n] & BITS.get("people") ? element("abbr", { title: words.states.people }, "*") : null));
  return element("tr", {}, element("th", { scope: "row" }, element("a", { href: address({ item: split.ids[n] }) }, element("bdi", {}, shown(split.ids[n]))), element("small", {}, split.subtask[n] + " · " + split.language[n])), cells,
    scores.length > 1 ? element("td", { class: "num" }, number(spread(values), scale)) : null,
    element("td", { class: "contract" }, broken.length ? element("span", { class: "bad" }, shown(broken.join(", "))) : scores.some((one) => one.compliance[n] !== null) ? words.kept : "–"),
    element("td", { class: "gist" }, split.crisis[n] ? element("em", {}, words.states.crisis) : element("bdi", { lang: split.language[n] }, shown(split.gists[n]))));
}

function drawList() {
  const pages = Math.max(1, Math.ceil(found.length / PAGE_SIZE));
  state.page = Math.min(state.page, pages);
  const focused = document.activeElement.dataset.sort;
  table.tHead.replaceChildren(drawHead());
  table.tBodies[0].replaceChildren(...found.slice((state.page - 1) * PAGE_SIZE, state.page * PAGE_SIZE).map(drawRow));
  [...table.querySelectorAll("[data-sort]")].find((button) => button.dataset.sort === focused)?.focus();
  at("count").textContent = filled(words.count, count(found.length), count(split.ids.length)) + (pages > 1 ? " · " + filled(words.page, count(state.page), count(pages)) : "");
  const move = (title, to) => element("button", { type: "button", ...(to < 1 || to > pages ? { disabled: "" } : {}), onclick: () => { go({ page: to }); at("count").scrollIntoView(); } }, title);
  at("pager").replaceChildren(...(pages > 1 ? [move(words.previous_page, state.page - 1), move(words.next_page, state.page + 1)] : []));
}

function drawChoices() {
  const fill = (name, pairs, value) => {
    control(name).replaceChildren(...pairs.map(([key, label]) => element("option", { value: key }, shown(label).textContent)));
    control(name).value = pairs.some(([key]) => key === value) ? value : "";
  };
  const choices = (name, values, label) => fill(name, [["", words.all], ...values.map((value) => [value, label ? label(value) : value])], state[name]);
  const runs = state.split.runs.map((run) => [run.key, run.label]);
  RUNS.forEach((name, k) => fill(name, k ? [["", words.none], ...runs] : runs, state.runs[k] ? state.runs[k].key : ""));
  fill("split", [...splits.values()].map((one) => [one.key, one.label]), state.split.key);
  fill("by", [...MEASURES.keys()].map((name) => [name, word(words.measures, name)]), measure());
  choices("subtask", split.choices[0]);
  choices("lang", split.choices[1]);
  choices("state", STATES, (name) => words.states[name]);
  choices("rule", [...rules.keys()]);
  choices("tag", split.choices.slice(3).flatMap((values, k) => values.map((value) => TAGS[k] + ":" + value)), (tag) => words.tags[TAGS.indexOf(tag.split(":")[0])] + ": " + tag.split(":")[1]);
  if (document.activeElement !== control("q")) control("q").value = state.q;
  [control("differ").checked, control("differ").disabled] = [state.differ, state.runs.length < 2];
}

async function drawOpened(index, own) {
  const [id, place] = [split.ids[index], found.indexOf(index)];
  const link = (title, n) => element("a", { class: "button", ...(n === undefined ? { role: "link", "aria-disabled": "true" } : { href: address({ item: n === null ? null : split.ids[n] }) }) }, title);
  const [said, head] = [element("span", { role: "status" }), element("h2", { tabindex: "-1" }, element("bdi", {}, shown(id)))];
  const copy = () => navigator.clipboard.writeText(location.href).then(() => { said.textContent = words.copied; }, () => { said.textContent = location.href; });
  const facts = [split.subtask[index], split.language[index], split.persona[index], ...split.tags.map((column, k) => words.tags[k] + ": " + column[index])];
  const steps = [link(words.back, null), link(words.previous, found[place - 1]), link(words.next, place < 0 ? undefined : found[place + 1]), element("button", { type: "button", onclick: copy }, words.copy), said];
  const body = element("div", {}, quiet(words.loading));
  at("item").replaceChildren(head, quiet(shown(facts.join(" · "))), page.alone ? "" : element("p", { class: "steps" }, steps), body);
  window.scrollTo(0, 0);
  head.focus({ preventScroll: true });
  if (split.crisis[index] && opened !== id) return body.replaceChildren(drawNote(split.language[index], () => { opened = id; show(); }));
  const [prompts, ...texts] = await Promise.all([loadPrompts(split.key), ...state.runs.map((run) => loadTexts(run.key))]);
  return own === turn ? body.replaceChildren(...(split.crisis[index] ? drawNote(split.language[index]) : []), ...drawItem(split, prompts, texts, index, state.runs)) : undefined;
}

async function draw(own) {
  const left = state ? state.item : null;
  state = read(location.hash);
  const kept = state.runs.map((run) => "texts-" + run.key); // the texts of fifty runs would fill the memory
  for (const name of chunks.keys()) if (name.startsWith("texts-") && !kept.includes(name)) chunks.delete(name);
  const data = split?.key === state.split.key ? split : await loadSplit(state.split.key);
  if (own !== turn) return;
  split = data;
  drawChoices();
  at("count").textContent = state.q.trim() ? words.loading : at("count").textContent;
  const passing = await choose();
  if (own !== turn) return;
  found = passing;
  const index = split.places.get(state.item);
  drawList();
  [at("items").hidden, at("item").hidden] = [index !== undefined, index === undefined];
  if (index !== undefined) return drawOpened(index, own);
  opened = null;
  at("item").replaceChildren();
  if (left !== null) [...table.querySelectorAll("tbody a")].find((link) => link.hash === address({ item: left }))?.focus();
}

function show() {
  const own = ++turn;
  return draw(own).catch((error) => { if (own === turn) [at("count").textContent, at("items").hidden] = [error.message, false]; });
}

function change() {
  const [of, keys] = [splits.get(control("split").value), [...new Set(RUNS.map((name) => control(name).value))].filter(Boolean)];
  const runs = of === state.split ? keys.map((key) => of.runs.find((run) => run.key === key)) : of.runs.slice(0, 2);
  const values = Object.fromEntries(CHOICES.map((name) => [name, control(name).value]));
  return go({ ...values, split: of, runs, differ: control("differ").checked, page: 1 });
}
let typing = 0;
control("q").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => go({ q: control("q").value, page: 1 }, "replaceState"), 150); });
for (const name of ["differ", ...RUNS, ...CHOICES]) control(name).addEventListener("change", change);
at("filters").addEventListener("submit", (event) => event.preventDefault());
at("clear").addEventListener("click", () => go({ q: "", subtask: "", lang: "", state: "", rule: "", tag: "", differ: false, by: "", sort: "", page: 1 }).then(() => { control("q").value = ""; }));
window.addEventListener("popstate", show);
show();
