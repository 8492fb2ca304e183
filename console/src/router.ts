import { Store } from "./store";

/** A place in the console: the fragment of the URL, in parts. */
export interface Location {
  segments: string[];
  query: URLSearchParams;
}

function parse(hash: string): Location {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const segments = path.split("/").filter(Boolean).map(decode);
  return { segments, query: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export const location = new Store<Location>(parse(window.location.hash));

window.addEventListener("hashchange", () => location.set(parse(window.location.hash)));

/** A link to a page of the console. Empty values of the query are left out. */
export function href(
  segments: string[],
  query: Record<string, string | undefined> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  const text = search.toString();
  return `#/${segments.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(target: string): void {
  window.location.hash = target;
}

/** Changes the query of the current page without a new entry in the history. */
export function replaceQuery(change: Record<string, string | undefined>): void {
  const { segments, query } = location.get();
  const merged = { ...Object.fromEntries(query), ...change };
  history.replaceState(null, "", href(segments, merged));
  location.set(parse(window.location.hash));
}
