import { catalogState } from "../catalog";
import { KindState_State } from "../gen/entail/v1/types_pb";
import { clock, codeHref, Loading, State, Title } from "../parts";
import { useState } from "preact/hooks";
import { session } from "../session";
import { useStore } from "../store";
import { Kind, plural, T } from "../text";

/** What the server has read, and how fresh it is. */
export function ServerPage() {
  const { status, syncedAt, incomplete } = useStore(session);
  const { catalog } = useStore(catalogState);
  const [all, showAll] = useState(false);
  const quiet = status?.kinds.filter((kind) => kind.state === KindState_State.COMPLETE && kind.policies === 0n).length ?? 0;
  return (
    <>
      <Title text="Server" />
      {!status ? (
        <Loading />
      ) : (
        <>
          <dl class="facts">
            <dt>Version</dt>
            <dd>
              entail <T>{status.serverVersion}</T>
            </dd>
            <dt>Snapshot</dt>
            <dd>
              generation {status.version?.generation.toLocaleString("en-US")} <span class="quiet">of epoch <T>{status.version?.epoch}</T></span>
            </dd>
            <dt>In sync</dt>
            <dd>{syncedAt ? `${new Date(syncedAt).toLocaleDateString()} ${clock(syncedAt)}` : "not known"}</dd>
            <dt>Paths</dt>
            <dd>
              {plural(status.paths, "path")}, {plural(status.distinctAnswers, "distinct answer")}
            </dd>
            {catalog && (
              <>
                <dt>Objects</dt>
                <dd>{plural(catalog.names.length, "node")} in the topology</dd>
              </>
            )}
          </dl>
          {status.problems.length > 0 && (
            <section aria-label="Problems">
              <h2>{plural(status.problems.length, "problem")} in the inputs</h2>
              <ul>
                {status.problems.slice(0, 200).map((problem) => (
                  <li>
                    {problem.code && <a href={codeHref(problem.code)}>{problem.code}</a>} <T>{problem.location}</T>: <T>{problem.message}</T>
                  </li>
                ))}
              </ul>
            </section>
          )}
          <h2>
            Kinds <span class="count">{status.kinds.length}</span>
          </h2>
          <div class="scroll" tabIndex={0} role="region" aria-label="Kinds">
            <table class="list">
              <thead>
                <tr>
                  <th scope="col">Kind</th>
                  <th scope="col">State</th>
                  <th scope="col" class="number">Policies</th>
                  <th scope="col" class="number">Accepted</th>
                  <th scope="col">Profile</th>
                  <th scope="col">Answers at</th>
                </tr>
              </thead>
              <tbody>
                {status.kinds
                  .filter((kind) => all || kind.state !== KindState_State.COMPLETE || kind.policies > 0n)
                  .sort((a, b) => Number(a.state === KindState_State.COMPLETE) - Number(b.state === KindState_State.COMPLETE) || Number(b.policies - a.policies))
                  .map((kind) => {
                    const state = incomplete.find((one) => one.kind === kind.kind);
                    return (
                      <tr key={kind.kind}>
                        <td>
                          <Kind kind={kind.kind} />
                        </td>
                        <td>
                          {kind.state === KindState_State.COMPLETE ? <span class="badge good">COMPLETE</span> : <State state={state?.state ?? "UNKNOWN"} />}
                          {kind.notComputed && (
                            <div class="small quiet">
                              not computed: <T>{kind.notComputed}</T>
                            </div>
                          )}
                        </td>
                        <td class="number">{kind.policies.toLocaleString("en-US")}</td>
                        <td class="number">{kind.accepted.toLocaleString("en-US")}</td>
                        <td>
                          <T>{kind.profile || "none"}</T>
                        </td>
                        <td>
                          <T>{kind.scopeLevels.join(", ")}</T>
                        </td>
                      </tr>
                    );
                  })}
              </tbody>
            </table>
          </div>
          {quiet > 0 && (
            <p>
              <button class="link" onClick={() => showAll(!all)}>
                {all ? "Hide" : "Show"} {plural(quiet, "kind")} without policies
              </button>
            </p>
          )}
          <p class="quiet small">
            <a href="assets/licenses.txt">Licences</a> of what the console contains.
          </p>
        </>
      )}
    </>
  );
}
