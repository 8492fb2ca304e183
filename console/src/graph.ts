import { Graph, layout } from "@dagrejs/dagre";
import type { Catalog } from "./catalog";
import { parseObject } from "./names";

/** Which nodes of the topology are of interest. */
export interface Filter {
  namespace: string;
  /** Kind of an object, such as `HTTPRoute`. */
  kind: string;
  /** Kind of a policy that is attached to the object. */
  policy: string;
}

export const isEmpty = (filter: Filter) => !filter.namespace && !filter.kind && !filter.policy;

/** Nodes that are not drawn: namespaces, and what adds nothing to the node above or below it. */
function isFolded(catalog: Catalog, id: number): boolean {
  const level = catalog.levels[id];
  if (level === "Namespace") return true;
  return (level === "BackendPort" || level === "GatewayClass") && !catalog.attached[id]!.length;
}

/** The nodes below a node that are drawn. */
export function childrenOf(catalog: Catalog, id: number): number[] {
  const found: number[] = [];
  for (const child of catalog.children(id)) {
    if (!isFolded(catalog, child)) found.push(child);
    else if (catalog.levels[child] === "GatewayClass") found.push(...childrenOf(catalog, child));
  }
  return found;
}

export function parentsOf(catalog: Catalog, id: number): number[] {
  const found: number[] = [];
  for (const parent of catalog.parents(id)) if (!isFolded(catalog, parent)) found.push(parent);
  return found;
}

/** The nodes that nothing drawn is above, Gateways first. */
export function rootsOf(catalog: Catalog): number[] {
  return catalog.fact("roots", () => {
    const roots: number[] = [];
    for (let id = 0; id < catalog.names.length; id += 1)
      if (!isFolded(catalog, id) && !parentsOf(catalog, id).length) roots.push(id);
    const rank = (id: number) => ["GatewayClass", "Gateway", "Service"].indexOf(catalog.levels[id]!) + 1 || 9;
    return roots.sort((a, b) => rank(a) - rank(b) || (catalog.names[a]! < catalog.names[b]! ? -1 : 1));
  });
}

/** The nodes that the filter keeps: those that match, and everything above and below them. Undefined: all. */
export function keptBy(catalog: Catalog, filter: Filter): Set<number> | undefined {
  if (isEmpty(filter)) return undefined;
  const matching: number[] = [];
  for (let id = 0; id < catalog.names.length; id += 1) {
    if (isFolded(catalog, id)) continue;
    const { kind, namespace } = parseObject(catalog.names[id]!);
    if (filter.namespace && namespace !== filter.namespace) continue;
    if (filter.kind && kind !== filter.kind) continue;
    if (filter.policy && !catalog.attached[id]!.some((policy) => policy.kind === filter.policy)) continue;
    matching.push(id);
  }
  const kept = new Set(matching);
  const spread = (next: (id: number) => Iterable<number>) => {
    const seen = new Set(matching);
    const queue = [...matching];
    for (let id = queue.pop(); id !== undefined; id = queue.pop())
      for (const other of next(id))
        if (!seen.has(other)) {
          seen.add(other);
          kept.add(other);
          queue.push(other);
        }
  };
  spread((id) => parentsOf(catalog, id));
  spread((id) => childrenOf(catalog, id));
  return kept;
}

/** Children that are not drawn one by one. */
export interface Rest {
  parent: number;
  count: number;
}

export interface View {
  nodes: number[];
  /** Nodes whose children are not drawn, with the number of these. */
  collapsed: Map<number, number>;
  rests: Rest[];
}

const BUDGET = 110;
export const FEW = 12;

/**
 * Chooses what is drawn: level by level from the top while it stays readable. With a focus: the object, what is above it,
 * and what is below it.
 */
export function choose(
  catalog: Catalog,
  focus: number[],
  kept: Set<number> | undefined,
  opened: Map<number, number>,
  closed: Set<number>,
): View {
  const keep = (id: number) => !kept || kept.has(id);
  const visible = new Set<number>();
  const collapsed = new Map<number, number>();
  const rests: Rest[] = [];
  let frontier: number[];
  if (focus.length) {
    const queue = [...focus];
    for (const id of focus) visible.add(id);
    for (let id = queue.shift(); id !== undefined && visible.size < BUDGET / 2; id = queue.shift())
      for (const parent of parentsOf(catalog, id))
        if (!visible.has(parent) && visible.size < BUDGET / 2) {
          visible.add(parent);
          queue.push(parent);
        }
    frontier = focus;
  } else {
    const roots = rootsOf(catalog).filter(keep);
    frontier = roots.slice(0, BUDGET + (opened.get(-1) ?? 0));
    for (const id of frontier) visible.add(id);
    if (roots.length > frontier.length) rests.push({ parent: -1, count: roots.length - frontier.length });
  }
  while (frontier.length) {
    const below = frontier.map((id) => childrenOf(catalog, id).filter(keep));
    const fresh = new Set(below.flatMap((children) => children.slice(0, FEW)).filter((id) => !visible.has(id)));
    const all = visible.size + fresh.size <= BUDGET;
    const next: number[] = [];
    frontier.forEach((id, at) => {
      const children = below[at]!;
      if (!children.length) return;
      if (closed.has(id) || (!all && !opened.has(id))) {
        collapsed.set(id, children.length);
        return;
      }
      const shown = children.slice(0, opened.get(id) ?? FEW);
      for (const child of shown)
        if (!visible.has(child)) {
          visible.add(child);
          next.push(child);
        }
      if (children.length > shown.length) rests.push({ parent: id, count: children.length - shown.length });
    });
    frontier = next;
  }
  return { nodes: [...visible], collapsed, rests };
}

