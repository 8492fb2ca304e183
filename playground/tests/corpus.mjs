// Compares the answers of the engine as WebAssembly with those of the command, for each conformance case and example.
// Usage: node --harmony-json-parse-with-source corpus.mjs WASM BINARY (the package `yaml` is found by NODE_PATH)
import { execFile } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { WASI } from "node:wasi";

const yaml = createRequire(import.meta.url)("yaml");
const run = promisify(execFile);
const [wasm, binary] = process.argv.slice(2);
const repository = join(dirname(fileURLToPath(import.meta.url)), "../..");
const work = mkdtempSync(join(tmpdir(), "corpus-"));
process.on("exit", () => rmSync(work, { recursive: true, force: true }));
const module = new WebAssembly.Module(readFileSync(wasm));

// Numbers are compared as they are written.
const parse = (text) =>
  JSON.parse(text, (_key, value, context) =>
    typeof value === "number" && context?.source !== undefined ? `number ${context.source}` : value,
  );

function ask(manifests, name = "") {
  const [question, answer, errors] = ["question", "answer", "errors"].map((file) => join(work, file));
  writeFileSync(question, JSON.stringify({ manifests, name }));
  const files = [openSync(question, "r"), openSync(answer, "w"), openSync(errors, "w")];
  const wasi = new WASI({ version: "preview1", stdin: files[0], stdout: files[1], stderr: files[2], returnOnExit: true });
  try {
    const code = wasi.start(new WebAssembly.Instance(module, wasi.getImportObject()));
    if (code !== 0) throw new Error(`exit code ${code}: ${readFileSync(errors, "utf8")}`);
  } finally {
    files.forEach((file) => closeSync(file));
  }
  return parse(readFileSync(answer, "utf8"));
}

const FIELDS = ["group", "kind", "spec", "origins", "listed", "rejected", "inheritedOnly", "notComputed", "unknown"];
// Objects with sorted keys, so that equal values have equal texts.
const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
};
const comparable = (policies) =>
  policies
    .map((policy) => {
      const fields = FIELDS.map((field) => [field, policy[field] ?? null]);
      return JSON.stringify(sorted(Object.fromEntries(fields)));
    })
    .sort();

// The command lists every level, the engine the paths that nothing is below.
function leaves(paths) {
  const names = new Set();
  for (const { path } of paths) {
    for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) names.add(path.slice(0, at));
  }
  return paths.filter(({ path }) => !names.has(path));
}

function differences(wasm, native, wanted = () => true) {
  const found = [];
  const theirs = new Map(leaves(native.paths).filter(({ path }) => wanted(path)).map(({ path, policies }) => [path, policies]));
  for (const { path, policies } of wasm.paths) {
    const other = theirs.get(path);
    if (!other) {
      found.push(`only in the playground: ${path}`);
      continue;
    }
    theirs.delete(path);
    const [ours, its] = [comparable(policies), comparable(other)];
    for (const policy of ours) if (!its.includes(policy)) found.push(`${path}\n  playground: ${policy}`);
    for (const policy of its) if (!ours.includes(policy)) found.push(`${path}\n  command:    ${policy}`);
  }
  if (!wasm.truncated) for (const path of theirs.keys()) found.push(`only in the command: ${path}`);
  return found;
}

// Cases as one text: documents of JSON.
const folder = join(repository, "tests/conformance");
const documents = readdirSync(folder)
  .filter((file) => file.endsWith(".yaml"))
  .sort()
  .flatMap((file) => yaml.parseAllDocuments(readFileSync(join(folder, file), "utf8"), { uniqueKeys: false }))
  .map((document) => document.toJS({ maxAliasCount: -1 }))
  .filter((value) => value && !Array.isArray(value));
const fixtures = new Map(documents.filter(({ fixture }) => fixture).map((value) => [value.fixture, value.objects ?? [value.object]]));
const expand = (item) => (typeof item === "string" && item.startsWith("fixture:") ? (fixtures.get(item.slice(8)) ?? [item]) : [item]);

