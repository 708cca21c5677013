// Computes what the answers on a page of an audit show, as the page does, outside of a browser: prints the shares. `audit_page.mjs PAGE ANSWERS`;
// ANSWERS is a JSON object from file to label, or to null for a skipped row.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [page, answers] = process.argv.slice(2);
const html = readFileSync(page, "utf8");
const block = (id) => html.match(new RegExp(`<script type="[a-z/]+" id="${id}">([^]*?)</script>`))[1];
const { rows, program, storageKey } = JSON.parse(block("data"));
const { limit, delta, shares, order, places, labels } = program.audit;
const given = JSON.parse(readFileSync(answers, "utf8"));
const states = order.map(([, isWrong]) => (isWrong === null ? 2 : Number(isWrong)));
for (const [at, { file }] of rows.entries()) {
  if (!(file in given)) continue;
  const digest = createHash("sha256").update([storageKey, file, given[file]].join("\n")).digest("hex");
  states[places[at]] = given[file] !== null && digest === labels[at] ? 0 : 1;
}

const arrived = [];
let listener = null;
globalThis.postMessage = (message) => arrived.push(message);
globalThis.addEventListener = (_, added) => (listener = added);
runInThisContext(block("worker"));
await listener({ data: { program: block("program") } });
await listener({ data: { audit: { limit, delta, shares, order: order.map(([rank], at) => [rank, states[at]]) } } });
const { outcomes, problem } = arrived.at(-1);
if (problem) throw new Error(problem);
console.log(JSON.stringify(outcomes));
