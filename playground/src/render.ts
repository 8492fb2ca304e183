// Answers as elements. Texts of manifests are only ever set as text.

import type { Json, Origin, PathAnswer, PathGroup, Policy, Reference, ValueRow } from "./answer";
import { groupPaths, RawNumber, valueRows } from "./answer";

/** Number of groups that are shown at once. */
const GROUPS = 50;

/** Characters that change how the characters around them are arranged, or that are invisible. */
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Makes such characters visible. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Parts of paths that are not names. */
const COLLECTIONS = new Set(
  "gateways listeners listenersets routes rules backends ports mesh gatewayclasses namespaces services".split(" "),
);

type Child = Node | string;

/** Creates an element. Strings become text nodes. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  if (className) created.className = className;
  created.append(...children);
  return created;
}

/** A text of the manifests. Its direction does not change that of its surroundings. */
export function name(text: string): HTMLElement {
  return element("bdi", "", visible(text));
}

/** Shows the paths of an answer in an element. */
export function renderPaths(into: HTMLElement, paths: PathAnswer[], truncated: boolean): void {
  const groups = groupPaths(paths);
  into.replaceChildren();
  if (truncated) {
    const text = `Only the first ${paths.length} paths are shown. Ask for an object or a path to see others.`;
    into.append(notice("warn", text));
  }
  const show = (from: number): void => {
    for (const group of groups.slice(from, from + GROUPS)) into.append(renderGroup(group));
    const left = groups.length - from - GROUPS;
    if (left <= 0) return;
    const more = element("button", "", `Show ${Math.min(left, GROUPS)} more of ${left} answers`);
    more.type = "button";
    more.onclick = () => {
      more.remove();
      show(from + GROUPS);
    };
    into.append(more);
  };
  show(0);
}

export function notice(className: "bad" | "warn" | "plain", ...children: Child[]): HTMLElement {
  return element("div", `notice ${className}`, ...children);
}

function renderGroup({ paths, policies }: PathGroup): HTMLElement {
  const items = paths.map((path) => element("li", "", renderPath(path)));
  let list: HTMLElement = element("ul", "", ...items);
  if (paths.length > 3) {
    const text = `${paths.length} paths with this answer, such as `;
    const summary = element("summary", "", text, renderPath(paths[0] ?? ""));
    list = element("details", "", summary, list);
  }
  const article = element("article", "paths", list);
  for (const policy of policies) article.append(renderPolicy(policy));
  if (policies.length === 0) article.append(element("p", "none", "No policy is in effect on this path."));
  return article;
}

function renderPath(path: string): HTMLElement {
  const line = element("span", "path");
  line.dir = "ltr";
  path.split("/").forEach((part, at) => {
    if (at > 0) line.append("/", document.createElement("wbr"));
    line.append(COLLECTIONS.has(part) ? element("span", "type", part) : name(part));
  });
  return line;
}

function renderPolicy(policy: Policy): HTMLElement {
  const title = element("h3", "", name(policy.kind), " ", element("small", "", name(policy.group)));
  const section = element("section", "policy", title);
  if (policy.unknown) {
    const { reason, message, policies = [] } = policy.unknown;
    const box = notice("bad", element("strong", "", "Not known: "), visible(message), ` (${reason}). `);
    if (policies.length > 0) {
      box.append("These policies may be in effect: ");
      policies.forEach((may, at) => box.append(at > 0 ? ", " : "", reference(may)));
    } else {
      box.append("Policies of this kind may be in effect here");
    }
    box.append(". This does not mean that there is no policy.");
    section.append(box);
  }
  if (policy.rejected.length > 0) {
    const items = policy.rejected.map(({ policy: rejected, reason, message }) =>
      element("li", "", reference(rejected), ` (${visible(reason)})`, message ? `: ${visible(message)}` : ""),
    );
    section.append(notice("warn", element("strong", "", "Rejected, not in effect:"), element("ul", "", ...items)));
  }
  if (policy.notComputed) {
    section.append(notice("plain", element("strong", "", "Not merged: "), visible(policy.notComputed)));
  }
  if (policy.inheritedOnly) {
    const text = "This kind does not act at this level. The values are those that the levels below inherit.";
    section.append(notice("plain", text));
  }
  if (policy.spec !== null) {
    const rows = valueRows(policy);
    for (const row of rows) section.append(renderRow(row));
    if (rows.length === 0) section.append(element("p", "hint", "The effective policy sets no value."));
  }
  for (const { policy: listed, node, spec } of policy.listed) {
    const from = element("div", "from", reference(listed), element("br", ""), "on ", name(node));
    section.append(element("div", "row", element("pre", "", yaml(spec, "")), from));
  }
  return section;
}

