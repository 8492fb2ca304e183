import { useEffect, useMemo, useState } from "preact/hooks";
import { catalogState } from "../catalog";
import { answersOf, OriginView, Problems, Units, type KindAnswer } from "../explanation";
import type { ExplainResponse } from "../gen/entail/v1/policy_insight_pb";
import { useLive, usePaths } from "../live";
import { entryOf, objectHref, pathHref, stepsOf } from "../names";
import { Answer, Failure, Paths, ReplyKinds, Title } from "../parts";
import { go, href, location, replaceQuery } from "../router";
import { useStore } from "../store";
import { Kind, plain, T, Value } from "../text";
import { explain } from "./object";

const isPath = (name: string) => /^(gateways|gatewayclasses|namespaces|mesh)\//.test(name);

/** Two rules, routes, other objects or paths side by side. */
export function ComparePage() {
  const { query } = useStore(location);
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  const [form, setForm] = useState({ a, b });
  useEffect(() => setForm({ a, b }), [a, b]);
  const { catalog } = useStore(catalogState);
  const suggestions = useMemo(() => {
    if (!catalog) return [];
    const base = (form.b || form.a).split("#")[0]!;
    const near = base ? catalog.search(base, 40).objects.map((id) => catalog.names[id]!) : [];
    const more = catalog.search("route/", 40).objects.map((id) => catalog.names[id]!);
    return [...new Set([...near, ...more])];
  }, [catalog, form.a, form.b]);
  return (
    <>
      <Title text="Compare" />
      <form
        class="request"
        onSubmit={(event) => {
          event.preventDefault();
          go(href(["compare"], form));
        }}
      >
        {(["a", "b"] as const).map((side) => (
          <label class="grow">
            {side === "a" ? "Left" : "Right"}
            <input
              name={side}
              list="compare-names"
              placeholder="httproute/namespace/name#rule, or a path"
              spellcheck={false}
              autocomplete="off"
              value={form[side]}
              onInput={(event) => setForm({ ...form, [side]: event.currentTarget.value })}
            />
          </label>
        ))}
        <datalist id="compare-names">
          {suggestions.map((name) => (
            <option value={plain(name)} />
          ))}
        </datalist>
        <p class="buttons">
          <button class="primary" type="submit" disabled={!form.a.trim() || !form.b.trim()}>
            Compare
          </button>
        </p>
      </form>
      {a && b ? <Comparison a={a.trim()} b={b.trim()} /> : <p class="quiet">Name two rules, routes, other objects or paths.</p>}
    </>
  );
}

function Comparison({ a, b }: { a: string; b: string }) {
  const left = useLive(`explain ${a}`, (signal) => explain(a, 1, signal));
  const right = useLive(`explain ${b}`, (signal) => explain(b, 1, signal));
  const { query } = useStore(location);
  const followed = useMemo(() => [...new Set([left.data, right.data].flatMap((reply) => reply?.paths.flatMap(({ paths }) => paths.slice(0, 20)) ?? []))], [left.data, right.data]);
  usePaths(followed);
  if (left.error && !left.data) return <Failure error={left.error} />;
  if (right.error && !right.data) return <Failure error={right.error} />;
  return (
    <Answer live={{ ...left, data: left.data && right.data ? { left: left.data, right: right.data } : undefined }}>
      {(replies) => <Sides a={a} b={b} left={replies.left} right={replies.right} at={[query.get("ata") ?? "", query.get("atb") ?? ""]} />}
    </Answer>
  );
}

