import { ConnectError } from "@connectrpc/connect";
import { useEffect, useRef, useState } from "preact/hooks";
import { OriginView } from "../explanation";
import type { ChangedAnswer, PreviewChangeResponse } from "../gen/entail/v1/policy_insight_pb";
import { oneLine } from "../json";
import { Failure, Note, Paths, ReplyKinds, Title, codeHref } from "../parts";
import { location } from "../router";
import { insight, session } from "../session";
import { splitKind } from "../names";
import { useStore } from "../store";
import { Kind, plural, PolicyLink, T } from "../text";

// What was entered stays while the tab is open, also when another page is looked at in between.
const draft = { manifests: "", deletes: "", address: "" };

function skeleton(policy: string): string {
  const parts = policy.split("/");
  const [kind, group] = splitKind(parts[0] ?? "");
  const name = parts[parts.length - 1] ?? "";
  const namespace = parts.length > 2 ? `\n  namespace: ${JSON.stringify(parts[1])}` : "";
  return `# Paste the whole manifest here and edit it. It replaces the object of this name:
# kubectl get ${kind.toLowerCase()} ${name}${parts.length > 2 ? ` -n ${parts[1]}` : ""} -o yaml
apiVersion: ${group}/VERSION
kind: ${kind}
metadata:
  name: ${JSON.stringify(name)}${namespace}
spec: {}
`;
}

/** What would change if objects were applied or deleted. */
export function PreviewPage() {
  const { query } = useStore(location);
  const { snapshot } = useStore(session);
  const address = query.toString();
  if (draft.address !== address) {
    draft.address = address;
    const [change, remove] = [query.get("change"), query.get("delete")];
    if (remove) {
      draft.deletes = remove;
      draft.manifests = "";
    }
    if (change) {
      draft.manifests = skeleton(change);
      draft.deletes = "";
    }
  }
  const [manifests, setManifests] = useState(draft.manifests);
  const [deletes, setDeletes] = useState(draft.deletes);
  const [state, setState] = useState<{ reply?: PreviewChangeResponse; error?: ConnectError; busy: boolean; snapshot: string; of: string }>({ busy: false, snapshot: "", of: "" });
  useEffect(() => {
    setManifests(draft.manifests);
    setDeletes(draft.deletes);
    setState({ busy: false, snapshot: "", of: "" });
  }, [address]);
  const control = useRef<AbortController | undefined>(undefined);
  const file = useRef<HTMLInputElement>(null);
  const input = JSON.stringify([manifests, deletes]);
  Object.assign(draft, { manifests, deletes });

  const run = async () => {
    control.current?.abort();
    const mine = (control.current = new AbortController());
    setState((old) => ({ ...old, busy: true }));
    try {
      const names = deletes.split(/[\s,]+/).filter(Boolean);
      const reply = await insight.previewChange({ manifests, deletes: names }, { signal: mine.signal });
      setState({ reply, busy: false, snapshot: reply.version ? `${reply.version.epoch}/${reply.version.generation}` : "", of: input });
    } catch (cause) {
      if (!mine.signal.aborted) setState({ error: ConnectError.from(cause), busy: false, snapshot: "", of: input });
    }
  };
  useEffect(() => () => control.current?.abort(), []);
  useEffect(() => {
    if (query.get("delete")) void run();
  }, [address]);
  // A preview of what was current is asked for again when the world changes.
  useEffect(() => {
    if (state.reply && state.snapshot !== snapshot && state.of === input) void run();
  }, [snapshot]);

  const { reply, error } = state;
  return (
    <>
      <Title text="Preview a change" />
      <p class="quiet">Shows what would change if these objects were applied or deleted. Nothing is applied.</p>
      <form
        class="preview"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <label>
          Manifests to apply (YAML or JSON, several documents)
          <textarea
            name="manifests"
            rows={manifests || !deletes ? 14 : 4}
            class="code"
            spellcheck={false}
            value={manifests}
            onInput={(event) => setManifests(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void run();
            }}
          />
        </label>
        <label>
          Objects to delete
          <input name="deletes" placeholder="kind/namespace/name" spellcheck={false} autocomplete="off" value={deletes} onInput={(event) => setDeletes(event.currentTarget.value)} />
        </label>
        <p class="buttons">
          <button class="primary" type="submit" disabled={state.busy || (!manifests.trim() && !deletes.trim())}>
            {state.busy ? "Computing" : "Preview"}
          </button>
          <button type="button" onClick={() => file.current!.click()}>
            Open a file
          </button>
          <input
            ref={file}
            type="file"
            hidden
            accept=".yaml,.yml,.json"
            aria-label="File of manifests"
            onChange={async (event) => {
              const chosen = event.currentTarget.files?.[0];
              if (chosen) setManifests(await chosen.text());
            }}
          />
        </p>
      </form>
      {error && <Failure error={error} />}
      {reply && state.of !== input && <p class="quiet">The input was changed after this preview.</p>}
      {reply && <Result reply={reply} />}
    </>
  );
}

