import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { catalogState, overview, type Attached, type Catalog } from "../catalog";
import {
  childrenOf,
  choose,
  countBelow,
  draw,
  FEW,
  isEmpty,
  keptBy,
  parentsOf,
  rootsOf,
  SHOWN_POLICIES,
  type Box,
  type Filter,
} from "../graph";
import { levelLabel, objectHref, parseObject, policyName, splitKind } from "../names";
import { Failure, Loading, Note, Title } from "../parts";
import { href, location, replaceQuery } from "../router";
import { session } from "../session";
import { useStore } from "../store";
import { ObjectLink, plain, plural, PolicyLink, T } from "../text";
import { forceLabel } from "./policies";

/** The Gateways, listeners, routes, rules and backends with their policies, as a graph or as a list. */
export function TopologyPage() {
  const { catalog, error, read } = useStore(catalogState);
  const { query } = useStore(location);
  const view = query.get("view") ?? (window.innerWidth < 720 ? "list" : "graph");
  return (
    <>
      <Title text="Topology" />
      {error && <Failure error={error} />}
      {!catalog && !error && <Loading what={`Reading the topology: ${plural(read, "object")} so far`} />}
      {catalog && <Loaded catalog={catalog} view={view} />}
    </>
  );
}

function Loaded({ catalog, view }: { catalog: Catalog; view: string }) {
  const { query } = useStore(location);
  const filter: Filter = useMemo(
    () => ({ namespace: query.get("ns") ?? "", kind: query.get("kind") ?? "", policy: query.get("policy") ?? "" }),
    [query.get("ns"), query.get("kind"), query.get("policy")],
  );
  const focus = query.get("focus") ?? "";
  const kept = useMemo(() => keptBy(catalog, filter), [catalog, filter]);
  const focused = useMemo(() => (focus ? catalog.nodes(catalog.canonical(focus)) : []), [catalog, focus]);
  return (
    <>
      <Summary catalog={catalog} />
      {catalog.truncated && (
        <Note tone="unknown" title="Objects are missing here">
          <p>Rights to single objects were left unchecked, because there are too many.</p>
        </Note>
      )}
      <Controls catalog={catalog} filter={filter} view={view} />
      {focus && (
        <p class="focus-line">
          {focused.length ? "Around " : "Not in the topology: "}
          <ObjectLink object={focus} />{" "}
          <button class="link" onClick={() => replaceQuery({ focus: "" })}>
            show everything
          </button>
        </p>
      )}
      {kept && !kept.size && <p>No object matches the filter.</p>}
      {!catalog.names.length && <p>There are no Gateways or routes, or none that you may see.</p>}
      {catalog.names.length === 0 || (kept && !kept.size) ? null : view === "list" ? (
        <Tree key={`${focus} ${JSON.stringify(filter)}`} catalog={catalog} kept={kept} focus={focused} />
      ) : (
        <GraphView key={`${focus} ${JSON.stringify(filter)}`} catalog={catalog} kept={kept} focus={focused} filter={filter} />
      )}
      <NamespacePolicies catalog={catalog} namespace={filter.namespace} />
    </>
  );
}

function Summary({ catalog }: { catalog: Catalog }) {
  const { incomplete } = useStore(session);
  const counts = useMemo(() => {
    const { levels } = overview(catalog);
    const force = new Map<string, number>();
    for (const policy of catalog.policies) {
      const label = forceLabel(policy.inForce)!;
      force.set(label, (force.get(label) ?? 0) + 1);
    }
    return { level: (name: string) => levels.get(name) ?? 0, force: (name: string) => force.get(name) ?? 0 };
  }, [catalog]);
  const bad = counts.force("not accepted");
  const unknown = counts.force("not known");
  const idle = counts.force("no effect") + counts.force("on no path");
  return (
    <ul class="summary">
      <li>{plural(counts.level("Gateway"), "Gateway")}</li>
      <li>{plural(counts.level("Listener"), "listener")}</li>
      <li>{plural(counts.level("Route"), "route")}</li>
      <li>{plural(counts.level("RouteRule"), "rule")}</li>
      <li>{plural(counts.level("Backend"), "backend")}</li>
      <li>
        <a href={href(["policies"])}>{plural(catalog.policies.length, "policy", "policies")}</a>{" "}
        {incomplete.length > 0 && <span class="badge unknown">not all known</span>}
      </li>
      {unknown > 0 && (
        <li>
          <a href={href(["policies"], { force: "not known" })}>{unknown} not known</a>
        </li>
      )}
      {bad > 0 && (
        <li>
          <a href={href(["policies"], { force: "not accepted" })}>{bad} not accepted</a>
        </li>
      )}
      {idle > 0 && (
        <li>
          <a href={href(["policies"], { force: counts.force("no effect") ? "no effect" : "on no path" })}>{idle} without effect</a>
        </li>
      )}
    </ul>
  );
}

