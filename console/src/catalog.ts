import { ConnectError } from "@connectrpc/connect";
import type { PolicyStatus } from "./gen/entail/v1/policy_insight_pb";
import { attempts, insight, session } from "./session";
import { retryAborted } from "./live";
import { Store } from "./store";

/** A policy that is attached to a node. */
export interface Attached {
  kind: string;
  namespace: string;
  name: string;
  accepted: boolean;
}

/** What lists say about a policy. */
export interface PolicyEntry {
  kind: string;
  namespace: string;
  name: string;
  accepted: boolean;
  reason: string;
  inForce: string;
  paths: number;
  overriddenPaths: number;
}

const NONE: Attached[] = [];

/** The topology and the policies of one snapshot, with an index for the search. */
export class Catalog {
  names: string[] = [];
  levels: string[] = [];
  attached: Attached[][] = [];
  policies: PolicyEntry[] = [];
  /** Whether rights of the caller were left unchecked, so that objects are missing. */
  truncated = false;
  private below: Links = new Links([], [], 0);
  private above: Links = new Links([], [], 0);
  private byName = new Map<string, number[]>();
  private searched: string[] = [];
  private objects: number[] = [];

  finish(from: number[], to: number[]): void {
    this.below = new Links(from, to, this.names.length);
    this.above = new Links(to, from, this.names.length);
    for (let id = 0; id < this.names.length; id += 1) {
      const name = this.names[id]!;
      const known = this.byName.get(name);
      if (known) known.push(id);
      else {
        this.byName.set(name, [id]);
        if (this.levels[id] !== "BackendPort") this.objects.push(id);
      }
    }
    this.searched = this.objects.map((id) => this.names[id]!.toLowerCase());
    this.searchedPolicies = this.policies.map((policy) => `${policy.kind}/${policy.namespace}/${policy.name}`.toLowerCase());
  }

  private searchedPolicies: string[] = [];

  children = (id: number) => this.below.of(id);
  parents = (id: number) => this.above.of(id);
  nodes = (name: string) => this.byName.get(name) ?? [];

  private lower: Map<string, string> | undefined;

  /** The name with the letters that the topology uses: kinds are not case-sensitive. */
  canonical(name: string): string {
    if (this.byName.has(name)) return name;
    this.lower ??= new Map(this.names.map((one) => [one.toLowerCase(), one]));
    return this.lower.get(name.toLowerCase()) ?? name;
  }

