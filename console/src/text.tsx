import type { ComponentChildren } from "preact";
import { objectHref, parseObject, policyHref, policyName, splitKind } from "./names";
import { yamlLines } from "./json";

// Controls, marks that change the direction of text, and characters without a width: a name with them can look like
// another one. They are shown by their number.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

const number = (character: string) =>
  `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;

/** Text for attributes and titles: hidden characters by their number. */
export const plain = (text: string) => text.replace(HIDDEN, (character) => `<${number(character)}>`);

/** Text that tenants wrote, or that contains what they wrote. */
export function T({ children }: { children: string | undefined }) {
  const text = children ?? "";
  if (text.search(HIDDEN) < 0) return <bdi>{text}</bdi>;
  const parts: ComponentChildren[] = [];
  let at = 0;
  for (const match of text.matchAll(HIDDEN)) {
    parts.push(text.slice(at, match.index), <span class="hidden-character">{number(match[0])}</span>);
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  return <bdi>{parts}</bdi>;
}

/** Text of several lines. */
export function Lines({ text }: { text: string }) {
  return (
    <>
      {text.split("\n").map((line) => (
        <div>
          <T>{line}</T>
        </div>
      ))}
    </>
  );
}

/** The kind of a policy: the group is quieter. */
export function Kind({ kind }: { kind: string }) {
  const [name, group] = splitKind(kind);
  return (
    <span class="kind">
      <T>{name}</T>
      {group && (
        <span class="group">
          <T>{`.${group}`}</T>
        </span>
      )}
    </span>
  );
}

export function PolicyLink({ kind, policy }: { kind: string; policy: { namespace: string; name: string } }) {
  return (
    <a class="name" href={policyHref(kind, policy)}>
      <T>{policyName(policy)}</T>
    </a>
  );
}

export function ObjectLink({ object, withKind = true }: { object: string; withKind?: boolean }) {
  const { kind, namespace, name, section } = parseObject(object);
  // Such as the root of a mesh, whose policies apply to everything.
  if (!kind || !name) return <T>{object.replace(/\/$/, "")}</T>;
  return (
    <a class="name" href={objectHref(object)}>
      {withKind && (
        <span class="quiet">
          <T>{kind}</T>{" "}
        </span>
      )}
      <T>{namespace ? `${namespace}/${name}` : name}</T>
      {section !== undefined && (
        <>
          <span class="quiet">#</span>
          <T>{section}</T>
        </>
      )}
    </a>
  );
}

/** A value in JSON, shown as YAML. */
export function Value({ json }: { json: string }) {
  const lines = yamlLines(json);
  if (lines.length === 1)
    return (
      <code class={lines[0]!.unit || /^[[{]/.test(lines[0]!.text) ? "value" : "value scalar"}>
        <T>{lines[0]!.text}</T>
      </code>
    );
  return (
    <pre class="value">
      {lines.map((line) => (
        <div>
          {"  ".repeat(line.indent)}
          <T>{line.text}</T>
        </div>
      ))}
    </pre>
  );
}

export const plural = (count: number | bigint, one: string, many = `${one}s`) =>
  `${count.toLocaleString("en-US")} ${Number(count) === 1 ? one : many}`;
