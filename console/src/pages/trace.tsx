import { useEffect, useState } from "preact/hooks";
import { kindOf, Listed, OriginView, Problems } from "../explanation";
import {
  ResolveRequestRequest_Protocol as Protocol,
  type ResolvedBackend,
  type ResolvedRequest,
  type RuleMiss,
  type UnresolvedRequest,
} from "../gen/entail/v1/effective_policy_pb";
import type { EffectivePolicy, Origin } from "../gen/entail/v1/types_pb";
import { yamlBlock } from "../json";
import { useLive, usePaths } from "../live";
import { pathHref, stepsOf } from "../names";
import { Answer, Note, PathCrumbs, ReplyKinds, Title } from "../parts";
import { go, href, location } from "../router";
import { effective } from "../session";
import { useStore } from "../store";
import { Kind, ObjectLink, plural, T } from "../text";

const FIELDS = ["protocol", "host", "path", "method", "headers", "gateway", "listener", "port", "sni", "service", "client", "dialect", "why"] as const;
type Form = Record<(typeof FIELDS)[number], string>;

const PROTOCOLS: Record<string, Protocol> = {
  HTTP: Protocol.HTTP,
  GRPC: Protocol.GRPC,
  TLS: Protocol.TLS,
  TCP: Protocol.TCP,
  UDP: Protocol.UDP,
};

// Values of these headers are secrets: they are not written into the address of the page.
const SECRET = /^(authorization|proxy-authorization|cookie|x-api-key)$/i;
let secrets = "";

function parseHeaders(text: string): { name: string; value: string }[] {
  return text
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => {
      const colon = line.indexOf(":");
      return colon < 0 ? { name: line.trim(), value: "" } : { name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() };
    });
}

/** Which rule takes a request, why, and with which effective policies. */
export function TracePage() {
  const { query } = useStore(location);
  const asked = Object.fromEntries(FIELDS.map((field) => [field, query.get(field) ?? ""])) as Form;
  const address = query.toString();
  const [form, setForm] = useState<Form>(asked);
  useEffect(() => setForm({ ...asked, headers: [asked.headers, secrets].filter(Boolean).join("\n") }), [address]);
  const change = (field: keyof Form) => (event: { currentTarget: { value: string } }) => setForm({ ...form, [field]: event.currentTarget.value });
  const submit = (event: Event) => {
    event.preventDefault();
    const lines = form.headers.split("\n").filter((line) => line.trim());
    const secret = lines.filter((line) => SECRET.test(line.split(":")[0]!.trim()));
    secrets = secret.join("\n");
    const shared = { ...form, headers: lines.filter((line) => !secret.includes(line)).join("\n"), asked: "1", n: "" };
    let target = href(["trace"], shared);
    if (target === window.location.hash) target = href(["trace"], { ...shared, n: String(Date.now()) });
    go(target);
  };
  return (
    <>
      <Title text="Trace a request" />
      <form class="request" onSubmit={submit}>
        <label class="host">
          Host
          <input name="host" placeholder="shop.example.com" spellcheck={false} autocomplete="off" value={form.host} onInput={change("host")} />
        </label>
        <label class="grow">
          Path
          <input name="path" placeholder="/" spellcheck={false} autocomplete="off" value={form.path} onInput={change("path")} />
        </label>
        <label>
          Method
          <input name="method" class="short" list="methods" placeholder="GET" spellcheck={false} autocomplete="off" value={form.method} onInput={change("method")} />
          <datalist id="methods">
            {["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"].map((method) => (
              <option value={method} />
            ))}
          </datalist>
        </label>
        <label>
          Protocol
          <select name="protocol" value={form.protocol || "HTTP"} onChange={change("protocol")}>
            {Object.keys(PROTOCOLS).map((protocol) => (
              <option>{protocol}</option>
            ))}
          </select>
        </label>
        <label class="grow">
          Headers, one a line
          <textarea name="headers" rows={1} placeholder="x-env: canary" spellcheck={false} value={form.headers} onInput={change("headers")} />
        </label>
        <label class="grow">
          Why not this rule (optional)
          <input name="why" placeholder="httproute/namespace/name#rule, or rule/name" spellcheck={false} autocomplete="off" value={form.why} onInput={change("why")} />
        </label>
        <details class="wide" open={Boolean(asked.gateway || asked.listener || asked.port || asked.sni || asked.service || asked.client || asked.dialect)}>
          <summary>Where the request enters</summary>
          <div class="request">
            <label>
              Gateway
              <input name="gateway" placeholder="namespace/name" value={form.gateway} onInput={change("gateway")} />
            </label>
            <label>
              Listener
              <input name="listener" value={form.listener} onInput={change("listener")} />
            </label>
            <label>
              Port
              <input name="port" class="short" inputMode="numeric" pattern="[0-9]*" value={form.port} onInput={change("port")} />
            </label>
            <label>
              SNI
              <input name="sni" value={form.sni} onInput={change("sni")} />
            </label>
            <label>
              Service (mesh)
              <input name="service" placeholder="namespace/name" value={form.service} onInput={change("service")} />
            </label>
            <label>
              Client namespace (mesh)
              <input name="client" value={form.client} onInput={change("client")} />
            </label>
            <label>
              Dialect
              <input name="dialect" placeholder="that of the controller" value={form.dialect} onInput={change("dialect")} />
            </label>
          </div>
        </details>
        <p class="buttons wide">
          <button class="primary" type="submit">
            Trace
          </button>
        </p>
      </form>
      {FIELDS.some((field) => asked[field]) || query.get("asked") ? <Trace form={asked} address={address} /> : <p class="quiet">Enter what the client sends. The answer names the rule at each Gateway that takes the request, or says why none does.</p>}
    </>
  );
}