  /** The best matches of words; all of them must occur. */
  search(text: string, limit: number): { objects: number[]; policies: PolicyEntry[]; more: boolean } {
    const words = text.toLowerCase().split(/[\s]+/).filter(Boolean);
    if (!words.length) return { objects: [], policies: [], more: false };
    const score = (entry: string): number => {
      let sum = 0;
      for (const word of words) {
        const at = entry.indexOf(word);
        if (at < 0) return -1;
        const before = at === 0 ? "/" : entry[at - 1]!;
        const after = entry[at + word.length];
        if (/[/#.]/.test(before)) sum += 4;
        else if (before === "-") sum += 2;
        if (after === undefined) sum += 3;
        else if (/[/#]/.test(after)) sum += 2;
      }
      return sum + (entry.includes("#") ? 0 : 1.5) - Math.min(entry.length, 300) / 300;
    };
    const best = (entries: string[]) => {
      const found: [number, number][] = [];
      let floor = -1;
      let more = false;
      for (let at = 0; at < entries.length; at += 1) {
        const points = score(entries[at]!);
        if (points <= -1) continue;
        if (found.length >= limit * 4) {
          more = true;
          if (points <= floor) continue;
          found.sort((a, b) => b[1] - a[1]).length = limit;
          floor = found[limit - 1]![1];
        }
        found.push([at, points]);
      }
      found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
      return { ids: found.slice(0, limit).map(([at]) => at), more: more || found.length > limit };
    };
    const objects = best(this.searched);
    const policies = best(this.searchedPolicies);
    return {
      objects: objects.ids.map((at) => this.objects[at]!),
      policies: policies.ids.map((at) => this.policies[at]!),
      more: objects.more || policies.more,
    };
  }

  private facts = new Map<string, unknown>();

  /** What is computed once for a snapshot. */
  fact<V>(name: string, compute: (catalog: Catalog) => V): V {
    if (!this.facts.has(name)) this.facts.set(name, compute(this));
    return this.facts.get(name) as V;
  }
}

/** Namespaces and kinds of the objects, and the number of objects at each level. */
export function overview(catalog: Catalog): { namespaces: string[]; kinds: string[]; levels: Map<string, number> } {
  return catalog.fact("overview", () => {
    const namespaces = new Set<string>();
    const kinds = new Set<string>();
    const levels = new Map<string, number>();
    const repeated = new Set<string>();
    catalog.names.forEach((name, id) => {
      const level = catalog.levels[id]!;
      const first = name.indexOf("/");
      const second = name.indexOf("/", first + 1);
      if (level !== "Namespace") {
        kinds.add(name.slice(0, first));
        if (second > 0) namespaces.add(name.slice(first + 1, second));
      }
      // An object at several levels has several nodes; at one level it is one object.
      if (catalog.nodes(name).length > 1) {
        if (repeated.has(`${level} ${name}`)) return;
        repeated.add(`${level} ${name}`);
      }
      levels.set(level, (levels.get(level) ?? 0) + 1);
    });
    return { namespaces: [...namespaces].sort(), kinds: [...kinds].sort(), levels };
  });
}

/** Edges of a graph, by the node that they begin at. */
class Links {
  private starts: Uint32Array;
  private ends: Uint32Array;

  constructor(from: number[], to: number[], nodes: number) {
    this.starts = new Uint32Array(nodes + 1);
    this.ends = new Uint32Array(from.length);
    for (const id of from) this.starts[id + 1]! += 1;
    for (let id = 0; id < nodes; id += 1) this.starts[id + 1]! += this.starts[id]!;
    const next = this.starts.slice();
    for (let at = 0; at < from.length; at += 1) this.ends[next[from[at]!]!++] = to[at]!;
  }

  of(id: number): Uint32Array {
    return this.ends.subarray(this.starts[id] ?? 0, this.starts[id + 1] ?? 0);
  }
}

export interface CatalogState {
  catalog: Catalog | undefined;
  loading: boolean;
  /** Nodes and policies that were read so far. */
  read: number;
  error: ConnectError | undefined;
}

export const catalogState = new Store<CatalogState>({ catalog: undefined, loading: false, read: 0, error: undefined });

export function policyEntry(status: PolicyStatus): PolicyEntry {
  const accepted = status.conditions.find((condition) => condition.type === "Accepted");
  return {
    kind: status.kind,
    namespace: status.policy?.namespace ?? "",
    name: status.policy?.name ?? "",
    accepted: status.inForce !== "",
    reason: accepted?.reason ?? status.conditions[0]?.reason ?? "",
    inForce: status.inForce,
    paths: Number(status.paths),
    overriddenPaths: Number(status.overriddenPaths),
  };
}

// The server walks the whole topology for each page of it, so few large pages are faster. Small pages of policies keep
// the page responsive while they are decoded.
const TOPOLOGY_PAGE = 10_000;
const POLICY_PAGE = 2000;

async function read(): Promise<Catalog> {
  const catalog = new Catalog();
  const from: number[] = [];
  const to: number[] = [];
  // Kinds, namespaces and names occur often: one copy of each is kept.
  const copies = new Map<string, string>();
  const one = (text: string) => {
    const known = copies.get(text);
    if (known !== undefined) return known;
    copies.set(text, text);
    return text;
  };
  const progress = () => catalogState.update({ read: catalog.names.length + catalog.policies.length });
  for (let pageToken = ""; ; ) {
    const page = await insight.getTopology({ pageSize: TOPOLOGY_PAGE, pageToken });
    for (const node of page.nodes) {
      catalog.names[node.id] = node.name;
      catalog.levels[node.id] = one(node.level);
      catalog.attached[node.id] = node.policies.length
        ? node.policies.map(({ kind, policy, accepted }) => ({
            kind: one(kind),
            namespace: one(policy?.namespace ?? ""),
            name: policy?.name ?? "",
            accepted,
          }))
        : NONE;
    }
    for (const edge of page.edges) {
      from.push(edge.from);
      to.push(edge.to);
    }
    catalog.truncated ||= page.truncated;
    progress();
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  for (let pageToken = ""; ; ) {
    const page = await insight.listPolicies({ pageSize: POLICY_PAGE, pageToken });
    for (const status of page.policies) {
      const entry = policyEntry(status);
      entry.kind = one(entry.kind);
      entry.namespace = one(entry.namespace);
      entry.reason = one(entry.reason);
      entry.inForce = one(entry.inForce);
      catalog.policies.push(entry);
    }
    catalog.truncated ||= page.truncated;
    progress();
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  catalog.finish(from, to);
  return catalog;
}

let running = false;
let began = 0;
let took = 0;
let snapshot = "";
let timer = 0;

async function load(): Promise<void> {
  if (running) return;
  running = true;
  began = Date.now();
  snapshot = session.get().snapshot;
  catalogState.update({ loading: true, read: 0 });
  try {
    const catalog = await retryAborted(read);
    catalogState.set({ catalog, loading: false, read: catalog.names.length, error: undefined });
  } catch (cause) {
    catalogState.update({ loading: false, error: ConnectError.from(cause) });
    snapshot = "";
  }
  took = Date.now() - began;
  running = false;
  if (catalogState.get().catalog && session.get().snapshot !== snapshot) schedule();
}

/** Reads again after a new snapshot; the larger the world, the less often. */
function schedule(): void {
  const { token, connection } = session.get();
  if (!session.get().snapshot || session.get().snapshot === snapshot || token !== "unneeded" || connection === "lost") return;
  window.clearTimeout(timer);
  const wait = began === 0 ? 30 : Math.max(200, began + Math.max(1000, 8 * took) - Date.now());
  timer = window.setTimeout(load, wait);
}

export function startCatalog(): void {
  session.subscribe(schedule);
  attempts.subscribe(() => {
    snapshot = "";
    schedule();
  });
}