const inputs = [];
const skipped = new Map();
for (const { name, objects, profiles, fixture } of documents) {
  if (fixture) continue;
  const all = [...(profiles ?? []).flatMap(expand).filter((item) => typeof item !== "string"), ...(objects ?? []).flatMap(expand)];
  const text = all.map((item) => JSON.stringify(item)).join("\n---\n");
  if (objects === undefined && profiles === undefined) skipped.set(name, "it has no objects");
  else if (all.some((item) => typeof item === "string")) skipped.set(name, "it names a fixture that does not exist");
  else inputs.push({ name, text });
}
const yamlFiles = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((file) => file.endsWith(".yaml"))
    .sort()
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n---\n");
const examples = [
  { name: "examples/bakery", text: yamlFiles(join(repository, "examples/bakery")) },
  { name: "examples/envoy/world.yaml", text: readFileSync(join(repository, "examples/envoy/world.yaml"), "utf8") },
  { name: "examples/proxy/world.yaml", text: readFileSync(join(repository, "examples/proxy/world.yaml"), "utf8") },
  ...["defaults-overrides", "merge-strategies", "envoy-gateway"].map((name) => ({
    name: `playground/examples/${name}.yaml`,
    text: readFileSync(join(repository, "playground/examples", `${name}.yaml`), "utf8"),
  })),
];
inputs.push(...examples);

let [equal, failed, paths, policies] = [0, 0, 0, 0];
const report = (name, found) => {
  if (found.length === 0) {
    equal += 1;
    return;
  }
  failed += 1;
  console.log(`FAILED  ${name}`);
  for (const line of found.slice(0, 6)) console.log(`        ${line.replaceAll("\n", "\n        ")}`);
};

async function compare({ name, text }, worker) {
  const file = join(work, `manifests-${worker}.yaml`);
  writeFileSync(file, text);
  let native;
  try {
    const command = ["get", "--all-levels", "--allow-partial", "--manifests", file, "-o", "json"];
    // Answers with unknown kinds have an exit code of their own.
    const { stdout } = await run(binary, command, { maxBuffer: 1 << 30 }).catch((error) => {
      if (error.stdout) return error;
      throw error;
    });
    native = parse(stdout);
  } catch (error) {
    const why = String(error.stderr || error.message).trim().split("\n")[0].replaceAll(file, "FILE");
    skipped.set(name, `the command has no answer: ${why}`);
    return;
  }
  try {
    const answer = ask(text);
    paths += answer.paths.length;
    policies += answer.paths.reduce((sum, { policies }) => sum + policies.length, 0);
    const found = differences(answer, native);
    if (name === "examples/bakery") {
      for (const [question, part] of [["httproute/shop/shop", "/HTTPRoute/shop/shop/"], ["service/baker/loaves", "/Service/baker/loaves/"], ["gateway/platform/backdoor", "gateways/platform/backdoor/"]]) {
        found.push(...differences(ask(text, question), native, (path) => `/${path}/`.includes(part)));
      }
    }
    report(name, found);
  } catch (error) {
    report(name, [`the playground failed: ${error}`]);
  }
}

const queue = inputs.values();
await Promise.all(
  [0, 1, 2, 3].map(async (worker) => {
    for (const input of queue) await compare(input, worker);
  }),
);
const reasons = new Map();
for (const [name, why] of skipped) reasons.set(why, [...(reasons.get(why) ?? []), name]);
for (const [why, names] of reasons) console.log(`not compared: ${names.length}, ${why}: ${names.slice(0, 5).join(", ")}${names.length > 5 ? " and more" : ""}`);
console.log(`compared ${equal + failed} of ${inputs.length + skipped.size - [...skipped.values()].filter((why) => why.startsWith("the command")).length} inputs (${paths} paths, ${policies} effective policies): ${equal} equal, ${failed} different`);
process.exitCode = failed === 0 && equal > 900 ? 0 : 1;
