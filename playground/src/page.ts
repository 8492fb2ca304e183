// The page: reads the manifests and the question, asks the engine, shows the answer.

import { type Answer, namesOf, parseProblem, type Question } from "./answer";
import { Engine } from "./engine";
import { element, notice, renderPaths, visible } from "./render";
import { decode, encode, ShareError } from "./share";

interface Example {
  title: string;
  name: string;
  manifests: string;
}
declare const EXAMPLES: Example[];

/** How long nobody must have typed before the engine is asked. */
const PAUSE_MS = 250;
/** Maximum number of suggestions for the question. */
const MAX_NAMES = 500;

function get<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found as T;
}

function start(): void {
  const manifests = get<HTMLTextAreaElement>("manifests");
  const question = get<HTMLInputElement>("name");
  const lines = get("lines");
  const state = get("state");
  const problems = get("problems");
  const answer = get("answer");
  const names = get<HTMLDataListElement>("names");
  const examples = get<HTMLSelectElement>("example");
  const shared = get("shared");
  const engine = new Engine();

  /** The last answer to manifests that were read completely is shown. */
  let hasComplete = false;
  /** Partial answers are shown until the manifests can be read again. */
  let showsPartial = false;
  let namesAreOf: string | null = null;
  let asked = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const drawLines = (bad: ReadonlySet<number>): void => {
    const count = manifests.value.split("\n").length;
    const parts: (Node | string)[] = [];
    let run = "";
    for (let line = 1; line <= count; line += 1) {
      if (bad.has(line)) {
        parts.push(run, element("span", "bad", String(line)));
        run = "\n";
      } else {
        run += `${line}\n`;
      }
    }
    lines.replaceChildren(...parts, run);
    lines.scrollTop = manifests.scrollTop;
  };
  let badLines: ReadonlySet<number> = new Set();

  const goTo = (line: number): void => {
    const texts = manifests.value.split("\n");
    const begin = texts.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    manifests.focus();
    manifests.setSelectionRange(begin, begin + (texts[line - 1]?.length ?? 0));
    const height = manifests.scrollHeight / Math.max(1, texts.length);
    manifests.scrollTop = Math.max(0, (line - 1) * height - manifests.clientHeight / 3);
    manifests.scrollLeft = 0;
  };

  const showProblems = (result: Answer): void => {
    const items = result.problems.map((problem) => {
      const { line, text } = parseProblem(problem);
      if (line === null) return element("li", "", visible(text));
      const button = element("button", "problem", `Line ${line}: ${visible(text)}`);
      button.type = "button";
      button.onclick = () => goTo(line);
      return element("li", "", button);
    });
    const title = element("strong", "", "The manifests cannot be read completely.");
    const box = notice("bad", title, element("ul", "", ...items));
    if (hasComplete && !showsPartial) {
      const button = element("button", "", "Show the answer without what cannot be read");
      button.type = "button";
      button.onclick = () => {
        showsPartial = true;
        show(result);
      };
      box.append("The answer below is the last complete one. ", button);
    } else {
      box.append("The answer below is without what cannot be read: policies may be missing.");
    }
    problems.replaceChildren(box);
  };

  const show = (result: Answer): void => {
    const isComplete = result.problems.length === 0;
    badLines = new Set(result.problems.flatMap((problem) => parseProblem(problem).line ?? []));
    drawLines(badLines);
    if (isComplete) {
      hasComplete = true;
      showsPartial = false;
      problems.replaceChildren();
    } else {
      showProblems(result);
    }
    const isOld = !isComplete && hasComplete && !showsPartial;
    answer.classList.toggle("old", isOld);
    if (isOld) return;
    if (result.paths.length > 0) {
      renderPaths(answer, result.paths, result.truncated);
      return;
    }
    const name = question.value.trim();
    const text = name
      ? `No path has this name, or goes through this object: ${visible(name)}. Nothing is known of its policies. ` +
        "Write objects as kind/namespace/name."
      : "The manifests have no paths: they need a Gateway with listeners, and routes that are attached to it.";
    answer.replaceChildren(notice("warn", text));
  };

  const suggest = async (text: string, result: Answer | null): Promise<void> => {
    if (namesAreOf === text) return;
    namesAreOf = text;
    const all = result ?? (await engine.ask({ manifests: text, name: "" }));
    if (namesAreOf !== text) return;
    const options = namesOf(all.paths, MAX_NAMES).map((value) => {
      const option = document.createElement("option");
      option.value = value;
      return option;
    });
    names.replaceChildren(...options);
  };

  const ask = async (): Promise<void> => {
    const id = ++asked;
    const current: Question = { manifests: manifests.value, name: question.value.trim() };
    state.textContent = "Computing…";
    const began = performance.now();
    try {
      const result = await engine.ask(current, () => id !== asked);
      if (result === null || id !== asked) return;
      answer.classList.remove("waiting");
      show(result);
      const count = result.paths.length;
      const paths = `${count}${result.truncated ? " or more" : ""} ${count === 1 ? "path" : "paths"}`;
      state.textContent = `${paths}, ${Math.round(performance.now() - began)} ms`;
      await suggest(current.manifests, current.name === "" ? result : null).catch(() => undefined);
    } catch (error) {
      if (id !== asked) return;
      answer.classList.remove("waiting");
      const text = error instanceof Error ? error.message : String(error);
      problems.replaceChildren(notice("bad", element("strong", "", "There is no answer. "), visible(text)));
      answer.classList.add("old");
      state.textContent = "No answer";
    }
  };

  const changed = (pause = PAUSE_MS): void => {
    // What is shown is not yet the answer to what was typed.
    answer.classList.add("waiting");
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), pause);
  };

  const open = ({ manifests: text, name }: Question): void => {
    manifests.value = text;
    manifests.scrollTop = 0;
    question.value = name;
    hasComplete = false;
    showsPartial = false;
    answer.replaceChildren();
    problems.replaceChildren();
    drawLines(new Set());
    changed(0);
  };

  const openFragment = async (): Promise<boolean> => {
    try {
      const found = await decode(location.hash);
      if (!found) return false;
      open(found);
      examples.value = "";
      shared.textContent = "Opened from a link.";
      return true;
    } catch (error) {
      shared.textContent = error instanceof ShareError ? error.message : String(error);
      return false;
    }
  };

  manifests.addEventListener("input", () => {
    examples.value = "";
    shared.textContent = "";
    drawLines(badLines);
    changed();
  });
  manifests.addEventListener("scroll", () => {
    lines.scrollTop = manifests.scrollTop;
  });
  question.addEventListener("input", () => {
    shared.textContent = "";
    // An answer to another question is not the last answer to this one.
    hasComplete = false;
    changed();
  });
  for (const input of [manifests, question] as HTMLElement[]) {
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (input === question || event.ctrlKey || event.metaKey)) changed(0);
    });
  }

  const own = document.createElement("option");
  own.value = "";
  own.textContent = "(your own)";
  examples.append(own);
  EXAMPLES.forEach(({ title }, at) => {
    const option = document.createElement("option");
    option.value = String(at);
    option.textContent = title;
    examples.append(option);
  });
  const openExample = (): void => {
    const example = EXAMPLES[Number(examples.value)];
    if (examples.value === "" || !example) {
      open({ manifests: "", name: "" });
    } else {
      open(example);
    }
  };
  examples.addEventListener("change", () => {
    shared.textContent = "";
    history.replaceState(null, "", location.pathname + location.search);
    openExample();
  });

  const share = async (): Promise<void> => {
    try {
      const fragment = await encode({ manifests: manifests.value, name: question.value.trim() });
      history.replaceState(null, "", fragment);
      const size = `${Math.ceil(fragment.length / 1024)} KB`;
      try {
        await navigator.clipboard.writeText(location.href);
        shared.textContent = `The link is copied, and in the address bar (${size}). It contains the manifests.`;
      } catch {
        shared.textContent = `The link is in the address bar (${size}). It contains the manifests.`;
      }
    } catch (error) {
      shared.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  get("share").addEventListener("click", () => void share());
  window.addEventListener("hashchange", () => void openFragment());

  get("not-started").hidden = true;
  get("app").hidden = false;
  void openFragment().then((opened) => {
    if (opened) return;
    examples.value = "0";
    openExample();
  });
}

// Browsers load neither workers nor WebAssembly from files; the page says so by itself.
const canRun = typeof WebAssembly === "object" && typeof CompressionStream === "function";
if (location.protocol !== "file:" && canRun) start();
