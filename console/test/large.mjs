// A world of 20 000 routes: how long the first paint and answers take, and how much memory a tab holds.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { check, launch, open, serve, test, text, until, work } from "./harness.mjs";

const GATEWAYS = 40;
const ROUTES = 20_000;

/** Writes the manifests: each Gateway has 2 listeners and 500 routes, each route 2 rules; every tenth route has policies. */
function world(folder) {
  mkdirSync(folder, { recursive: true });
  const group = "policies.large.example";
  const write = (name, documents) => writeFileSync(join(folder, name), documents.map((one) => JSON.stringify(one)).join("\n---\n"));
  const profile = (kind, effectiveTarget, targets) => ({
    apiVersion: "entail.dev/v1alpha1",
    kind: "PolicyProfile",
    metadata: { name: `${kind.toLowerCase().replace("policy", "policies")}.${group}` },
    spec: { policy: { group, kind }, targets, effectiveTarget, strategies: ["PatchDefaults", "PatchOverrides"] },
  });
  const gatewayGroup = "gateway.networking.k8s.io";
  const targets = [{ group: gatewayGroup, kind: "Gateway" }, { group: gatewayGroup, kind: "HTTPRoute" }];
  write("profiles.yaml", [profile("TimeoutPolicy", "RouteRule", targets), profile("AuthPolicy", "RouteRule", targets), profile("RetryPolicy", "Backend", [...targets, { group: "", kind: "Service" }])]);
  write("crds.yaml", ["TimeoutPolicy", "AuthPolicy", "RetryPolicy"].map((kind) => ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${kind.toLowerCase().replace("policy", "policies")}.${group}` },
    spec: { group, scope: "Namespaced", names: { kind, plural: kind.toLowerCase().replace("policy", "policies") }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } }] },
  })));
  const policy = (kind, namespace, name, target, spec) => ({ apiVersion: `${group}/v1`, kind, metadata: { namespace, name, creationTimestamp: "2026-01-01T00:00:00Z" }, spec: { targetRefs: [target], ...spec } });
  const gateways = [{ apiVersion: `${gatewayGroup}/v1`, kind: "GatewayClass", metadata: { name: "large" }, spec: { controllerName: "large.example/gateway" } }];
  const policies = [];
  for (let at = 0; at < GATEWAYS; at += 1) {
    gateways.push({
      apiVersion: `${gatewayGroup}/v1`,
      kind: "Gateway",
      metadata: { namespace: "edge", name: `gateway-${at}` },
      spec: { gatewayClassName: "large", listeners: [80, 443].map((port) => ({ name: port === 80 ? "http" : "https", port, protocol: "HTTP", allowedRoutes: { namespaces: { from: "All" } } })) },
    });
    const target = { group: gatewayGroup, kind: "Gateway", name: `gateway-${at}` };
    policies.push(policy("TimeoutPolicy", "edge", `ceiling-${at}`, target, { overrides: { request: "30s" } }));
    policies.push(policy("AuthPolicy", "edge", `door-${at}`, target, { defaults: { anonymous: true } }));
  }
  for (let at = 0; at < ROUTES; at += 1) {
    const namespace = `team-${at % 200}`;
    const name = `route-${at}`;
    if (at < 200) policies.push({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    const service = `service-${at}`;
    gateways.push({ apiVersion: "v1", kind: "Service", metadata: { namespace, name: service }, spec: { ports: [{ port: 8080 }] } });
    gateways.push({
      apiVersion: `${gatewayGroup}/v1`,
      kind: "HTTPRoute",
      metadata: { namespace, name },
      spec: {
        parentRefs: [{ namespace: "edge", name: `gateway-${at % GATEWAYS}`, sectionName: at % 2 ? "https" : "http" }],
        hostnames: [`${name}.large.example`],
        rules: [
          { name: "browse", backendRefs: [{ name: service, port: 8080 }] },
          { name: "order", matches: [{ path: { type: "PathPrefix", value: "/order" }, method: "POST" }], backendRefs: [{ name: service, port: 8080 }] },
        ],
      },
    });
    const target = { group: gatewayGroup, kind: "HTTPRoute", name };
    if (at % 10 === 0) policies.push(policy("TimeoutPolicy", namespace, `patient-${at}`, target, { defaults: { request: "60s", idle: "5m" } }));
    if (at % 10 === 1) policies.push(policy("RetryPolicy", namespace, `again-${at}`, target, { defaults: { attempts: 3 } }));
  }
  const step = 5000;
  for (let at = 0; at < gateways.length; at += step) write(`objects-${at}.yaml`, gateways.slice(at, at + step));
  write("policies.yaml", policies);
}

/** Milliseconds that the server took for the last call of a method. */
const took = (page, method) => page.evaluate((name) => Math.round(performance.getEntriesByType("resource").filter((one) => one.name.endsWith(`/${name}`)).pop()?.duration ?? 0), method);

const now = (page) => page.evaluate(() => performance.now());

/** Milliseconds from an action until something is on the page. */
async function timed(page, action, shown) {
  const began = await now(page);
  await action();
  await page.waitForFunction(shown, undefined, { polling: "raf" });
  return Math.round((await now(page)) - began);
}

export async function run(binary) {
  const folder = join(work, "large");
  world(folder);
  const server = await serve(binary, folder);
  const browser = await launch(["--enable-precise-memory-info", "--js-flags=--expose-gc"]);
  const page = await open(browser, server.origin, "#/topology?view=graph");
  const report = (what, value, bound, unit) =>
    test(`${what}: ${value} ${unit} (at most ${bound})`, () => check(value <= bound, `${value} ${unit}`));

  const paint = await page.evaluate(() => new Promise((done) => new PerformanceObserver((list) => done(Math.round(list.getEntries()[0].startTime))).observe({ type: "paint", buffered: true })));
  await report("first paint", paint, 1000, "ms");
  const route = await open(browser, server.origin, "#/route/httproute/team-77/route-4077");
  await route.locator("article.answer").first().waitFor();
  await report("a route's page, opened by its address while names are still read", Math.round(await now(route)), 2000, "ms");
  await route.context().close();
  await page.waitForFunction(() => document.querySelector(".graph-node"), undefined, { timeout: 60_000 });
  console.log(`        all names are read after ${Math.round(await now(page))} ms; ${await text(page.locator(".summary"))}`);
  await page.waitForTimeout(500);

  const search = page.getByRole("combobox", { name: /Search/ });
  await report("a search", await timed(page, () => search.fill("route-17077"), () => document.querySelector("[role=option] .title")?.textContent.includes("route-17077")), 200, "ms");
  await report("a search with many matches", await timed(page, () => search.fill("team"), () => document.querySelector("[role=option] .title")?.textContent.includes("team-")), 200, "ms");
  await search.fill("");
  const to = (hash) => () => page.evaluate((target) => (window.location.hash = target), hash);
  await report("a route's page", await timed(page, to("#/route/HTTPRoute/team-77/route-17077"), () => document.querySelector("h1")?.textContent.includes("route-17077") && document.querySelector("article.answer")), 200, "ms");
  await report("the first trace, for which the server prepares its listeners", await timed(page, to("#/trace?host=route-1.large.example"), () => document.querySelector(".resolved")), 1000, "ms");
  await to("#/server")();
  await report("a trace", await timed(page, to("#/trace?host=route-13370.large.example&path=/order&method=POST"), () => document.querySelector(".resolved")), 200, "ms");
  await report("the page of a policy", await timed(page, to("#/policy/TimeoutPolicy.policies.large.example/edge/ceiling-7"), () => document.querySelector("table.list")), 200, "ms");
  console.log(`        of which the calls took: Explain ${await took(page, "Explain")} ms, ResolveRequest ${await took(page, "ResolveRequest")} ms, ListAffected ${await took(page, "ListAffected")} ms`);
  await report("the list of policies", await timed(page, to("#/policies"), () => document.querySelector("table.list")), 200, "ms");
  await report("the topology around a route", await timed(page, to("#/topology?view=graph&focus=HTTPRoute/team-77/route-17077"), () => document.querySelectorAll(".graph-node").length > 3), 200, "ms");
  await report("the topology", await timed(page, to("#/topology?view=graph"), () => document.querySelectorAll(".graph-node").length > 30), 500, "ms");
  console.log(`        it draws ${await page.locator(".graph-node").count()} nodes`);
  await report("the topology of a namespace", await timed(page, to("#/topology?view=graph&ns=team-5"), () => document.querySelectorAll(".graph-node").length > 3), 500, "ms");
  await report("the page of a Gateway with 500 routes", await timed(page, to("#/object/Gateway/edge/gateway-7"), () => document.querySelector("article.answer")), 500, "ms");
  await to("#/route/HTTPRoute/team-77/route-17077")();
  await test("the stream follows the paths of a route's page", () => until(async () => (await text(page.locator("#connection"))) === "Live", "it is live"));

  await to("#/findings")();
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Findings" && !document.querySelector(".loading"), undefined, { timeout: 30_000 });
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { JSHeapUsedSize } = Object.fromEntries((await session.send("Performance.enable"), await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  await report("memory of scripts", Math.round(JSHeapUsedSize / 2 ** 20), 300, "MiB");
  const { processInfo } = await (await browser.newBrowserCDPSession()).send("SystemInfo.getProcessInfo");
  const sizes = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, "utf8"))[1]));
  await report("memory of the tab's process", Math.round(Math.max(...sizes) / 1024), 300, "MiB");
  await page.context().close();
}
