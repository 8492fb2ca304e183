import { toBinary } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useEffect, useState } from "preact/hooks";
import {
  KindExplanationSchema,
  type AttachedNode,
  type ExplainResponse,
  type KindExplanation,
  type UnitExplanation,
} from "./gen/entail/v1/policy_insight_pb";
import { Block, type EffectivePolicy, type Origin, type PolicyRef } from "./gen/entail/v1/types_pb";
import { oneLine } from "./json";
import { levelLabel, parseObject, policyName, stepsOf } from "./names";
import { clock, Note, Paths, Reason } from "./parts";
import { Kind, ObjectLink, plural, PolicyLink, T, Value } from "./text";

/** The explanation of a kind, and all paths that have it. */
export interface KindAnswer {
  key: string;
  kind: string;
  paths: string[];
  explanation: KindExplanation;
}

export const kindOf = (policy: { kind: string; group: string }) => (policy.group ? `${policy.kind}.${policy.group}` : policy.kind);

/** The answers of a reply by kind: those with a problem first. */
export function answersOf(reply: ExplainResponse): [string, KindAnswer[]][] {
  const kinds = new Map<string, Map<string, KindAnswer>>();
  for (const { paths, kinds: explanations } of reply.paths)
    for (const explanation of explanations) {
      const kind = kindOf(explanation.policy!);
      const same = toBinary(KindExplanationSchema, explanation).join();
      let answers = kinds.get(kind);
      if (!answers) kinds.set(kind, (answers = new Map()));
      const known = answers.get(same);
      if (known) known.paths.push(...paths);
      else answers.set(same, { key: `${kind} ${paths[0]}`, kind, paths: [...paths], explanation });
    }
  return [...kinds]
    .map(([kind, answers]): [string, KindAnswer[]] => [
      kind,
      [...answers.values()].sort((a, b) => severity(b.explanation) - severity(a.explanation)),
    ])
    .sort((a, b) => severity(b[1][0]!.explanation) - severity(a[1][0]!.explanation) || (a[0] < b[0] ? -1 : 1));
}

function severity({ policy, lostUnits, warnings }: KindExplanation): number {
  if (policy?.unknown || policy?.notComputed) return 3;
  if (policy?.rejected.length) return 2;
  return lostUnits.length || warnings.length ? 1 : 0;
}

const BLOCKS: Record<Block, string> = {
  [Block.UNSPECIFIED]: "",
  [Block.IMPLICIT_DEFAULTS]: "rules",
  [Block.DEFAULTS]: "defaults",
  [Block.OVERRIDES]: "overrides",
  [Block.OWN_FIELDS]: "own field",
};

export const blockLabel = (block: Block) => BLOCKS[block] ?? "";

export function OriginView({ kind, origin, strategy }: { kind: string; origin: Origin | undefined; strategy?: string }) {
  if (!origin) return <span class="quiet">no policy</span>;
  const detail = [blockLabel(origin.block), strategy].filter(Boolean).join(", ");
  return (
    <span class="origin">
      {origin.object ? (
        <ObjectLink object={origin.object} />
      ) : (
        origin.policies.map((policy, at) => (
          <>
            {at > 0 && ", "}
            <PolicyLink kind={kind} policy={policy} />
          </>
        ))
      )}{" "}
      {detail && <span class="quiet">{detail}</span>}
    </span>
  );
}

const isSame = (a: PolicyRef | undefined, b: PolicyRef | undefined) => a?.name === b?.name && a?.namespace === b?.namespace;

/** What became of a policy's values on the path. */
function effectOf(policy: PolicyRef, { units, policy: effective }: KindExplanation): { text: string; tone: string } {
  if (effective?.rejected.some((one) => isSame(one.policy, policy))) return { text: "rejected", tone: "bad" };
  if (effective?.unknown || effective?.notComputed) return { text: "effect not known", tone: "unknown" };
  if (effective?.listed.length) return { text: "listed", tone: "" };
  const sets = units.filter((unit) => unit.origin?.policies.some((one) => isSame(one, policy))).length;
  const loses = units.filter((unit) => unit.overridden.some((one) => isSame(one.policy, policy))).length;
  if (sets && loses) return { text: `sets ${sets}, overridden on ${loses}`, tone: "" };
  if (sets) return { text: sets === units.length ? "sets everything" : `sets ${sets} of ${units.length}`, tone: "" };
  if (loses) return { text: "overridden", tone: "off" };
  return { text: "sets nothing", tone: "off" };
}

