// Fits the model of a page of `calmix review --live` as its worker does, outside of a browser: prints the answer, and the rows that have a
// vector with their predictions. `live_page.mjs PAGE [ANSWERS]`; ANSWERS is a JSON object from file to label.

import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [page, answers] = process.argv.slice(2);
const html = readFileSync(page, "utf8");
const block = (id) => html.match(new RegExp(`<script type="[a-z/]+" id="${id}">([^]*?)</script>`))[1];
const { rows, program, classes } = JSON.parse(block("data"));
const { live } = program;
const labels = new Map(live.labels.map(([row, label, isChosen]) => [row, [row, label, isChosen]]));
const given = answers ? JSON.parse(readFileSync(answers, "utf8")) : {};
for (const row of rows) {
  if (row.file in given) labels.set(row.vector, [row.vector, classes.indexOf(given[row.file]), row.drawn === "chosen"]);
}

const arrived = [];
let listener = null;
globalThis.postMessage = (message) => arrived.push(message);
globalThis.addEventListener = (_, added) => (listener = added);
runInThisContext(block("worker"));
const { ids, width, folds, seed } = live;
await listener({ data: { program: block("program"), numbers: block("vectors"), vectors: { ids, width, folds, seed } } });
await listener({ data: { classes: classes.length, labels: [...labels.values()] } });
const { answer, problem } = arrived.at(-1);
if (problem) throw new Error(problem);
const predicted = (row) => ({
  file: row.file,
  why: row.why,
  given: [row.predicted, row.confidence],
  predicted: classes[answer.classes[row.vector]],
  confidence: answer.confidences[row.vector],
  margin: answer.margins[row.vector],
});
console.log(JSON.stringify({ ...answer, classes: null, confidences: null, margins: null, rows: rows.map(predicted) }));
