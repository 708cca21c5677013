// Opens pages of the site in Chromium, wide and narrow, light and dark: `browser.mjs SITE [SCREENSHOTS]`. Fails on a request to
// anywhere else, an error in the console, a page that scrolls sideways, a search without results, and on what axe-core calls
// serious or critical. Prints one line a view.
//
// Needs `puppeteer-core` and `axe-core` in $CALMIX_BROWSER_MODULES/node_modules, and Chromium in $CALMIX_CHROMIUM.

import { createRequire } from "node:module";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { extname, join, resolve } from "node:path";

const [site, screenshots] = process.argv.slice(2);
const PAGES = ["index.html", "docs/get-started/photos.html", "docs/reference/python.html", "docs/study/dynamics.html",
  "docs/study/choose.html", "bindings/python/examples/certified_labels.html"];
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml" };

const require = createRequire(join(resolve(process.env.CALMIX_BROWSER_MODULES), "package.json"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// The search runs in a worker, which a browser starts only for a page of a server.
const server = createServer(async (request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
  try {
    const body = await readFile(join(resolve(site), path));
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${server.address().port}/`;

const browser = await puppeteer.launch({
  executablePath: process.env.CALMIX_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--force-device-scale-factor=1"],
});
const problems = [];

for (const page of PAGES) {
  for (const [width, scheme] of [[1280, "light"], [390, "dark"]]) {
    const view = `${page}, ${width} pixels, ${scheme}`;
    // Of its own, because the site keeps the colour scheme of the first view.
    const context = await browser.createBrowserContext();
    const tab = await context.newPage();
    await tab.setViewport({ width, height: 900 });
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    tab.on("request", (request) => {
      const url = request.url();
      if (![origin, "data:", "blob:"].some((start) => url.startsWith(start))) problems.push(`${view}: asks for ${url}`);
    });
    tab.on("console", (message) => {
      if (["error", "warn"].includes(message.type())) problems.push(`${view}: the console says ${message.text()}`);
    });
    tab.on("pageerror", (error) => problems.push(`${view}: ${error}`));
    await tab.goto(origin + page, { waitUntil: "networkidle0" });
    const size = await tab.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    if (size[0] > size[1]) problems.push(`${view}: ${size[0]} pixels wide, so it scrolls`);
    await tab.evaluate(axe);
    const { violations } = await tab.evaluate(() => axe.run());
    for (const { id, impact, nodes } of violations) {
      const where = `${view}: axe: ${id} (${impact}), ${nodes.length} places: ${nodes[0].html.slice(0, 120)}`;
      if (["serious", "critical"].includes(impact)) problems.push(where);
      else console.log(where);
    }
    if (screenshots) {
      const name = view.replaceAll(/[ ,/]+/g, "-");
      await tab.screenshot({ path: join(screenshots, `${name}.png`) });
    }
    if (width > 1000) {
      await tab.click("input.md-search__input");
      await tab.type("input.md-search__input", "coverage");
      const found = await tab.waitForSelector(".md-search-result__item", { timeout: 20000 }).catch(() => null);
      if (!found) problems.push(`${view}: the search finds nothing`);
    }
    await context.close();
    console.log(`looked at ${view}`);
  }
}
await browser.close();
server.close();
problems.forEach((problem) => console.error(problem));
process.exit(problems.length ? 1 : 0);