function Controls({ catalog, filter, view }: { catalog: Catalog; filter: Filter; view: string }) {
  const { namespaces, kinds } = overview(catalog);
  const policies = useMemo(() => [...new Set(catalog.policies.map((policy) => policy.kind))], [catalog]);
  const choice = (label: string, name: string, value: string, values: string[]) => (
    <label>
      {label}
      <select value={value} onChange={(event) => replaceQuery({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {values.map((one) => (
          <option value={one}>{plain(one)}</option>
        ))}
      </select>
    </label>
  );
  return (
    <div class="filters" role="group" aria-label="Filter">
      {choice("Namespace", "ns", filter.namespace, namespaces)}
      {choice("Kind", "kind", filter.kind, kinds)}
      {choice("With policies of", "policy", filter.policy, policies)}
      {!isEmpty(filter) && (
        <button class="link" onClick={() => replaceQuery({ ns: "", kind: "", policy: "" })}>
          clear
        </button>
      )}
      <span class="segmented" role="group" aria-label="View">
        {(["graph", "list"] as const).map((one) => (
          <button aria-pressed={view === one} onClick={() => replaceQuery({ view: one })}>
            {one === "graph" ? "Graph" : "List"}
          </button>
        ))}
      </span>
    </div>
  );
}

/** Policies of namespaces, which are not drawn in the graph. */
function NamespacePolicies({ catalog, namespace }: { catalog: Catalog; namespace: string }) {
  const found = useMemo(() => {
    const ids: number[] = [];
    catalog.levels.forEach((level, id) => {
      if (level === "Namespace" && catalog.attached[id]!.length) ids.push(id);
    });
    return ids.filter((id) => !namespace || catalog.names[id] === `Namespace/${namespace}`);
  }, [catalog, namespace]);
  if (!found.length) return null;
  return (
    <section aria-label="Policies of namespaces">
      <h2>Policies of namespaces</h2>
      <p class="quiet small">They apply to objects in the namespace and are not drawn above.</p>
      <ul class="columns">
        {found.slice(0, 100).map((id) => (
          <li>
            <ObjectLink object={catalog.names[id]!} />
            <AttachedList attached={catalog.attached[id]!} />
          </li>
        ))}
        {found.length > 100 && <li>and {found.length - 100} more</li>}
      </ul>
    </section>
  );
}

function AttachedList({ attached }: { attached: Attached[] }) {
  return (
    <ul class="attached-list">
      {attached.slice(0, 50).map((policy) => (
        <li class={policy.accepted ? "" : "bad"}>
          <PolicyLink kind={policy.kind} policy={policy} /> <span class="quiet small"><T>{splitKind(policy.kind)[0]}</T></span>{" "}
          {!policy.accepted && <span class="badge bad">not accepted</span>}
        </li>
      ))}
      {attached.length > 50 && <li class="quiet">and {attached.length - 50} more</li>}
    </ul>
  );
}

/** The part of a node's name that tells it from its neighbours. */
function shortName(catalog: Catalog, id: number): string {
  const { namespace, name, section } = parseObject(catalog.names[id]!);
  if (section !== undefined) return section;
  const ports = [...catalog.children(id)].filter((child) => catalog.levels[child] === "BackendPort").map((child) => parseObject(catalog.names[child]!).section);
  const port = ports.length === 1 && catalog.levels[id] === "Backend" ? `:${ports[0]}` : "";
  return `${namespace ? `${namespace}/` : ""}${name}${port}`;
}

function levelText(catalog: Catalog, id: number): string {
  const level = catalog.levels[id]!;
  const { kind } = parseObject(catalog.names[id]!);
  return level === "Route" || level === "Backend" ? kind : levelLabel(level);
}

const MIN_SCALE = 0.3;

function GraphView({ catalog, kept, focus, filter }: { catalog: Catalog; kept: Set<number> | undefined; focus: number[]; filter: Filter }) {
  // Ids are of one snapshot, so what is open is kept by name.
  const [opened, setOpened] = useState(new Map<string, number>());
  const [closed, setClosed] = useState(new Set<string>());
  const [selectedName, select] = useState("");
  const ids = (names: Iterable<string>) => [...names].flatMap((name) => (name === "" ? [-1] : catalog.nodes(name)));
  const view = useMemo(() => {
    const open = new Map([...opened].flatMap(([name, count]) => ids([name]).map((id): [number, number] => [id, count])));
    return choose(catalog, focus, kept, open, new Set(ids(closed)));
  }, [catalog, focus, kept, opened, closed]);
  const drawing = useMemo(() => draw(catalog, view), [catalog, view]);
  const counts = useMemo(() => new Map([...view.collapsed.keys()].map((id) => [id, countBelow(catalog, id, kept)])), [catalog, view, kept]);
  const frame = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState(1);
  const [active, setActive] = useState("");

  const fit = () => {
    const width = frame.current?.clientWidth ?? drawing.width;
    setScale(Math.max(MIN_SCALE, Math.min(1, (width - 2) / Math.max(1, drawing.width))));
  };
  useLayoutEffect(() => {
    const width = frame.current?.clientWidth ?? 0;
    const fitting = (width - 2) / Math.max(1, drawing.width);
    const first = fitting >= 1 ? 1 : Math.max(0.75, fitting);
    setScale(first);
    // What the page is about may be in the middle of a tall graph.
    const center = drawing.boxes.find((box) => box.id === (focus[0] ?? view.nodes[0]));
    if (center && drawing.edges.length)
      requestAnimationFrame(() => frame.current?.scrollTo(0, first * (center.y + center.height / 2) - frame.current.clientHeight / 2 + 12));
  }, []);

  const selected = view.nodes.find((id) => catalog.names[id] === selectedName);
  const related = useMemo(() => (selected === undefined ? undefined : relatedTo(catalog, selected)), [catalog, selected]);

  const open = (id: number, count = FEW) => {
    const name = id < 0 ? "" : catalog.names[id]!;
    setOpened(new Map(opened).set(name, count));
    if (closed.has(name)) {
      const rest = new Set(closed);
      rest.delete(name);
      setClosed(rest);
    }
  };
  const close = (id: number) => {
    const name = catalog.names[id]!;
    setClosed(new Set(closed).add(name));
    const rest = new Map(opened);
    rest.delete(name);
    setOpened(rest);
  };

  const onWheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    setScale((old) => clamp(old * (event.deltaY < 0 ? 1.1 : 1 / 1.1)));
  };
  useEffect(() => {
    const element = frame.current!;
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);
  const drag = useDrag(frame);

  const onKeyDown = (event: KeyboardEvent) => {
    const target = (event.target as HTMLElement).closest<HTMLElement>("[data-box]");
    if (!target) return;
    const box = drawing.boxes.find((one) => one.key === target.dataset.box);
    const next = box && neighbour(drawing.boxes, drawing.edges, box, event.key);
    if (event.key === "Enter" && box && box.id >= 0 && catalog.names[box.id] === selectedName) {
      event.preventDefault();
      window.location.hash = objectHref(selectedName);
    }
    if (!next) return;
    event.preventDefault();
    setActive(next.key);
    frame.current!.querySelector<HTMLElement>(`[data-box="${next.key}"]`)?.focus();
  };
  const tabStop = drawing.boxes.some((box) => box.key === active) ? active : drawing.boxes[0]?.key;

  return (
    <div class="graph-area">
      <div class="graph-tools">
        <button onClick={() => setScale((old) => clamp(old / 1.2))} aria-label="Smaller">
          −
        </button>
        <output aria-label="Scale">{Math.round(scale * 100)} %</output>
        <button onClick={() => setScale((old) => clamp(old * 1.2))} aria-label="Larger">
          +
        </button>
        <button onClick={fit}>Fit</button>
        <span class="quiet small">{plural(view.nodes.length, "node")} shown. Arrow keys move; Enter selects, and opens what is selected.</span>
      </div>
      <div class="graph-frame" ref={frame} onKeyDown={onKeyDown} {...drag}>
        <div class="graph-size" style={{ width: `${drawing.width * scale}px`, height: `${drawing.height * scale}px` }}>
          <div class="graph" style={{ width: `${drawing.width}px`, height: `${drawing.height}px`, transform: `scale(${scale})` }}>
            <svg width={drawing.width} height={drawing.height} aria-hidden="true">
              {drawing.edges.map((edge) => (
                <path key={edge.key} d={edge.points} class={related ? (related.has(edge.from) && related.has(edge.to) ? "lit" : "dim") : ""} />
              ))}
            </svg>
            {drawing.boxes.map((box) =>
              box.rest ? (
                <button
                  key={box.key}
                  data-box={box.key}
                  class="graph-rest"
                  tabIndex={box.key === tabStop ? 0 : -1}
                  style={placeOf(box)}
                  onClick={() => open(box.rest!.parent, (opened.get(box.rest!.parent < 0 ? "" : catalog.names[box.rest!.parent]!) ?? FEW) + 2 * FEW)}
                >
                  {box.rest.count.toLocaleString("en-US")} more
                </button>
              ) : (
                <GraphNode
                  key={`${catalog.levels[box.id]} ${catalog.names[box.id]}`}
                  catalog={catalog}
                  box={box}
                  below={counts.get(box.id)}
                  tone={related && !related.has(box.id) ? "dim" : ""}
                  selected={box.id === selected}
                  matches={!isEmpty(filter) && filter.policy !== "" && catalog.attached[box.id]!.some((policy) => policy.kind === filter.policy)}
                  tabIndex={box.key === tabStop ? 0 : -1}
                  onFocus={() => setActive(box.key)}
                  onClick={() => select(selectedName === catalog.names[box.id] ? "" : catalog.names[box.id]!)}
                />
              ),
            )}
          </div>
        </div>
      </div>
      <div class="graph-detail" aria-live="polite">
        {selected === undefined ? (
          <p class="quiet small">Select a node to see its policies, and what is above and below it.</p>
        ) : (
          <div>
            <p>
              <span class="level">{levelText(catalog, selected)}</span> <ObjectLink object={catalog.names[selected]!} withKind={false} />{" "}
              <a class="button" href={objectHref(catalog.names[selected]!)}>
                Explain
              </a>{" "}
              <button onClick={() => replaceQuery({ focus: catalog.names[selected]! })}>Focus</button>{" "}
              {view.collapsed.has(selected) ? (
                <button onClick={() => open(selected)}>Expand {view.collapsed.get(selected)}</button>
              ) : (
                childrenOf(catalog, selected).length > 0 && <button onClick={() => close(selected)}>Collapse</button>
              )}
            </p>
            {catalog.attached[selected]!.length ? <AttachedList attached={catalog.attached[selected]!} /> : <p class="quiet small">No policy is attached to it directly.</p>}
          </div>
        )}
      </div>
    </div>
  );
}

const clamp = (scale: number) => Math.max(MIN_SCALE, Math.min(2, scale));
const placeOf = (box: Box) => ({ left: `${box.x}px`, top: `${box.y}px`, width: `${box.width}px`, height: `${box.height}px` });

/** A node with everything above and below it. */
function relatedTo(catalog: Catalog, id: number): Set<number> {
  const found = new Set([id]);
  for (const next of [parentsOf, childrenOf]) {
    const seen = new Set([id]);
    const queue = [id];
    for (let at = queue.pop(); at !== undefined && seen.size < 5000; at = queue.pop())
      for (const other of next(catalog, at))
        if (!seen.has(other)) {
          seen.add(other);
          found.add(other);
          queue.push(other);
        }
  }
  return found;
}

/** The box that an arrow key leads to. */
function neighbour(boxes: Box[], edges: { key: string; from: number; to: number }[], box: Box, key: string): Box | undefined {
  const near = (candidates: Box[]) => candidates.sort((a, b) => Math.abs(a.y + a.height / 2 - box.y - box.height / 2) - Math.abs(b.y + b.height / 2 - box.y - box.height / 2))[0];
  const linked = (forward: boolean) => {
    const keys = new Set(edges.map((edge) => edge.key.match(/^(\S+) (.+)$/)!.slice(1) as [string, string]).filter(([from, to]) => (forward ? from : to) === box.key).map(([from, to]) => (forward ? to : from)));
    return boxes.filter((one) => keys.has(one.key));
  };
  if (key === "ArrowRight") return near(linked(true));
  if (key === "ArrowLeft") return near(linked(false));
  const column = boxes.filter((one) => Math.abs(one.x - box.x) < 20).sort((a, b) => a.y - b.y);
  const at = column.indexOf(box);
  if (key === "ArrowDown") return column[at + 1];
  if (key === "ArrowUp") return column[at - 1];
  if (key === "Home") return boxes[0];
  return undefined;
}

/** Moves the content of a frame with the mouse. */
function useDrag(frame: { current: HTMLDivElement | null }) {
  const from = useRef<{ x: number; y: number; left: number; top: number } | undefined>(undefined);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.pointerType !== "mouse" || event.button !== 0 || (event.target as HTMLElement).closest("button, a")) return;
      const { scrollLeft: left, scrollTop: top } = frame.current!;
      from.current = { x: event.clientX, y: event.clientY, left, top };
    },
    onPointerMove: (event: PointerEvent) => {
      if (!from.current) return;
      frame.current!.scrollLeft = from.current.left - (event.clientX - from.current.x);
      frame.current!.scrollTop = from.current.top - (event.clientY - from.current.y);
    },
    onPointerUp: () => (from.current = undefined),
    onPointerLeave: () => (from.current = undefined),
  };
}

