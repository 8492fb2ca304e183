// The answers of the engine (crates/playground), and how the page arranges them.

/** A number that JavaScript would write differently, such as `1.0` or one with more digits than it keeps. */
export class RawNumber {
  constructor(readonly text: string) {}

  toJSON(): string {
    return this.text;
  }
}

export type Json = null | boolean | number | string | RawNumber | Json[] | { [key: string]: Json };

/** Parses an answer. Numbers keep their digits, if the browser can tell them. */
export function parseAnswer(text: string): Answer {
  const keepDigits = (_key: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" && context?.source !== undefined && context.source !== String(value)
      ? new RawNumber(context.source)
      : value;
  return JSON.parse(text, keepDigits) as Answer;
}

export interface Reference {
  namespace: string;
  name: string;
}

export interface Origin {
  unit: string;
  policies: Reference[];
  object: string;
  block: string;
}

export interface Policy {
  group: string;
  kind: string;
  spec: Json;
  origins: Origin[];
  strategy: string;
  listed: { policy: Reference; node: string; spec: Json }[];
  rejected: { policy: Reference; reason: string; message: string }[];
  inheritedOnly: boolean;
  notComputed: string;
  unknown: { reason: string; message: string; policies?: Reference[] } | null;
}

export interface PathAnswer {
  path: string;
  policies: Policy[];
}

export interface Answer {
  problems: string[];
  paths: PathAnswer[];
  truncated: boolean;
}

export interface Question {
  manifests: string;
  name: string;
}

/** Paths with the same effective policies. */
export interface PathGroup {
  paths: string[];
  policies: Policy[];
}

/** Groups paths by their effective policies. Groups with unknown kinds come first, then those with rejected policies,
 * then the others; paths without any policy come last. */
export function groupPaths(paths: PathAnswer[]): PathGroup[] {
  const groups = new Map<string, PathGroup>();
  for (const { path, policies } of paths) {
    const key = JSON.stringify(policies);
    const group = groups.get(key);
    if (group) group.paths.push(path);
    else groups.set(key, { paths: [path], policies: [...policies].sort((a, b) => urgency(a) - urgency(b)) });
  }
  const rank = (group: PathGroup) => Math.min(3, ...group.policies.map(urgency));
  return [...groups.values()].sort((a, b) => rank(a) - rank(b));
}

function urgency(policy: Policy): number {
  if (policy.unknown || policy.notComputed) return 0;
  return policy.rejected.length > 0 ? 1 : 2;
}

/** A value of a specification, with the origin that the engine names for it. */
export interface ValueRow {
  unit: string;
  value: Json | undefined;
  origin: Origin | null;
}

/** The values of a policy, one row for each origin. Values that no origin covers get a row, too. */
export function valueRows(policy: Policy): ValueRow[] {
  const rows: ValueRow[] = [];
  const covered = new Set<Json>();
  const paths = new Set<string>();
  for (const origin of policy.origins) {
    const segments = parseUnit(origin.unit);
    const value = lookUp(policy.spec, segments);
    if (value !== null && typeof value === "object") covered.add(value);
    paths.add(unitKey(segments));
    rows.push({ unit: origin.unit, value, origin });
  }
  const walk = (value: Json, segments: Segment[]): void => {
    if (paths.has(unitKey(segments)) || (value !== null && typeof value === "object" && covered.has(value))) return;
    if (isObject(value) && Object.keys(value).length > 0) {
      for (const [key, inner] of Object.entries(value)) walk(inner, [...segments, key]);
    } else if (Array.isArray(value) && value.some((item) => covered.has(item))) {
      for (const item of value) {
        if (!covered.has(item)) rows.push({ unit: segments.join("."), value: [item], origin: null });
      }
    } else {
      rows.push({ unit: segments.join(".") || "*", value, origin: null });
    }
  };
  if (policy.spec !== null) walk(policy.spec, []);
  return rows;
}

function isObject(value: Json): value is { [key: string]: Json } {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof RawNumber);
}