function Result({ reply }: { reply: PreviewChangeResponse }) {
  const lost = reply.changes.flatMap((change) => change.units).filter((unit) => unit.afterJson === undefined).length;
  const paths = new Set(reply.changes.flatMap((change) => change.paths)).size;
  const nothing = !reply.changes.length && !reply.pathsAdded.length && !reply.pathsRemoved.length;
  return (
    <section aria-label="Result" aria-live="polite" class="preview-result">
      <h2>{nothing ? "Nothing changes" : "What changes"}</h2>
      <ReplyKinds kinds={reply.kinds} truncated={reply.truncated} />
      {reply.problems.length > 0 && (
        <Note tone="error" title="Problems in the manifests">
          <ul>
            {reply.problems.map((problem) => (
              <li>
                {problem.code && <a href={codeHref(problem.code)}>{problem.code}</a>} <T>{problem.location}</T>: <T>{problem.message}</T>
              </li>
            ))}
          </ul>
          <p>The rest of the manifests is used.</p>
        </Note>
      )}
      {!nothing && (
        <p>
          {plural(reply.changes.length, "effective policy changes", "effective policies change")} on {plural(paths, "path")}
          {reply.pathsAdded.length > 0 && `, ${plural(reply.pathsAdded.length, "path is", "paths are")} added`}
          {reply.pathsRemoved.length > 0 && `, ${plural(reply.pathsRemoved.length, "path is", "paths are")} removed`}.
        </p>
      )}
      {reply.losesValues && (
        <Note tone="error" title={`${plural(lost || 1, "value is", "values are")} lost`}>
          <p>No policy sets them afterwards: the proxy uses its own default.</p>
        </Note>
      )}
      {reply.pathsRemoved.length > 0 && (
        <>
          <h3>Removed paths</h3>
          <Paths paths={reply.pathsRemoved} first={10} />
        </>
      )}
      {reply.pathsAdded.length > 0 && (
        <>
          <h3>Added paths</h3>
          <Paths paths={reply.pathsAdded} first={10} />
        </>
      )}
      {reply.changes.map((change) => (
        <Changed change={change} />
      ))}
    </section>
  );
}

function Changed({ change }: { change: ChangedAnswer }) {
  return (
    <article class="answer">
      <h3>
        <Kind kind={change.kind} />
      </h3>
      <div class="answer-paths">
        <span class="quiet">on</span>
        <Paths paths={change.paths} first={4} />
      </div>
      {change.newlyRejected.length > 0 && (
        <Note tone="error" title="Rejected after the change">
          <ul>
            {change.newlyRejected.map((one) => (
              <li>
                <PolicyLink kind={change.kind} policy={one.policy!} /> <span class="badge bad">{one.reason}</span> <T>{one.message}</T>
              </li>
            ))}
          </ul>
        </Note>
      )}
      {change.units.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Changed values">
          <table class="diff">
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {change.units.map((unit) => (
                <tr>
                  <th scope="row">
                    <code>
                      <T>{unit.unit === "*" ? "whole policy" : unit.unit}</T>
                    </code>{" "}
                    {unit.beforeJson !== undefined && unit.afterJson === undefined && <span class="badge bad">lost</span>}
                    {unit.beforeJson === undefined && <span class="badge good">new</span>}
                  </th>
                  <td class={unit.beforeJson === unit.afterJson || unit.beforeJson === undefined ? "" : "before"}>
                    <Side kind={change.kind} json={unit.beforeJson} origin={unit.beforeOrigin} />
                  </td>
                  <td class={unit.beforeJson === unit.afterJson || unit.afterJson === undefined ? "" : "after"}>
                    <Side kind={change.kind} json={unit.afterJson} origin={unit.afterOrigin} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </article>
  );
}

function Side({ kind, json, origin }: { kind: string; json: string | undefined; origin: Parameters<typeof OriginView>[0]["origin"] }) {
  if (json === undefined) return <span class="quiet">no value</span>;
  return (
    <>
      <code class="value">
        <T>{oneLine(json)}</T>
      </code>
      <div class="small">
        <OriginView kind={kind} origin={origin} />
      </div>
    </>
  );
}
