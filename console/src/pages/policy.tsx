import { useState } from "preact/hooks";
import { useLive, usePaths } from "../live";
import { objectKind, splitKind } from "../names";
import { Answer, Note, PathCrumbs, ReplyKinds, Title } from "../parts";
import { href } from "../router";
import { insight } from "../session";
import { Kind, ObjectLink, plural, PolicyLink, T } from "../text";
import { Force } from "./policies";

/** The page of a policy: its status, and the paths and objects that it affects. */
export function PolicyPage({ kind, namespace, name }: { kind: string; namespace: string; name: string }) {
  const policy = [kind, namespace, name].filter(Boolean).join("/");
  const object = [objectKind(kind), namespace, name].filter(Boolean).join("/");
  const [pages, setPages] = useState(1);
  const live = useLive(`policy ${policy} ${pages}`, async (signal) => {
    const subject = { case: "policy" as const, value: policy };
    const whole = await insight.listAffected({ subject, pageSize: 100 }, { signal });
    for (let left = pages - 1; left > 0 && whole.nextPageToken; left -= 1) {
      const page = await insight.listAffected({ subject, pageSize: 1000, pageToken: whole.nextPageToken }, { signal });
      whole.paths.push(...page.paths);
      whole.objects.push(...page.objects);
      whole.nextPageToken = page.nextPageToken;
    }
    return whole;
  });
  usePaths(live.data?.paths.map(({ path }) => path) ?? []);
  return (
    <>
      <Title text={policy}>
        <span class="eyebrow">
          <Kind kind={kind} />
        </span>
        <T>{namespace ? `${namespace}/${name}` : name}</T>
      </Title>
      <p class="actions">
        <a href={href(["preview"], { delete: object })}>Preview what happens without it</a>
        <a href={href(["preview"], { change: object })}>Preview a change</a>
        <a href={href(["findings"], { q: `${splitKind(objectKind(kind))[0]} ${namespace ? `${namespace}/` : ""}${name}` })}>Findings about it</a>
      </p>
      <Answer live={live}>
        {(reply) => {
          const status = reply.status;
          return (
            <>
              <ReplyKinds kinds={reply.kinds} truncated={reply.truncated} />
              {status && (
                <section aria-label="Status">
                  <h2>
                    Status <Force inForce={status.inForce} />
                  </h2>
                  <dl class="facts">
                    {status.conditions.map((condition) => (
                      <>
                        <dt>
                          <T>{condition.type}</T>
                        </dt>
                        <dd>
                          <span class={`badge ${condition.status === "True" ? "good" : condition.status === "False" ? "bad" : "unknown"}`}>{condition.status}</span>{" "}
                          <T>{condition.reason}</T>
                          {condition.message && (
                            <div class="quiet">
                              <T>{condition.message}</T>
                            </div>
                          )}
                        </dd>
                      </>
                    ))}
                    <dt>Paths</dt>
                    <dd>
                      reaches {plural(status.paths, "path")}
                      {status.overriddenPaths > 0n && <>, overridden on {status.overriddenPaths.toLocaleString("en-US")}</>}
                    </dd>
                    {status.overriddenBy.length > 0 && (
                      <>
                        <dt>Overridden by</dt>
                        <dd>
                          <ul class="inline">
                            {status.overriddenBy.slice(0, 50).map((one) => (
                              <li>
                                <PolicyLink kind={kind} policy={one} />
                              </li>
                            ))}
                            {status.overriddenBy.length > 50 && <li>and {status.overriddenBy.length - 50} more</li>}
                          </ul>
                        </dd>
                      </>
                    )}
                    {status.overriddenUnits.length > 0 && (
                      <>
                        <dt>Overridden fields</dt>
                        <dd>
                          <code>
                            <T>{status.overriddenUnits.join(", ")}</T>
                          </code>
                        </dd>
                      </>
                    )}
                    {status.references.map((reference) => (
                      <>
                        <dt>
                          <code>
                            <T>{reference.field}</T>
                          </code>
                        </dt>
                        <dd>
                          <span class={`badge ${reference.outcome === "Accepted" ? "good" : "bad"}`}>{reference.outcome}</span>{" "}
                          {reference.nodes.slice(0, 20).map((node, at) => (
                            <>
                              {at > 0 && ", "}
                              <ObjectLink object={node} />
                            </>
                          ))}
                          {reference.nodes.length > 20 && ` and ${reference.nodes.length - 20} more`}
                          {reference.message && (
                            <div class="quiet">
                              <T>{reference.message}</T>
                            </div>
                          )}
                        </dd>
                      </>
                    ))}
                  </dl>
                  {status.warnings.map((warning) => (
                    <Note tone="unknown">
                      <p>
                        <T>{warning}</T>
                      </p>
                    </Note>
                  ))}
                </section>
              )}
              <section aria-label="Paths">
                <h2>
                  Paths <span class="count">{plural(status?.paths ?? reply.paths.length, "path")}</span>
                </h2>
                {reply.paths.length > 0 ? (
                  <div class="scroll" tabIndex={0} role="region" aria-label="Paths that the policy reaches">
                    <table class="list">
                      <thead>
                        <tr>
                          <th scope="col">Path</th>
                          <th scope="col">Sets</th>
                          <th scope="col">Overridden</th>
                        </tr>
                      </thead>
                      <tbody>
                        {reply.paths.map((one) => (
                          <tr key={one.path}>
                            <td>
                              <PathCrumbs path={one.path} />
                            </td>
                            <td>
                              <Fields units={one.effectiveUnits} />
                            </td>
                            <td>
                              <Fields units={one.overriddenUnits} />
                            </td>
                          </tr>
                        ))}
                      </tbody>
                    </table>
                  </div>
                ) : (
                  <p class="quiet">It reaches no path.</p>
                )}
                {reply.nextPageToken && (
                  <p>
                    <button onClick={() => setPages(pages + 5)} disabled={live.loading}>
                      Show more paths
                    </button>
                  </p>
                )}
              </section>
              {reply.objects.length > 0 && (
                <section aria-label="Objects">
                  <h2>Objects that it affects</h2>
                  <ul class="columns">
                    {reply.objects.slice(0, 200).map((object) => (
                      <li>
                        <ObjectLink object={object} />
                      </li>
                    ))}
                    {reply.objects.length > 200 && <li>and {(reply.objects.length - 200).toLocaleString("en-US")} more</li>}
                  </ul>
                </section>
              )}
            </>
          );
        }}
      </Answer>
    </>
  );
}

function Fields({ units }: { units: string[] }) {
  if (!units.length) return <span class="quiet">none</span>;
  return (
    <>
      {units.map((unit, at) => (
        <>
          {at > 0 && ", "}
          {unit === "*" ? "everything" : <code><T>{unit}</T></code>}
        </>
      ))}
    </>
  );
}
