// What the tests share: servers, browsers, and the count of what passed.
import { execFileSync, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { cpSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startProxy } from "../dev-proxy.mjs";

const require = createRequire(join(process.env.NODE_MODULES, "x"));
export const { chromium } = require("playwright-core");
export const axeSource = require("axe-core").source;

export const repository = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const work = process.env.WORK;

let passed = 0;
let failed = 0;

/** Runs a test; a test that throws has failed. */
export async function test(name, body) {
  try {
    const skipped = await body();
    if (skipped === "skipped") return console.log(`SKIPPED ${name}`);
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}`);
    console.log(String(error.message ?? error).split("\n").slice(0, 12).map((line) => `        ${line}`).join("\n"));
  }
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  return failed ? 1 : 0;
}

export function check(condition, message) {
  if (!condition) throw new Error(message);
}

export function equal(actual, expected, what = "value") {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) throw new Error(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}

/** Waits until a condition is true. */
export async function until(condition, what, milliseconds = 8000) {
  const end = Date.now() + milliseconds;
  while (Date.now() < end) {
    if (await condition()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`not within ${milliseconds} ms: ${what}`);
}

const closing = [];
export async function closeAll() {
  for (const close of closing.reverse()) await close();
}

// The line of the log with the address that the console got.
const CONSOLE = /console[^\n]*?(127\.0\.0\.1:[1-9]\d*)/;

let servers = 0;

/** Starts `entail serve` on a folder of manifests, and a console before it. */
export async function serve(binary, manifests, { proxy = false, token = "", deny = false, extra = [] } = {}) {
  const socket = join(work, `${(servers += 1)}.sock`);
  const hasConsole = !proxy && execFileSync(binary, ["serve", "--help"], { encoding: "utf8" }).includes("--console-listen");
  const args = ["serve", "--manifests", manifests, "--listen", `unix:${socket}`, ...extra];
  if (hasConsole) args.push("--console-listen", "127.0.0.1:0");
  let server;
  const state = { origin: "", pid: 0 };
  const start = async () => {
    const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
    server = child;
    state.pid = child.pid;
    let log = "";
    child.stdout.on("data", (chunk) => (log += chunk));
    child.stderr.on("data", (chunk) => (log += chunk));
    await until(() => {
      if (child.exitCode !== null) throw new Error(`the server ended: ${log.slice(-600)}`);
      return / ready/.test(log) && (!hasConsole || CONSOLE.test(log));
    }, "the server is ready", 60_000);
    if (hasConsole) state.origin = `http://${CONSOLE.exec(log)[1]}`;
  };
  const stop = () =>
    new Promise((done) => {
      if (!server || server.exitCode !== null) return done();
      const child = server;
      child.on("exit", done);
      child.kill("SIGTERM");
      setTimeout(() => child.kill("SIGKILL"), 3000).unref();
    });
  await start();
  if (!hasConsole) {
    const running = await startProxy({ listen: "127.0.0.1:0", upstream: `unix:${socket}`, dist: join(repository, "console/dist"), token, deny });
    state.origin = running.origin;
    closing.push(running.close);
  }
  closing.push(stop);
  return { ...state, get pid() { return state.pid; }, hasConsole, stop, start };
}

/** A copy of examples/bakery that a test may change. */
export function bakery(name) {
  const folder = join(work, name);
  mkdirSync(folder, { recursive: true });
  cpSync(join(repository, "examples/bakery"), folder, { recursive: true });
  return folder;
}

export async function launch(args = []) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage", ...args] });
  closing.push(() => browser.close());
  return browser;
}

/** Requests to other origins, violations of the policy for content, and errors of pages, over all pages. */
export const foreign = [];
export const complaints = [];

/** A page that records what must not happen. */
export async function open(browser, origin, hash = "", { width = 1280, height = 860, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) foreign.push(url);
  });
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.setDefaultTimeout(8000);
  await page.goto(`${origin}/${hash}`);
  return page;
}

export const text = async (locator) => (await locator.innerText()).replace(/\s+/g, " ").trim();