function Trace({ form, address }: { form: Form; address: string }) {
  const live = useLive(`trace ${address}`, (signal) =>
    effective.resolveRequest(
      {
        protocol: PROTOCOLS[form.protocol] ?? Protocol.HTTP,
        host: form.host,
        path: form.path,
        method: form.method,
        headers: parseHeaders([form.headers, secrets].filter(Boolean).join("\n")),
        gateway: form.gateway,
        listener: form.listener,
        port: Number(form.port) || 0,
        sni: form.sni,
        service: form.service,
        clientNamespace: form.client,
        dialect: form.dialect,
        whyNot: form.why,
      },
      { signal },
    ),
  );
  usePaths(live.data?.resolved.map(({ path }) => path) ?? []);
  return (
    <Answer live={live}>
      {(reply) => (
        <>
          <ReplyKinds kinds={reply.kinds} unread={reply.unreadParameters} />
          {reply.whyNot.length > 0 && <WhyNot misses={reply.whyNot} />}
          {reply.resolved.map((one) => (
            <Resolved key={`${one.path} ${one.port}`} resolved={one} />
          ))}
          {reply.unresolved.length > 0 && <Unresolved list={reply.unresolved} also={reply.resolved.length > 0} address={address} />}
          {!reply.resolved.length && !reply.unresolved.length && <p>There is no Gateway that the request could enter.</p>}
        </>
      )}
    </Answer>
  );
}

function Resolved({ resolved }: { resolved: ResolvedRequest }) {
  const steps = stepsOf(resolved.path);
  const gateway = steps.find((step) => step.level === "Gateway") ?? steps[0];
  const total = resolved.backends.reduce((sum, backend) => sum + backend.weight, 0);
  const settled = (resolved.policies?.policies ?? []).filter((policy) => !policy.inheritedOnly);
  return (
    <section class="resolved" aria-label={`Rule at ${gateway?.label ?? resolved.path}`}>
      <h2>
        <PathCrumbs path={resolved.path} />
      </h2>
      <dl class="facts">
        <dt>Matched by</dt>
        <dd>
          <T>{resolved.matched || "every request"}</T>
          {resolved.matchIndex !== undefined && <span class="quiet"> (match {resolved.matchIndex} of rule {resolved.ruleIndex})</span>}
        </dd>
        <dt>Enters at</dt>
        <dd>
          {resolved.port ? `port ${resolved.port}` : "a port that is not known"}
          {resolved.dialect && (
            <span class="quiet">
              , routed as <T>{resolved.dialect}</T>
            </span>
          )}
        </dd>
      </dl>
      {resolved.refusal && (
        <Note tone="error" title="The proxy refuses the request before it looks for a rule">
          <p>
            <T>{resolved.refusal}</T>. Unless it is configured otherwise; then the request takes this rule.
          </p>
        </Note>
      )}
      <h3>
        Effective policies <a class="small" href={pathHref(resolved.path)}>where each value comes from</a>
      </h3>
      {settled.length ? (
        <div class="specs">
          {settled.map((policy) => (
            <Spec policy={policy} />
          ))}
        </div>
      ) : (
        <p class="quiet">No policy takes effect on this rule.</p>
      )}
      <h3>{plural(resolved.backends.length, "backend")}</h3>
      {!resolved.backends.length && <p class="quiet">The rule sends requests to no backend.</p>}
      {resolved.backends.map((backend) => (
        <Backend backend={backend} total={total} />
      ))}
    </section>
  );
}

