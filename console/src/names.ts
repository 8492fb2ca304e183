import { href } from "./router";

/** `Kind/namespace/name[#section]`; the namespace is empty for cluster-scoped objects. */
export interface ObjectName {
  kind: string;
  namespace: string;
  name: string;
  section?: string;
}

export function parseObject(text: string): ObjectName {
  const slash = text.indexOf("/");
  if (slash < 0) return { kind: "", namespace: "", name: text };
  const kind = text.slice(0, slash);
  let rest = text.slice(slash + 1);
  let section: string | undefined;
  const mark = rest.indexOf("#");
  if (mark >= 0) {
    section = rest.slice(mark + 1);
    rest = rest.slice(0, mark);
  }
  const next = rest.indexOf("/");
  const namespace = next < 0 ? "" : rest.slice(0, next);
  return { kind, namespace, name: rest.slice(next + 1), section };
}

export function formatObject(object: ObjectName): string {
  const name = object.namespace ? `${object.namespace}/${object.name}` : object.name;
  return `${object.kind}/${name}${object.section === undefined ? "" : `#${object.section}`}`;
}

/** `AuthPolicy.policies.bakery.example` in its two parts. */
export function splitKind(kind: string): [string, string] {
  const dot = kind.indexOf(".");
  return dot < 0 ? [kind, ""] : [kind.slice(0, dot), kind.slice(dot + 1)];
}

/** The kind of the object, if a profile splits it into parts: `Kind:part.group` is about objects of `Kind.group`. */
export const objectKind = (kind: string) => kind.replace(/^([^.:]+):[^.]*/, "$1");

export const isRouteKind = (kind: string) => /route$/i.test(splitKind(kind)[0]);

export function objectHref(text: string, query: Record<string, string | undefined> = {}): string {
  const { kind, namespace, name, section } = parseObject(text);
  const segments = [isRouteKind(kind) ? "route" : "object", kind];
  if (namespace) segments.push(namespace);
  segments.push(name);
  if (section !== undefined) {
    if (!namespace) segments.push("");
    segments.push(section);
  }
  return href(segments, query);
}

/** The object that the segments of a page's address name. */
export function objectOf(segments: string[]): string {
  const [kind = "", second = "", third, section] = segments;
  if (third === undefined) return `${kind}/${second}`;
  return formatObject({ kind, namespace: second, name: third, section });
}

export function pathHref(path: string, query: Record<string, string | undefined> = {}): string {
  return href(["path", ...path.split("/")], query);
}

export function policyHref(kind: string, policy: { namespace: string; name: string }): string {
  const segments = ["policy", kind];
  if (policy.namespace) segments.push(policy.namespace);
  return href([...segments, policy.name]);
}

export const policyName = (policy: { namespace: string; name: string }) =>
  policy.namespace ? `${policy.namespace}/${policy.name}` : policy.name;

/** A node on a path. */
export interface Step {
  level: string;
  /** `Kind/namespace/name[#section]`. */
  object: string;
  label: string;
  /** Name of the path that ends here. */
  path: string;
}

/** The nodes of a path, from the root. Stops at what it does not understand. */
export function stepsOf(path: string): Step[] {
  const words = path.split("/");
  const steps: Step[] = [];
  let at = 0;
  let holder = "";
  let backend = "";
  let route = "";
  let service = "";
  const push = (level: string, object: string, label: string, length: number) => {
    at += length;
    steps.push({ level, object, label, path: words.slice(0, at).join("/") });
  };
  while (at < words.length) {
    const [word, a, b, c] = words.slice(at, at + 4) as [string, string?, string?, string?];
    if (word === "gatewayclasses" && a) push("GatewayClass", `GatewayClass/${a}`, a, 2);
    else if (word === "namespaces" && a) push("Namespace", `Namespace/${a}`, a, 2);
    else if (word === "gateways" && a && b) {
      holder = `Gateway/${a}/${b}`;
      push("Gateway", holder, `${a}/${b}`, 3);
    } else if (word === "listenersets" && a && b) {
      holder = `ListenerSet/${a}/${b}`;
      push("ListenerSet", holder, `${a}/${b}`, 3);
    } else if (word === "listeners" && a) push("Listener", `${holder}#${a}`, a, 2);
    else if (word === "routes" && a && b && c) {
      route = `${a}/${b}/${c}`;
      push("Route", route, `${b}/${c}`, 4);
    } else if (word === "rules" && a) push("RouteRule", `${route}#${a}`, a, 2);
    else if (word === "backends" && a && b && c) {
      backend = `${a}/${b}/${c}`;
      push("Backend", backend, `${b}/${c}`, 4);
    } else if (word === "ports" && a) {
      if (backend) push("BackendPort", `${backend}#${a}`, a, 2);
      else push("ServicePort", `${service}#${a}`, a, 2);
    } else if (word === "mesh" && a && b === "services" && c && words[at + 4]) {
      service = `Service/${c}/${words[at + 4]}`;
      push("Service", service, `${c}/${words[at + 4]}`, 5);
    } else break;
  }
  return steps;
}

/** The part of a path that ends at the Gateway's listener, or at the root of the mesh. */
export function entryOf(path: string): string {
  const entry = stepsOf(path)
    .filter((step) => ["Gateway", "ListenerSet", "Listener", "Service", "ServicePort"].includes(step.level))
    .pop();
  return entry ? entry.path : path;
}

const LEVELS: Record<string, string> = {
  RouteRule: "Rule",
  BackendPort: "Port",
  ServicePort: "Port",
};

/** A level as people say it. */
export const levelLabel = (level: string) => LEVELS[level] ?? level;
