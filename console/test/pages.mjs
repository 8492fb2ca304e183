// Each page in a browser, against a server with examples/bakery.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { axeSource, bakery, check, complaints, equal, foreign, launch, open, repository, serve, test, text, until, work } from "./harness.mjs";

const ASSERTION = `apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: retries-are-bounded}
spec:
  description: Retries must not pile up.
  policies: {retry: RetryPolicy}
  expect: {cel: "!has(retry.attempts) || retry.attempts <= 3"}
  except:
  - {object: httproute/baker/bread, reason: the oven is slow, expires: 2099-03-31}
`;

const LONG = "x".repeat(240);
const HOSTILE = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: hostile, namespace: shop}
spec:
  parentRefs: [{name: storefront, namespace: platform, sectionName: https}]
  hostnames: [hostile.bakery.example]
  rules:
  - name: "<img src=x onerror=window.pwned=1>"
    matches: [{path: {type: PathPrefix, value: "/<img src=x onerror=window.pwned=2>"}}]
    backendRefs: [{name: till, port: 8080}]
  - name: "safe\\u202Eelif"
    matches: [{path: {type: PathPrefix, value: /rtl}}]
    backendRefs: [{name: till, port: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: "${LONG}", namespace: shop}
spec:
  parentRefs: [{name: storefront, namespace: platform, sectionName: https}]
  hostnames: [long.bakery.example]
  rules:
  - backendRefs: [{name: till, port: 8080}]
---
apiVersion: policies.bakery.example/v1
kind: TimeoutPolicy
metadata: {name: "<b>bold\\u202e", namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: hostile}]
  defaults:
    client:
      idle: "<script>window.pwned=3</script>\\u2067\\u0000"
