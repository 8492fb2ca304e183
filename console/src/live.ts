import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useRef, useState } from "preact/hooks";
import type { WatchEffectivePoliciesResponse } from "./gen/entail/v1/effective_policy_pb";
import type { EffectivePolicy, Origin, Version } from "./gen/entail/v1/types_pb";
import { leaves } from "./json";
import { attempts, effective, seen, session } from "./session";
import { Store, useStore } from "./store";

/** The state of a question whose answer follows the snapshots of the server. */
export interface Live<T> {
  data: T | undefined;
  error: ConnectError | undefined;
  loading: boolean;
  /** The answer before this one, if it was to the same question. */
  previous: T | undefined;
}

/**
 * Asks again after each new snapshot, at most once a second and less often if answers take long. The last answer stays
 * until there is a new one, so that the page keeps its scroll position and focus.
 */
export function useLive<T extends { version?: Version }>(question: string, ask: (signal: AbortSignal) => Promise<T>): Live<T> {
  const nothing = { question, data: undefined, error: undefined, loading: true, previous: undefined };
  const [state, set] = useState<Live<T> & { question: string }>(nothing);
  const attempt = useStore(attempts);
  const latest = useRef(ask);
  latest.current = ask;

  useEffect(() => {
    const control = new AbortController();
    let answered = "";
    let known = session.get().snapshot;
    let began = 0;
    let took = 0;
    let timer = 0;
    let running = false;
    const run = async () => {
      running = true;
      began = Date.now();
      set((old) => (old.question === question ? { ...old, loading: true } : nothing));
      try {
        const data = await retryAborted(() => latest.current(control.signal));
        if (control.signal.aborted) return;
        answered = data.version ? `${data.version.epoch}/${data.version.generation}` : "";
        set((old) => ({ question, data, error: undefined, loading: false, previous: old.question === question ? old.data : undefined }));
      } catch (cause) {
        if (control.signal.aborted) return;
        answered = "";
        set((old) => ({ ...old, question, error: ConnectError.from(cause), loading: false }));
      }
      took = Date.now() - began;
      running = false;
      follow();
    };
    const follow = () => {
      const { snapshot } = session.get();
      if (running || snapshot === known || control.signal.aborted) return;
      known = snapshot;
      if (snapshot === answered) return;
      window.clearTimeout(timer);
      timer = window.setTimeout(run, Math.max(30, began + Math.max(1000, 4 * took) - Date.now()));
    };
    const stop = session.subscribe(follow);
    void run();
    return () => {
      stop();
      window.clearTimeout(timer);
      control.abort();
    };
  }, [question, attempt]);

  return state.question === question ? state : nothing;
}

/** Lists start again if another snapshot was published between two pages. */
export async function retryAborted<T>(ask: () => Promise<T>): Promise<T> {
  for (let left = 4; ; left -= 1)
    try {
      return await ask();
    } catch (cause) {
      if (ConnectError.from(cause).code !== Code.Aborted || left === 0) throw cause;
      await new Promise((done) => window.setTimeout(done, 200));
    }
}

/** A change of the effective policy of a kind, on the paths where it is the same. */
export interface Change {
  id: number;
  time: number;
  kind: string;
  paths: string[];
  values: { unit: string; before: string | undefined; after: string | undefined; by: string }[];
  /** For changes that are not changes of values. */
  note: string;
}

export const changes = new Store<Change[]>([]);
const MOST_CHANGES = 300;
let nextChange = 1;

/** What the stream follows: everything, the paths of the page, or nothing. */
export const watched = new Store<{ all: boolean; prefixes: string[] }>({ all: false, prefixes: [] });

/** Worlds with more paths are followed by the paths of the current page. */
export const WATCH_ALL_PATHS = 3000;

const pagePaths = new Store<string[]>([]);

/** Follows these paths while the page is open. */
export function usePaths(paths: string[]): void {
  const key = paths.join("\n");
  useEffect(() => {
    pagePaths.set(paths.slice(0, 1000));
    return () => pagePaths.set([]);
  }, [key]);
}

