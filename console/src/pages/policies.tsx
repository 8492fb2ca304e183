import { useMemo } from "preact/hooks";
import { catalogState, type PolicyEntry } from "../catalog";
import { Failure, Loading, More, Note, Title } from "../parts";
import { location, replaceQuery } from "../router";
import { session } from "../session";
import { useStore } from "../store";
import { Kind, plain, plural, PolicyLink, T } from "../text";

const FORCE: Record<string, [string, string]> = {
  All: ["in force", "good"],
  AllWithAdditions: ["in force", "good"],
  Part: ["in part", "part"],
  PartWithAdditions: ["in part", "part"],
  None: ["no effect", "off"],
  NoScope: ["on no path", "off"],
  Unknown: ["not known", "unknown"],
  "": ["not accepted", "bad"],
};

/** How far a policy is in force, in words. */
export function Force({ inForce }: { inForce: string }) {
  const [label, tone] = FORCE[inForce] ?? [inForce, ""];
  return <span class={`badge ${tone}`}>{label}</span>;
}

export const forceLabel = (inForce: string) => (FORCE[inForce] ?? [inForce])[0];

const ORDER = ["not known", "not accepted", "no effect", "on no path", "in part", "in force"];

/** All policies with how far they are in force: those with a problem first. */
export function PoliciesPage() {
  const { catalog, error, read } = useStore(catalogState);
  const { status, incomplete } = useStore(session);
  const { query } = useStore(location);
  const [text, kind, namespace, force] = ["q", "kind", "ns", "force"].map((name) => query.get(name) ?? "") as [string, string, string, string];
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return (catalog?.policies ?? [])
      .filter(
        (policy) =>
          (!kind || policy.kind === kind) &&
          (!namespace || policy.namespace === namespace) &&
          (!force || forceLabel(policy.inForce) === force) &&
          words.every((word) => `${policy.kind}/${policy.namespace}/${policy.name}`.toLowerCase().includes(word)),
      )
      .sort((a, b) => ORDER.indexOf(forceLabel(a.inForce)!) - ORDER.indexOf(forceLabel(b.inForce)!));
  }, [catalog, text, kind, namespace, force]);
  const kinds = useMemo(() => [...new Set(catalog?.policies.map((policy) => policy.kind))], [catalog]);
  const namespaces = useMemo(() => [...new Set(catalog?.policies.map((policy) => policy.namespace))].sort(), [catalog]);
  return (
    <>
      <Title text="Policies" />
      {error && !catalog && <Failure error={error} />}
      {!catalog && !error && <Loading what={`Reading policies: ${plural(read, "object")} so far`} />}
      {catalog && (
        <>
          <div class="filters" role="group" aria-label="Filter">
            <label>
              Name
              <input type="search" value={text} onInput={(event) => replaceQuery({ q: event.currentTarget.value })} />
            </label>
            <Choice label="Kind" value={kind} values={kinds} name="kind" />
            <Choice label="Namespace" value={namespace} values={namespaces.filter(Boolean)} name="ns" />
            <Choice label="State" value={force} values={ORDER} name="force" />
            <span class="quiet" role="status">
              {plural(found.length, "policy", "policies")}
            </span>
          </div>
          {incomplete.length > 0 && (
            <Note tone="unknown" title="Policies may be missing here">
              <p>Some kinds are not completely known: see the top of the page.</p>
            </Note>
          )}
          <More items={found} step={200}>
            {(shown) => <PolicyTable policies={shown} />}
          </More>
          {!catalog.policies.length && status && <p class="quiet">There are no policies of the {plural(status.kinds.length, "kind")} with a profile.</p>}
        </>
      )}
    </>
  );
}

function Choice({ label, value, values, name }: { label: string; value: string; values: string[]; name: string }) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => replaceQuery({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {values.map((one) => (
          <option value={one}>{plain(one)}</option>
        ))}
      </select>
    </label>
  );
}

function PolicyTable({ policies }: { policies: PolicyEntry[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Policies">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Policy</th>
            <th scope="col">Kind</th>
            <th scope="col">State</th>
            <th scope="col" class="number">Paths</th>
            <th scope="col" class="number">Overridden on</th>
          </tr>
        </thead>
        <tbody>
          {policies.map((policy) => (
            <tr key={`${policy.kind} ${policy.namespace} ${policy.name}`}>
              <td>
                <PolicyLink kind={policy.kind} policy={policy} />
              </td>
              <td>
                <Kind kind={policy.kind} />
              </td>
              <td>
                <Force inForce={policy.inForce} />
                {!policy.accepted && (
                  <span class="small"> <T>{policy.reason}</T></span>
                )}
              </td>
              <td class="number">{policy.paths.toLocaleString("en-US")}</td>
              <td class="number">{policy.overriddenPaths ? policy.overriddenPaths.toLocaleString("en-US") : <span class="quiet">0</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
