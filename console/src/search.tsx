import { useEffect, useRef, useState } from "preact/hooks";
import { catalogState } from "./catalog";
import { isRouteKind, levelLabel, objectHref, parseObject, pathHref, policyHref, splitKind } from "./names";
import { go, href } from "./router";
import { useStore } from "./store";
import { plural, T } from "./text";

const LIMIT = 8;

interface Option {
  key: string;
  href: string;
  type: string;
  title: string;
  detail: string;
}

/** A host with an optional path, as in the address line of a browser. */
function requestOf(text: string): { host: string; path: string } | undefined {
  const match = /^(?:https?:\/\/)?((?:[a-z0-9*-]+\.)+[a-z0-9-]+(?::\d+)?|localhost(?::\d+)?)?(\/\S*)?$/i.exec(text);
  if (!match || (!match[1] && !match[2])) return undefined;
  return { host: match[1] ?? "", path: match[2] ?? "" };
}

function optionsOf(text: string): { options: Option[]; more: boolean } {
  const asked = text.trim();
  const { catalog } = catalogState.get();
  const options: Option[] = [];
  if (!asked) return { options, more: false };
  const request = requestOf(asked);
  if (request)
    options.push({
      key: "request",
      href: href(["trace"], { host: request.host, path: request.path }),
      type: "Trace",
      title: `${request.host || "any host"}${request.path}`,
      detail: "which rule takes this request",
    });
  if (/^(gateways|gatewayclasses|namespaces|mesh)\//.test(asked))
    options.push({ key: "path", href: pathHref(asked), type: "Path", title: asked, detail: "effective policies of the path" });
  const found = catalog?.search(asked, LIMIT);
  for (const id of found?.objects ?? []) {
    const name = catalog!.names[id]!;
    const { kind, namespace, name: own, section } = parseObject(name);
    options.push({
      key: `object ${name}`,
      href: objectHref(name),
      type: section === undefined ? kind : `${levelLabel(catalog!.levels[id]!)} of ${kind}`,
      title: `${namespace ? `${namespace}/` : ""}${own}${section === undefined ? "" : `#${section}`}`,
      detail: "",
    });
  }
  for (const policy of found?.policies ?? [])
    options.push({
      key: `policy ${policy.kind} ${policy.namespace} ${policy.name}`,
      href: policyHref(policy.kind, policy),
      type: splitKind(policy.kind)[0],
      title: policy.namespace ? `${policy.namespace}/${policy.name}` : policy.name,
      detail: policy.accepted ? "" : `not accepted: ${policy.reason}`,
    });
  if (!options.length && /^[\w.-]+\/[^/\s]+(\/[^/\s]+)?$/.test(asked))
    options.push({
      key: "name",
      href: objectHref(asked),
      type: isRouteKind(parseObject(asked).kind) ? "Route" : "Object",
      title: asked,
      detail: "open by name",
    });
  return { options, more: found?.more ?? false };
}

/** The search over everything that has a name. `/` moves the focus here. */
export function Search() {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const { catalog, loading, read, error } = useStore(catalogState);
  const { options, more } = open ? optionsOf(text) : { options: [], more: false };

  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const typing = target.closest("input, textarea, select, [contenteditable]");
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    document.addEventListener("keydown", focus);
    return () => document.removeEventListener("keydown", focus);
  }, []);

  const choose = (option: Option | undefined) => {
    if (!option) return;
    setOpen(false);
    setText("");
    input.current?.blur();
    go(option.href);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((at) => (options.length ? (at + step + options.length) % options.length : 0));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(options[active]);
    } else if (event.key === "Escape") {
      if (open) setOpen(false);
      else input.current?.blur();
    }
  };

  const shown = open && text.trim() !== "";
  return (
    <div class="search" role="search">
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-label="Search objects, policies, or a host and path"
        aria-expanded={shown}
        aria-controls="search-results"
        aria-autocomplete="list"
        aria-activedescendant={shown && options[active] ? `search-${active}` : undefined}
        placeholder="Search, or a host and path"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <kbd aria-hidden="true">/</kbd>
      <div class="search-panel" hidden={!shown}>
        <ul id="search-results" role="listbox" aria-label="Results">
          {options.map((option, at) => (
            <li
              key={option.key}
              id={`search-${at}`}
              role="option"
              aria-selected={at === active}
              class={at === active ? "active" : ""}
              onMouseDown={(event) => {
                event.preventDefault();
                choose(option);
              }}
              onMouseMove={() => setActive(at)}
            >
              <span class="type"><T>{option.type}</T></span>
              <span class="title"><T>{option.title}</T></span>
              {option.detail && <span class="quiet small"><T>{option.detail}</T></span>}
            </li>
          ))}
        </ul>
        <p class="search-foot quiet small" role="status">
          {!options.length && catalog && "Nothing has this name."}
          {more && "There are more: type more of the name. "}
          {loading && `Reading names: ${plural(read, "object")} so far.`}
          {!catalog && !loading && (error ? "Names could not be read." : "Names are not read yet.")}
          {catalog?.truncated && " Some objects are left out, because rights to them were not checked."}
        </p>
      </div>
    </div>
  );
}
