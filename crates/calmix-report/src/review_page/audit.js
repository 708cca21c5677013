// The page of an audit: after every ten answers the program computes what they show, as `calmix certify` will.
//
// Not after each one: the bound tells whether an answer agrees with the label that is audited, and an auditor should not know. Like
// the test, it counts the answers up to the first row without one.
"use strict";

const ANSWERS_PER_BOUND = 10;
/** What the program knows of a row. */
const RIGHT = 0;
const WRONG = 1;
const UNANSWERED = 2;

const audit = {
  ...data.program.audit,
  worker: null,
  isReady: false,
  isComputing: false,
  /** Why there is no bound, for the user. */
  problem: "",
  /** What the answers show of each share, and how many of this page they are. */
  outcomes: [],
  countedRows: -1,
};

/** Returns how many rows of this page count: those before the first one without an answer, in tens, or all. */
function countedRows() {
  const first = answers.indexOf(undefined);
  return first < 0 ? rows.length : first - (first % ANSWERS_PER_BOUND);
}

/** Returns whether an answer differs from the label that is audited, of which the page has the digest. */
async function isWrong(index) {
  if (answers[index] === null) return true;
  const text = [data.storageKey, rows[index].file, answers[index]].join("\n");
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const digits = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  return digits.join("") !== audit.labels[index];
}

/** Asks for the bound of the rows that count, if it is not there yet. */
async function computeIfDue() {
  const end = countedRows();
  if (!audit.isReady || audit.isComputing || audit.problem || end === audit.countedRows) return;
  audit.isComputing = true;
  audit.countedRows = end;
  const states = audit.order.map(([, isWrong]) => (isWrong === null ? UNANSWERED : isWrong ? WRONG : RIGHT));
  try {
    for (let index = 0; index < end; index += 1) states[audit.places[index]] = (await isWrong(index)) ? WRONG : RIGHT;
  } catch (error) {
    stopComputing(error.message);
    return;
  }
  const order = audit.order.map(([rank], place) => [rank, states[place]]);
  audit.worker.postMessage({ audit: { limit: audit.limit, delta: audit.delta, shares: audit.shares, order } });
}

function onComputed({ outcomes }) {
  audit.isComputing = false;
  audit.outcomes = outcomes;
  drawBound();
  document.dispatchEvent(new Event("bounded"));
  computeIfDue();
}

/** Returns a share in tenths of a per cent: of rows rounded down, a bound rounded up. */
const tenths = (share, round) => `${round(1000 * share) / 10}%`;

/** Returns what the answers show, in one or two sentences. */
function boundInWords() {
  if (audit.problem) return `The bound is not drawn here (${audit.problem}): \`calmix certify --answers\` computes it.`;
  if (audit.outcomes.length === 0) return "";
  const limit = tenths(audit.limit, Math.round);
  const certified = audit.outcomes.filter((share) => share.isCertified).at(-1);
  const next = audit.outcomes.find((share) => !share.isCertified);
  const parts = [];
  if (certified) parts.push(`Certified: at most ${limit} of the surest ${counted(certified.rows, "label")} are wrong.`);
  if (next) {
    const on = `${counted(next.answers, "answer")} on the surest ${counted(next.rows, "label")}`;
    parts.push(`${on}: at most ${tenths(next.high, Math.ceil)} of these are wrong; ${limit} is to be shown.`);
  } else parts.push("This was the largest share: save your answers.");
  return parts.join(" ");
}

function drawBound() {
  const words = boundInWords();
  // A status is read out when it changes.
  if (element("model").textContent !== words) element("model").textContent = words;
  const isOpen = !audit.problem && answers.includes(undefined);
  element("fit").textContent = isOpen ? `It is drawn after every ${ANSWERS_PER_BOUND} answers.` : "";
}

function stopComputing(problem) {
  audit.problem = problem;
  audit.isComputing = false;
  audit.worker?.terminate();
  drawBound();
}

function startComputing() {
  const onMessage = (message) => {
    if (message.isReady) audit.isReady = true;
    if (message.outcomes) onComputed(message);
    else computeIfDue();
  };
  audit.worker = startProgram({}, onMessage, stopComputing);
}

if (rows.length) {
  document.addEventListener("answered", computeIfDue);
  addEventListener("DOMContentLoaded", startComputing);
}