function Sides({ a, b, left, right, at }: { a: string; b: string; left: ExplainResponse; right: ExplainResponse; at: [string, string] }) {
  const [all, showAll] = useState(false);
  const entries = [left, right].map((reply) => [...new Set(reply.paths.flatMap(({ paths }) => paths.map(entryOf)))].sort()) as [string[], string[]];
  const chosen = entries.map((list, side) => (list.includes(at[side]!) ? at[side]! : (list.find((entry) => entries[1 - side]!.includes(entry)) ?? list[0] ?? ""))) as [string, string];
  const answers = [left, right].map(
    (reply, side) =>
      new Map(
        answersOf(reply).map(([kind, list]): [string, KindAnswer[]] => [
          kind,
          list
            .map((answer) => ({ ...answer, paths: answer.paths.filter((path) => path === chosen[side] || path.startsWith(`${chosen[side]}/`)) }))
            .filter((answer) => answer.paths.length),
        ]),
      ),
  ) as [Map<string, KindAnswer[]>, Map<string, KindAnswer[]>];
  const kinds = [...new Set([...answers[0].keys(), ...answers[1].keys()])]
    .map((kind) => ({ kind, left: answers[0].get(kind) ?? [], right: answers[1].get(kind) ?? [] }))
    .filter((one) => one.left.length || one.right.length);
  const equal = kinds.filter((one) => fingerprint(one.left) === fingerprint(one.right));
  const shown = all ? kinds : kinds.filter((one) => !equal.includes(one));
  return (
    <>
      <ReplyKinds kinds={[...left.kinds, ...right.kinds.filter((one) => !left.kinds.some((other) => other.kind === one.kind))]} truncated={Boolean(left.nextPageToken || right.nextPageToken)} />
      <div class="filters" role="group" aria-label="Listeners">
        {([0, 1] as const).map((side) => (
          <label>
            {side === 0 ? "Left at" : "Right at"}
            <select value={chosen[side]} onChange={(event) => replaceQuery({ [side === 0 ? "ata" : "atb"]: event.currentTarget.value })}>
              {entries[side].map((entry) => (
                <option value={entry}>{plain(stepsOf(entry).map((step) => step.label).join(" › "))}</option>
              ))}
            </select>
          </label>
        ))}
        <label class="check">
          <input type="checkbox" checked={all} onChange={(event) => showAll(event.currentTarget.checked)} /> Show equal kinds
        </label>
      </div>
      <p role="status">
        {kinds.length - equal.length
          ? `${kinds.length - equal.length} of ${kinds.length} kinds differ.`
          : kinds.length
            ? "All effective policies are equal."
            : "No policy applies on either side."}
        {equal.length > 0 && kinds.length > equal.length && (
          <span class="quiet">
            {" Equal: "}
            {equal.map((one, index) => (
              <>
                {index > 0 && ", "}
                <Kind kind={one.kind} />
              </>
            ))}
            .
          </span>
        )}
      </p>
      {shown.map((one) => (
        <section class="kind-section" aria-label={one.kind}>
          <h2>
            <Kind kind={one.kind} />{" "}
            {equal.includes(one) && <span class="badge good">equal</span>}
          </h2>
          {one.left.length <= 1 && one.right.length <= 1 ? (
            <Table kind={one.kind} a={a} b={b} left={one.left[0]} right={one.right[0]} />
          ) : (
            <div class="two">
              {([one.left, one.right] as const).map((list, side) => (
                <div>
                  <h3>
                    <Side name={side === 0 ? a : b} />
                  </h3>
                  {list.map((answer) => (
                    <article class="answer">
                      <Paths paths={answer.paths} without={side === 0 ? a : b} />
                      <Problems policy={answer.explanation.policy!} />
                      <Units kind={one.kind} explanation={answer.explanation} paths={answer.paths} changed={new Set()} />
                    </article>
                  ))}
                  {!list.length && <p class="quiet">No entry for this kind.</p>}
                </div>
              ))}
            </div>
          )}
        </section>
      ))}
    </>
  );
}

const Side = ({ name }: { name: string }) => (
  <a class="name" href={isPath(name) ? pathHref(name) : objectHref(name)}>
    <T>{name}</T>
  </a>
);

const fingerprint = (answers: KindAnswer[]) => answers.map((answer) => answer.explanation.policy!.etag).sort().join();

function Table({ kind, a, b, left, right }: { kind: string; a: string; b: string; left: KindAnswer | undefined; right: KindAnswer | undefined }) {
  const units = [...new Set([left, right].flatMap((answer) => answer?.explanation.units.map((unit) => unit.unit) ?? []))].sort();
  const of = (answer: KindAnswer | undefined, name: string) => answer?.explanation.units.find((unit) => unit.unit === name);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Values of ${kind}`}>
      <table class="diff">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">
              <Side name={a} />
            </th>
            <th scope="col">
              <Side name={b} />
            </th>
          </tr>
        </thead>
        <tbody>
          {[left, right].some((answer) => answer && hasProblem(answer)) && (
            <tr>
              <th scope="row">Problems</th>
              <td>{left ? <Problems policy={left.explanation.policy!} /> : <span class="quiet">no entry</span>}</td>
              <td>{right ? <Problems policy={right.explanation.policy!} /> : <span class="quiet">no entry</span>}</td>
            </tr>
          )}
          {units.map((name) => {
            const [one, other] = [of(left, name), of(right, name)];
            const same = one?.valueJson === other?.valueJson;
            return (
              <tr class={same ? "" : "differs"}>
                <th scope="row">
                  <code>
                    <T>{name === "*" ? "whole policy" : name}</T>
                  </code>{" "}
                  {!same && <span class="badge part">differs</span>}
                </th>
                {[one, other].map((unit, side) => (
                  <td>
                    {unit?.valueJson === undefined ? (
                      <span class="quiet">{(side === 0 ? left : right)?.explanation.policy?.unknown ? "not known" : "no value"}</span>
                    ) : (
                      <>
                        <Value json={unit.valueJson} />
                        <div class="small">
                          <OriginView kind={kind} origin={unit.origin} strategy={unit.strategy} />
                        </div>
                      </>
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

const hasProblem = ({ explanation: { policy } }: KindAnswer) => Boolean(policy?.unknown || policy?.notComputed || policy?.rejected.length);