type Segment = string | [string, string][];

function unitKey(segments: Segment[]): string {
  return JSON.stringify(segments);
}

/** Parses the name of a unit: fields with dots between them, quoted as JSON where necessary, and `[key=value]` for
 * items of lists. */
export function parseUnit(unit: string): Segment[] {
  const segments: Segment[] = [];
  if (unit === "*") return segments;
  let at = 0;
  const token = (stop: RegExp): string => {
    if (unit[at] === '"') {
      let end = at + 1;
      while (end < unit.length && unit[end] !== '"') end += unit[end] === "\\" ? 2 : 1;
      const quoted = unit.slice(at, end + 1);
      at = end + 1;
      try {
        return JSON.parse(quoted) as string;
      } catch {
        return quoted;
      }
    }
    const begin = at;
    while (at < unit.length && !stop.test(unit[at] ?? "")) at += 1;
    return unit.slice(begin, at);
  };
  while (at < unit.length) {
    if (unit[at] === ".") at += 1;
    if (unit[at] === "[") {
      const pairs: [string, string][] = [];
      do {
        at += 1;
        const key = token(/[=\]]/);
        at += 1;
        pairs.push([key, token(/[,\]]/)]);
      } while (unit[at] === ",");
      at += 1;
      segments.push(pairs);
    } else {
      segments.push(token(/[.[]/));
    }
  }
  return segments;
}

function lookUp(spec: Json, segments: Segment[]): Json | undefined {
  let value: Json | undefined = spec;
  for (const segment of segments) {
    if (value === null || typeof value !== "object" || value instanceof RawNumber) return undefined;
    if (typeof segment === "string") {
      if (Array.isArray(value) || !Object.hasOwn(value, segment)) return undefined;
      value = value[segment];
    } else {
      if (!Array.isArray(value)) return undefined;
      value = value.find((item) => segment.every(([key, wanted]) => isField(item, key, wanted)));
    }
    if (value === undefined) return undefined;
  }
  return value;
}

function isField(item: Json, key: string, wanted: string): boolean {
  if (!isObject(item)) return false;
  const value = item[key];
  return value !== undefined && (typeof value === "string" ? value : JSON.stringify(value)) === wanted;
}

/** Names of the objects and paths that can be asked for: each object of a path once, then the paths. */
export function namesOf(paths: PathAnswer[], limit: number): string[] {
  const objects = new Set<string>();
  for (const { path } of paths) {
    const parts = path.split("/");
    if (parts[0] === "gateways" && parts.length >= 3) objects.add(`gateway/${parts[1]}/${parts[2]}`);
    for (let at = 0; at < parts.length; at += 1) {
      if ((parts[at] === "routes" || parts[at] === "backends") && parts.length > at + 3) {
        objects.add(`${parts[at + 1]?.toLowerCase()}/${parts[at + 2]}/${parts[at + 3]}`);
      }
    }
  }
  return [...[...objects].sort(), ...paths.map(({ path }) => path)].slice(0, limit);
}

/** The question as the engine takes it: a section (`httproute/shop/shop#browse`) becomes the part of a path. */
export function engineName(name: string): string {
  const [object = "", section] = name.trim().split(/#(.*)/s);
  if (!section || name.startsWith("gateways/") || name.startsWith("mesh/")) return name.trim();
  const kind = object.split("/")[0]?.toLowerCase() ?? "";
  if (kind === "gateway" || kind === "listenerset") return `${object}/listeners/${section}`;
  if (kind === "service") return `${object}/ports/${section}`;
  return `${object}/rules/${section}`;
}

/** A problem of the manifests: its line, where it has one, and its text. */
export function parseProblem(problem: string): { line: number | null; text: string } {
  const match = /^manifests:(\d+): (.*)$/s.exec(problem);
  return match ? { line: Number(match[1]), text: match[2] ?? "" } : { line: null, text: problem };
}