const allOf = (policies: EffectivePolicy[]) => new Map(policies.map((policy) => [`${policy.kind}.${policy.group}`, policy]));

function originOf(origins: Origin[], unit: string): string {
  const origin =
    origins.find((one) => one.unit === unit || one.unit === "*") ?? origins.find((one) => unit.startsWith(`${one.unit}.`));
  if (!origin) return "";
  return origin.object || origin.policies.map((policy) => (policy.namespace ? `${policy.namespace}/${policy.name}` : policy.name)).join(", ");
}

function compare(before: EffectivePolicy | undefined, after: EffectivePolicy | undefined): Pick<Change, "values" | "note"> {
  const old = leaves(before?.specJson);
  const now = leaves(after?.specJson);
  const values: Change["values"] = [];
  for (const unit of new Set([...old.keys(), ...now.keys()])) {
    const by = now.has(unit) ? originOf(after!.origins, unit) : originOf(before!.origins, unit);
    const formerly = old.has(unit) ? originOf(before!.origins, unit) : "";
    if (old.get(unit) !== now.get(unit) || (now.has(unit) && by !== formerly))
      values.push({ unit, before: old.get(unit), after: now.get(unit), by });
  }
  const notes: string[] = [];
  if (after?.unknown && !before?.unknown) notes.push(`not known: ${after.unknown.message}`);
  if (before?.unknown && !after?.unknown) notes.push("known again");
  const rejected = (policy: EffectivePolicy | undefined) =>
    new Map((policy?.rejected ?? []).map((one) => [`${one.policy?.namespace}/${one.policy?.name}`, one]));
  for (const [name, one] of rejected(after)) if (!rejected(before).has(name)) notes.push(`${name} is rejected (${one.reason})`);
  for (const name of rejected(before).keys()) if (!rejected(after).has(name)) notes.push(`${name} is no longer rejected`);
  if (!values.length && !notes.length) notes.push("other policies are attached");
  return { values, note: notes.join("; ") };
}

/** The answers that a stream has sent. */
class Answers {
  bodies = new Map<number, EffectivePolicy[]>();
  paths = new Map<string, number>();
  private changed = new Map<string, EffectivePolicy[] | undefined>();
  private fresh = false;
  /** What was sent before a reset. */
  private former: Map<string, EffectivePolicy[]> | undefined;

  apply(message: WatchEffectivePoliciesResponse): Change[] {
    if (message.reset) {
      if (this.paths.size) this.former = new Map([...this.paths.keys()].map((path) => [path, this.policiesOf(path)!]));
      this.bodies.clear();
      this.paths.clear();
      this.changed.clear();
      this.fresh = true;
    }
    for (const body of message.bodies) this.bodies.set(body.number, body.policies);
    for (const { path, body } of message.paths) {
      this.note(path);
      this.paths.set(path, body);
    }
    for (const path of message.removedPaths) {
      this.note(path);
      this.paths.delete(path);
    }
    if (!message.complete) return [];
    if (this.former) {
      for (const path of new Set([...this.former.keys(), ...this.paths.keys()])) this.changed.set(path, this.former.get(path));
      this.fresh = false;
    }
    const found = this.fresh ? [] : this.differences();
    this.changed.clear();
    this.fresh = false;
    this.former = undefined;
    for (const number of message.removedBodies) this.bodies.delete(number);
    return found;
  }

  /** Forgets what an incomplete update has sent. A stream that begins anew sends everything. */
  interrupt(): void {
    if (this.former || this.fresh || this.changed.size) {
      const former = this.former ?? new Map<string, EffectivePolicy[]>();
      this.bodies.clear();
      this.paths.clear();
      this.changed.clear();
      // The next reset compares with these.
      let number = 0;
      for (const [path, policies] of former) {
        this.bodies.set((number += 1), policies);
        this.paths.set(path, number);
      }
      this.former = undefined;
      this.fresh = false;
    }
  }

  private policiesOf = (path: string) => this.bodies.get(this.paths.get(path) ?? -1);

