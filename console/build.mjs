// Builds the page from src into a folder: index.html, assets/app.js, assets/app.css, assets/licenses.txt, and each of
// them compressed. Usage: node build.mjs OUT FINDINGS LICENSE. Called by console/build.
import { build } from "esbuild";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { constants, gzipSync } from "node:zlib";

const root = dirname(fileURLToPath(import.meta.url));
const [out, findings, license] = process.argv.slice(2);

const codes = Object.fromEntries(
  readdirSync(findings)
    .filter((name) => /^E\d+\.md$/.test(name))
    .sort()
    .map((name) => [name.slice(0, -3), readFileSync(join(findings, name), "utf8").trimEnd()]),
);
mkdirSync(join(root, "src/gen"), { recursive: true });
writeFileSync(join(root, "src/gen/codes.ts"), `export const CODES: Record<string, string> = ${JSON.stringify(codes)};\n`);

mkdirSync(join(out, "assets"), { recursive: true });
const result = await build({
  absWorkingDir: root,
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  outdir: join(out, "assets"),
  metafile: true,
  logLevel: "warning",
});
await build({ absWorkingDir: root, entryPoints: { app: "src/app.css" }, minify: true, target: ["chrome111", "firefox113", "safari16.2"], outdir: join(out, "assets"), logLevel: "warning" });
cpSync(join(root, "src/index.html"), join(out, "index.html"));

// The licences of what is bundled. Packages without a file of their licence have it in the first comment of their files.
const packages = new Map();
for (const input of Object.keys(result.metafile.inputs)) {
  const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
  if (!name) continue;
  if (!packages.has(name)) packages.set(name, new Set());
  const comment = /^(?:\/\/.*\n)+/.exec(readFileSync(join(root, input), "utf8"))?.[0];
  if (comment?.includes("Copyright")) packages.get(name).add(comment.replace(/^\/\/ ?/gm, "").trim());
}
const licenses = [...packages].sort().map(([name, comments]) => {
  const folder = join(root, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  const texts = file ? [readFileSync(join(folder, file), "utf8").trim()] : [...comments].sort();
  return `${name} ${version}, ${license}\n\n${texts.join("\n\n")}\n`;
});
const apache = readFileSync(license, "utf8");
writeFileSync(join(out, "assets/licenses.txt"), [`The console contains:\n`, ...licenses, apache].join(`\n${"-".repeat(72)}\n\n`));

for (const name of ["index.html", "assets/app.js", "assets/app.css", "assets/licenses.txt"]) {
  const file = join(out, name);
  const compressed = gzipSync(readFileSync(file), { level: constants.Z_BEST_COMPRESSION });
  // The header names the system that compressed; the same bytes everywhere.
  compressed[9] = 255;
  writeFileSync(`${file}.gz`, compressed);
}
