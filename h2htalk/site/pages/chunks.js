// Data chunks, which come as scripts, and elements of text. Names from the data are values here, never keys of objects.
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);
const words = page.words;
const [rules, helpLines] = [new Map(page.rules), new Map(page.help)];
const inlined = new Map(page.chunks || []); // of the page of one item
const chunks = new Map(); // name -> promise of its data
const arriving = new Map(); // name -> function that takes the chunk's text
const h2htalk_chunk = (name, text) => arriving.get(name)?.(text);

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
}

function loadScript(name) {
  return new Promise((resolve, reject) => {
    const script = element("script", { src: "data/" + name + ".js" });
    arriving.set(name, resolve);
    script.addEventListener("error", () => { chunks.delete(name); reject(new Error(words.missing + " " + name + ".js")); });
    script.addEventListener("load", () => { script.remove(); arriving.delete(name); });
    document.head.append(script);
  }).then(unpacked);
}

function load(name, unpack) {
  if (!chunks.has(name)) chunks.set(name, (inlined.has(name) ? Promise.resolve(JSON.parse(inlined.get(name))) : loadScript(name)).then(unpack));
  return chunks.get(name);
}

// A column as two lists: its different values, and each item's place among them.
const decoded = ([values, places]) => places.map((place) => values[place]);

async function loadSplit(key) {
  const [[ids, crisis, gists, ...coded], scores] = await Promise.all(["items-", "scores-"].map((kind) => load(kind + key, (data) => data)));
  const [subtask, language, persona, ...tags] = coded.map(decoded);
  const byRun = scores.map(([run, s, lexical, ss, compliance, rating, j, unscored, violations, flags]) => {
    const broken = violations[0].map((codes) => (codes || "").split(" ").filter(Boolean));
    return [run, { numbers: new Map(Object.entries({ s, lexical, ss, rating, j })), compliance, unscored: decoded(unscored), violations: decoded([broken, violations[1]]), flags }];
  });
  return { key, ids, crisis, gists, subtask, language, persona, tags, choices: coded.map(([values]) => values), places: new Map(ids.map((id, n) => [id, n])), scores: new Map(byRun) };
}

const loadPrompts = (key) => load("prompts-" + key, ([paragraphs, versions, references]) => (
  { paragraphs, versions, references, text: (message) => message[1].map((n) => paragraphs[n]).join("\n\n") }));

function loadTexts(run) {
  const sample = ([answer, thinking, finish, failure, values, s, rating, j, broken, unscored, unjudged, people, verdicts]) => (
    { answer, thinking, finish, failure, values, s, rating, j, violations: broken === null ? null : broken.split(" "), kept: broken === "", unscored, unjudged, people, verdicts });
  return load("texts-" + run, ([metrics, judges, parts, samples]) => ({ metrics, judges, parts, lower: null, items: samples.map((own) => own && own.map(sample)) }));
}

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null));
  return made;
}

// Characters that are invisible and act: controls, direction marks and overrides, zero-width marks.
const ACTING = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Surrogate})/u;

function shown(text) {
  const pieces = document.createDocumentFragment();
  String(text).split(ACTING).forEach((piece, number) => {
    pieces.append(number % 2 ? element("span", { class: "acting" }, "U+" + piece.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")) : piece);
  });
  return pieces;
}

const [quiet, failed] = ["facts", "failure"].map((kind) => (...children) => element("p", { class: kind }, ...children));
const fold = (summary, ...children) => element("details", { class: "fold" }, element("summary", {}, shown(summary)), ...children);
const filled = (text, ...values) => values.reduce((done, value) => done.replace("{}", () => value), text);
const number = (value, scale) => (value === null ? "–" : ((scale * value) / 10000).toFixed(2));
const count = (value) => value.toLocaleString(document.documentElement.lang);
const word = (table, name) => (Object.hasOwn(table, name) ? table[name] : name);
