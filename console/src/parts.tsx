import { Code, ConnectError } from "@connectrpc/connect";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { UnreadParameters } from "./gen/entail/v1/types_pb";
import { pathHref, stepsOf, levelLabel } from "./names";
import { ALL_KINDS, attempts, errorInfo, incompleteOf, isConnectionFailure, session, type IncompleteKind } from "./session";
import { href } from "./router";
import { useStore } from "./store";
import { Kind, plain, T } from "./text";

/** The heading of a page. It takes the focus when the page changes, so that screen readers announce it. */
export function Title({ children, text }: { children?: ComponentChildren; text: string }) {
  useEffect(() => {
    document.title = `${plain(text)} - entail console`;
  }, [text]);
  return (
    <h1 id="title" tabIndex={-1}>
      {children ?? <T>{text}</T>}
    </h1>
  );
}

export function Note({ tone, title, children }: { tone: "error" | "unknown" | "info"; title?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class={`note ${tone}`}>
      {title && <p class="note-title">{title}</p>}
      {children}
    </div>
  );
}

/** An error of a call, with what can be done about it. */
export function Failure({ error }: { error: ConnectError }) {
  const { token } = useStore(session);
  const { reason, nearest } = errorInfo(error);
  if (error.code === Code.Unauthenticated)
    return (
      <Note tone="unknown" title="The server demands a token">
        <p>{token === "refused" ? "It does not accept the one that you entered." : "Enter one to see this page."}</p>
      </Note>
    );
  if (error.code === Code.PermissionDenied)
    return (
      <Note tone="error" title="You may not see this">
        <p>
          <T>{error.rawMessage}</T>
        </p>
        <p>
          The answer contains only objects that your account may <code>get</code>. Whoever manages the rights in the cluster can
          permit more.
        </p>
      </Note>
    );
  if (reason === "NotOnAPath")
    return (
      <Note tone="info" title="No path goes through it">
        <p>
          <T>{error.rawMessage}</T>
        </p>
      </Note>
    );
  return (
    <Note tone={isConnectionFailure(error) ? "unknown" : "error"} title={titleOf(error, reason)}>
      <p>
        <T>{error.rawMessage}</T>
      </p>
      {nearest && (
        <p>
          The nearest path that exists: <PathCrumbs path={nearest} />
        </p>
      )}
      {isConnectionFailure(error) ? (
        <p>The page asks again by itself.</p>
      ) : (
        [Code.DeadlineExceeded, Code.ResourceExhausted, Code.Aborted, Code.Internal, Code.Unknown].includes(error.code) && (
          <p>
            <button onClick={() => attempts.set(attempts.get() + 1)}>Ask again</button>
          </p>
        )
      )}
    </Note>
  );
}

function titleOf(error: ConnectError, reason: string): string {
  if (isConnectionFailure(error)) return "No answer";
  const titles: Partial<Record<Code, string>> = {
    [Code.NotFound]: "Not found",
    [Code.InvalidArgument]: "The request is not valid",
    [Code.Aborted]: "The data changes too often to list it",
    [Code.ResourceExhausted]: "Too much for one answer",
    [Code.DeadlineExceeded]: "The answer took too long",
    [Code.Unimplemented]: "The server does not have this call",
  };
  const title = titles[error.code] ?? `Error: ${Code[error.code]}`;
  return reason && reason !== "NotFound" ? `${title} (${reason})` : title;
}

/** Shows what there is: an answer, an error above the last answer, or that there is none yet. */
export function Answer<D>({ live, children }: { live: { data: D | undefined; error: ConnectError | undefined; loading: boolean }; children: (data: D) => ComponentChildren }) {
  return (
    <>
      {live.error && <Failure error={live.error} />}
      {live.error && live.data && <p class="quiet">Below is the last answer.</p>}
      {live.data !== undefined ? children(live.data) : !live.error && <Loading />}
    </>
  );
}

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <p class="loading" role="status">
      {what}
    </p>
  );
}

export function State({ state }: { state: IncompleteKind["state"] }) {
  return <span class={`badge ${state === "STALE" ? "stale" : "unknown"}`}>{state}</span>;
}

const STATES: Record<IncompleteKind["state"], string> = {
  STALE: "Answers use the last state that was read.",
  FORBIDDEN: "The server may not read the kind. That an answer has no policy of it means nothing.",
  UNKNOWN: "Its policies cannot be interpreted. That an answer has no policy of it means nothing.",
};

export function IncompleteKinds({ kinds }: { kinds: IncompleteKind[] }) {
  if (!kinds.length) return null;
  return (
    <ul class="incomplete">
      {kinds.map(({ kind, state, reason, message }) => (
        <li key={kind}>
          <State state={state} /> {kind === ALL_KINDS ? "all kinds" : <Kind kind={kind} />}
          {reason && <span class="quiet"> {reason}</span>}
          <div>
            {message && (
              <>
                <T>{message}</T>.{" "}
              </>
            )}
            <span class="quiet">{STATES[state]}</span>
          </div>
        </li>
      ))}
    </ul>
  );
}

