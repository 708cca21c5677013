// Shows one sample at a time, keeps the answers in the browser, and saves them as a CSV file.
//
// Texts of the data become `textContent` or attributes, never HTML: class names and paths are hostile until shown.
"use strict";

const element = (id) => document.getElementById(id);
const data = JSON.parse(element("data").textContent);
const rows = data.rows;
// A page that learns moves rows: the images keep the place that their rows came with.
for (const [place, row] of rows.entries()) row.image = data.hasImage[place] ? `image-${place}` : null;
const HEADER = "file,label,given,predicted,confidence,why,drawn";
const NUMBER_KEYS = 9;

// An answer is a label, `null` for a skipped row, or `undefined`.
const initial = rows.map((row) => row.label ?? undefined);
const answers = [...initial];
const classes = [...new Set([...data.classes, ...initial.filter((label) => label !== undefined)])];
// Classes of the data stay; those that the user adds leave with the last answer that names them.
const fixedClasses = new Set(classes);
const undoSteps = [];
const stripButtons = [];
let current = 0;
let matches = [];
let isUnsaved = false;
let downloads = 0;
let isKept = true;
let stripImages = null;

/** Makes control characters and marks that reorder text visible, as the command line does. */
function shown(text) {
  const escaped = (c) => `\\u{${c.codePointAt(0).toString(16)}}`;
  return text.replace(/[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, escaped);
}

/** Columns of text may have several lines. */
function shownLines(text) {
  return text.split(/\r?\n/).map((line) => line.split("\t").map(shown).join("\t")).join("\n");
}

function create(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Returns a name that its surroundings cannot reorder, and that reorders nothing around it. */
function named(name) {
  const bold = create("b");
  bold.append(create("bdi", shown(name)));
  return bold;
}

function percent(confidence) {
  const rounded = (100 * confidence).toFixed(1);
  // Only certainty itself is shown as 100%.
  return rounded === "100.0" && confidence < 1 ? "more than 99.9%" : `${rounded}%`;
}

/**
 * Returns the image of a row as an element. The images stand behind this script, so that the page can be used before the
 * browser has read all of them; until then, the element is empty.
 */
function imageOf(row, alt) {
  const image = create("img");
  image.alt = alt;
  const fill = () => {
    const block = element(row.image);
    const isLoading = document.readyState === "loading";
    // A long block arrives in pieces: it is complete once something follows.
    if (block && (block.nextSibling || !isLoading)) {
      const address = JSON.parse(block.textContent);
      if (address.startsWith("data:image/")) image.src = address;
    } else if (isLoading) {
      setTimeout(fill, 30);
    }
  };
  fill();
  return image;
}

/** Returns what the page says about a row, as texts and elements. */
function reason(row) {
  const parts = [];
  if (row.why === "first") parts.push("One of the first labels: a typical sample. ");
  if (row.why === "check") parts.push("The label may be wrong. ");
  if (row.why === "copies") parts.push("Identical samples have different labels. ");
  if (row.why === "random") parts.push("Drawn at random, so it is shown without a prediction. ");
  const isNext = row.why === "margin" && row.predicted !== null;
  if (isNext) parts.push("Among the most useful samples to label next. ");
  else if (row.why === "margin") parts.push("The model chooses the sample for this place once it is fitted. ");
  if (row.given !== null) parts.push("Label: ", named(row.given), ". ");
  if (row.why !== "random" && row.predicted !== null) {
    parts.push("Prediction: ", named(row.predicted));
    if (row.confidence !== null) parts.push(`, confidence ${percent(row.confidence)}`);
    parts.push(".");
  }
  return parts;
}

function stateOf(index) {
  if (answers[index] === undefined) return "unanswered";
  return answers[index] === null ? "skipped" : `answered: ${shown(answers[index])}`;
}

// Storage of the browser

/** Writes the answers that differ from those the page came with. */
function keep() {
  const changed = rows.map((row, index) => [row.file, answers[index] ?? null, index]);
  const kept = changed.filter(([, , index]) => answers[index] !== initial[index]).map(([file, label]) => [file, label]);
  try {
    localStorage.setItem(data.storageKey, JSON.stringify({ answers: kept, isUnsaved, downloads }));
    isKept = true;
  } catch {
    isKept = false;
  }
}

/** Reads the answers of an earlier visit; returns whether there were any. */
function restore() {
  let stored = null;
  try {
    stored = JSON.parse(localStorage.getItem(data.storageKey));
  } catch {
    // Forbidden, or written by another program. Only writing shows which.
  }
  if (!Array.isArray(stored?.answers)) return false;
  const indices = new Map(rows.map((row, index) => [row.file, index]));
  let restored = false;
  for (const [file, label] of stored.answers) {
    const index = indices.get(file);
    if (index === undefined || (label !== null && typeof label !== "string")) continue;
    answers[index] = label;
    if (label !== null) addClass(label);
    restored = true;
  }
  isUnsaved = restored && stored.isUnsaved !== false;
  downloads = Number(stored.downloads) || 0;
  return restored;
}

// Answers

function addClass(name) {
  if (!classes.includes(name)) classes.push(name);
}

function nextUnanswered(from) {
  for (let step = 1; step <= rows.length; step += 1) {
    const index = (from + step) % rows.length;
    if (answers[index] === undefined) return index;
  }
  return null;
}

function change(index, answer) {
  answers[index] = answer;
  for (let at = classes.length - 1; at >= 0; at -= 1) {
    if (!fixedClasses.has(classes[at]) && !answers.includes(classes[at])) classes.splice(at, 1);
  }
  isUnsaved = true;
  keep();
  drawStripButton(index);
  document.dispatchEvent(new Event("answered"));
}

/** Gives the current sample a label, or skips it if `answer` is null, and shows the next unanswered one. */
function give(answer) {
  if (!rows.length) return;
  const index = current;
  undoSteps.push([index, answers[index]]);
  if (answer !== null) addClass(answer);
  change(index, answer);
  search.value = "";
  const last = `Sample ${index + 1}: ${answer === null ? "skipped" : shown(answer)}.`;
  const next = nextUnanswered(index);
  show(next ?? index);
  announce(last, next === null ? "All samples are answered or skipped." : positionAndReason());
}

function undo() {
  const entry = undoSteps.pop();
  if (!entry) {
    announce("Nothing to undo.", "");
    return;
  }
  const [index, before] = entry;
  change(index, before);
  show(index);
  announce(`Undone: sample ${index + 1} is ${stateOf(index)}.`, "");
}

function confirmGiven() {
  const given = rows[current]?.given ?? null;
  if (given !== null) give(given);
}

function move(by) {
  const index = current + by;
  if (index < 0 || index >= rows.length) return;
  show(index);
  announce("", `${positionAndReason()} It is ${stateOf(index)}.`);
}

// The file

function quoted(value) {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv() {
  const lines = rows.map((row, index) => {
    // Skipped random samples are counted: who skips the hard ones has no random sample any more.
    const isSkipped = answers[index] === null && row.given === null && ["random", "chosen", "audit"].includes(row.drawn);
    const drawn = isSkipped ? "skipped" : row.drawn;
    const cells = [row.file, answers[index], row.given, row.predicted, row.confidence, row.why, drawn];
    return cells.map(quoted).join(",");
  });
  return [HEADER, ...lines, ""].join("\n");
}

function save() {
  const link = create("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
  link.download = data.csvName;
  link.click();
  // The browser reads the blob after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  isUnsaved = false;
  downloads += 1;
  keep();
  drawProgress();
  announce("", element("saving").textContent);
}

// What the page shows

/** Writes what happened, for everyone, and after it what is shown now, for screen readers alone. */
function announce(happened, now) {
  element("last").textContent = happened;
  element("announcement").textContent = `${happened} ${now}`.trim();
}

function positionAndReason() {
  return `${element("position").textContent}. ${element("why").textContent.trim()}`;
}

function drawProgress() {
  const answered = answers.filter((answer) => typeof answer === "string").length;
  const skipped = answers.filter((answer) => answer === null).length;
  const left = rows.length - answered - skipped;
  element("progress").max = Math.max(rows.length, 1);
  element("progress").value = answered + skipped;
  element("counts").textContent = `${answered} answered, ${skipped} skipped, ${left} left`;
  element("undo").disabled = undoSteps.length === 0;
  const saving = element("saving");
  const name = shown(data.csvName);
  if (isUnsaved || downloads === 0) {
    const where = isKept ? "Until then, answers are kept only in this browser." : "";
    const what = downloads === 0 ? `Nothing is saved until you download ${name}.` : "There are newer answers: download again.";
    saving.textContent = `${left === 0 && isUnsaved ? "All samples are answered or skipped. " : ""}${what} ${where}`;
  } else {
    const again = downloads > 1 ? " Browsers number repeated downloads: take the newest." : "";
    const next = `Downloaded ${name} with ${answered} answers.${again} Move it to the folder where you ran calmix review, then run: `;
    saving.replaceChildren(next, create("code", shown(data.command)));
  }
  element("storage").textContent = isKept
    ? ""
    : `This browser keeps no answers for this page: download ${name} before you close or reload it.`;
}

function drawSample() {
  const row = rows[current];
  const stage = element("stage");
  if (row.image !== null) {
    stage.replaceChildren(imageOf(row, `Sample ${shown(row.file)}`));
    stage.removeAttribute("tabindex");
  } else {
    const list = create("dl");
    const fields = row.fields.length ? row.fields : [["id", row.file]];
    for (const [name, text] of fields) list.append(create("dt", shown(name)), create("dd", shownLines(text)));
    stage.replaceChildren(list);
    // Long texts scroll, so the keyboard must reach them.
    stage.tabIndex = 0;
  }
  stage.scrollTop = 0;
  element("position").textContent = `Sample ${current + 1} of ${rows.length}`;
  element("why").replaceChildren(...reason(row));
  element("file").textContent = shown(row.file);
  const answer = answers[current];
  element("answer").replaceChildren();
  if (answer === null) element("answer").textContent = "Skipped";
  if (typeof answer === "string") element("answer").append("Answer: ", named(answer));
  const confirmation = element("confirm");
  // Its place stays free, so that the classes do not move below the mouse.
  confirmation.hidden = rows.every((row) => row.given === null);
  confirmation.classList.toggle("absent", row.given === null);
  if (row.given !== null) {
    const key = create("kbd", "Enter");
    key.setAttribute("aria-hidden", "true");
    confirmation.replaceChildren("Keep ", named(row.given), key);
  }
  element("previous").disabled = current === 0;
  element("next").disabled = current === rows.length - 1;
}

function classButton(name) {
  const button = create("button");
  button.type = "button";
  const place = classes.indexOf(name);
  const key = place < NUMBER_KEYS ? String(place + 1) : "";
  const number = create("kbd", key, "number");
  number.setAttribute("aria-hidden", "true");
  if (key) button.setAttribute("aria-keyshortcuts", key);
  button.append(number, create("bdi", shown(name)));
  const row = rows[current];
  const isPrediction = row.why !== "random" && row.predicted === name;
  const marks = [row.given === name && "label", isPrediction && "prediction"].filter(Boolean);
  if (marks.length) button.append(" ", create("small", marks.join(", ")));
  button.setAttribute("aria-pressed", String(answers[current] === name));
  button.dataset.name = name;
  return button;
}

/** Draws the classes that match the search: the same name first, then names that begin so, then the others. */
function drawClasses() {
  const typed = search.value.trim();
  const wanted = typed.toLowerCase();
  const rank = (name) => [name === typed, name.toLowerCase() === wanted, name.toLowerCase().startsWith(wanted), true].indexOf(true);
  matches = classes.filter((name) => name.toLowerCase().includes(wanted)).sort((a, b) => rank(a) - rank(b));
  const list = element("classes");
  // A button that is pressed by the keyboard keeps the focus, although it is made anew.
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  const made = matches.map(classButton);
  list.replaceChildren(...made);
  made.find((button) => button.dataset.name === focused)?.focus();
  list.hidden = matches.length === 0;
  const isNew = typed !== "" && !classes.includes(typed);
  const add = element("add");
  add.hidden = !isNew;
  add.replaceChildren("Add class “", create("bdi", shown(typed)), "”");
  const count = matches.length === 1 ? "1 class matches." : `${matches.length || "No"} classes match.`;
  element("matches").textContent = typed === "" ? "" : count;
}

function drawStripButton(index) {
  const button = stripButtons[index];
  const answer = answers[index];
  const isCurrent = index === current;
  button.className = answer === null ? "skipped" : answer === undefined ? "" : "answered";
  button.setAttribute("aria-label", `Sample ${index + 1}, ${stateOf(index)}`);
  button.tabIndex = isCurrent ? 0 : -1;
  if (isCurrent) button.setAttribute("aria-current", "true");
  else button.removeAttribute("aria-current");
  const mark = answer === null ? "– " : answer === undefined ? "" : "✓ ";
  button.lastChild.textContent = `${mark}${index + 1}`;
}

/** Makes a button per row, and returns what waits for those with images. An image is decoded when it comes into view: thousands at once would take seconds. */
function makeStrip() {
  const strip = element("strip");
  strip.classList.toggle("plain", !data.hasImage.includes(true));
  const load = (entries, observer) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      entry.target.prepend(imageOf(rows[entry.target.dataset.index], ""));
      observer.unobserve(entry.target);
    }
  };
  const observer = new IntersectionObserver(load, { root: strip, rootMargin: "0px 400px" });
  for (const index of rows.keys()) {
    const button = create("button");
    button.type = "button";
    button.dataset.index = index;
    button.append(create("span"));
    stripButtons.push(button);
    drawStripButton(index);
    if (rows[index].image !== null) observer.observe(button);
  }
  strip.append(...stripButtons);
  return observer;
}

function show(index) {
  const before = current;
  current = index;
  drawSample();
  drawClasses();
  drawProgress();
  drawStripButton(before);
  drawStripButton(index);
  const strip = element("strip");
  const button = stripButtons[index];
  strip.scrollLeft = button.offsetLeft - (strip.clientWidth - button.offsetWidth) / 2;
  if (strip.contains(document.activeElement)) button.focus({ preventScroll: true });
}

// Keys and clicks

const search = element("search");

const ACTIONS = {
  s: () => give(null),
  u: undo,
  c: confirmGiven,
  enter: confirmGiven,
  arrowleft: () => move(-1),
  arrowright: () => move(1),
  "/": () => search.focus(),
};

function isTextField(target) {
  return target.matches("input:not([type=checkbox]), textarea, select");
}

function onKey(event) {
  if (event.isComposing || isTextField(event.target) || !rows.length) return;
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && key === "z") {
    event.preventDefault();
    undo();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !element("keys").checked) return;
  // Enter belongs to what has the focus.
  if (key === "enter" && event.target.closest("button, summary, input")) return;
  const isMove = key.startsWith("arrow");
  const name = /^[1-9]$/.test(key) ? classes[Number(key) - 1] : undefined;
  const action = name === undefined ? ACTIONS[key] : () => give(name);
  if (!action) return;
  event.preventDefault();
  // A key that is held must not label one sample after another.
  if (isMove || !event.repeat) action();
}

function onSearchKey(event) {
  if (event.isComposing || event.repeat) return;
  if (event.key === "Escape") {
    search.value = "";
    drawClasses();
    element("sample").focus();
  }
  if (event.key === "ArrowDown") {
    event.preventDefault();
    (element("classes").querySelector("button") ?? element("add")).focus();
  }
  if (event.key !== "Enter" || search.value.trim() === "") return;
  event.preventDefault();
  if (matches.length) {
    give(matches[0]);
    element("sample").focus();
  } else {
    // A typing error must not become a class: a second Enter adds it.
    element("add").focus();
  }
}

/** Runs an action on clicks. After a click of the mouse the focus leaves, so that Enter does not repeat it. */
function onClick(id, action) {
  element(id).addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    action(button);
    if (event.detail > 0) document.activeElement.blur();
  });
}

function start() {
  const isRestored = restore();
  keep();
  element("save").textContent = `Save ${shown(data.csvName)}`;
  onClick("save", save);
  if (!rows.length) {
    drawProgress();
    element("position").textContent = "There are no samples to review.";
    element("choice").hidden = true;
    return;
  }
  onClick("confirm", confirmGiven);
  onClick("skip", () => give(null));
  onClick("undo", undo);
  onClick("previous", () => move(-1));
  onClick("next", () => move(1));
  onClick("classes", (button) => give(button.dataset.name));
  onClick("strip", (button) => move(Number(button.dataset.index) - current));
  onClick("add", () => {
    give(search.value.trim());
    element("sample").focus();
  });
  search.addEventListener("input", drawClasses);
  search.addEventListener("keydown", onSearchKey);
  document.addEventListener("keydown", onKey);
  addEventListener("beforeunload", (event) => {
    if (isUnsaved) event.preventDefault();
  });
  stripImages = makeStrip();
  show(nextUnanswered(-1) ?? 0);
  if (isRestored) announce("Your earlier answers were restored.", "");
}

start();