`;

const ROUTE = "#/route/HTTPRoute/shop/shop";
const PAGES = {
  topology: "#/topology?view=graph",
  "topology as a list": "#/topology?view=list",
  route: ROUTE,
  rule: `${ROUTE}/checkout`,
  path: "#/path/gateways/platform/storefront/listeners/https/routes/HTTPRoute/shop/shop/rules/browse",
  compare: "#/compare?a=HTTPRoute/shop/shop%23browse&b=HTTPRoute/shop/shop%23checkout",
  policies: "#/policies",
  policy: "#/policy/RetryPolicy.policies.bakery.example/baker/be-patient",
  trace: "#/trace?host=shop.bakery.example&path=/checkout&method=POST",
  "trace without a rule": "#/trace?host=bread.bakery.example&path=/nowhere&method=POST",
  preview: "#/preview?delete=RetryPolicy.policies.bakery.example/baker/be-patient",
  findings: "#/findings",
  code: "#/code/E021",
  assertions: "#/assertions",
  changes: "#/changes",
  server: "#/server",
};

/** Waits until the page shows an answer. */
async function ready(page) {
  await page.locator("h1").waitFor();
  await page.waitForFunction(() => !document.querySelector(".loading") && document.querySelector("#connection")?.textContent !== "Connecting");
}

/** Follows the links of pages from the topology; fails at one without an answer. */
export async function crawl(page, most) {
  const queue = ["#/topology?view=graph", "#/policies", "#/findings", "#/server", "#/assertions"];
  const known = new Set(queue);
  const bad = [];
  for (let at = 0; at < queue.length && at < most; at += 1) {
    await page.evaluate((to) => (window.location.hash = to), queue[at]);
    await page.waitForTimeout(30);
    await ready(page);
    const { links, failures, shown } = await page.evaluate(() => ({
      links: [...document.querySelectorAll('main a[href^="#/"]')].map((link) => link.getAttribute("href")),
      failures: [...document.querySelectorAll("main > .note.error > .note-title")].map((note) => note.parentElement.textContent).filter((note) => !/in the inputs/.test(note)),
      shown: document.querySelector("main").innerText,
    }));
    bad.push(...failures.map((failure) => `${queue[at]}: ${failure}`));
    if (/undefined|\[object |NaN/.test(shown)) bad.push(`${queue[at]}: ${/.{0,30}(undefined|\[object |NaN).{0,30}/.exec(shown)[0]}`);
    for (const link of links)
      if (!known.has(link)) {
        known.add(link);
        queue.push(link);
      }
  }
  equal(bad, [], "failures");
  return queue.slice(0, most);
}

export async function run(subject) {
  const isOrigin = /^https?:/.test(subject);
  const browser = await launch();
  let folder = "";
  let server;
  if (!isOrigin) {
    folder = bakery("bakery");
    writeFileSync(join(folder, "assertions.yaml"), ASSERTION);
    server = await serve(subject, folder);
    console.log(server.hasConsole ? "the server serves the console" : "the server is behind console/dev-proxy.mjs");
  }
  const origin = isOrigin ? subject.replace(/\/$/, "") : server.origin;
  const go = (hash, options) => open(browser, origin, hash, options);

  await test("the page is served with its policy for content, compressed, with an etag", async () => {
    const answer = await fetch(`${origin}/`);
    equal(answer.status, 200, "status");
    const policy = answer.headers.get("content-security-policy") ?? "";
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"])
      check(policy.includes(part), `the policy lacks ${part}: ${policy}`);
    check(!policy.includes("unsafe"), policy);
    const script = await fetch(`${origin}/assets/app.js`, { headers: { "accept-encoding": "gzip" } });
    equal(script.headers.get("content-encoding"), "gzip", "encoding");
    const etag = script.headers.get("etag");
    check(etag, "there is no etag");
    await script.arrayBuffer();
    equal((await fetch(`${origin}/assets/app.js`, { headers: { "accept-encoding": "gzip", "if-none-match": etag } })).status, 304, "status with the etag");
    equal((await fetch(`${origin}/assets/nothing.js`)).status, 404, "status of a file that does not exist");
    const html = await (await fetch(`${origin}/`)).text();
    check(!/<script(?![^>]*src=)|<style|style=|\son[a-z]+=/.test(html), "the page has inline script or style");
  });

  await test("the search finds objects and policies; `/` moves the focus there", async () => {
    const page = await go("");
    await ready(page);
    await page.keyboard.press("/");
    equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "combobox", "focus");
    await page.keyboard.type("bread");
    const first = page.getByRole("option").first();
    check((await text(first)).includes("HTTPRoute baker/bread"), await text(first));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "baker/bread" }).waitFor();
    check(page.url().endsWith("#/route/HTTPRoute/baker/bread"), page.url());
    await page.keyboard.press("/");
    await page.keyboard.type("retry patient");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "baker/be-patient" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "baker/bread" }).waitFor();
    await page.context().close();
  });

  await test("the search takes a host and path to the tracer", async () => {
    const page = await go("");
    await page.getByRole("combobox", { name: /Search/ }).fill("https://cakes.bakery.example/today");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Trace a request" }).waitFor();
    equal(await page.locator("input[name=host]").inputValue(), "cakes.bakery.example", "host");
    equal(await page.locator("input[name=path]").inputValue(), "/today", "path");
    await page.getByText("baker/cakes").first().waitFor();
    await page.context().close();
  });

  await test("the topology draws all nodes, and the keyboard walks them", async () => {
    const page = await go(PAGES.topology);
    await page.locator(".graph-node").first().waitFor();
    equal(await page.locator(".graph-node").count(), 23, "nodes");
    check((await text(page.locator(".summary"))).includes("2 Gateways 4 listeners 4 routes 8 rules 5 backends 15 policies"), await text(page.locator(".summary")));
    const gateway = page.getByRole("button", { name: /^Gateway platform\/storefront/ });
    await gateway.focus();
    await page.keyboard.press("ArrowRight");
    check(/^Listener https?$/.test(await page.evaluate(() => document.activeElement.textContent)), "the arrow key does not lead to a listener");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    equal(await gateway.getAttribute("aria-pressed"), "true", "selected");
    check((await text(page.locator(".graph-detail"))).includes("platform/nobody-waits TimeoutPolicy"), "the policies of the node are not listed");
    await page.getByRole("button", { name: "Collapse" }).click();
    await until(async () => (await page.locator(".graph-node").count()) < 23, "the node is collapsed");
    check(/\d+ routes?/.test(await text(gateway)), "the collapsed node has no counts");
    await page.getByRole("button", { name: "Expand" }).click();
    await until(async () => (await page.locator(".graph-node").count()) === 23, "the node is expanded");
    await page.keyboard.press("Tab");
    await page.context().close();
  });

  await test("the topology can be filtered and focused", async () => {
    const page = await go(PAGES.topology);
    await page.getByRole("combobox", { name: "Namespace" }).selectOption("kitchen");
    await until(async () => (await page.locator(".graph-node").count()) === 6, "the nodes of one namespace with those above");
    await page.getByRole("button", { name: "clear" }).click();
    await page.getByLabel("With policies of").selectOption("CachePolicy.policies.bakery.example");
    await until(async () => (await page.locator(".graph-node.matches").count()) === 4, "the nodes with a kind of policy");
    await page.evaluate(() => (window.location.hash = "#/topology?view=graph&focus=httproute/baker/bread"));
    await until(async () => (await page.locator(".graph-node").count()) === 6, "the nodes around a route");
    await page.context().close();
  });

  await test("the list of the topology is a tree for the keyboard", async () => {
    const page = await go(PAGES["topology as a list"]);
    await page.getByRole("treeitem").first().waitFor();
    const first = page.getByRole("treeitem").first();
    equal(await first.getAttribute("aria-expanded"), "true", "expanded");
    await first.focus();
    const before = await page.getByRole("treeitem").count();
    await page.keyboard.press("ArrowLeft");
    await until(async () => (await page.getByRole("treeitem").count()) < before, "ArrowLeft closes");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    await until(async () => /Listener/.test(await page.evaluate(() => document.activeElement.textContent)), "ArrowDown goes to a listener");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "platform/backdoor#http" }).waitFor();
    await page.context().close();
  });

  await test("a rule's page names each value with its origin and what it overrides", async () => {
    const page = await go(`${ROUTE}/browse?kind=TimeoutPolicy.policies.bakery.example`);
    const card = page.locator("article.answer").filter({ hasText: "platform/storefront" });
    await card.waitFor();
    const row = card.getByRole("row").filter({ hasText: "client.request" });
    equal(await text(row), "client.request 10s platform/nobody-waits overrides, PatchOverrides overrides shop/take-your-time: 60s less specific override", "row");
    const stack = await text(card.locator(".stack"));
    for (const part of ["Gateway platform/storefront", "platform/nobody-waits", "Listener platform/storefront#https", "Route HTTPRoute shop/shop", "shop/take-your-time", "Rule shop/shop#browse"])
      check(stack.includes(part), `the stack lacks ${part}: ${stack}`);
    await card.getByRole("link", { name: "less specific override" }).click();
    await page.getByRole("heading", { name: /^E072 LessSpecificOverride/ }).waitFor();
    await page.goBack();
    await card.waitFor();
    await page.context().close();
  });

  await test("a route's page has all kinds, and says of which there is no policy", async () => {
    const page = await go("#/route/grpcroute/kitchen/ovens");
    await page.getByText("No policy of").waitFor();
    check((await text(page.locator("main"))).includes("No policy of CachePolicy.policies.bakery.example"), "the kind without a policy is not named");
    equal(await page.locator(".kind-section").count(), 3, "kinds");
    await page.context().close();
  });

  await test("a name that does not exist is an error with the nearest one", async () => {
    const page = await go("#/path/gateways/platform/storefront/listeners/https/routes/HTTPRoute/baker/bread/rules/nope");
    await page.getByText("Not found (RuleNotFound)").waitFor();
    check((await text(page.locator(".note.error"))).includes("The nearest path that exists: gateway platform/storefront › listener https › route baker/bread"), "the nearest path is missing");
    await page.context().close();
  });

  await test("two rules are compared", async () => {
    const page = await go(PAGES.compare);
    await page.getByText("1 of 4 kinds differ").waitFor();
    const row = page.getByRole("row").filter({ hasText: "attempts" });
    equal(await text(row), "attempts differs 1 shop/one-more-try defaults, PatchDefaults 0 shop/never-charge-twice defaults, AtomicDefaults", "row");
    await page.getByLabel("Show equal kinds").check();
    await until(async () => (await page.locator(".kind-section").count()) === 4, "all kinds");
    await page.context().close();
  });

  await test("the tracer names the rule, the match, the policies and the backends", async () => {
    const page = await go("#/trace");
    await page.getByRole("textbox", { name: "Host" }).fill("shop.bakery.example");
    await page.locator("input[name=path]").fill("/checkout");
    await page.getByLabel("Method").fill("POST");
    await page.getByLabel(/^Headers/).fill("x-a: b\nauthorization: Bearer secret");
    await page.getByRole("button", { name: "Trace", exact: true }).click();
    const rule = page.locator(".resolved").filter({ hasText: "storefront" });
    await rule.waitFor();
    const shown = await text(rule);
    for (const part of ["rule checkout", "path prefix `/checkout`, method POST", "port 443", "request: 10s", "platform/nobody-waits overrides", "100 % weight 1 Service shop/till", "attempts: 0"])
      check(shown.includes(part), `it lacks ${part}: ${shown}`);
    check(page.url().includes("x-a"), "the address lacks the header");
    check(!page.url().includes("secret"), "the address has a secret header");
    await page.context().close();
  });

  await test("the tracer says why not, and what nearly matches", async () => {
    const page = await go("#/trace?host=shop.bakery.example&path=/checkout&why=rule/checkout");
    await page.getByText("UnmetCondition").first().waitFor();
    check((await text(page.locator(".cards").first())).includes("method POST"), "the condition is missing");
    await page.evaluate(() => (window.location.hash = "#/trace?host=bread.bakery.example&path=/nowhere&method=POST"));
    await page.getByRole("heading", { name: "No rule takes the request" }).waitFor();
    const shown = await text(page.locator("main"));
    check(shown.includes("gateway platform/storefront › listener https NoMatch"), `the reason is missing: ${shown}`);
    check(shown.includes("Rules that nearly match: HTTPRoute baker/bread##0 lacks method"), `the near miss is missing: ${shown}`);
    await page.getByRole("link", { name: "why not" }).first().click();
    await page.getByText("UnmetCondition").first().waitFor();
    await page.context().close();
  });

  await test("a preview shows what a deletion takes away", async () => {
    const page = await go(PAGES.preview);
    await page.getByText("4 values are lost").waitFor();
    check((await text(page.locator(".preview-result"))).includes("attempts 5 baker/be-patient defaults 1 shop/one-more-try defaults"), "the change is missing");
    await page.context().close();
  });

  await test("a preview shows what a new policy changes, and errors of the manifest", async () => {
    const page = await go("#/preview");
    const area = page.locator("textarea[name=manifests]");
    await area.fill(`apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: more, namespace: shop, creationTimestamp: "2030-01-01T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop, sectionName: browse}]
  defaults: {attempts: 9}
`);
    await page.keyboard.press("Control+Enter");
    await page.getByRole("heading", { name: "What changes" }).waitFor();
    check((await text(page.locator(".preview-result"))).includes("attempts 1 shop/one-more-try defaults 9 shop/more defaults"), await text(page.locator(".preview-result")));
    await area.fill("kind: [");
    await page.getByText("The input was changed after this preview.").waitFor();
    await page.getByRole("button", { name: "Preview", exact: true }).click();
    await page.getByText("Problems in the manifests").waitFor();
    await page.context().close();
  });

  await test("findings link to their code and to their object", async () => {
    const page = await go(PAGES.findings);
    await page.getByRole("link", { name: "E030 Overridden" }).click();
    await page.getByRole("heading", { name: /^E030 Overridden/ }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: /platform\/fresh-daily/ }).click();
    await page.getByRole("heading", { name: "platform/fresh-daily" }).waitFor();
    await page.getByText("no effect").waitFor();
    await page.context().close();
  });

  await test("assertions show what fails and what is excepted", async () => {
    const page = await go(PAGES.assertions);
    await ready(page);
    if (isOrigin) return "skipped";
    const shown = await text(page.locator("main"));
    for (const part of ["1 assertion: 1 failed", "Retries must not pile up.", "baker/loaves", "Excepted: httproute baker/bread, 2 paths until 2099-03-31: the oven is slow"])
      check(shown.includes(part), `it lacks ${part}: ${shown}`);
    await page.context().close();
  });

  await test("policies are listed with their states and can be filtered", async () => {
    const page = await go(PAGES.policies);
    await page.getByRole("row").nth(15).waitFor();
    equal(await page.getByRole("row").count(), 16, "rows");
    await page.getByLabel("State").selectOption("no effect");
    await until(async () => (await page.getByRole("row").count()) === 2, "one policy without effect");
    check(page.url().includes("force=no+effect"), page.url());
    await page.context().close();
  });

  await test("the server's page lists kinds and their states", async () => {
    const page = await go(PAGES.server);
    await page.getByText("RetryPolicy").waitFor();
    check((await text(page.locator("main"))).includes("53 paths"), "the number of paths is missing");
    await page.context().close();
  });

  if (!isOrigin) {
    const timeouts = join(folder, "policies/timeouts.yaml");
    const original = readFileSync(timeouts, "utf8");

    await test("a change of a manifest arrives at the page, which keeps its place", async () => {
      const page = await go(`${ROUTE}`, { height: 500 });
      const other = await go("#/changes");
      await ready(page);
      await until(async () => (await text(page.locator("#connection"))) === "Live", "the stream is open");
      await until(async () => (await text(other.locator("#connection"))) === "Live", "the other stream is open");
      const link = page.locator("section[aria-label^=TimeoutPolicy] .units").getByRole("link", { name: "platform/nobody-waits" }).first();
      await link.scrollIntoViewIfNeeded();
      await link.focus();
      const before = await page.evaluate(() => [window.scrollY, document.activeElement.getBoundingClientRect().top]);
      check(before[0] > 100, "the page is not scrolled");
      check(original.includes("10s"), "the manifest has changed");
      writeFileSync(timeouts, original.replace("10s", "17s"));
      await page.getByText(/Changed at/).waitFor();
      check((await text(page.locator(".differences"))).includes("client.request: 10s (platform/nobody-waits) → 17s (platform/nobody-waits)"), await text(page.locator(".differences")));
      equal(await page.evaluate(() => document.activeElement.textContent), "platform/nobody-waits", "focus");
      const after = await page.evaluate(() => document.activeElement.getBoundingClientRect().top);
      check(Math.abs(after - before[1]) < 30, `the page moved by ${after - before[1]} pixels`);
      check((await page.locator("tr.changed").count()) > 0, "no row is marked");
      await other.getByText("17s").first().waitFor();
      check((await text(other.locator(".changes"))).includes("client.request: 10s → 17s set by platform/nobody-waits"), await text(other.locator(".changes")));
      writeFileSync(timeouts, original);
      await until(async () => (await text(page.locator(".differences"))).includes("17s (platform/nobody-waits) → 10s"), "the change back");
      await page.context().close();
      await other.context().close();
    });

    await test("a server that stops is noticed, and the page goes on when it is back", async () => {
      // Behind the proxy, so that the address stays.
      const stopping = await serve(subject, folder, { proxy: true });
      const page = await open(browser, stopping.origin, `${ROUTE}/browse`);
      await ready(page);
      await until(async () => (await text(page.locator("#connection"))) === "Live", "the stream is open");
      await stopping.stop();
      await until(async () => (await text(page.locator("#connection"))) === "No connection", "the loss is shown", 15_000);
      check((await page.locator("article.answer").count()) > 0, "the last answer is gone");
      writeFileSync(timeouts, original.replace("10s", "18s"));
      await stopping.start();
      await until(async () => (await text(page.locator("#connection"))) === "Live", "it is back", 20_000);
      await page.getByText(/Changed at/).waitFor();
      check((await page.locator(".note.error").count()) === 0, "an error is left");
      check((await text(page.locator("nav"))).includes("Changes 1"), "the change in between is not recorded");
      writeFileSync(timeouts, original);
      await page.context().close();
      await stopping.stop();
    });

    await test("a kind that is not known never looks like one without policies", async () => {
      const unknown = join(work, "unknown");
      mkdirSync(join(unknown, "policies"), { recursive: true });
      for (const file of ["00-namespaces.yaml", "gateways.yaml", "routes.yaml", "services.yaml", "policies/retries.yaml"])
        cpSync(join(repository, "examples/bakery", file), join(unknown, file));
      const other = await serve(subject, unknown);
      const page = await open(browser, other.origin, "#/route/httproute/baker/bread/menu");
      await page.getByText("Not known: NoProfile").first().waitFor();
      const shown = await text(page.locator("main"));
      check(shown.includes("This does not mean that there is no policy."), shown);
      check(!/No policy (of|applies)/.test(shown), shown);
      await page.getByText("1 kind is not completely known").waitFor();
      await until(async () => (await text(page.locator(".strip"))).includes("UNKNOWN RetryPolicy.policies.bakery.example NoProfile"), "the header has the reason");
      await page.evaluate(() => (window.location.hash = "#/policies"));
      await page.getByText("Policies may be missing here").waitFor();
      await page.context().close();
      await other.stop();
    });

    await test("policies that are rejected come first", async () => {
      const rejected = bakery("rejected");
      const profiles = join(rejected, "profiles.yaml");
      const document = readFileSync(profiles, "utf8").split("\n---\n").map((one) => (/kind: TimeoutPolicy/.test(one) ? one.replace("sameTarget: Established", "sameTarget: RejectNewer") : one));
      writeFileSync(profiles, document.join("\n---\n"));
      writeFileSync(
        join(rejected, "newer.yaml"),
        `apiVersion: policies.bakery.example/v1
kind: TimeoutPolicy
metadata: {name: hasty, namespace: shop, creationTimestamp: "2040-01-01T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}]
  defaults: {client: {idle: 1s}}
`,
      );
      const other = await serve(subject, rejected);
      const page = await open(browser, other.origin, `${ROUTE}/browse`);
      const first = page.locator(".kind-section").first();
      await first.waitFor();
      check((await text(first)).includes("1 policy is rejected shop/take-your-time Conflicted conflicts with the established policy `shop/hasty`"), await text(first));
      await page.evaluate(() => (window.location.hash = "#/policies"));
      await page.getByRole("row").nth(1).waitFor();
      check((await text(page.getByRole("row").nth(1))).startsWith("shop/take-your-time TimeoutPolicy.policies.bakery.example not accepted"), await text(page.getByRole("row").nth(1)));
      await page.context().close();
      await other.stop();
    });

    await test("hostile names and values are harmless and readable", async () => {
      const hostile = bakery("hostile");
      writeFileSync(join(hostile, "hostile.yaml"), HOSTILE);
      const other = await serve(subject, hostile);
      const page = await open(browser, other.origin, "#/route/HTTPRoute/shop/hostile");
      await page.locator("article.answer").first().waitFor();
      const shown = await text(page.locator("main"));
      check(shown.includes("<img src=x onerror=window.pwned=1>"), `the name of the rule is not readable: ${shown.slice(0, 800)}`);
      check(shown.includes("safeU+202Eelif"), "the mark is not shown");
      check(shown.includes("<b>boldU+202E"), "the name of the policy is not readable");
      check(shown.includes("window.pwned=3</script>U+2067\\u0000"), "the value is not readable");
      equal(await page.evaluate(() => window.pwned), undefined, "script that ran");
      equal(await page.evaluate(() => /[\u202e\u2067\u0007\u0000]/.test(document.body.innerText + document.title)), false, "raw marks");
      for (const hash of ["#/topology?view=graph&focus=HTTPRoute/shop/hostile", "#/topology?view=list", "#/policies", "#/findings", "#/trace?host=hostile.bakery.example&path=/rtl", `#/route/HTTPRoute/shop/${LONG}`, "#/compare?a=HTTPRoute/shop/hostile&b=HTTPRoute/shop/shop"])
        for (const width of [1280, 390]) {
          await page.setViewportSize({ width, height: 800 });
          await page.evaluate((to) => (window.location.hash = to), hash);
          await ready(page);
          await page.waitForTimeout(150);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          check(wide <= 0, `${hash} is ${wide} pixels too wide at ${width}`);
        }
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole("combobox", { name: /Search/ }).fill("onerror");
      await page.getByRole("option").first().click();
      await page.getByRole("heading", { name: /onerror/ }).waitFor();
      equal(await page.evaluate(() => window.pwned), undefined, "script that ran");
      await page.context().close();
      await other.stop();
    });

    await test("a server that demands a token gets one, and it stays out of the address", async () => {
      const guarded = await serve(subject, folder, { proxy: true, token: "s3cret" });
      const page = await open(browser, guarded.origin, `${ROUTE}/browse`);
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      check((await text(page.locator("#connection"))) === "Token needed", "the header does not say so");
      await dialog.getByLabel("Bearer token").fill("wrong");
      await page.keyboard.press("Enter");
      await page.getByText("does not accept this token").waitFor();
      await dialog.getByLabel("Bearer token").fill("s3cret");
      await page.keyboard.press("Enter");
      await page.locator("article.answer").first().waitFor();
      check(!page.url().includes("s3cret"), page.url());
      equal(await page.evaluate(() => [sessionStorage.length, localStorage.length, document.cookie]), [1, 0, ""], "storage");
      await page.reload();
      await page.locator("article.answer").first().waitFor();
      await page.getByRole("button", { name: "Token" }).click();
      await page.getByRole("button", { name: "Forget the token" }).click();
      await until(async () => (await text(page.locator("#connection"))) === "Token needed", "the token is forgotten");
      equal(await page.evaluate(() => sessionStorage.length), 0, "storage");
      await page.context().close();
      await guarded.stop();
    });

    await test("an account without rights is told what is missing", async () => {
      const guarded = await serve(subject, folder, { proxy: true, token: "s3cret", deny: true });
      const page = await open(browser, guarded.origin, `${ROUTE}/browse`);
      await page.getByRole("dialog").getByLabel("Bearer token").fill("other");
      await page.keyboard.press("Enter");
      await page.getByText("Your account may not use this service").waitFor();
      check((await text(page.locator("main"))).includes("the account may not get policies"), "the message of the server is missing");
      await page.context().close();
      await guarded.stop();
    });
  }

  await test("every link of a page leads to an answer", async () => {
    const page = await go("");
    const visited = await crawl(page, 90);
    check(visited.length > 60, `only ${visited.length} pages were found`);
    await page.context().close();
  });

  for (const scheme of ["light", "dark"])
    for (const width of [1280, 390])
      await test(`axe finds nothing serious, and nothing is too wide: ${scheme}, ${width} pixels`, async () => {
        const page = await go("", { width, height: width === 390 ? 844 : 860, scheme });
        await page.evaluate(axeSource);
        const found = [];
        for (const [name, hash] of Object.entries(PAGES)) {
          await page.evaluate((to) => (window.location.hash = to), hash);
          await ready(page);
          await page.waitForTimeout(120);
          const violations = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)} ${one.nodes[0].failureSummary.slice(0, 200)}`));
          found.push(...violations.map((one) => `${name}: ${one}`));
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          if (wide > 0) found.push(`${name} is ${wide} pixels too wide`);
        }
        await page.context().close();
        equal(found, [], "violations");
      });

  await test("no page asks another origin, breaks the policy for content, or has an error", async () => {
    equal(foreign, [], "requests");
    equal(complaints, [], "complaints");
  });
}
