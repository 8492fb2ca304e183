// Checks the built page in Chromium. Usage: node browser.mjs FOLDER (playwright-core is found by NODE_PATH)
// CHROMIUM: the browser, if it is not /usr/bin/chromium. SCREENSHOTS: a folder for pictures.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const [folder] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml" };
// Below a folder, as in a documentation site.
const BELOW = "/docs/v1/playground/";
const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://host").pathname));
  let file = path.startsWith(BELOW) ? join(folder, path.slice(BELOW.length)) : "";
  if (file && existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
  if (!file || !existsSync(file)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(response);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;
const address = origin + BELOW;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let [passed, failed] = [0, 0];
const requests = [];
const complaints = [];

/** A page with a profile of its own. */
async function open(url = address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => complaints.push(message.text()));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  return page;
}
const settled = (page, text = /\d+( or more)? paths?, \d+ ms/) =>
  page.waitForFunction((source) => new RegExp(source).test(document.getElementById("state").textContent), text.source);
/** Sets a text as typing does, and waits for the answer to it. */
async function enter(page, id, text) {
  await page.evaluate(() => (document.getElementById("state").textContent = ""));
  await page.fill(id, text);
  await settled(page);
}
async function expect(what, condition) {
  if (!condition) throw new Error(what);
}
async function check(name, test) {
  complaints.length = 0;
  try {
    await test();
    if (complaints.length > 0) throw new Error(`the browser says: ${complaints.join("; ")}`);
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n        ${String(error.message ?? error).split("\n").slice(0, 8).join("\n        ")}`);
  }
  for (const context of browser.contexts()) await context.close();
}
const KINDS = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: c}
spec: {controllerName: example.com/c}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: n}
spec: {gatewayClassName: c, listeners: [{name: l, port: 80, protocol: HTTP}]}
`;
const policy = (name, value) => `---
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: ps.example.com}
spec: {policy: {group: example.com, kind: P}, strategies: [PatchDefaults], effectiveTarget: Listener}
---
apiVersion: example.com/v1
kind: P
metadata: {name: ${JSON.stringify(name)}, namespace: n}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]
  value: ${JSON.stringify(value)}
`;

await check("the bakery shows the origin of a value", async () => {
  const page = await open();
  await settled(page);
  await enter(page, "#name", "httproute/shop/shop#browse");
  const rows = await page.locator(".row").allTextContents();
  await expect(`no origin of client.request in ${rows}`, rows.some((row) => /client\.request: 10s\s*platform\/nobody-waits\s*override/.test(row)));
  await expect("not two paths", (await page.locator(".paths").count()) === 2);
  const names = await page.locator("#names option").evaluateAll((options) => options.map((option) => option.value));
  for (const name of ["httproute/baker/bread", "gateway/platform/storefront", "service/baker/loaves"]) {
    await expect(`${name} is not suggested`, names.includes(name));
  }
});

await check("equal answers of several paths are shown once", async () => {
  const page = await open();
  await settled(page);
  await enter(page, "#name", "httproute/baker/cakes");
  await expect("not one answer", (await page.locator(".paths").count()) === 1);
  await expect("not two paths", (await page.locator(".paths li").count()) === 2);
});

await check("every example has an answer without problems", async () => {
  const page = await open();
  await settled(page);
  const count = await page.locator("#example option").count();
  await expect("fewer than 4 examples", count === 5);
  for (let at = 0; at < count - 1; at += 1) {
    await page.evaluate(() => (document.getElementById("state").textContent = ""));
    await page.selectOption("#example", String(at));
    await settled(page);
    await expect(`example ${at}: problems`, (await page.locator("#problems *").count()) === 0);
    await expect(`example ${at}: no origin`, (await page.locator(".from strong").count()) > 1);
    await expect(`example ${at}: an origin is not named`, (await page.getByText("origin not named").count()) === 0);
  }
});

await check("a problem shows its line and keeps the last answer greyed", async () => {
  const page = await open();
  await page.selectOption("#example", "1");
  await settled(page);
  const before = await page.textContent("#answer");
  const text = await page.inputValue("#manifests");
  const lines = text.split("\n");
  const line = lines.findIndex((content) => content.includes("color: red")) + 1;
  lines[line - 1] = "  color: [red";
  await enter(page, "#manifests", lines.join("\n"));
  const problem = page.locator("#problems button.problem");
  const shown = await problem.textContent();
  await expect(`the problem is ${shown}`, shown.startsWith(`Line ${line}:`));
  await expect("the line is not marked", (await page.textContent("#lines .bad")) === String(line));
  await expect("the answer is not greyed", await page.locator("#answer.old").isVisible());
  await expect("the answer is another one", (await page.textContent("#answer")) === before);
  await problem.click();
  const selected = await page.$eval("#manifests", (area) => area.value.slice(area.selectionStart, area.selectionEnd));
  await expect(`selected: ${selected}`, selected === "  color: [red");
  const visible = await page.$eval("#manifests", (area) => area.scrollTop > 0);
  await expect("the line is not scrolled to", visible);
  await page.getByText("Show the answer without").click();
  await expect("the partial answer is greyed", !(await page.locator("#answer.old").count()));
  await expect("the partial answer has no warning", (await page.textContent("#problems")).includes("policies may be missing"));
  await enter(page, "#manifests", text);
  await expect("the problem stays", (await page.locator("#problems *").count()) === 0);
  await expect("the answer is not back", (await page.textContent("#answer")) === before);
});

await check("what is not known is loud, and rejected policies are named", async () => {
  const page = await open();
  await settled(page);
  await enter(page, "#manifests", KINDS + policy("p", 1).replace(/---\napiVersion: entail[^]*?(?=---\napiVersion: example)/, ""));
  await enter(page, "#name", "gateway/n/g");
  const text = await page.textContent("#answer");
  await expect(`shown: ${text}`, text.includes("Not known:") && text.includes("n/p") && !text.includes("No policy is"));
  const twice = KINDS + policy("p", 1).replace("strategies:", "sameTarget: RejectNewer, strategies:") + `---${policy("q", 2).split("---")[2]}`;
  await enter(page, "#manifests", twice);
  const rejected = await page.textContent("#answer .notice.warn");
  await expect(`rejected: ${rejected}`, rejected.includes("n/q (Conflicted)"));
});

await check("while an answer is computed, the old one does not pass for it", async () => {
  const page = await open();
  await settled(page);
  await page.fill("#name", "httproute/baker/bread");
  const waits = await page.locator("#answer.waiting").count();
  await page.waitForFunction(() => !document.querySelector("#answer.waiting"));
  const text = await page.textContent("#answer");
  await expect(`waits: ${waits}, ${text.slice(0, 80)}`, waits === 1 && text.includes("/bread/") && !text.includes("/shop/"));
});

await check("an object that is on no path is not an answer", async () => {
  const page = await open();
  await settled(page);
  await enter(page, "#name", "httproute/shop/nope");
  await expect("no warning", (await page.textContent("#answer .notice.warn")).includes("No path has this name"));
});

await check("a shared address opens with the same content in a fresh profile", async () => {
  const page = await open();
  await settled(page);
  await enter(page, "#manifests", `# ünïcode ${KINDS}`.replace("# ünïcode ", "# ünïcode\n") + policy("p", "ж"));
  await enter(page, "#name", "gateway/n/g");
  await page.click("#share");
  await page.waitForFunction(() => location.hash.startsWith("#v1."));
  const [url, manifests, answer] = [page.url(), await page.inputValue("#manifests"), await page.textContent("#answer")];
  const other = await open(url);
  await settled(other);
  await expect("other manifests", (await other.inputValue("#manifests")) === manifests);
  await expect("another question", (await other.inputValue("#name")) === "gateway/n/g");
  await expect("another answer", (await other.textContent("#answer")) === answer);
  await expect("the fragment was sent", !requests.some((request) => request.includes("v1.") && !request.startsWith(`${address}#`)));
});

await check("an address that would be too long, and a damaged one, are explained", async () => {
  const page = await open();
  await settled(page);
  let noise = "#";
  for (let at = 0, seed = 1; at < 60_000; at += 1) {
    seed = (seed * 48271) % 2147483647;
    noise += String.fromCharCode(33 + (seed % 90));
  }
  await enter(page, "#manifests", noise);
  await page.click("#share");
  await page.waitForFunction(() => document.getElementById("shared").textContent.includes("at most 32 KB"));
  await expect("there is a fragment", !page.url().includes("#v1."));
  const damaged = await open(`${address}#v1.AAAA`);
  await settled(damaged);
  await expect("no explanation", (await damaged.textContent("#shared")).includes("damaged"));
});

await check("hostile names are harmless", async () => {
  const page = await open();
  await settled(page);
  const names = ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "abc\u202etxt.exe", "\u05d0\u05d1\u05d2", "javascript:alert(3)"];
  await enter(page, "#name", "");
  for (const name of names) {
    await enter(page, "#manifests", KINDS.replaceAll("name: g,", `name: ${JSON.stringify(name)},`) + policy(name, name).replace("kind: Gateway, name: g}", `kind: Gateway, name: ${JSON.stringify(name)}}`));
    await page.fill("#name", name);
    await page.waitForTimeout(400);
    await enter(page, "#name", "");
    const injected = await page.locator("#answer script, #answer img, #problems script, #problems img, #names script, body > script:not([src])").count();
    await expect(`elements of ${name}`, injected === 0);
    const text = await page.textContent("#app");
    await expect(`${name} changes the direction`, !/[\u202a-\u202e\u2066-\u2069]/.test(text.replace(await page.inputValue("#manifests"), "")));
    const loose = await page.locator("#answer .from strong").evaluateAll((all) => all.some((one) => one.textContent.includes("\u05d0") && !one.querySelector("bdi")));
    await expect(`${name} is not isolated`, !loose);
  }
});

await check("the policy of the page stops scripts and requests to elsewhere", async () => {
  const page = await open();
  await settled(page);
  // The requests of this test are its own, not those of the page.
  const before = requests.length;
  const stopped = await page.evaluate(async () => {
    const violations = [];
    document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
    const script = document.createElement("script");
    script.textContent = "window.injected = true";
    document.body.append(script);
    const image = document.createElement("img");
    image.src = "http://127.0.0.1:9/x.png";
    document.body.append(image);
    const fetched = await fetch("http://127.0.0.1:9/x").then(() => "sent", () => "stopped");
    // Not by a call of eval(): what the debugger runs may call it.
    setTimeout("window.evaluated = true", 0);
    await new Promise((resolve) => setTimeout(resolve, 200));
    return { fetched, evaluated: window.evaluated === true, injected: window.injected === true, violations };
  });
  complaints.length = 0;
  requests.length = before;
  await expect(JSON.stringify(stopped), stopped.fetched === "stopped" && !stopped.evaluated && !stopped.injected);
  for (const directive of ["script-src-elem", "img-src", "connect-src", "script-src"]) {
    await expect(`no violation of ${directive}: ${stopped.violations}`, stopped.violations.includes(directive));
  }
});

await check("the page can be used by keyboard", async () => {
  const page = await open();
  await settled(page);
  const stops = [];
  for (let at = 0; at < 4; at += 1) {
    await page.keyboard.press("Tab");
    stops.push(await page.evaluate(() => document.activeElement.id));
  }
  await expect(`stops: ${stops}`, stops.join() === "example,share,manifests,name");
  await page.keyboard.press("Control+A");
  await page.evaluate(() => (document.getElementById("state").textContent = ""));
  await page.keyboard.type("service/baker/cakes");
  await page.keyboard.press("Enter");
  await settled(page);
  await expect("another answer", (await page.textContent("#answer")).includes("Service/baker/cakes"));
  const unnamed = await page.$$eval("select, input, textarea, button", (all) => all.filter((one) => !(one.labels?.length || one.textContent.trim())).map((one) => one.id));
  await expect(`without a label: ${unnamed}`, unnamed.length === 0);
});

await check("a question that takes too long is ended, and the page goes on", async () => {
  const page = await open();
  await settled(page);
  // A worker that never answers.
  await page.route("**/worker.js*", (route) => route.fulfill({ contentType: "text/javascript", body: "onmessage = () => { for (;;); }" }));
  await page.clock.install();
  await page.reload();
  await page.waitForTimeout(500);
  await page.clock.runFor(1_000);
  await page.waitForTimeout(500);
  await page.clock.runFor(11_000);
  await page.waitForFunction(() => document.getElementById("problems").textContent.includes("no answer after 10 s"), null, { polling: 100 });
  await page.unroute("**/worker.js*");
  await page.fill("#name", "httproute/baker/bread");
  await page.clock.runFor(1_000);
  await page.waitForFunction(() => document.getElementById("answer").textContent.includes("HTTPRoute/baker/bread"), null, { polling: 100 });
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [390, 1280]) {
    await check(`${width} px, ${colorScheme}: no horizontal scrolling, legible`, async () => {
      const page = await open(address, { viewport: { width, height: 844 }, colorScheme });
      await settled(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      await expect(`${wide} px too wide`, wide <= 0);
      const weak = await page.evaluate(() => {
        const channels = (color) => color.match(/[\d.]+/g).map(Number);
        const luminance = (color) => {
          const [r, g, b] = channels(color).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const background = (one) => {
          for (let at = one; at; at = at.parentElement) {
            const color = getComputedStyle(at).backgroundColor;
            if ((channels(color)[3] ?? 1) > 0) return color;
          }
          return "rgb(255, 255, 255)";
        };
        const found = new Set();
        for (const one of document.querySelectorAll("body *")) {
          if (![...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) || !one.checkVisibility()) continue;
          const [a, b] = [luminance(getComputedStyle(one).color), luminance(background(one))];
          const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (contrast < 4.5) found.add(`${one.tagName} ${one.className} ${contrast.toFixed(1)}`);
        }
        return [...found];
      });
      await expect(`weak contrast: ${weak}`, weak.length === 0);
      if (process.env.SCREENSHOTS) {
        await enter(page, "#name", "httproute/shop/shop#browse");
        await page.screenshot({ path: join(process.env.SCREENSHOTS, `${width}-${colorScheme}.png`) });
      }
    });
  }
}

await check("opened from a file, the page says that it needs http", async () => {
  const page = await open(pathToFileURL(join(folder, "index.html")).href);
  await expect("no message", await page.getByText("It needs JavaScript and WebAssembly").isVisible());
  await expect("the form is shown", !(await page.locator("#app").isVisible()));
  complaints.length = 0;
  for (let at = requests.length - 1; at >= 0; at -= 1) if (requests[at].startsWith("file:")) requests.splice(at, 1);
});

await check("nothing was requested from elsewhere, or outside of the folder", async () => {
  const elsewhere = [...new Set(requests.filter((request) => !request.startsWith(address)))];
  await expect(elsewhere.join(", "), elsewhere.length === 0);
  await expect("no request at all", requests.length > 20);
});

await browser.close();
server.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