interface StackNode {
  object: string;
  level: string;
  attached: AttachedNode | undefined;
}

/** The nodes of the path with the nodes that have policies, from least to most specific. */
export function stackOf(path: string, nodes: AttachedNode[]): StackNode[] {
  const steps = stepsOf(path);
  const positions = nodes.map((node) => steps.findIndex((step) => step.object === node.node));
  const onPath = positions.filter((position) => position >= 0);
  const only = nodes.map((node) => ({ object: node.node, level: node.level, attached: node }));
  if (!steps.length || onPath.some((position, at) => at > 0 && position <= onPath[at - 1]!)) return only;
  const stack: StackNode[] = [];
  let at = 0;
  const empties = (end: number) => {
    for (; at < end; at += 1) stack.push({ object: steps[at]!.object, level: steps[at]!.level, attached: undefined });
  };
  nodes.forEach((node, index) => {
    const position = positions[index]!;
    if (position >= 0) {
      empties(position);
      at += 1;
    } else {
      // A namespace precedes the first of its objects that follows on the path.
      const limit = positions.slice(index + 1).find((other) => other >= 0) ?? steps.length;
      const name = parseObject(node.node).name;
      const owner = steps.findIndex((step, place) => place >= at && parseObject(step.object).namespace === name);
      if (node.level === "Namespace" && owner >= 0) empties(Math.min(owner, limit));
    }
    stack.push({ object: node.node, level: node.level, attached: node });
  });
  empties(steps.length);
  return stack;
}

function Stack({ kind, path, explanation }: { kind: string; path: string; explanation: KindExplanation }) {
  return (
    <ol class="stack" aria-label="Attached policies, from least to most specific">
      {stackOf(path, explanation.nodes).map((node) => (
        <li key={node.object} class={node.attached ? "attached" : "empty"}>
          <div class="stack-node">
            <span class="level">{levelLabel(node.level)}</span> <ObjectLink object={node.object} withKind={!["Gateway", "Namespace", "Listener", "RouteRule"].includes(node.level)} />
          </div>
          {node.attached?.precedesChildRoutes && <div class="quiet small">child Routes cannot override its policies</div>}
          {node.attached && (
            <ul>
              {node.attached.policies.map((policy) => {
                const effect = effectOf(policy.policy!, explanation);
                return (
                  <li key={policyName(policy.policy!)} class={`stack-policy ${effect.tone}`}>
                    <PolicyLink kind={kind} policy={policy.policy!} />
                    <div class="small quiet">
                      <span class="effect">{effect.text}</span>
                      {" · "}
                      <T>{policy.blocks.join("; ")}</T>
                      {policy.created && <span class="date"> · since {timestampDate(policy.created).toISOString().slice(0, 10)}</span>}
                    </div>
                  </li>
                );
              })}
            </ul>
          )}
        </li>
      ))}
    </ol>
  );
}

/** A value that is overridden: short ones are crossed out, because long ones would be hard to read. */
function Former({ json }: { json: string }) {
  const text = oneLine(json);
  return (
    <del class={text.length > 32 ? "long" : ""}>
      <code>
        <T>{text}</T>
      </code>
    </del>
  );
}

function Unit({ kind, unit, changed }: { kind: string; unit: UnitExplanation; changed: boolean }) {
  return (
    <tr class={changed ? "changed" : ""}>
      <th scope="row">
        {unit.unit === "*" ? <span class="quiet">whole policy</span> : <code><T>{unit.unit}</T></code>}{" "}
        {changed && <span class="badge live">changed</span>}
      </th>
      <td>
        {unit.valueJson === undefined ? <span class="quiet">no value</span> : <Value json={unit.valueJson} />}
      </td>
      <td>
        <OriginView kind={kind} origin={unit.origin} strategy={unit.strategy} />
        {unit.overridden.length > 0 && (
          <ul class="overridden">
            {[...unit.overridden].reverse().map((other) => (
              <li>
                <span class="quiet">overrides </span>
                <PolicyLink kind={kind} policy={other.policy!} />
                {": "}
                <Former json={other.valueJson} />
                {other.unit !== unit.unit && (
                  <span class="quiet">
                    {" at "}
                    <T>{other.unit}</T>
                  </span>
                )}{" "}
                <Reason reason={other.reason} />
              </li>
            ))}
          </ul>
        )}
      </td>
    </tr>
  );
}

