// Bundles the page. Usage: node bundle.mjs WASM OUT (esbuild and the shim of WASI are found by NODE_PATH)
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const esbuild = createRequire(import.meta.url)("esbuild");
const here = dirname(fileURLToPath(import.meta.url));
const repository = dirname(here);
const [wasm, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });

const files = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? files(join(folder, entry.name)) : join(folder, entry.name)))
    .filter((file) => file.endsWith(".yaml"));
const bakery = files(join(repository, "examples/bakery"));
// What people want to read comes before the CRDs.
const isCrd = (file) => file.includes("/crds/");
const parts = [...bakery.filter((file) => !isCrd(file)), ...bakery.filter(isCrd)];
const document = (file) => `# ${relative(repository, file)}\n${readFileSync(file, "utf8").trim()}\n`;
const concatenated = parts.map(document).join("---\n");
const own = (name) => readFileSync(join(here, "examples", `${name}.yaml`), "utf8");
const examples = [
  { title: "Bakery", name: "httproute/shop/shop", manifests: concatenated },
  { title: "Defaults and overrides", name: "", manifests: own("defaults-overrides") },
  { title: "Merge strategies", name: "", manifests: own("merge-strategies") },
  { title: "Envoy Gateway", name: "", manifests: own("envoy-gateway") },
];

// Addresses change with contents, so that a browser never combines files of two versions.
const version = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 12);
const bundle = (entry, define) => {
  const result = esbuild.buildSync({
    entryPoints: [join(here, "src", entry)],
    absWorkingDir: here,
    nodePaths: (process.env.NODE_PATH ?? "").split(":"),
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    target: "es2022",
    legalComments: "none",
    write: false,
    define,
  });
  return result.outputFiles[0].contents;
};
const address = (name, bytes) => `${name}?${version(bytes)}`;
const engine = readFileSync(wasm);
const worker = bundle("worker.ts", {});
const page = bundle("page.ts", {
  ENGINE_URL: JSON.stringify(address("engine.wasm", engine)),
  WORKER_URL: JSON.stringify(address("worker.js", worker)),
  EXAMPLES: JSON.stringify(examples),
});
const style = readFileSync(join(here, "src/style.css"));
const html = readFileSync(join(here, "src/index.html"), "utf8")
  .replace('"page.js"', `"${address("page.js", page)}"`)
  .replace('"style.css"', `"${address("style.css", style)}"`);
const built = { "engine.wasm": engine, "worker.js": worker, "page.js": page, "style.css": style, "index.html": html };
for (const [name, contents] of Object.entries(built)) writeFileSync(join(out, name), contents);
copyFileSync(join(here, "src/icon.svg"), join(out, "icon.svg"));
