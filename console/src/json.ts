/** A number as it is written, because JavaScript's numbers lose digits. */
export class NumberText {
  constructor(readonly text: string) {}
}

export type Json = null | boolean | string | NumberText | Json[] | { [key: string]: Json };

/** Parses JSON without rounding numbers. Throws a SyntaxError. */
export function parseJson(text: string): Json {
  let at = 0;
  const fail = (): never => {
    throw new SyntaxError(`not JSON at byte ${at}`);
  };
  const blank = () => {
    while (at < text.length && " \t\r\n".includes(text[at]!)) at += 1;
  };
  const string = (): string => {
    const begin = at;
    at += 1;
    while (text[at] !== '"') {
      if (at >= text.length) fail();
      at += text[at] === "\\" ? 2 : 1;
    }
    at += 1;
    return JSON.parse(text.slice(begin, at)) as string;
  };
  const value = (depth: number): Json => {
    if (depth > 500) fail();
    blank();
    const first = text[at];
    if (first === '"') return string();
    if (first === "{") {
      at += 1;
      const object: { [key: string]: Json } = Object.create(null);
      blank();
      if (text[at] === "}") at += 1;
      else
        for (;;) {
          blank();
          if (text[at] !== '"') fail();
          const key = string();
          blank();
          if (text[at] !== ":") fail();
          at += 1;
          object[key] = value(depth + 1);
          blank();
          if (text[at] === ",") at += 1;
          else if (text[at] === "}") {
            at += 1;
            break;
          } else fail();
        }
      return object;
    }
    if (first === "[") {
      at += 1;
      const list: Json[] = [];
      blank();
      if (text[at] === "]") at += 1;
      else
        for (;;) {
          list.push(value(depth + 1));
          blank();
          if (text[at] === ",") at += 1;
          else if (text[at] === "]") {
            at += 1;
            break;
          } else fail();
        }
      return list;
    }
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]] as const)
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    const number = /^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/.exec(text.slice(at, at + 400));
    if (!number) return fail();
    at += number[0].length;
    return new NumberText(number[0]);
  };
  const result = value(0);
  blank();
  if (at < text.length) fail();
  return result;
}

const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$|^[0-9]+[A-Za-z][A-Za-z0-9]*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|~)$|^[0-9]+e[0-9]+$/i;

function scalar(value: Json, flow: boolean): string | undefined {
  if (value === null) return "null";
  if (typeof value === "boolean") return String(value);
  if (value instanceof NumberText) return value.text;
  if (typeof value === "string")
    return (PLAIN.test(value) || (!flow && /^https?:\/\/[\w./:?=&%-]+$/.test(value))) && !RESERVED.test(value)
      ? value
      : JSON.stringify(value);
  return undefined;
}

const key = (name: string) => (PLAIN.test(name) && !RESERVED.test(name) ? name : JSON.stringify(name));

function flow(value: Json): string {
  const text = scalar(value, true);
  if (text !== undefined) return text;
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  const entries = Object.entries(value as { [key: string]: Json });
  return `{${entries.map(([name, child]) => `${key(name)}: ${flow(child)}`).join(", ")}}`;
}

/** A line of YAML, and the dotted path of what begins on it. */
export interface Line {
  indent: number;
  text: string;
  unit: string;
}

function block(value: Json, indent: number, unit: string, lines: Line[]): void {
  if (Array.isArray(value)) {
    for (const child of value) {
      const text = scalar(child, false) ?? (flow(child).length <= 60 || empty(child) ? flow(child) : undefined);
      if (text !== undefined) lines.push({ indent, text: `- ${text}`, unit });
      else {
        lines.push({ indent, text: "-", unit });
        block(child, indent + 1, unit, lines);
      }
    }
    return;
  }
  for (const [name, child] of Object.entries(value as { [key: string]: Json })) {
    const below = unit === "" ? name : `${unit}.${name}`;
    const short = scalar(child, false) ?? (empty(child) || (Array.isArray(child) && flow(child).length <= 60) ? flow(child) : undefined);
    if (short !== undefined) lines.push({ indent, text: `${key(name)}: ${short}`, unit: below });
    else {
      lines.push({ indent, text: `${key(name)}:`, unit: below });
      block(child, indent + 1, below, lines);
    }
  }
}

const empty = (value: Json) =>
  typeof value === "object" && value !== null && !(value instanceof NumberText) && Object.keys(value).length === 0;

/** JSON as lines of YAML; the text as it is if it cannot be parsed. */
export function yamlLines(text: string): Line[] {
  try {
    const value = parseJson(text);
    const short = scalar(value, false) ?? (flow(value).length <= 36 || empty(value) ? flow(value) : undefined);
    if (short !== undefined) return [{ indent: 0, text: short, unit: "" }];
    const lines: Line[] = [];
    block(value, 0, "", lines);
    return lines;
  } catch {
    return [{ indent: 0, text, unit: "" }];
  }
}

/** JSON as a block of YAML, also if it is short. */
export function yamlBlock(text: string): Line[] {
  try {
    const value = parseJson(text);
    if (typeof value !== "object" || value === null || value instanceof NumberText || empty(value)) return yamlLines(text);
    const lines: Line[] = [];
    block(value, 0, "", lines);
    return lines;
  } catch {
    return [{ indent: 0, text, unit: "" }];
  }
}

/** The leaves of a JSON value by their dotted paths, each as JSON of one line. */
export function leaves(text: string | undefined): Map<string, string> {
  const found = new Map<string, string>();
  if (text === undefined) return found;
  const walk = (value: Json, unit: string) => {
    if (typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof NumberText) && !empty(value))
      for (const [name, child] of Object.entries(value)) walk(child, unit === "" ? name : `${unit}.${name}`);
    else found.set(unit || "*", flow(value));
  };
  try {
    walk(parseJson(text), "");
  } catch {
    found.set("*", text);
  }
  return found;
}

/** JSON on one line, in the flow style of YAML. */
export function oneLine(text: string): string {
  try {
    return flow(parseJson(text));
  } catch {
    return text;
  }
}