/** The kinds that a reply does not fully know. */
export function ReplyKinds({ kinds, truncated, unread }: { kinds: Parameters<typeof incompleteOf>[0]; truncated?: boolean; unread?: UnreadParameters[] }) {
  return (
    <>
      {kinds.length > 0 && (
        <Note tone="unknown" title="This answer is not complete">
          <IncompleteKinds kinds={incompleteOf(kinds)} />
        </Note>
      )}
      {truncated && (
        <Note tone="unknown" title="This answer does not contain everything">
          <p>There is more than a reply holds, or rights to single objects were left unchecked because there are too many.</p>
        </Note>
      )}
      {unread && unread.length > 0 && (
        <Note tone="info" title="Parameters that are not read">
          <ul>
            {unread.map((one) => (
              <li>
                <T>{one.object}</T> refers to <Kind kind={one.kind} /> <T>{one.namespace ? `${one.namespace}/${one.name}` : one.name}</T>.
              </li>
            ))}
          </ul>
          <p class="quiet">What they set is not part of answers.</p>
        </Note>
      )}
    </>
  );
}

/** A path as its nodes. `without` is an object whose node is left out because the page is about it. */
export function PathCrumbs({ path, without = "", link = true }: { path: string; without?: string; link?: boolean }) {
  const steps = stepsOf(path);
  const shown = steps.filter((step) => step.object.toLowerCase() !== without.toLowerCase());
  const crumbs = steps.length ? (
    (shown.length ? shown : steps).map((step, at) => (
      <>
        {at > 0 && <span class="crumb-mark" aria-hidden="true">{" › "}</span>}
        <span class="crumb" title={plain(`${levelLabel(step.level)} ${step.object}`)}>
          <span class="quiet">{levelLabel(step.level).toLowerCase()} </span>
          <T>{step.label}</T>
        </span>
      </>
    ))
  ) : (
    <T>{path}</T>
  );
  return link ? (
    <a class="crumbs" href={pathHref(path)}>
      {crumbs}
    </a>
  ) : (
    <span class="crumbs">{crumbs}</span>
  );
}

/** Paths, the first ones at once and the others on demand. */
export function Paths({ paths, without, first = 2 }: { paths: string[]; without?: string; first?: number }) {
  const [shown, show] = useState(first);
  const rest = paths.length - shown;
  return (
    <ul class="paths">
      {paths.slice(0, shown).map((path) => (
        <li key={path}>
          <PathCrumbs path={path} without={without} />
        </li>
      ))}
      {rest > 0 && (
        <li>
          <button class="link" onClick={() => show(shown + 50)}>
            {rest > 50 ? `show 50 of ${rest.toLocaleString("en-US")} more paths` : `show ${rest} more ${rest === 1 ? "path" : "paths"}`}
          </button>
        </li>
      )}
    </ul>
  );
}

export const codeHref = (code: string) => href(["code", code]);

const REASONS: Record<string, string> = {
  "more specific default": "E070",
  "more specific override": "E071",
  "less specific override": "E072",
  older: "E073",
  newer: "E074",
  unset: "E075",
  "deleted by null": "E076",
  "condition false": "E077",
  "beyond the closest parent": "E078",
  "own field of the object": "E079",
  "missing reference": "E026",
  "a more specific target takes its part whole": "E081",
  "override of the same policy": "E082",
};

/** Why a value is overridden, with a link to the page that explains it. */
export function Reason({ reason }: { reason: string }) {
  const code = REASONS[reason];
  return code ? (
    <a class="reason" href={codeHref(code)}>
      {reason}
    </a>
  ) : (
    <span class="reason">
      <T>{reason}</T>
    </span>
  );
}

/** A list in steps, so that a page has a bounded number of elements. */
export function More<E>({ items, step = 100, children }: { items: E[]; step?: number; children: (shown: E[]) => ComponentChildren }) {
  const [shown, show] = useState(step);
  return (
    <>
      {children(items.slice(0, shown))}
      {items.length > shown && (
        <p>
          <button onClick={() => show(shown + step)}>
            Show {Math.min(step, items.length - shown).toLocaleString("en-US")} of {(items.length - shown).toLocaleString("en-US")} more
          </button>
        </p>
      )}
    </>
  );
}

/** A value that follows another one after a pause. */
export function useDelayed<V>(value: V, milliseconds: number): V {
  const [delayed, set] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => set(value), milliseconds);
    return () => window.clearTimeout(timer);
  }, [value]);
  return delayed;
}

/** The value of the last render in which it was not empty. */
export function useLast<V>(value: V | undefined): V | undefined {
  const last = useRef<V | undefined>(value);
  if (value !== undefined) last.current = value;
  return last.current;
}

export const clock = (time: number) => new Date(time).toLocaleTimeString([], { hour12: false });

/** A duration in words: `8 s`, `3 min`, `2 h`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
