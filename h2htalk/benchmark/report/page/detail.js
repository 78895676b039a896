// One item in full: its prompt as sent, the reference, and each answer with its scores.

const agreed = new Set(); // to read these items about a crisis

function drawDetail(item) {
  return element("tr", { class: "detail" }, element("td", { colspan: COLUMNS.length }, ...(item.crisis && !agreed.has(item.index) ? [drawHelp(item)] : drawTexts(item))));
}

// Who helps, before the texts of an item about a crisis, which a button shows.
function drawHelp(item) {
  const note = document.getElementById("help").content.firstElementChild.cloneNode(true);
  const show = (event) => {
    const cell = event.currentTarget.closest("td");
    agreed.add(item.index);
    cell.replaceChildren(...drawTexts(item));
    cell.firstElementChild.focus(); // the button that had it is gone
  };
  note.querySelector("p").before(element("p", {}, element("button", { type: "button", onclick: show }, "Show the text")));
  return note;
}

function drawTexts(item) {
  const rendered = item.messages.every(([role]) => role !== "template");
  const heading = rendered ? "Prompt, as sent" : "Templates of the run, which were not rendered, and the item's inputs";
  const facts = [item.title, item.language, "persona " + item.persona, ...item.tags.map((tag, n) => ["emotion", "complexity", "interaction", "risk"][n] + " " + tag)];
  const left = element("div", {}, element("h4", {}, heading), ...item.messages.map((message) => drawMessage(message, item)));
  const right = element("div", {}, ...drawReferences(item), ...item.samples.flatMap((sample) => drawSample(sample, item)));
  if (!item.samples.length) right.append(element("h4", {}, "Answer"), element("p", { class: "failure" }, "There is none."));
  return [element("p", { class: "facts", tabindex: -1 }, shown(facts.join(" · "))), element("div", { class: "answers" }, left, right)];
}

function drawReferences(item) {
  const many = item.references.length > 1;
  const drawn = item.references.flatMap((text, n) => [element("h4", {}, many ? `Reference ${n + 1} of ${item.references.length}` : "Reference"), block(text, item.language)]);
  return drawn.length ? drawn : [element("h4", {}, "Reference"), element("p", { class: "facts" }, "private")];
}

function drawMessage(message, item) {
  const text = messageText(message);
  const isTemplate = message[0] === "template"; // its first line is its name
  const name = isTemplate ? text.split("\n", 1)[0] : message[0];
  const summary = `${name}, ${text.length.toLocaleString("en")} characters`;
  const scrolled = element("div", { class: "message", tabindex: 0 }, block(text, item.language));
  return element("details", { class: "fold", open: !isTemplate }, element("summary", {}, summary), scrolled);
}

function drawSample(sample, item) {
  const drawn = [element("h4", {}, item.samples.length > 1 ? `Answer ${sample.number + 1} of ${item.samples.length}` : "Answer")];
  if (sample.failure) {
    const [reason, message, attempts] = sample.failure;
    drawn.push(element("p", { class: "failure" }, shown(`${reason} after ${attempts} attempt${attempts === 1 ? "" : "s"}: ${message}`)));
  } else drawn.push(...drawReply(sample.reply, item));
  if (sample.unscored && !sample.failure) drawn.push(element("p", { class: "failure" }, "unscored: ", shown(sample.unscored)));
  if (sample.metrics) drawn.push(drawScores(sample));
  if (sample.violations.length) {
    drawn.push(element("ul", { class: "violations" }, ...sample.violations.map((rule) => element("li", {}, element("code", {}, rule), ": " + (data.rules[rule] || "")))));
  }
  return drawn;
}

function drawReply(reply, item) {
  const counts = [["in", reply.input], ["out", reply.output]].filter(([, n]) => n !== null).map(([where, n]) => `${n.toLocaleString("en")} tokens ${where}`);
  const drawn = [block(reply.answer, item.language)];
  if (reply.thinking) drawn.push(fold(`Thinking, ${reply.thinking.length.toLocaleString("en")} characters`, reply.thinking, item));
  if (reply.answer !== reply.text.trim()) drawn.push(fold("Raw reply, with its thinking", reply.text, item));
  drawn.push(element("p", { class: "facts" }, shown([`finished: ${reply.finish}`, ...counts, ...(reply.request ? [`request ${reply.request}`] : [])].join(" · "))));
  return drawn;
}

function fold(summary, text, item) {
  return element("details", { class: "fold" }, element("summary", {}, summary), block(text, item.language));
}

function drawScores(sample) {
  const names = data.metrics.map((name) => name.toUpperCase().replace("_", "-"));
  const pairs = names.map((name, n) => [name, sample.metrics[n]]).filter(([, value]) => value !== null);
  if (sample.s !== null) pairs.push(["S", sample.s]);
  return element("table", { class: "scores" },
    element("thead", {}, element("tr", {}, ...pairs.map(([name]) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, element("tr", {}, ...pairs.map(([, value]) => element("td", {}, number(value))))));
}