/** What must not be overlooked about an effective policy: what is unknown, rejected or not computed. */
export function Problems({ policy }: { policy: EffectivePolicy }) {
  const kind = kindOf(policy);
  const holds = ["SelectorNotEvaluated", "BackendFilterNotEvaluated", "ReferenceNotChecked", "PolicyUnreadable"].includes(policy.unknown?.reason ?? "");
  return (
    <>
      {policy.unknown && (
        <Note tone="unknown" title={`Not known: ${policy.unknown.reason}`}>
          <p>
            <T>{policy.unknown.message}</T>.{" "}
            {holds ? "What is below holds apart from that." : "This does not mean that there is no policy."}
          </p>
          {policy.unknown.policies.length > 0 && (
            <p>
              {policy.unknown.policies.map((one, at) => (
                <>
                  {at > 0 && ", "}
                  <PolicyLink kind={kind} policy={one} />
                </>
              ))}
            </p>
          )}
        </Note>
      )}
      {policy.notComputed && (
        <Note tone="unknown" title="Not computed">
          <p>
            <T>{policy.notComputed}</T>
          </p>
        </Note>
      )}
      {policy.rejected.length > 0 && (
        <Note tone="error" title={plural(policy.rejected.length, "policy is rejected", "policies are rejected")}>
          <ul>
            {policy.rejected.map((one) => (
              <li>
                <PolicyLink kind={kind} policy={one.policy!} /> <span class="badge bad">{one.reason}</span> <T>{one.message}</T>
              </li>
            ))}
          </ul>
        </Note>
      )}
      {policy.inheritedOnly && <p class="quiet small">Takes effect further down. This is what paths below inherit so far.</p>}
    </>
  );
}

/** Policies of a kind that are listed in order instead of merged. */
export function Listed({ policy }: { policy: EffectivePolicy }) {
  if (!policy.listed.length) return null;
  return (
    <ol class="listed">
      {policy.listed.map((one) => (
        <li>
          <PolicyLink kind={kindOf(policy)} policy={one.policy!} /> <span class="quiet">on</span> <ObjectLink object={one.node} />
          <Value json={one.specJson} />
        </li>
      ))}
    </ol>
  );
}

/** The values of an effective policy, each with its origin and with what it overrides. */
export function Units({ kind, explanation, paths, changed }: { kind: string; explanation: KindExplanation; paths: string[]; changed: Set<string> }) {
  const { policy, units, lostUnits, warnings } = explanation;
  return (
    <div class="units">
      <Listed policy={policy!} />
      {units.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Value</th>
              <th scope="col">Set by</th>
            </tr>
          </thead>
          <tbody>
            {units.map((unit) => (
              <Unit key={unit.unit} kind={kind} unit={unit} changed={paths.some((path) => changed.has(changeKey(path, kind, unit.unit)))} />
            ))}
          </tbody>
        </table>
      )}
      {!units.length && !policy!.listed.length && !policy!.unknown && !policy!.notComputed && (
        <p class="quiet">No policy contributes a value here.</p>
      )}
      {lostUnits.length > 0 && (
        <Note tone="unknown" title="Lost values">
          <p>
            A less specific policy sets <T>{lostUnits.join(", ")}</T>, and the result does not contain it.
          </p>
        </Note>
      )}
      {warnings.map((warning) => (
        <p class="warning">
          <T>{warning}</T>
        </p>
      ))}
    </div>
  );
}

export function AnswerCard({ answer, without, changed }: { answer: KindAnswer; without?: string; changed: Set<string> }) {
  const { explanation, kind, paths } = answer;
  return (
    <article class="answer">
      <div class="answer-paths">
        <span class="quiet">on</span>
        <Paths paths={paths} without={without} />
      </div>
      <Problems policy={explanation.policy!} />
      <div class="answer-body">
        <Stack kind={kind} path={paths[0]!} explanation={explanation} />
        <Units kind={kind} explanation={explanation} paths={paths} changed={changed} />
      </div>
    </article>
  );
}

