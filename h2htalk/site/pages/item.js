// One item: the answers of up to three runs side by side, what is said of them, references and the prompt.

const [SHOWN, COMPARED] = [10000, 1500]; // characters of a text before a button shows the rest, words that are compared
const PIECES = /(?:\p{Script=Han}|[\p{L}\p{N}\p{M}'’]+|[^\s])\s*/gu; // words and signs, with the space after them

// The pieces of `text`, joined to runs that are or are not in a longest common sequence with `other`; null for long texts.
function differences(text, other) {
  const [pieces, a, b] = [text.match(PIECES) || [], ...[text, other].map((one) => (one.match(PIECES) || []).map((piece) => piece.trim()))];
  if (Math.max(a.length, b.length) > COMPARED) return null;
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let at = i * width + b.length - 1, k = b.length - 1; k >= 0; k--, at--) longest[at] = a[i] === b[k] ? longest[at + width + 1] + 1 : Math.max(longest[at + width], longest[at + 1]);
  }
  const runs = [];
  for (let i = 0, k = 0; i < a.length; i++) {
    while (k < b.length && a[i] !== b[k] && longest[i * width + k + 1] > longest[(i + 1) * width + k]) k++;
    const differs = a[i] !== b[k];
    k += differs ? 0 : 1;
    if (runs.at(-1)?.[1] === differs) runs.at(-1)[0] += pieces[i];
    else runs.push([pieces[i], differs]);
  }
  return runs;
}

function block(text, language, other = null) {
  const box = element("p", { class: "text", dir: "auto", lang: language });
  const runs = other === null ? null : differences(text, other);
  if (!text.trim()) box.append(element("em", { class: "quiet" }, text ? words.blank : words.empty));
  else if (runs) box.append(...runs.flatMap(([run, differs]) => (differs ? [element("mark", {}, shown(run.trimEnd())), run.slice(run.trimEnd().length)] : [shown(run)])));
  else {
    const end = /[\ud800-\udbff]/.test(text[SHOWN - 1]) ? SHOWN + 1 : SHOWN;
    box.append(shown(text.slice(0, end)));
    const more = element("button", { type: "button", class: "rest", onclick: () => more.replaceWith(shown(text.slice(end))) }, filled(words.rest, count(text.length - end)));
    if (text.length > end) box.append(more);
  }
  return box;
}

function drawSample(sample, data, language, other) {
  const answered = sample.answer !== null;
  return [
    answered ? block(sample.answer, language, other) : failed(words.failed + ": ", shown(word(words.reasons, sample.failure))),
    answered ? quiet(words.finish + ": ", shown(sample.finish)) : null,
    sample.thinking ? fold(filled(words.thinking, count(sample.thinking.length)), block(sample.thinking, language)) : null,
    answered && sample.unscored ? failed(words.unscored + ": ", shown(word(words.reasons, sample.unscored))) : null,
    answered && sample.violations ? drawContract(sample) : null,
    drawRating(sample), drawScores(sample, data.metrics), sample.verdicts.map((verdict) => drawJudge(verdict, data)),
  ];
}

function drawContract(sample) {
  const broken = sample.violations.map((rule) => element("li", {}, element("code", {}, shown(rule)), " ", shown(rules.get(rule) || "")));
  const said = quiet(words.contract + ": ", sample.kept ? words.kept : element("span", { class: "bad" }, words.broken));
  return sample.kept ? said : [said, element("ul", { class: "violations" }, broken)];
}

function tableOf(rows, caption, heads) {
  const head = element("thead", {}, element("tr", {}, heads.map((text) => element("th", { scope: "col" }, text))));
  const body = rows.map(([name, ...cells]) => element("tr", {}, element("th", { scope: "row" }, name), cells.map((cell) => element("td", {}, cell))));
  return element("table", { class: "pairs" }, element("caption", {}, caption), head, element("tbody", {}, body));
}

