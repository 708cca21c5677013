// The page that learns: every ten answers a worker fits the head again, and predictions and the order of the rows follow.
//
// Random rows stay where they are, without a prediction. Without WebAssembly or workers, the page works as it does without this.
"use strict";

const ANSWERS_PER_FIT = 10;
/** With fewer labels drawn at random there is an interval but no estimate, as at the end of `calmix train`. */
const MIN_LABELS_TO_ESTIMATE = 50;
/** Whether another row may take this place. */
const isMovable = (index) => rows[index].why === "margin" && answers[index] === undefined && index !== current;

const live = {
  ...data.program.live,
  worker: null,
  isReady: false,
  isFitting: false,
  /** Why there is no fit, for the user. */
  problem: "",
  /** The names of the classes of the fit that runs, or ran last. */
  names: [],
  /** The answer of the last fit, and the number of labels that it rests on. */
  fitted: null,
  fittedLabels: 0,
  /** Answers since the last fit began. */
  newAnswers: 0,
};

/** Returns the labels of the rows of the vectors: those of the data, and the answers, which replace them. */
function labelsSoFar() {
  const labels = new Map(live.labels.map(([vector, label, isChosen]) => [vector, { name: data.classes[label], isChosen }]));
  for (const [index, row] of rows.entries()) {
    if (row.vector === null || answers[index] === undefined) continue;
    const known = labels.get(row.vector);
    if (answers[index] === null) continue;
    labels.set(row.vector, { name: answers[index], isChosen: known ? known.isChosen : row.drawn === "chosen" });
  }
  return labels;
}

/** Asks for a fit if there are enough new answers, and none runs. */
function fitIfDue() {
  if (!live.isReady || live.isFitting || live.problem) return;
  const labels = labelsSoFar();
  const names = [...new Set([...labels.values()].map((label) => label.name))];
  const isFirst = live.fitted === null;
  const isDue = isFirst ? labels.size >= ANSWERS_PER_FIT : live.newAnswers >= ANSWERS_PER_FIT;
  if (!isDue || names.length < 2) {
    drawModel();
    return;
  }
  // As in a list of labels, the classes that are known already come first.
  live.names = [...new Set([...data.classes, ...names.sort()])];
  const place = new Map(live.names.map((name, at) => [name, at]));
  live.isFitting = true;
  live.newAnswers = 0;
  live.fittedLabels = labels.size;
  const numbered = [...labels].map(([vector, label]) => [vector, place.get(label.name), label.isChosen]);
  live.worker.postMessage({ classes: live.names.length, labels: numbered });
  drawModel();
}

/** Moves the least certain rows to the next places. The row that is shown stays, and so do all that are not chosen by margin. */
function moveRows() {
  const places = [...rows.keys()].filter(isMovable);
  const next = [...places.filter((place) => place > current), ...places.filter((place) => place < current)];
  const ordered = places.map((place) => rows[place]).sort((a, b) => a.margin - b.margin || a.vector - b.vector);
  for (const [at, place] of next.entries()) {
    if (rows[place] === ordered[at]) continue;
    rows[place] = ordered[at];
    const button = stripButtons[place];
    button.querySelector("img")?.remove();
    drawStripButton(place);
    if (rows[place].image !== null) {
      // An element that is observed already is not looked at again.
      stripImages.unobserve(button);
      stripImages.observe(button);
    }
  }
}

function onFitted({ answer, milliseconds, memory }) {
  live.isFitting = false;
  live.fitted = { ...answer, milliseconds, memory };
  for (const row of rows) {
    // A label to check keeps the prediction of a model that was fitted without it.
    if (row.vector === null || row.given !== null || row.why === "random") continue;
    row.predicted = live.names[answer.classes[row.vector]];
    row.confidence = answer.confidences[row.vector];
    row.margin = answer.margins[row.vector];
  }
  moveRows();
  element("why").replaceChildren(...reason(rows[current]));
  drawClasses();
  document.dispatchEvent(new Event("fitted"));
  fitIfDue();
  drawModel();
}

/** Returns what the model rests on, in one or two sentences. */
function modelInWords() {
  if (live.problem) return `The model is not fitted here (${live.problem}), so predictions and order stay as they are.`;
  if (live.fitted === null && live.isFitting) return `This page learns. Fitting the model to ${counted(live.fittedLabels, "label")}…`;
  if (live.fitted === null) {
    const missing = ANSWERS_PER_FIT - labelsSoFar().size;
    if (missing > 0) return `This page learns: the model is fitted after ${counted(missing, "more answer")}, then after every ten.`;
    return "This page learns: the model is fitted as soon as two classes have a label.";
  }
  const { labels, wrong, low, high } = live.fitted;
  const rests = `Model fitted to ${counted(live.fittedLabels, "label")}`;
  if (labels === 0) return `${rests}. No label drawn at random was predicted yet, so its error is unknown.`;
  const [from, to, estimate] = [low, high, wrong / labels].map((share) => Math.round(100 * share));
  const drawn = `${counted(labels, "label")} drawn at random`;
  if (labels < MIN_LABELS_TO_ESTIMATE) return `${rests}. Its error may be anywhere from ${from}% to ${to}% (95% CI, from ${drawn}).`;
  return `${rests}. Estimated error: ${estimate}% (95% CI ${from} to ${to}), from ${drawn}.`;
}

function drawModel() {
  const words = modelInWords();
  // A status is read out when it changes, so it changes with a fit only.
  if (element("model").textContent !== words) element("model").textContent = words;
  const missing = ANSWERS_PER_FIT - live.newAnswers;
  const next = live.isFitting || missing <= 0 ? "Refitting…" : `Next fit after ${counted(missing, "more answer")}.`;
  element("fit").textContent = live.problem || live.fitted === null ? "" : next;
}

function stopLearning(problem) {
  live.problem = problem;
  live.isFitting = false;
  live.worker?.terminate();
  drawModel();
}

function startLearning() {
  const onMessage = (message) => {
    if (message.isReady) live.isReady = true;
    if (message.answer) onFitted(message);
    else fitIfDue();
  };
  const { ids, width, folds, seed } = live;
  live.worker = startProgram({ numbers: element("vectors").textContent, vectors: { ids, width, folds, seed } }, onMessage, stopLearning);
}

if (rows.length) {
  document.addEventListener("answered", () => {
    live.newAnswers += 1;
    fitIfDue();
  });
  drawModel();
  addEventListener("DOMContentLoaded", startLearning);
}