function GraphNode(props: {
  catalog: Catalog;
  box: Box;
  below: { routes: number; policies: number; more: boolean } | undefined;
  tone: string;
  selected: boolean;
  matches: boolean;
  tabIndex: number;
  onFocus: () => void;
  onClick: () => void;
}) {
  const { catalog, box, below } = props;
  const attached = catalog.attached[box.id]!;
  const bad = attached.some((policy) => !policy.accepted);
  const level = catalog.levels[box.id]!;
  return (
    <button
      data-box={box.key}
      class={`graph-node ${attached.length ? "has-policies" : ""} ${bad ? "bad" : ""} ${props.tone} ${props.matches ? "matches" : ""} ${level === "RouteRule" || level === "Listener" ? "section" : ""}`}
      style={placeOf(box)}
      tabIndex={props.tabIndex}
      aria-pressed={props.selected}
      title={plain(catalog.names[box.id]!)}
      onFocus={props.onFocus}
      onClick={props.onClick}
    >
      <span class="level">{levelText(catalog, box.id)} </span>
      <span class="node-name">
        <T>{shortName(catalog, box.id)}</T>
      </span>
      {bad && <span class="visually-hidden"> not all policies are accepted</span>}
      {attached.length > 0 && (
        <span class="node-policies">
          {attached.slice(0, SHOWN_POLICIES).map((policy) => (
            <span class={`node-policy ${policy.accepted ? "" : "bad"}`} title={plain(`${splitKind(policy.kind)[0]} ${policyName(policy)}`)}>
              <T>{policy.name}</T>
              <span class="quiet"> <T>{splitKind(policy.kind)[0]}</T></span>
            </span>
          ))}
          {attached.length > SHOWN_POLICIES && <span class="node-policy quiet"> and {attached.length - SHOWN_POLICIES} more</span>}
        </span>
      )}
      {below && (
        <span class="node-below">
          <span aria-hidden="true">▸ </span>
          {below.more && "over "}
          {below.routes > 0 ? plural(below.routes, "route") : "more below"}
          {below.policies > 0 && `, ${plural(below.policies, "policy", "policies")}`}
        </span>
      )}
    </button>
  );
}