export function KindSection({ kind, answers, without, changed }: { kind: string; answers: KindAnswer[]; without?: string; changed: Set<string> }) {
  return (
    <section class="kind-section" id={`kind-${kind}`} aria-label={kind}>
      <h2>
        <Kind kind={kind} />{" "}
        {answers.length > 1 && <span class="count">{answers.length} different answers</span>}
      </h2>
      {answers.map((answer) => (
        <AnswerCard key={answer.key} answer={answer} without={without} changed={changed} />
      ))}
    </section>
  );
}

const changeKey = (path: string, kind: string, unit: string) => `${path}\n${kind}\n${unit}`;

interface ValueChange {
  kind: string;
  unit: string;
  before: string;
  after: string;
  paths: number;
}

/** The differences of two explanations of the same object. */
function differences(before: ExplainResponse, after: ExplainResponse): { list: ValueChange[]; keys: Set<string> } {
  const valuesOf = (reply: ExplainResponse) => {
    const values = new Map<string, string>();
    for (const { paths, kinds } of reply.paths)
      for (const { policy, units } of kinds) {
        const kind = kindOf(policy!);
        const problem = [policy!.unknown ? `not known (${policy!.unknown.reason})` : "", ...policy!.rejected.map((one) => `${one.policy?.name} rejected (${one.reason})`)].filter(Boolean).join("; ");
        for (const path of paths) {
          if (problem) values.set(changeKey(path, kind, ""), problem);
          for (const unit of units) {
            const by = unit.origin?.object || unit.origin?.policies.map(policyName).join(", ") || "no policy";
            values.set(changeKey(path, kind, unit.unit), `${unit.valueJson === undefined ? "no value" : oneLine(unit.valueJson)} (${by})`);
          }
        }
      }
    return values;
  };
  const old = valuesOf(before);
  const now = valuesOf(after);
  const keys = new Set<string>();
  const list = new Map<string, ValueChange>();
  for (const key of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(key), now.get(key)];
    if (was === is) continue;
    keys.add(key);
    const [, kind = "", unit = ""] = key.split("\n");
    const change = { kind, unit, before: was ?? "nothing", after: is ?? "nothing", paths: 1 };
    const same = JSON.stringify(change);
    const known = list.get(same);
    if (known) known.paths += 1;
    else list.set(same, change);
  }
  return { list: [...list.values()], keys };
}

/** What the last refresh of the page changed; it stays until it is dismissed or something else changes. */
export function useDifferences(previous: ExplainResponse | undefined, data: ExplainResponse | undefined, question: string) {
  const [state, set] = useState<{ question: string; time: number; list: ValueChange[]; keys: Set<string> } | undefined>();
  useEffect(() => {
    if (!previous || !data) return;
    const { list, keys } = differences(previous, data);
    if (list.length) set({ question, time: Date.now(), list, keys });
  }, [previous, data]);
  const current = state?.question === question ? state : undefined;
  return { changed: current?.keys ?? new Set<string>(), current, dismiss: () => set(undefined) };
}

export function DifferencesBar({ current, dismiss }: { current: { time: number; list: ValueChange[] } | undefined; dismiss: () => void }) {
  return (
    <div aria-live="polite" class="differences-slot">
      {current && (
        <div class="note live differences">
          <p class="note-title">
            Changed at {clock(current.time)}{" "}
            <button class="link" onClick={dismiss}>
              dismiss
            </button>
          </p>
          <ul>
            {current.list.slice(0, 8).map((change) => (
              <li>
                <Kind kind={change.kind} />{" "}
                <code>
                  <T>{change.unit === "*" ? "whole policy" : change.unit}</T>
                </code>
                : <T>{change.before}</T> <span aria-label="becomes">→</span> <strong><T>{change.after}</T></strong>
                {change.paths > 1 && <span class="quiet"> on {change.paths} paths</span>}
              </li>
            ))}
            {current.list.length > 8 && <li class="quiet">and {current.list.length - 8} more</li>}
          </ul>
        </div>
      )}
    </div>
  );
}