  private note(path: string): void {
    if (!this.fresh && !this.changed.has(path)) this.changed.set(path, this.policiesOf(path));
  }

  private differences(): Change[] {
    const found = new Map<string, Change>();
    const add = (kind: string, path: string, what: Pick<Change, "values" | "note">) => {
      const key = JSON.stringify([kind, what]);
      const known = found.get(key);
      if (known) known.paths.push(path);
      else found.set(key, { id: nextChange++, time: Date.now(), kind, paths: [path], ...what });
    };
    // Many paths share an answer, before and after.
    const compared = new Map<unknown, Map<unknown, [string, Pick<Change, "values" | "note">][]>>();
    for (const [path, formerly] of this.changed) {
      const now = this.policiesOf(path);
      if (formerly === now) continue;
      if (formerly === undefined) add("", path, { values: [], note: "new path" });
      else if (now === undefined) add("", path, { values: [], note: "path removed" });
      else {
        let known = compared.get(formerly);
        if (!known) compared.set(formerly, (known = new Map()));
        let list = known.get(now);
        if (!list) {
          const [before, after] = [allOf(formerly), allOf(now)];
          list = [];
          for (const kind of new Set([...before.keys(), ...after.keys()]))
            if (before.get(kind)?.etag !== after.get(kind)?.etag) list.push([kind, compare(before.get(kind), after.get(kind))]);
          known.set(now, list);
        }
        for (const [kind, what] of list) add(kind, path, what);
      }
    }
    return [...found.values()];
  }
}

let control: AbortController | undefined;
let following = "";

// The answers of the last stream, for the next one with the same request.
let held = { prefixes: "", answers: new Answers() };

async function follow(prefixes: string[], signal: AbortSignal): Promise<void> {
  let wait = 1000;
  if (held.prefixes !== prefixes.join("\n")) held = { prefixes: prefixes.join("\n"), answers: new Answers() };
  const { answers } = held;
  while (!signal.aborted) {
    answers.interrupt();
    try {
      const stream = effective.watchEffectivePolicies({ prefixes }, { signal, timeoutMs: 0 });
      for await (const message of stream) {
        const found = answers.apply(message);
        if (!message.complete) continue;
        wait = 1000;
        if (found.length) changes.set([...found.reverse(), ...changes.get()].slice(0, MOST_CHANGES));
        seen("WatchEffectivePolicies", message);
        session.update({ connection: "streaming" });
      }
    } catch (cause) {
      if (signal.aborted) return;
      const { code } = ConnectError.from(cause);
      if (session.get().connection === "streaming") session.update({ connection: "polling" });
      // Without a stream, the status is asked for. It tells of new snapshots, only later.
      if ([Code.PermissionDenied, Code.Unauthenticated, Code.Unimplemented, Code.ResourceExhausted].includes(code)) wait = 60_000;
    }
    await new Promise((done) => window.setTimeout(done, wait));
    wait = Math.min(wait * 2, 30_000);
  }
}

/** Opens, changes or closes the stream, as the page and the size of the world demand. */
export function steer(): void {
  const { status, token } = session.get();
  const visible = document.visibilityState === "visible";
  const all = status !== undefined && Number(status.paths) <= WATCH_ALL_PATHS;
  const prefixes = all ? [] : pagePaths.get();
  const wanted = visible && status && token === "unneeded" && (all || prefixes.length) ? JSON.stringify([all, prefixes, attempts.get()]) : "";
  if (wanted === following) return;
  following = wanted;
  control?.abort();
  control = undefined;
  watched.set({ all: wanted !== "" && all, prefixes });
  if (!wanted) {
    if (session.get().connection === "streaming") session.update({ connection: "polling" });
    return;
  }
  control = new AbortController();
  void follow(prefixes, control.signal);
}

/** Begins to keep the stream open. */
export function startStream(): void {
  pagePaths.subscribe(steer);
  session.subscribe(steer);
  attempts.subscribe(steer);
  document.addEventListener("visibilitychange", steer);
}
