import { useMemo } from "preact/hooks";
import { Finding_Severity as Severity, type Finding, type ListFindingsResponse } from "../gen/entail/v1/policy_insight_pb";
import { useLive } from "../live";
import { parseObject, policyHref } from "../names";
import { Answer, codeHref, More, ReplyKinds, Title } from "../parts";
import { location, replaceQuery } from "../router";
import { insight, session } from "../session";
import { useStore } from "../store";
import { ObjectLink, plural, T } from "../text";

const SEVERITIES: [Severity, string, string][] = [
  [Severity.ERROR, "error", "bad"],
  [Severity.WARNING, "warning", "part"],
  [Severity.NOTE, "note", "off"],
];
const MOST = 5000;

/** All findings that the page shows; the most severe ones come first. */
export async function listFindings(signal: AbortSignal): Promise<ListFindingsResponse> {
  const whole = await insight.listFindings({ maxPlaces: 20 }, { signal });
  while (whole.nextPageToken && whole.findings.length < MOST) {
    const page = await insight.listFindings({ maxPlaces: 20, pageToken: whole.nextPageToken }, { signal });
    whole.findings.push(...page.findings);
    whole.nextPageToken = page.nextPageToken;
  }
  return whole;
}

export function FindingsPage() {
  const { query } = useStore(location);
  const { status } = useStore(session);
  const live = useLive("findings", listFindings);
  const [text, severity, code] = ["q", "severity", "code"].map((name) => query.get(name) ?? "") as [string, string, string];
  const all = live.data?.findings ?? [];
  const shown = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return all.filter((finding) => {
      const label = SEVERITIES.find(([value]) => value === finding.severity)?.[1];
      const content = `${finding.code} ${finding.reason} ${finding.object} ${finding.message} ${finding.location}`.toLowerCase();
      return (!severity || label === severity) && (!code || finding.code === code) && words.every((word) => content.includes(word));
    });
  }, [live.data, text, severity, code]);
  const codes = useMemo(() => {
    const counts = new Map<string, [string, number]>();
    for (const finding of all) counts.set(finding.code, [finding.reason, (counts.get(finding.code)?.[1] ?? 0) + 1]);
    return [...counts].sort();
  }, [live.data]);
  return (
    <>
      <Title text="Findings" />
      <Answer live={live}>
        {(reply) => (
          <>
            <ReplyKinds kinds={reply.kinds} truncated={reply.truncated || Boolean(reply.nextPageToken)} />
            {status && status.problems.length > 0 && (
              <div class="note error">
                <p class="note-title">{plural(status.problems.length, "problem")} in the inputs</p>
                <ul>
                  {status.problems.slice(0, 50).map((problem) => (
                    <li>
                      {problem.code && <a href={codeHref(problem.code)}>{problem.code}</a>} <T>{problem.location}</T>: <T>{problem.message}</T>
                    </li>
                  ))}
                </ul>
              </div>
            )}
            <div class="filters" role="group" aria-label="Filter">
              <label>
                Text
                <input type="search" value={text} onInput={(event) => replaceQuery({ q: event.currentTarget.value })} />
              </label>
              <label>
                Severity
                <select value={severity} onChange={(event) => replaceQuery({ severity: event.currentTarget.value })}>
                  <option value="">all</option>
                  {SEVERITIES.map(([value, label]) => (
                    <option value={label}>
                      {label} ({all.filter((finding) => finding.severity === value).length})
                    </option>
                  ))}
                </select>
              </label>
              <label>
                Code
                <select value={code} onChange={(event) => replaceQuery({ code: event.currentTarget.value })}>
                  <option value="">all</option>
                  {codes.map(([one, [reason, count]]) => (
                    <option value={one}>
                      {one} {reason} ({count})
                    </option>
                  ))}
                </select>
              </label>
              <span class="quiet" role="status">
                {plural(shown.length, "finding")}
              </span>
            </div>
            {!all.length && <p>There are no findings.</p>}
            <More items={shown}>
              {(some) => (
                <ul class="findings">
                  {some.map((finding) => (
                    <FindingItem key={`${finding.code} ${finding.object} ${finding.location} ${finding.message}`} finding={finding} />
                  ))}
                </ul>
              )}
            </More>
          </>
        )}
      </Answer>
    </>
  );
}

function FindingItem({ finding }: { finding: Finding }) {
  const [, label, tone] = SEVERITIES.find(([value]) => value === finding.severity) ?? [0, "", ""];
  return (
    <li>
      <p class="finding-head">
        <span class={`badge ${tone}`}>{label}</span>
        <a href={codeHref(finding.code)}>
          <T>{`${finding.code} ${finding.reason}`}</T>
        </a>
        <Subject object={finding.object} />
        {finding.count > 1n && <span class="quiet">in {finding.count.toLocaleString("en-US")} places</span>}
      </p>
      <p>
        <T>{finding.message}</T>
      </p>
      {finding.places.length > 0 && (
        <ul class="small">
          {finding.places.map((place) => (
            <li>
              <T>{place}</T>
            </li>
          ))}
          {Number(finding.count) > finding.places.length && <li class="quiet">and {Number(finding.count) - finding.places.length} more</li>}
        </ul>
      )}
      {finding.location && (
        <p class="quiet small">
          <T>{finding.location}</T>
        </p>
      )}
    </li>
  );
}

/** A link to the page of a policy if the kind is one, otherwise to that of the object. */
function Subject({ object }: { object: string }) {
  const { status } = useStore(session);
  const { kind, namespace, name } = parseObject(object);
  if (!object) return null;
  if (status?.kinds.some((one) => one.kind === kind))
    return (
      <a class="name" href={policyHref(kind, { namespace, name })}>
        <span class="quiet"><T>{kind.split(".")[0]}</T> </span>
        <T>{namespace ? `${namespace}/${name}` : name}</T>
      </a>
    );
  return /^(Gateway|GatewayClass|ListenerSet|Service|Namespace|[A-Za-z]*Route)$/.test(kind) ? <ObjectLink object={object} /> : <T>{object}</T>;
}
