import { closeAll, finish } from "./harness.mjs";

const [subject, ...options] = process.argv.slice(2);
try {
  if (options.includes("--large")) await (await import("./large.mjs")).run(subject);
  else if (options[0] === "--pictures") await (await import("./pictures.mjs")).run(subject, options[1]);
  else await (await import("./pages.mjs")).run(subject);
} finally {
  await closeAll();
}
process.exit(finish());
