// From the arrays that html.py packs to items, and from items to elements. Texts are only ever set as text.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const items = data.items.map(unpackItem);

function unpackItem(packed, index) {
  const [id, subtask, language, persona, tags, references, values, unscored, messages, samples, crisis] = packed;
  const [s, lexical, ss, compliance] = values;
  const unpacked = samples.map(unpackSample);
  const answers = unpacked.filter((sample) => sample.reply);
  return {
    index, id, subtask: data.subtasks[subtask][0], title: data.subtasks[subtask][1], order: subtask,
    language, persona, tags, crisis: crisis === 1, references, s, lexical, ss, compliance, unscored, messages, samples: unpacked,
    violations: [...new Set(unpacked.flatMap((sample) => sample.violations))],
    failed: unpacked.some((sample) => sample.failure),
    empty: answers.some((sample) => !sample.reply.answer.trim()),
    cut: answers.some((sample) => sample.reply.finish === "length"),
    snippet: answers.length ? answers[0].reply.answer.slice(0, 120) : "",
  };
}

function unpackSample([number, scored, reply, failure]) {
  const [metrics, ss, s, violations, unscored] = scored;
  return { number, metrics, ss, s, violations, unscored, reply: reply && unpackReply(reply), failure };
}

function unpackReply([text, answer, thinking, finish, input, output, request]) {
  return { text, answer: answer === null ? text : answer, thinking, finish, input, output, request };
}

// A prompt's message: its paragraphs lie in one table, for personas and instructions repeat.
function messageText([, paragraphs]) {
  return paragraphs.map((number) => data.paragraphs[number]).join("\n\n");
}

// --- Elements ---

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// Characters that are invisible and act: controls, direction marks and overrides, zero-width marks.
const ACTING = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Surrogate})/u;

function shown(text) {
  const pieces = document.createDocumentFragment();
  String(text).split(ACTING).forEach((piece, number) => {
    if (number % 2 === 0) {
      pieces.append(piece);
      return;
    }
    const code = "U+" + piece.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    pieces.append(element("span", { class: "acting", title: "an invisible character" }, code));
  });
  return pieces;
}

function block(text, language) {
  const empty = !text.trim();
  return element("p", { class: "text", dir: "auto", lang: language },
    empty ? element("em", { class: "quiet" }, text ? "white space only" : "empty") : shown(text));
}

function number(value, digits = 2) {
  return value === null ? "–" : (100 * value).toFixed(digits);
}
