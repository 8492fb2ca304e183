import { AssertionResult_Outcome as Outcome, type AssertionResult, type CheckAssertionsResponse } from "../gen/entail/v1/policy_insight_pb";
import { useLive } from "../live";
import { Answer, codeHref, Note, PathCrumbs, ReplyKinds, Title } from "../parts";
import { insight } from "../session";
import { ObjectLink, plural, T } from "../text";

const OUTCOMES: Record<Outcome, [string, string]> = {
  [Outcome.UNSPECIFIED]: ["not checked", "unknown"],
  [Outcome.PASSED]: ["passed", "good"],
  [Outcome.FAILED]: ["failed", "bad"],
  [Outcome.UNKNOWN]: ["not known", "unknown"],
  [Outcome.INVALID]: ["invalid", "bad"],
};
const ORDER = [Outcome.FAILED, Outcome.INVALID, Outcome.UNKNOWN, Outcome.UNSPECIFIED, Outcome.PASSED];

async function check(signal: AbortSignal): Promise<CheckAssertionsResponse> {
  const whole = await insight.checkAssertions({ maxPaths: 50 }, { signal });
  while (whole.nextPageToken && whole.results.length < 2000) {
    const page = await insight.checkAssertions({ maxPaths: 50, pageToken: whole.nextPageToken }, { signal });
    whole.results.push(...page.results);
    whole.nextPageToken = page.nextPageToken;
  }
  return whole;
}

/** Whether the effective policies are as the assertions expect. */
export function AssertionsPage() {
  const live = useLive("assertions", check);
  return (
    <>
      <Title text="Assertions" />
      <Answer live={live}>
        {(reply) => {
          const results = [...reply.results].sort((a, b) => ORDER.indexOf(a.outcome) - ORDER.indexOf(b.outcome));
          const count = (outcome: Outcome) => results.filter((result) => result.outcome === outcome).length;
          return (
            <>
              <ReplyKinds kinds={reply.kinds} truncated={reply.truncated || Boolean(reply.nextPageToken)} />
              {reply.problems.map((problem) => (
                <Note tone="error" title={problem.location}>
                  <T>{problem.message}</T>
                </Note>
              ))}
              {results.length ? (
                <p role="status">
                  {plural(results.length, "assertion")}:{" "}
                  {ORDER.filter(count)
                    .map((outcome) => `${count(outcome)} ${OUTCOMES[outcome][0]}`)
                    .join(", ")}
                </p>
              ) : (
                <p>
                  There are no assertions. An EffectivePolicyAssertion or ClusterEffectivePolicyAssertion says what the effective policies
                  of some paths must be like; the server checks it after every change.
                </p>
              )}
              <ul class="cards">
                {results.map((result) => (
                  <Result key={result.object} result={result} />
                ))}
              </ul>
            </>
          );
        }}
      </Answer>
    </>
  );
}

function Result({ result }: { result: AssertionResult }) {
  const [label, tone] = OUTCOMES[result.outcome] ?? ["not known", "unknown"];
  const passed = Number(result.paths) - Number(result.failed) - Number(result.unknown);
  return (
    <li>
      <h2 class="small-title">
        <span class={`badge ${tone}`}>{label}</span> <T>{result.object}</T>
        {result.enforce && <span class="badge" title="Changes that break it are denied">enforced</span>}
      </h2>
      {result.description && (
        <p>
          <T>{result.description}</T>
        </p>
      )}
      {result.message && (
        <p>
          <T>{result.message}</T>
        </p>
      )}
      {result.outcome !== Outcome.INVALID && (
        <p class="quiet">
          About {plural(result.paths, "path")}: {passed} as expected or excepted, {Number(result.failed)} not, {Number(result.unknown)} not known
        </p>
      )}
      {result.failures.length > 0 && (
        <ul class="failures">
          {result.failures.map((failure) => (
            <li>
              <PathCrumbs path={failure.path} />
              <div>
                {failure.outcome === Outcome.UNKNOWN && <span class="badge unknown">not known</span>} <T>{failure.message}</T>
              </div>
            </li>
          ))}
          {Number(result.failed) + Number(result.unknown) > result.failures.length && (
            <li class="quiet">and {Number(result.failed) + Number(result.unknown) - result.failures.length} more</li>
          )}
        </ul>
      )}
      {result.exceptions.length > 0 && (
        <ul class="small">
          {result.exceptions.map((exception) => (
            <li>
              Excepted: <ObjectLink object={exception.object} />, {plural(exception.paths, "path")}
              {exception.expires && ` until ${exception.expires}`}: <T>{exception.reason}</T>
              {exception.hasExpired && (
                <a class="badge bad" href={codeHref("E093")}>
                  expired
                </a>
              )}
            </li>
          ))}
        </ul>
      )}
      {result.location && (
        <p class="quiet small">
          <T>{result.location}</T>
        </p>
      )}
    </li>
  );
}