function renderRow({ unit, value, origin }: ValueRow): HTMLElement {
  const code = element("pre", "");
  code.dir = "ltr";
  if (unit === "*") {
    code.append(yaml(value ?? null, ""));
  } else {
    code.append(element("b", "", visible(unit)), ":");
    if (value === undefined) code.append(" (removed)");
    else if (isScalar(value)) code.append(` ${yaml(value, "")}`);
    else code.append(`\n${yaml(value, "  ")}`);
  }
  const from = element("div", "from");
  if (origin) from.append(...renderOrigin(origin));
  else from.append(element("span", "block own", "origin not named"));
  return element("div", "row", code, from);
}

const BLOCKS: Record<string, [string, string]> = {
  DEFAULTS: ["default", "defaults"],
  OVERRIDES: ["override", "overrides"],
  IMPLICIT_DEFAULTS: ["implicit default", "defaults"],
  OWN_FIELDS: ["own field", "own"],
};

function renderOrigin(origin: Origin): Child[] {
  const parts: Child[] = [];
  origin.policies.forEach((policy, at) => parts.push(at > 0 ? ", " : "", reference(policy)));
  if (origin.object) parts.push(parts.length > 0 ? ", " : "", name(origin.object));
  if (parts.length === 0) parts.push("no policy named");
  const [label, className] = BLOCKS[origin.block] ?? [origin.block, "own"];
  return [...parts, " ", element("span", `block ${className}`, label)];
}

function reference({ namespace, name: own }: Reference): HTMLElement {
  const text = element("strong", "");
  if (namespace) text.append(name(namespace), "/");
  text.append(name(own));
  return text;
}

function isScalar(value: Json): boolean {
  if (value === null || typeof value !== "object" || value instanceof RawNumber) return true;
  if (!Array.isArray(value)) return Object.keys(value).length === 0;
  return value.length <= 8 && value.every((item) => isScalar(item) && !Array.isArray(item));
}

/** A value as YAML. */
function yaml(value: Json, indent: string): string {
  if (value instanceof RawNumber) return indent + value.text;
  if (value === null || typeof value !== "object") return indent + scalar(value);
  if (Array.isArray(value)) {
    if (isScalar(value)) return `${indent}[${value.map((item) => yaml(item, "")).join(", ")}]`;
    return value.map((item) => `${indent}- ${yaml(item, `${indent}  `).trimStart()}`).join("\n");
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return `${indent}{}`;
  const lines = entries.map(([key, inner]) => {
    const label = `${indent}${scalar(key)}:`;
    return isScalar(inner) ? `${label} ${yaml(inner, "")}` : `${label}\n${yaml(inner, `${indent}  `)}`;
  });
  return lines.join("\n");
}

function scalar(value: null | boolean | number | string): string {
  if (typeof value !== "string") return String(value);
  const isWord = /^[\p{L}_/][\p{L}\p{N}_./@+ -]*$/u.test(value) && !value.endsWith(" ");
  const isQuantity = /^\d+(\.\d+)?[a-zA-Z]+$/.test(value);
  const isAddress = /^https?:[\w./-]+$/.test(value);
  const isPlain = isWord || isQuantity || isAddress;
  const isOther = /^(true|false|null|yes|no|on|off|y|n)$/i.test(value) || !Number.isNaN(Number(value));
  return visible(isPlain && !isOther ? value : JSON.stringify(value));
}
