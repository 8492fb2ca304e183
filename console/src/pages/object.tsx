import { useMemo } from "preact/hooks";
import { catalogState, type Catalog } from "../catalog";
import { answersOf, DifferencesBar, KindSection, useDifferences, type KindAnswer } from "../explanation";
import type { ExplainResponse } from "../gen/entail/v1/policy_insight_pb";
import { useLive, usePaths } from "../live";
import { entryOf, formatObject, isRouteKind, levelLabel, parseObject, stepsOf } from "../names";
import { Answer, Note, PathCrumbs, ReplyKinds, Title } from "../parts";
import { href, location, replaceQuery } from "../router";
import { ALL_KINDS, insight, session } from "../session";
import { useStore } from "../store";
import { Kind, ObjectLink, plain, plural, T } from "../text";
import { useState } from "preact/hooks";

const PAGE = 100;

/** Explains as many pages as were asked for, as one reply. */
export async function explain(name: string, pages: number, signal: AbortSignal): Promise<ExplainResponse> {
  const whole = await insight.explain({ name, pageSize: PAGE }, { signal });
  for (let left = pages - 1; left > 0 && whole.nextPageToken; left -= 1) {
    const page = await insight.explain({ name, pageSize: PAGE, pageToken: whole.nextPageToken }, { signal });
    whole.paths.push(...page.paths);
    whole.nextPageToken = page.nextPageToken;
  }
  return whole;
}

/** The page of a route, another object, or a path: all effective policies, and where each value comes from. */
export function ObjectPage({ name, isPath }: { name: string; isPath: boolean }) {
  const [pages, setPages] = useState({ name, count: 1 });
  const count = pages.name === name ? pages.count : 1;
  const { query } = useStore(location);
  const { catalog } = useStore(catalogState);
  const live = useLive(`explain ${name} ${count}`, (signal) => explain(name, count, signal));
  const { changed, current, dismiss } = useDifferences(live.previous, live.data, name);
  const all = useMemo(() => (live.data ? answersOf(live.data) : []), [live.data]);
  usePaths(useMemo(() => watchedPaths(live.data, isPath ? name : ""), [live.data]));

  const entries = useMemo(() => [...new Set(live.data?.paths.flatMap(({ paths }) => paths.map(entryOf)))].sort(), [live.data]);
  const at = query.get("at") ?? "";
  const only = query.get("kind") ?? "";
  const shown = all
    .filter(([kind]) => !only || kind === only)
    .map(([kind, answers]): [string, KindAnswer[]] => [
      kind,
      answers
        .map((answer) => ({ ...answer, paths: answer.paths.filter((path) => !at || path === at || path.startsWith(`${at}/`)) }))
        .filter((answer) => answer.paths.length),
    ])
    .filter(([, answers]) => answers.length);

  return (
    <>
      {isPath ? (
        <Title text={`Path ${name}`}>
          <span class="eyebrow">Path</span>
          <PathCrumbs path={name} link={false} />
        </Title>
      ) : (
        <ObjectTitle name={catalog ? catalog.canonical(name) : name} />
      )}
      <Actions name={name} isPath={isPath} />
      <DifferencesBar current={current} dismiss={dismiss} />
      {!isPath && catalog && <Surroundings catalog={catalog} name={name} />}
      <Answer live={live}>
        {(reply) => (
          <>
            <ReplyKinds kinds={reply.kinds} truncated={reply.truncated} unread={reply.unreadParameters} />
            {(all.length > 1 || entries.length > 1) && (
              <div class="filters" role="group" aria-label="Filter">
                <label>
                  Kind
                  <select value={only} onChange={(event) => replaceQuery({ kind: event.currentTarget.value })}>
                    <option value="">all {all.length}</option>
                    {all.map(([kind]) => (
                      <option value={kind}>{plain(kind)}</option>
                    ))}
                  </select>
                </label>
                {entries.length > 1 && (
                  <label>
                    At
                    <select value={at} onChange={(event) => replaceQuery({ at: event.currentTarget.value })}>
                      <option value="">all {entries.length} listeners</option>
                      {entries.map((entry) => (
                        <option value={entry}>{plain(stepsOf(entry).map((step) => step.label).join(" › "))}</option>
                      ))}
                    </select>
                  </label>
                )}
              </div>
            )}
            {shown.map(([kind, answers]) => (
              <KindSection key={kind} kind={kind} answers={answers} without={isPath ? "" : name} changed={changed} />
            ))}
            {!only && <WithoutPolicy reply={reply} />}
            {reply.nextPageToken && (
              <p>
                <button onClick={() => setPages({ name, count: count + 5 })} disabled={live.loading}>
                  Show more answers
                </button>{" "}
                <span class="quiet">There are more paths with other answers.</span>
              </p>
            )}
          </>
        )}
      </Answer>
    </>
  );
}

/** The paths to follow for a page: few prefixes that contain all of its answers. */
function watchedPaths(reply: ExplainResponse | undefined, path: string): string[] {
  if (path) return [path];
  const found = new Set<string>();
  for (const { paths } of reply?.paths ?? [])
    for (const one of paths) {
      const steps = stepsOf(one);
      const route = steps.filter((step) => step.level === "Route").pop();
      found.add(route?.path ?? one);
    }
  return [...found];
}

