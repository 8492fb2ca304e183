import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { changes } from "./live";
import { objectOf } from "./names";
import { AssertionsPage } from "./pages/assertions";
import { ChangesPage } from "./pages/changes";
import { CodePage } from "./pages/code";
import { ComparePage } from "./pages/compare";
import { FindingsPage } from "./pages/findings";
import { ObjectPage } from "./pages/object";
import { PoliciesPage } from "./pages/policies";
import { PolicyPage } from "./pages/policy";
import { PreviewPage } from "./pages/preview";
import { ServerPage } from "./pages/server";
import { TopologyPage } from "./pages/topology";
import { TracePage } from "./pages/trace";
import { clock, duration, IncompleteKinds, Note, Title } from "./parts";
import { href, location } from "./router";
import { Search } from "./search";
import { ALL_KINDS, hasToken, pollNow, session, useToken, type ConnectionState } from "./session";
import { useStore } from "./store";
import { plural, T } from "./text";

const PAGES: [string, string, string[]][] = [
  ["topology", "Topology", ["", "topology", "route", "object", "path", "compare"]],
  ["policies", "Policies", ["policies", "policy"]],
  ["trace", "Trace", ["trace"]],
  ["preview", "Preview", ["preview"]],
  ["findings", "Findings", ["findings", "code"]],
  ["assertions", "Assertions", ["assertions"]],
  ["changes", "Changes", ["changes"]],
  ["server", "Server", ["server"]],
];

export function App() {
  const { segments } = useStore(location);
  const address = segments.join("/");
  const first = useRef(true);
  // Before the page is painted, so that it does not take the focus from whoever already types.
  useLayoutEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    window.scrollTo(0, 0);
    document.getElementById("title")?.focus({ preventScroll: true });
  }, [address]);
  return (
    <>
      <a class="skip" href="#title" onClick={(event) => {
        event.preventDefault();
        document.getElementById("title")?.focus();
      }}>
        Skip to the content
      </a>
      <Header current={segments[0] ?? ""} />
      <main key={address}>
        <Page segments={segments} />
      </main>
      <TokenDialog />
    </>
  );
}

function Page({ segments }: { segments: string[] }) {
  const { denied } = useStore(session);
  return (
    <>
      {denied && (
        <Note tone="error" title="Your account may not use this service">
          <p>
            <T>{denied}</T>
          </p>
          <p>
            Ask whoever runs the server for access: docs/console.md of entail says which rights an account needs.{" "}
            <TokenButton>Enter another token</TokenButton>
          </p>
        </Note>
      )}
      <Outlet segments={segments} />
    </>
  );
}

function Outlet({ segments }: { segments: string[] }) {
  const [page = "topology", ...rest] = segments;
  switch (page) {
    case "topology":
      return <TopologyPage />;
    case "route":
    case "object":
      return <ObjectPage name={objectOf(rest)} isPath={false} />;
    case "path":
      return <ObjectPage name={rest.join("/")} isPath={true} />;
    case "policy":
      return <PolicyPage kind={rest[0] ?? ""} namespace={rest.length > 2 ? rest[1]! : ""} name={rest[rest.length - 1] ?? ""} />;
    case "policies":
      return <PoliciesPage />;
    case "compare":
      return <ComparePage />;
    case "trace":
      return <TracePage />;
    case "preview":
      return <PreviewPage />;
    case "findings":
      return <FindingsPage />;
    case "code":
      return <CodePage code={rest[0] ?? ""} />;
    case "assertions":
      return <AssertionsPage />;
    case "changes":
      return <ChangesPage />;
    case "server":
      return <ServerPage />;
    default:
      return (
        <>
          <Title text="No such page" />
          <p>
            <a href={href([])}>Go to the topology</a>
          </p>
        </>
      );
  }
}

