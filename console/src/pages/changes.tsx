import { changes, watched, WATCH_ALL_PATHS } from "../live";
import { clock, Note, Paths, Title } from "../parts";
import { session } from "../session";
import { useStore } from "../store";
import { Kind, T } from "../text";

/** What changed since the page was opened. */
export function ChangesPage() {
  const list = useStore(changes);
  const { all } = useStore(watched);
  const { connection } = useStore(session);
  return (
    <>
      <Title text="Changes" />
      <p class="quiet">Changes of effective policies since this tab was opened, the latest first.</p>
      {!all && (
        <Note tone="info" title={connection === "streaming" || connection === "polling" ? "Not all paths are followed" : "Changes are not followed at present"}>
          <p>
            With more than {WATCH_ALL_PATHS.toLocaleString("en-US")} paths, or without a stream, changes are recorded only for the
            paths of the page that is open.
          </p>
        </Note>
      )}
      {!list.length && <p>Nothing has changed so far.</p>}
      <ol class="changes" aria-live="polite">
        {list.map((change) => (
          <li key={change.id}>
            <time>{clock(change.time)}</time>
            <div>
              {change.kind ? <Kind kind={change.kind} /> : <strong>{change.note}</strong>}
              {change.kind && change.note && <span class="quiet"> <T>{change.note}</T></span>}
              {change.values.length > 0 && (
                <ul>
                  {change.values.map((value) => (
                    <li>
                      <code>
                        <T>{value.unit === "*" ? "whole policy" : value.unit}</T>
                      </code>
                      : <T>{value.before ?? "no value"}</T> <span aria-label="becomes">→</span>{" "}
                      <strong>
                        <T>{value.after ?? "no value"}</T>
                      </strong>
                      {value.by && (
                        <span class="quiet">
                          {" "}
                          {value.after === undefined ? "was set by" : "set by"} <T>{value.by}</T>
                        </span>
                      )}
                    </li>
                  ))}
                </ul>
              )}
              <Paths paths={change.paths} first={1} />
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}
