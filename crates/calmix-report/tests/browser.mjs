// Opens a report in Chromium as people would: wide and narrow, light and dark, without a network, once without scripts.
// Fails on a horizontal scroll bar, on texts of a drawing that overlap, on a request to anywhere, and on what axe-core calls
// serious or critical. Prints one line a view; with a folder as second argument, writes screenshots there.
//
// Needs `puppeteer-core` and `axe-core` in $CALMIX_BROWSER_MODULES/node_modules, and Chromium in $CALMIX_CHROMIUM.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [page, screenshots] = process.argv.slice(2);
const require = createRequire(join(resolve(process.env.CALMIX_BROWSER_MODULES), "package.json"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({
  executablePath: process.env.CALMIX_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--force-device-scale-factor=1"],
});
const problems = [];

/** Texts of the same drawing whose boxes share more than a hair. */
function overlaps() {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    const edge = svg.getBoundingClientRect();
    for (const [i, [a, one]] of texts.entries()) {
      if (one.left < edge.left - 1 || one.right > edge.right + 1) found.push(`"${a}" leaves its drawing`);
      for (const [b, two] of texts.slice(i + 1)) {
        const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        // Boxes are as high as the line, with room above and below the letters.
        const room = 0.3 * Math.min(one.height, two.height, one.width, two.width);
        if (across > 0.5 && down > room) found.push(`"${a}" and "${b}"`);
      }
    }
  }
  return found;
}

for (const scripts of [true, false]) {
  for (const width of [1280, 390]) {
    for (const scheme of ["light", "dark"]) {
      const view = `${width} pixels, ${scheme}${scripts ? "" : ", without scripts"}`;
      const tab = await browser.newPage();
      await tab.setViewport({ width, height: 900 });
      await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await tab.setOfflineMode(true);
      await tab.setJavaScriptEnabled(scripts);
      await tab.setBypassCSP(scripts); // for axe-core alone: the page has no script of its own
      const requested = [];
      tab.on("request", (request) => requested.push(request.url()));
      tab.on("console", (message) => problems.push(`${view}: the console says ${message.text()}`));
      tab.on("pageerror", (error) => problems.push(`${view}: ${error}`));
      await tab.goto(pathToFileURL(resolve(page)).href, { waitUntil: "load" });
      const elsewhere = requested.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"));
      if (elsewhere.length) problems.push(`${view}: asks for ${elsewhere}`);
      const size = await tab.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      if (size[0] > size[1]) problems.push(`${view}: ${size[0]} pixels wide, so it scrolls`);
      const glance = await tab.evaluate(() => {
        const table = document.querySelector(".glance");
        return [table.scrollWidth, table.clientWidth];
      });
      if (glance[0] > glance[1]) problems.push(`${view}: the first table is cut off: ${glance[0]} of ${glance[1]} pixels`);
      for (const found of await tab.evaluate(overlaps)) problems.push(`${view}: texts overlap: ${found}`);
      if (scripts) {
        await tab.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
        await tab.evaluate(axe);
        const { violations } = await tab.evaluate(() => axe.run());
        for (const { id, impact, nodes } of violations) {
          const where = `${view}: axe: ${id} (${impact}): ${nodes[0].html.slice(0, 120)}`;
          if (["serious", "critical"].includes(impact)) problems.push(where);
          else console.log(where);
        }
        await tab.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = false)));
      }
      if (screenshots) {
        const name = view.replaceAll(/[ ,]+/g, "-");
        await tab.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
      }
      await tab.close();
      console.log(`looked at ${view}`);
    }
  }
}
await browser.close();
problems.forEach((problem) => console.error(problem));
process.exit(problems.length ? 1 : 0);