interface Item {
  /** Names from the root, which also tell apart the places of an object with several parents. */
  key: string;
  id: number;
  depth: number;
  parent: string;
  position: number;
  siblings: number;
  more: number;
}

const TREE_STEP = 50;

/** The topology as a tree that can be walked with the arrow keys. */
function Tree({ catalog, kept, focus }: { catalog: Catalog; kept: Set<number> | undefined; focus: number[] }) {
  const [open, setOpen] = useState<Map<string, boolean>>(new Map());
  const [limits, setLimits] = useState<Map<string, number>>(new Map());
  const [active, setActive] = useState("");
  const tree = useRef<HTMLUListElement>(null);
  const keep = (id: number) => !kept || kept.has(id);
  const roots = useMemo(() => (focus.length ? focus : rootsOf(catalog).filter(keep)), [catalog, kept, focus]);
  const small = catalog.names.length < 150;

  const items: Item[] = [];
  const walk = (ids: number[], depth: number, parent: string) => {
    const limit = limits.get(parent) ?? TREE_STEP;
    ids.slice(0, limit).forEach((id, at) => {
      const key = `${parent}\n${catalog.levels[id]} ${catalog.names[id]}`;
      items.push({ key, id, depth, parent, position: at + 1, siblings: ids.length, more: 0 });
      if (isOpen(key, depth)) walk(childrenOf(catalog, id).filter(keep), depth + 1, key);
    });
    if (ids.length > limit) items.push({ key: `${parent}\nmore`, id: -1, depth, parent, position: limit + 1, siblings: ids.length, more: ids.length - limit });
  };
  const isOpen = (key: string, depth: number) => open.get(key) ?? (small ? depth < 4 : focus.length > 0 && depth < 2);
  walk(roots, 0, "");

  const toggle = (item: Item, to: boolean) => setOpen(new Map(open).set(item.key, to));
  const more = (item: Item) => setLimits(new Map(limits).set(item.parent, (limits.get(item.parent) ?? TREE_STEP) + 200));
  const move = (key: string | undefined) => {
    if (key === undefined) return;
    setActive(key);
    requestAnimationFrame(() => tree.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus());
  };
  const stop = items.some((item) => item.key === active) ? active : items[0]?.key;

  const onKeyDown = (event: KeyboardEvent) => {
    const at = items.findIndex((item) => item.key === stop);
    const item = items[at];
    if (!item) return;
    const expandable = item.id >= 0 && childrenOf(catalog, item.id).some(keep);
    const expanded = expandable && isOpen(item.key, item.depth);
    switch (event.key) {
      case "ArrowDown":
        move(items[at + 1]?.key);
        break;
      case "ArrowUp":
        move(items[at - 1]?.key);
        break;
      case "ArrowRight":
        if (expandable && !expanded) toggle(item, true);
        else if (expanded) move(items[at + 1]?.key);
        break;
      case "ArrowLeft":
        if (expanded) toggle(item, false);
        else move(item.parent || undefined);
        break;
      case "Home":
        move(items[0]?.key);
        break;
      case "End":
        move(items[items.length - 1]?.key);
        break;
      case "Enter":
        if (item.id < 0) more(item);
        else window.location.hash = objectHref(catalog.names[item.id]!);
        break;
      default:
        return;
    }
    event.preventDefault();
  };

  return (
    <ul class="tree" role="tree" aria-label="Topology" ref={tree} onKeyDown={onKeyDown}>
      {items.map((item) => {
        if (item.id < 0)
          return (
            <li role="treeitem" key={item.key} aria-level={item.depth + 1} tabIndex={item.key === stop ? 0 : -1} style={{ "--depth": item.depth }} onClick={() => more(item)}>
              <span class="more-link">{plural(item.more, "more", "more")}: show</span>
            </li>
          );
        const attached = catalog.attached[item.id]!;
        const below = childrenOf(catalog, item.id).filter(keep).length;
        const expanded = below > 0 && isOpen(item.key, item.depth);
        return (
          <li
            role="treeitem"
            key={item.key}
            aria-level={item.depth + 1}
            aria-setsize={item.siblings}
            aria-posinset={item.position}
            aria-expanded={below ? expanded : undefined}
            tabIndex={item.key === stop ? 0 : -1}
            style={{ "--depth": item.depth }}
            onFocus={() => setActive(item.key)}
          >
            <span class="tree-row">
              <span class="twist" aria-hidden="true" onClick={() => below && toggle(item, !expanded)}>
                {below ? (expanded ? "▾" : "▸") : ""}
              </span>
              <span class="level">{levelText(catalog, item.id)}</span>
              <a class="name" tabIndex={-1} href={objectHref(catalog.names[item.id]!)}>
                <T>{shortName(catalog, item.id)}</T>
              </a>
              {below > 0 && !expanded && <span class="count">{below.toLocaleString("en-US")}</span>}
            </span>
            {attached.length > 0 && (
              <span class="tree-policies">
                {attached.slice(0, 6).map((policy) => (
                  <span class={`tree-policy ${policy.accepted ? "" : "bad"}`}>
                    <T>{policyName(policy)}</T> <span class="quiet"><T>{splitKind(policy.kind)[0]}</T></span>
                    {!policy.accepted && <span class="badge bad">not accepted</span>}
                  </span>
                ))}
                {attached.length > 6 && <span class="quiet">and {attached.length - 6} more</span>}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