function Backend({ backend, total }: { backend: ResolvedBackend; total: number }) {
  const share = total ? Math.round((100 * backend.weight) / total) : 0;
  return (
    <div class="backend">
      <p>
        <span class="share" aria-hidden="true">
          <span style={{ width: `${share}%` }} />
        </span>{" "}
        <strong>{share} %</strong> <span class="quiet">weight {backend.weight}</span> <ObjectLink object={backend.backend} />{" "}
        {backend.path && <a class="small" href={pathHref(backend.path)}>its path</a>}
      </p>
      {backend.reason && (
        <Note tone="error" title={backend.reason}>
          <p>The backend is not on a path, so requests to it fail.</p>
        </Note>
      )}
      {backend.policies.length > 0 && (
        <div class="specs">
          {backend.policies.map((policy) => (
            <Spec policy={policy} />
          ))}
        </div>
      )}
    </div>
  );
}

/** The values of an effective policy, with the origin beside the first line that it sets. */
function Spec({ policy }: { policy: EffectivePolicy }) {
  const kind = kindOf(policy);
  const lines = policy.specJson === undefined ? [] : yamlBlock(policy.specJson);
  const whole = policy.origins.find((origin) => origin.unit === "*" || origin.unit === "");
  const single = whole ?? (policy.origins.length > 1 && policy.origins.every((origin) => sameOrigin(origin, policy.origins[0]!)) ? policy.origins[0] : undefined);
  return (
    <article class="spec">
      <h4>
        <Kind kind={kind} />
        {single && <span class="small"><span class="quiet"> from </span><OriginView kind={kind} origin={single} /></span>}
      </h4>
      <Problems policy={policy} />
      <Listed policy={policy} />
      {lines.length > 0 && (
        <table class="yaml">
          <tbody>
            {lines.map((line) => {
              const origin = single ? undefined : policy.origins.find((one) => one.unit === line.unit);
              return (
                <tr>
                  <td>
                    <code>
                      {"  ".repeat(line.indent)}
                      <T>{line.text}</T>
                    </code>
                  </td>
                  <td class="small">{origin && <OriginView kind={kind} origin={origin} />}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {!lines.length && !policy.listed.length && !policy.unknown && !policy.notComputed && <p class="quiet">No policy contributes a value.</p>}
    </article>
  );
}

const sameOrigin = (a: Origin, b: Origin) =>
  a.object === b.object && a.block === b.block && JSON.stringify(a.policies.map((p) => [p.namespace, p.name])) === JSON.stringify(b.policies.map((p) => [p.namespace, p.name]));

const MISSES: Record<string, string> = {
  NotAttached: "the route is attached to no listener",
  NotAddressed: "the request does not enter at this listener",
  ListenerHostname: "the listener does not serve this host",
  RouteHostname: "the route does not serve this host",
  UnmetCondition: "the request does not meet its conditions",
  OtherMatchFirst: "another match comes first",
  NotDecided: "it is not known",
  TakesRequest: "it takes the request",
};

function WhyNot({ misses }: { misses: RuleMiss[] }) {
  return (
    <section aria-label="Why not">
      <h2>Why not this rule</h2>
      <ul class="cards">
        {misses.map((miss) => (
          <li>
            <p>
              <ObjectLink object={`${miss.route}#${miss.ruleName || `#${miss.ruleIndex}`}`} />
              {miss.path && (
                <>
                  <span class="quiet"> at </span>
                  <PathCrumbs path={miss.path} />
                </>
              )}
            </p>
            <p>
              <span class={`badge ${miss.reason === "TakesRequest" ? "good" : "part"}`}>{miss.reason}</span> {MISSES[miss.reason] ?? ""}
            </p>
            {miss.details.length > 0 && (
              <ul>
                {miss.details.map((detail) => (
                  <li>
                    <T>{detail}</T>
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Unresolved({ list, also, address }: { list: UnresolvedRequest[]; also: boolean; address: string }) {
  return (
    <section aria-label="No rule">
      <h2>{also ? "Where no rule takes it" : "No rule takes the request"}</h2>
      <ul class="cards">
        {list.map((one) => (
          <li>
            <p>
              {one.path && <PathCrumbs path={one.path} />} <span class="badge part">{one.reason}</span>
            </p>
            <p>
              <T>{one.message}</T>
            </p>
            {one.refusal && (
              <p>
                The proxy refuses it anyway: <T>{one.refusal}</T>
              </p>
            )}
            {one.nearMisses.length > 0 && (
              <>
                <p class="quiet">Rules that nearly match:</p>
                <ul>
                  {one.nearMisses.map((miss) => (
                    <li>
                      <ObjectLink object={`${miss.route}##${miss.ruleIndex}`} /> <span class="quiet">lacks</span>{" "}
                      <T>{miss.missing.join(", ")}</T>{" "}
                      <a class="small" href={href(["trace"], { ...Object.fromEntries(new URLSearchParams(address)), why: `${miss.route}##${miss.ruleIndex}` })}>
                        why not
                      </a>
                    </li>
                  ))}
                </ul>
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