/** What is below a node, counted by level, up to a bound. */
export function countBelow(catalog: Catalog, id: number, keep?: Set<number>): { routes: number; policies: number; more: boolean } {
  const seen = new Set<number>([id]);
  const queue = [id];
  let [routes, policies] = [0, 0];
  for (let at = queue.pop(); at !== undefined; at = queue.pop())
    for (const child of childrenOf(catalog, at)) {
      if (seen.has(child) || (keep && !keep.has(child))) continue;
      seen.add(child);
      if (seen.size > 20_000) return { routes, policies, more: true };
      if (catalog.levels[child] === "Route") routes += 1;
      policies += catalog.attached[child]!.length;
      queue.push(child);
    }
  return { routes, policies, more: false };
}

export const NODE_WIDTH = 196;
export const SHOWN_POLICIES = 4;

export function heightOf(catalog: Catalog, id: number, isCollapsed: boolean): number {
  const policies = catalog.attached[id]!.length;
  const rows = Math.min(policies, SHOWN_POLICIES) + (policies > SHOWN_POLICIES ? 1 : 0);
  return 44 + (rows ? 6 + rows * 18 : 0) + (isCollapsed ? 20 : 0);
}

export interface Box {
  key: string;
  id: number;
  x: number;
  y: number;
  width: number;
  height: number;
  rest?: Rest;
}

export interface Edge {
  key: string;
  from: number;
  to: number;
  points: string;
}

export interface Drawing {
  boxes: Box[];
  edges: Edge[];
  width: number;
  height: number;
}

/** Places the nodes and edges of a view. */
export function draw(catalog: Catalog, view: View): Drawing {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 12, ranksep: 48, marginx: 2, marginy: 2 });
  graph.setDefaultEdgeLabel(() => ({}));
  const visible = new Set(view.nodes);
  for (const id of view.nodes)
    graph.setNode(String(id), { width: NODE_WIDTH, height: heightOf(catalog, id, view.collapsed.has(id)) });
  for (const id of view.nodes)
    if (!view.collapsed.has(id))
      for (const child of childrenOf(catalog, id)) if (visible.has(child)) graph.setEdge(String(id), String(child));
  for (const rest of view.rests) {
    const key = `rest ${rest.parent}`;
    graph.setNode(key, { width: NODE_WIDTH, height: 30 });
    if (rest.parent >= 0) graph.setEdge(String(rest.parent), key);
  }
  if (!graph.edges().length) inGrid(graph);
  else layout(graph);
  const rests = new Map(view.rests.map((rest) => [`rest ${rest.parent}`, rest]));
  const boxes = graph.nodes().map((key): Box => {
    const { x, y, width, height } = graph.node(key) as { x: number; y: number; width: number; height: number };
    const rest = rests.get(key);
    return { key, id: rest ? -1 : Number(key), x: x - width / 2, y: y - height / 2, width, height, rest };
  });
  const place = new Map(boxes.map((box) => [box.key, box]));
  const edges = graph.edges().map(({ v, w }): Edge => {
    const inner = (graph.edge(v, w) as { points: { x: number; y: number }[] }).points.slice(1, -1);
    const [from, to] = [place.get(v)!, place.get(w)!];
    const ends = [{ x: from.x + from.width, y: from.y + from.height / 2 }, { x: to.x, y: to.y + to.height / 2 }] as const;
    // Between neighbouring columns one curve is enough; a longer edge goes around the nodes in between.
    const points = to.x - from.x < 1.8 * NODE_WIDTH ? ends : [ends[0], ...inner, ends[1]];
    return { key: `${v} ${w}`, from: Number(v), to: rests.has(w) ? -1 : Number(w), points: curve(points) };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { boxes, edges, width, height };
}

/** Nodes without edges in columns, because one column of them would be long. */
function inGrid(graph: Graph): void {
  const keys = graph.nodes();
  const columns = Math.max(1, Math.min(keys.length, 5));
  const width = NODE_WIDTH + 48;
  let [top, rowHeight] = [0, 0];
  keys.forEach((key, at) => {
    const node = graph.node(key) as { x: number; y: number; width: number; height: number };
    if (at % columns === 0) {
      top += rowHeight + (at ? 12 : 2);
      rowHeight = Math.max(...keys.slice(at, at + columns).map((one) => (graph.node(one) as { height: number }).height));
    }
    node.x = 2 + (at % columns) * width + NODE_WIDTH / 2;
    node.y = top + node.height / 2;
  });
  graph.setGraph({ width: columns * width - 44, height: top + rowHeight + 2 });
}

/** A smooth line from left to right. */
function curve(points: readonly { x: number; y: number }[]): string {
  let path = `M${round(points[0]!.x)} ${round(points[0]!.y)}`;
  for (let at = 1; at < points.length; at += 1) {
    const [a, b] = [points[at - 1]!, points[at]!];
    const middle = (a.x + b.x) / 2;
    path += `C${round(middle)} ${round(a.y)} ${round(middle)} ${round(b.y)} ${round(b.x)} ${round(b.y)}`;
  }
  return path;
}

const round = (value: number) => Math.round(value * 10) / 10;
