import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { EffectivePolicyService } from "./gen/entail/v1/effective_policy_pb";
import { PolicyInsightService, type GetServerStatusResponse } from "./gen/entail/v1/policy_insight_pb";
import { KindState_State, type KindState, type Version } from "./gen/entail/v1/types_pb";
import { Store } from "./store";

export type ConnectionState = "connecting" | "streaming" | "polling" | "lost";

/** A kind that is not completely known. */
export interface IncompleteKind {
  kind: string;
  state: "STALE" | "FORBIDDEN" | "UNKNOWN";
  reason: string;
  message: string;
}

export interface Session {
  connection: ConnectionState;
  /** Why there is no connection. */
  failure: string;
  /** Since when there is no connection, in milliseconds. */
  lostSince: number;
  /** When the server last knew that all sources were in sync, in milliseconds; 0 if that is not known yet. */
  syncedAt: number;
  /** The snapshot of the last reply, as `epoch/generation`. */
  snapshot: string;
  status: GetServerStatusResponse | undefined;
  incomplete: IncompleteKind[];
  /** Whether the server demands a token, or refused the one that it got. */
  token: "unneeded" | "demanded" | "refused";
  /** Message of the server, if the token's account may not use the service at all. */
  denied: string;
}

export const session = new Store<Session>({
  connection: "connecting",
  failure: "",
  lostSince: 0,
  syncedAt: 0,
  snapshot: "",
  status: undefined,
  incomplete: [],
  token: "unneeded",
  denied: "",
});

const TOKEN = "entail-token";
let token = sessionStorage.getItem(TOKEN) ?? "";
export const hasToken = () => token !== "";

/** Uses a token from now on. `keep` keeps it in this tab when the page is loaded again. */
export function useToken(text: string, keep: boolean): void {
  token = text.trim();
  if (keep && token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
  session.update({ token: "unneeded", denied: "" });
  attempts.set(attempts.get() + 1);
  pollNow();
}

/** Changes when everything that failed is to be asked again. */
export const attempts = new Store(0);

const authenticate: Interceptor = (next) => async (request) => {
  if (token) request.header.set("authorization", `Bearer ${token}`);
  return next(request);
};

interface Reply {
  version?: Version;
  syncedAt?: Timestamp;
  kinds?: unknown[];
}

const observe: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    if (!response.stream) seen(request.method.name, response.message as Reply);
    return response;
  } catch (cause) {
    failed(ConnectError.from(cause), request.header.get("authorization") ?? "");
    throw cause;
  }
};

const transport = createGrpcWebTransport({
  baseUrl: window.location.origin,
  interceptors: [authenticate, observe],
  defaultTimeoutMs: 30_000,
});

export const insight = createClient(PolicyInsightService, transport);
export const effective = createClient(EffectivePolicyService, transport);

// The generations that were seen, by epoch: a proxy may send requests to several replicas, and each has its own.
const generations = new Map<string, bigint>();

export function seen(method: string, reply: Reply): void {
  const change: Partial<Session> = {};
  const before = session.get();
  if (before.connection === "lost" || before.connection === "connecting") {
    change.connection = "polling";
    change.failure = "";
    if (before.connection === "lost") queueMicrotask(() => attempts.set(attempts.get() + 1));
  }
  if (before.token !== "unneeded") change.token = "unneeded";
  if (reply.syncedAt) {
    const time = Number(reply.syncedAt.seconds) * 1000 + reply.syncedAt.nanos / 1e6;
    if (time > before.syncedAt || reply.version?.epoch !== before.snapshot.split("/")[0]) change.syncedAt = time;
  }
  if (reply.version) {
    const { epoch, generation } = reply.version;
    const known = generations.get(epoch);
    if (known === undefined || known < generation) {
      generations.set(epoch, generation);
      change.snapshot = `${epoch}/${generation}`;
    }
  }
  if (method === "GetServerStatus") {
    change.status = reply as GetServerStatusResponse;
    const states = change.status.kinds
      .filter((kind) => kind.state !== KindState_State.COMPLETE)
      .map((kind) => ({ kind: kind.kind, state: kind.state, reason: "", message: "" }));
    remember("status", states);
  } else if (method === "ListPolicies" || method === "WatchEffectivePolicies" || method === "ListPaths")
    remember(method, (reply.kinds ?? []) as KindState[]);
  const incomplete = allIncomplete();
  if (JSON.stringify(incomplete) !== JSON.stringify(before.incomplete)) change.incomplete = incomplete;
  session.update(change);
}