function Header({ current }: { current: string }) {
  const unseen = useUnseenChanges(current === "changes");
  return (
    <header>
      <div class="bar">
        <a class="brand" href={href([])}>
          entail
        </a>
        <Search />
        <Freshness />
      </div>
      <nav aria-label="Pages">
        <ul>
          {PAGES.map(([page, label, segments]) => (
            <li>
              <a href={href([page])} aria-current={segments.includes(current) ? "page" : undefined}>
                {label}{" "}
                {page === "changes" && unseen > 0 && (
                  <span class="badge live" aria-label={plural(unseen, "new change")}>
                    {unseen}
                  </span>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <IncompleteStrip />
    </header>
  );
}

function useUnseenChanges(looking: boolean): number {
  const list = useStore(changes);
  const [seen, setSeen] = useState(0);
  const newest = list[0]?.id ?? 0;
  useEffect(() => {
    if (looking) setSeen(newest);
  }, [looking, newest]);
  return looking ? 0 : list.filter((change) => change.id > seen).length;
}

const CONNECTIONS: Record<ConnectionState, [string, string]> = {
  connecting: ["Connecting", "No answer yet"],
  streaming: ["Live", "Changes arrive over a stream"],
  polling: ["Polling", "The console asks for changes every few seconds"],
  lost: ["No connection", "The server does not answer. What you see is the last answer."],
};

/** How old the data is, and whether changes arrive. */
function Freshness() {
  const { connection, syncedAt, lostSince, failure, token, status } = useStore(session);
  const [now, tick] = useState(Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => tick(Date.now()), 1000);
    return () => window.clearInterval(timer);
  }, []);
  const [label, meaning] = token !== "unneeded" ? ["Token needed", "The server demands a token"] : CONNECTIONS[connection];
  const tone = token !== "unneeded" || connection === "lost" ? "bad" : connection === "streaming" ? "good" : "";
  return (
    <div class="freshness">
      <span class={`connection ${tone}`} title={connection === "lost" ? `${meaning} ${failure}` : meaning}>
        <span class="dot" aria-hidden="true" />
        <span id="connection" role="status">{label}</span>
        {connection === "lost" && lostSince > 0 && <span class="small"> for {duration(now - lostSince)}</span>}
      </span>
      <span class="age" title="When the server last knew that it had seen all changes. For manifests: when it last read one.">
        {syncedAt ? (
          <>
            in sync {clock(syncedAt)}, <span id="age">{duration(now - syncedAt)}</span> ago
          </>
        ) : (
          "age of the data not known"
        )}
      </span>
      {(hasToken() || token !== "unneeded") && <TokenButton>Token</TokenButton>}
      {status && <span class="visually-hidden">{plural(status.paths, "path")}</span>}
    </div>
  );
}

/** The kinds that are not completely known, on every page. */
function IncompleteStrip() {
  const { incomplete, status } = useStore(session);
  if (!incomplete.length) return null;
  const states = [...new Set(incomplete.map((kind) => kind.state))].join(", ");
  return (
    <details class="strip" open={incomplete.length < 3 && status !== undefined}>
      <summary>
        <strong>
          {incomplete.some(({ kind }) => kind === ALL_KINDS) ? "Some input is not read" : `${plural(incomplete.length, "kind is", "kinds are")} not completely known`}
        </strong>{" "}
        ({states})
      </summary>
      <IncompleteKinds kinds={incomplete} />
    </details>
  );
}

function TokenButton({ children }: { children: ComponentChildren }) {
  return (
    <button class="link" onClick={() => (document.getElementById("token-dialog") as HTMLDialogElement).showModal()}>
      {children}
    </button>
  );
}

/** Asks for a bearer token when the server demands one. */
function TokenDialog() {
  const { token } = useStore(session);
  const [text, setText] = useState("");
  const [keep, setKeep] = useState(true);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (token !== "unneeded" && !dialog.current!.open) dialog.current!.showModal();
    if (token === "unneeded" && dialog.current!.open) dialog.current!.close();
  }, [token]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!text.trim()) return;
    useToken(text, keep);
    setText("");
    dialog.current!.close();
  };
  return (
    <dialog id="token-dialog" ref={dialog} aria-labelledby="token-title">
      <form onSubmit={submit}>
        <h2 id="token-title">Token</h2>
        {token === "refused" && (
          <p class="error" role="alert">
            The server does not accept this token. It may have expired.
          </p>
        )}
        <p>The server shows each account the objects that it may read. Enter a token of yours, for example from:</p>
        <pre>kubectl create token NAME -n NAMESPACE</pre>
        <label>
          Bearer token
          <input type="password" autocomplete="off" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.currentTarget.checked)} />
          Keep it until this tab is closed
        </label>
        <p class="quiet small">It is sent to this server alone, and never part of an address.</p>
        <p class="buttons">
          <button class="primary" type="submit">
            Use token
          </button>
          {hasToken() && (
            <button
              type="button"
              onClick={() => {
                useToken("", false);
                dialog.current!.close();
              }}
            >
              Forget the token
            </button>
          )}
          <button type="button" onClick={() => dialog.current!.close()}>
            Cancel
          </button>
          {token !== "unneeded" && (
            <button type="button" class="link" onClick={pollNow}>
              Ask again without
            </button>
          )}
        </p>
      </form>
    </dialog>
  );
}
