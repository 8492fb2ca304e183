// Writes the pictures of docs/console.md.
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bakery, check, launch, open, repository, serve, test, work } from "./harness.mjs";
import { withPalette } from "./png.mjs";

const WIDE = { width: 1280, height: 860 };
const NARROW = { width: 390, height: 844 };
const PICTURES = {
  "console-topology": ["#/topology?view=graph", { ...WIDE, height: 880 }],
  "console-topology-dark": ["#/topology?view=graph", { ...WIDE, height: 880, scheme: "dark" }],
  "console-topology-narrow": ["#/topology?view=list", { ...NARROW, scheme: "dark" }],
  "console-rule": ["#/route/HTTPRoute/shop/shop/browse?at=gateways/platform/storefront/listeners/https", WIDE],
  "console-rule-narrow": ["#/route/HTTPRoute/shop/shop/browse?kind=TimeoutPolicy.policies.bakery.example&at=gateways/platform/storefront/listeners/https", NARROW],
  "console-trace-dark": ["#/trace?host=shop.bakery.example&path=/checkout&method=POST", { ...WIDE, scheme: "dark" }],
  "console-preview": ["#/preview?delete=RetryPolicy.policies.bakery.example/baker/be-patient", WIDE],
  "console-unknown": ["#/route/HTTPRoute/baker/bread/menu", { ...WIDE, height: 700 }, "unknown"],
};

export async function run(binary, folder) {
  const unknown = join(work, "unknown");
  const files = ["00-namespaces.yaml", "gateways.yaml", "routes.yaml", "services.yaml", "policies/retries.yaml", "policies/cache.yaml", "crds/cachepolicies.yaml"];
  for (const file of files) {
    mkdirSync(dirname(join(unknown, file)), { recursive: true });
    cpSync(join(repository, "examples/bakery", file), join(unknown, file));
  }
  const servers = { bakery: await serve(binary, bakery("bakery")), unknown: await serve(binary, unknown) };
  const browser = await launch();
  for (const [name, [hash, size, world = "bakery"]] of Object.entries(PICTURES))
    await test(name, async () => {
      const page = await open(browser, servers[world].origin, hash, size);
      await page.waitForFunction(() => document.querySelector("#connection")?.textContent === "Live" && !document.querySelector(".loading"));
      await page.waitForTimeout(400);
      const picture = withPalette(await page.screenshot());
      writeFileSync(join(folder, `${name}.png`), picture);
      check(picture.length < 150 * 1024, `${picture.length} bytes`);
      await page.context().close();
    });
}