function ObjectTitle({ name }: { name: string }) {
  const { kind, namespace, name: own, section } = parseObject(name);
  return (
    <Title text={name}>
      <span class="eyebrow">
        <T>{kind}</T>
        {section !== undefined && <span> {isRouteKind(kind) ? "rule" : /gateway|listenerset/i.test(kind) ? "listener" : "section"}</span>}
      </span>
      <T>{namespace ? `${namespace}/${own}` : own}</T>
      {section !== undefined && (
        <>
          <span class="quiet">#</span>
          <T>{section}</T>
        </>
      )}
    </Title>
  );
}

function Actions({ name, isPath }: { name: string; isPath: boolean }) {
  const { kind } = parseObject(name);
  return (
    <p class="actions">
      {!isPath && <a href={href(["topology"], { focus: name })}>Show in the topology</a>}
      <a href={href(["compare"], { a: name })}>Compare with another</a>
      {!isPath && /^gateway$/i.test(kind) && (
        <a href={href(["path", "gateways", parseObject(name).namespace, parseObject(name).name])}>What everything below inherits</a>
      )}
      {isPath &&
        stepsOf(name)
          .slice(-1)
          .map((step) => <span><span class="quiet">All paths of </span><ObjectLink object={step.object} /></span>)}
    </p>
  );
}

/** What is directly above and below an object in the topology. */
function Surroundings({ catalog, name }: { catalog: Catalog; name: string }) {
  const asked = parseObject(name);
  const ids = catalog.nodes(catalog.canonical(name));
  const above = new Map<string, string>();
  const below = new Map<string, string>();
  for (const id of ids) {
    for (const other of catalog.parents(id)) if (catalog.levels[other] !== "Namespace") above.set(catalog.names[other]!, catalog.levels[other]!);
    for (const other of catalog.children(id)) below.set(catalog.names[other]!, catalog.levels[other]!);
  }
  if (!ids.length) return null;
  const own = formatObject({ ...asked, section: undefined });
  return (
    <dl class="surroundings">
      {above.size > 0 && <Neighbours title="Above" nodes={above} own={own} />}
      {below.size > 0 && <Neighbours title="Below" nodes={below} own={own} compare={isRouteKind(asked.kind) && asked.section === undefined} />}
    </dl>
  );
}

function Neighbours({ title, nodes, own, compare = false }: { title: string; nodes: Map<string, string>; own: string; compare?: boolean }) {
  const [limit, setLimit] = useState(12);
  const names = [...nodes];
  const rules = names.filter(([, level]) => level === "RouteRule").map(([name]) => name);
  return (
    <>
      <dt>{title}</dt>
      <dd>
        <ul class="inline">
          {names.slice(0, limit).map(([name, level]) => {
            const { section } = parseObject(name);
            const mine = section !== undefined && name.toLowerCase().startsWith(`${own.toLowerCase()}#`);
            return (
              <li key={name}>
                {mine && <span class="quiet">{levelLabel(level).toLowerCase()} </span>}
                <ObjectLink object={name} />
              </li>
            );
          })}
          {names.length > limit && (
            <li>
              <button class="link" onClick={() => setLimit(limit + 100)}>
                {plural(names.length - limit, "more", "more")}
              </button>
            </li>
          )}
          {compare && rules.length > 1 && (
            <li>
              <a href={href(["compare"], { a: rules[0], b: rules[1] })}>Compare two rules</a>
            </li>
          )}
        </ul>
      </dd>
    </>
  );
}

/** The kinds of which no policy has a say here, if that is known. */
function WithoutPolicy({ reply }: { reply: ExplainResponse }) {
  const { status, incomplete } = useStore(session);
  if (!status || reply.nextPageToken || reply.truncated) return null;
  const present = new Set(reply.paths.flatMap(({ kinds }) => kinds.map(({ policy }) => `${policy!.kind}.${policy!.group}`)));
  const unsure = new Set([...incomplete.map((one) => one.kind), ...reply.kinds.map((one) => one.kind)]);
  const absent = status.kinds.filter((kind) => kind.policies > 0n && !present.has(kind.kind)).map((kind) => kind.kind);
  const isUnsure = (kind: string) => unsure.has(kind) || unsure.has(ALL_KINDS);
  const none = absent.filter((kind) => !isUnsure(kind));
  const named = [...unsure].filter((kind) => kind !== ALL_KINDS);
  const open = [...new Set([...absent.filter(isUnsure), ...named].filter((kind) => !present.has(kind)))];
  return (
    <>
      {open.length > 0 && (
        <Note tone="unknown" title="Not known whether there is a policy">
          <ul class="inline">
            {open.map((kind) => (
              <li>
                <Kind kind={kind} />
              </li>
            ))}
          </ul>
        </Note>
      )}
      {none.length > 0 && (
        <p class="quiet">
          No policy of{" "}
          {none.map((kind, at) => (
            <>
              {at > 0 && ", "}
              <Kind kind={kind} />
            </>
          ))}{" "}
          applies here.
        </p>
      )}
      {!present.size && !open.length && !none.length && <p class="quiet">No policy applies here.</p>}
    </>
  );
}
