// Answers rows of a page of `calmix review --live` in Chromium by keyboard, and prints what its fits took: `live_page.mjs PAGE TRUTH [ANSWERS] [SHOTS]`.
//
// TRUTH is a JSON object from the name of a sample to its class. The table is in docs/study/labelling.md. Needs `puppeteer-core` in $CALMIX_BROWSER_MODULES/node_modules, and Chromium in $CALMIX_CHROMIUM.

import { createRequire } from "node:module";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [page, truthFile, answers = "60", shots] = process.argv.slice(2);
const require = createRequire(join(resolve(process.env.CALMIX_BROWSER_MODULES), "package.json"));
const puppeteer = require("puppeteer-core");
const truth = JSON.parse(readFileSync(truthFile, "utf8"));
const browser = await puppeteer.launch({
  executablePath: process.env.CALMIX_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--force-device-scale-factor=1"],
});
const tab = await browser.newPage();
await tab.setViewport({ width: 1280, height: 860 });
await tab.setOfflineMode(true);
const began = Date.now();
await tab.goto(pathToFileURL(resolve(page)).href, { waitUntil: "load" });
await tab.waitForFunction(() => live.isReady || live.problem, { timeout: 0 });
console.log(`page of ${statSync(page).size} bytes, ready after ${Date.now() - began} ms ${await tab.evaluate(() => live.problem)}`);
await tab.evaluate(() => {
  window.fits = [];
  const add = () => fits.push([live.fittedLabels, live.fitted.labels, live.fitted.wrong, live.fitted.milliseconds, live.fitted.memory]);
  document.addEventListener("fitted", add);
});
const keyTimes = [];
for (let given = 0; given < Number(answers); given += 1) {
  const [file, names] = await tab.evaluate(() => [rows[current].file, classes]);
  const start = performance.now();
  const place = names.indexOf(truth[file]);
  if (place < 9) await tab.keyboard.press(String(1 + place));
  else {
    await tab.keyboard.press("/");
    await tab.keyboard.type(truth[file]);
    await tab.keyboard.press("Enter");
  }
  keyTimes.push(performance.now() - start);
}
keyTimes.sort((a, b) => a - b);
console.log(`an answer while fits run: median ${keyTimes[keyTimes.length >> 1].toFixed(0)} ms, longest ${keyTimes.at(-1).toFixed(0)} ms`);
await tab.waitForFunction(() => !live.isFitting && live.newAnswers < 10, { timeout: 0 });
for (const [labels, random, wrong, milliseconds, memory] of await tab.evaluate(() => fits)) {
  const megabytes = (memory / 2 ** 20).toFixed(1);
  console.log(`${labels} labels: ${(milliseconds / 1000).toFixed(1)} s, ${megabytes} MB, ${wrong} of ${random} random labels wrong`);
}
const all = await tab.evaluate(() => rows.filter((row) => row.why !== "random").map((row) => [row.file, row.predicted]));
const wrong = all.filter(([file, predicted]) => truth[file] !== predicted).length;
console.log(`${await tab.$eval("#model", (element) => element.textContent)} True error of the rows with a prediction: ${wrong} of ${all.length}`);
if (shots) {
  for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [400, "light"], [400, "dark"]]) {
    await tab.setViewport({ width, height: 860 });
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await tab.screenshot({ path: join(shots, `live-${width}-${scheme}.png`) });
  }
}
await browser.close();