function drawScores(sample, metrics) {
  const values = [["S", sample.s], ...metrics.map((name, n) => [name.toUpperCase().replace("_", "-"), sample.values[n]])];
  const rows = values.filter(([, value]) => value !== null).map(([name, value]) => [shown(name), number(value, 100)]);
  return rows.length ? fold(words.metrics + (sample.s === null ? "" : " · S " + number(sample.s, 100)), tableOf(rows, words.metrics_caption, [words.metric, words.value])) : null;
}

function drawRating(sample) {
  if (sample.rating === null) return sample.unjudged ? failed(words.unjudged + ": ", shown(word(words.reasons, sample.unjudged))) : null;
  const by = sample.people ? filled(words.by_people, count(sample.people[0]), sample.people[1]) : words.by_judges;
  return element("p", { class: "decided" }, element("strong", {}, "R " + number(sample.rating, 1) + (sample.j === null ? "" : " · J " + number(sample.j, 1))), " ", shown(by));
}

function drawJudge([judge, unscored, parts], data) {
  const name = filled(words.judge, data.judges[judge]);
  if (unscored) return quiet(shown(name), ": ", shown(word(words.reasons, unscored)));
  const rows = parts.map(([part, value, evidence]) => {
    const isPoint = Object.hasOwn(words.points, data.parts[part]);
    return [word(isPoint ? words.points : words.qualities, data.parts[part]), isPoint ? [words.no, words.yes][value] : String(value), element("bdi", {}, shown(evidence))];
  });
  return fold(name, tableOf(rows, words.judge_caption, [words.part, words.score, words.evidence]));
}

function drawPrompts(prompts, index, language, runs) {
  return [...new Set(runs.map((run) => run.version))].map((version) => {
    const messages = prompts.versions[version][index];
    if (!messages) return null;
    const [texts, to] = [messages.map(prompts.text), runs.filter((run) => run.version === version).map((run) => run.label).join(", ")];
    const body = (text) => text ? [block(text, language)] : []; // a note that templates were not rendered has none
    const drawn = messages.map(([role], n) => [element("h4", {}, shown(word(words.roles, role))), ...body(texts[n])]);
    return fold(filled(words.prompt, to, count(texts.join("").length)), drawn);
  });
}

function drawAnswers(run, own, beside, data, language) {
  const head = (n) => (own.length > 1 ? element("h4", {}, filled(words.answer, n + 1, own.length)) : null);
  const drawn = own && own.map((sample, n) => [head(n), drawSample(sample, data, language, beside?.[n]?.answer ?? null)]);
  return element("article", {}, element("h3", {}, element("bdi", {}, shown(run.label))), drawn || quiet(words.not_asked));
}

function drawItem(split, prompts, texts, index, runs) {
  const [language, references, own] = [split.language[index], prompts.references[index], texts.map((data) => data.items[index])];
  const columns = runs.map((run, place) => drawAnswers(run, own[place], own[place ? 0 : 1], texts[place], language));
  const asked = prompts.versions[runs[0].version][index]?.findLast(([role]) => role === "user");
  return [
    ...(asked ? [element("h3", {}, words.asked), block(prompts.text(asked), language)] : []),
    element("div", { class: "answers" }, columns), runs.length > 1 ? quiet(words.marked) : null,
    element("h3", {}, words.references), references.length ? references.map((text) => block(text, language)) : quiet(words.private),
    element("h3", {}, words.prompts), drawPrompts(prompts, index, language, runs),
  ].flat().filter((child) => child !== null);
}

function drawNote(language, open) {
  const source = (url, date) => [" (", element("a", { href: url, rel: "noreferrer noopener" }, new URL(url).hostname), ", " + date + ")"];
  const rows = (helpLines.get(language) || []).map(([row, url, date]) => element("li", {}, row, url ? source(url, date) : null));
  if (!open) return [failed(words.crisis_scores), fold(words.crisis_lines, element("ul", { lang: language }, rows))];
  return element("div", { class: "crisis", role: "note" }, element("h3", {}, words.crisis), element("p", {}, words.crisis_note),
    element("button", { type: "button", onclick: open }, words.crisis_open), element("ul", { lang: language }, rows));
}