// What the latest replies of each method said of kinds. The status has every kind, and lists have the reasons.
const kindStates = new Map<string, Pick<KindState, "kind" | "state" | "reason" | "message">[]>();

function remember(method: string, states: Pick<KindState, "kind" | "state" | "reason" | "message">[]): void {
  kindStates.set(method, states);
}

/** The name of an entry about all kinds: any of them may lack objects. */
export const ALL_KINDS = "*";

export function incompleteOf(states: Pick<KindState, "kind" | "state" | "reason" | "message">[]): IncompleteKind[] {
  return states.map(({ kind, state, reason, message }) => ({
    kind,
    state: state === KindState_State.STALE ? "STALE" : state === KindState_State.FORBIDDEN ? "FORBIDDEN" : "UNKNOWN",
    reason,
    message,
  }));
}

function allIncomplete(): IncompleteKind[] {
  const found = new Map<string, IncompleteKind>();
  for (const states of kindStates.values())
    for (const state of incompleteOf(states)) {
      const known = found.get(state.kind);
      if (!known || (!known.message && state.message)) found.set(state.kind, state);
    }
  return [...found.values()].sort((a, b) => (a.kind < b.kind ? -1 : 1));
}

function failed(error: ConnectError, sent: string): void {
  if (error.code === Code.Unauthenticated) {
    // An answer to a request that was sent before the token was entered says nothing about it.
    if (sent === (token ? `Bearer ${token}` : "")) session.update({ token: token ? "refused" : "demanded" });
  } else if (isConnectionFailure(error)) {
    const { connection, lostSince } = session.get();
    session.update({
      connection: "lost",
      failure: error.rawMessage,
      lostSince: connection === "lost" ? lostSince : Date.now(),
    });
  }
}

export const isConnectionFailure = (error: ConnectError) =>
  error.code === Code.Unavailable ||
  (error.code === Code.Unknown && /fetch|network|load failed|HTTP 5|missing trailer|premature/i.test(error.rawMessage));

// The status, again and again. It is cheap, and it carries the version of the snapshot.
let timer = 0;
let polling = false;

async function poll(): Promise<void> {
  if (polling) return;
  polling = true;
  try {
    await insight.getServerStatus({}, { timeoutMs: 10_000 });
    if (session.get().denied) session.update({ denied: "" });
  } catch (cause) {
    const error = ConnectError.from(cause);
    if (error.code === Code.PermissionDenied) session.update({ denied: error.rawMessage });
  }
  polling = false;
  window.clearTimeout(timer);
  timer = window.setTimeout(poll, pause());
}

function pause(): number {
  const { connection, token: demanded } = session.get();
  if (document.visibilityState === "hidden") return 30_000;
  if (demanded !== "unneeded") return 60_000;
  if (connection === "streaming") return 10_000;
  return connection === "lost" ? 2_000 : 3_000;
}

export function pollNow(): void {
  window.clearTimeout(timer);
  void poll();
}

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") pollNow();
});

/** The reason and the nearest path of google.rpc.ErrorInfo, if the error has one. */
export function errorInfo(error: ConnectError): { reason: string; nearest: string } {
  for (const detail of error.details) {
    if (!("type" in detail) || !detail.type.endsWith("google.rpc.ErrorInfo") || !("value" in detail)) continue;
    const fields = readFields(detail.value as Uint8Array);
    const metadata = fields.filter(([number]) => number === 3).map(([, value]) => readFields(value));
    const text = (value: Uint8Array | undefined) => new TextDecoder().decode(value ?? new Uint8Array());
    const entry = metadata.find((pair) => text(pair.find(([number]) => number === 1)?.[1]) === "nearest");
    return {
      reason: text(fields.find(([number]) => number === 1)?.[1]),
      nearest: text(entry?.find(([number]) => number === 2)?.[1]),
    };
  }
  return { reason: "", nearest: "" };
}

/** The fields of a message that are strings or messages. */
function readFields(bytes: Uint8Array): [number, Uint8Array][] {
  const fields: [number, Uint8Array][] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; at < bytes.length; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < bytes.length) {
    const tag = varint();
    if (tag % 8 !== 2) return fields;
    const length = varint();
    fields.push([Math.floor(tag / 8), bytes.subarray(at, at + length)]);
    at += length;
  }
  return fields;
}
