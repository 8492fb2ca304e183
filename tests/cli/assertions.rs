//! `entail check`: the recipes of `docs/assertions.md` hold in a world, and each fails where it should.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const WORLD: &str = include_str!("assertions/world.yaml");
const DOCUMENT: &str = include_str!("../../docs/assertions.md");

/// A world in which a recipe does not hold: the recipe, a text of the world, and what is there instead.
const BROKEN: [(&str, &str, &str); 12] = [
    // A typo in a targetRef of the policy that all rely on.
    (
        "login-everywhere",
        "kind: Gateway, name: public}]\n  jwt",
        "kind: Gateway, name: publik}]\n  jwt",
    ),
    // A more specific policy takes the login away.
    (
        "login-everywhere",
        "  basicAuth: {users: {name: staging}}\n",
        "",
    ),
    (
        "no-long-timeouts",
        "requestTimeout: 25s",
        "requestTimeout: 1m",
    ),
    (
        "writes-are-limited",
        "  rateLimit: {type: Local",
        "  other: {type: Local",
    ),
    ("tls-to-card-data", "cart.shop.internal", "cart.example.org"),
    ("modern-tls", "minVersion: \"1.2\"", "minVersion: \"1.0\""),
    ("few-retries", "numRetries: 1", "numRetries: 9"),
    (
        "cors-names-origins",
        "https://shop.example.com",
        "https://*.example.com",
    ),
    (
        "staging-is-closed",
        "defaultAction: Deny",
        "defaultAction: Allow",
    ),
    (
        "mesh-is-authorized",
        "kind: Service, name: ledger",
        "kind: Service, name: lodger",
    ),
    (
        "circuit-breaker",
        "maxConnections: 100",
        "maxConnections: 1000",
    ),
    (
        "circuit-breaker",
        "  circuitBreaker: {maxConnections: 100}\n",
        "",
    ),
];

/// The recipes of the document.
fn recipes() -> Vec<&'static str> {
    let (_, recipes) = DOCUMENT.split_once("## Ten recipes").unwrap();
    let blocks = recipes.split("```yaml\n").skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect()
}

/// Runs `entail check` on a world with assertions; returns its exit code and its output.
fn check(world: &str, assertions: &str, more: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("world.yaml"), world).unwrap();
    std::fs::write(folder.path().join("assertions.yaml"), assertions).unwrap();
    let arguments = [
        "check",
        "--manifests",
        "world.yaml",
        "-f",
        "assertions.yaml",
    ];
    run(folder.path(), &[&arguments, more].concat())
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = match output.stdout.is_empty() {
        true => output.stderr,
        false => output.stdout,
    };
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

/// The results as JSON: name, outcome and result of each.
fn results(world: &str) -> Vec<(String, String, Value)> {
    let (_, text) = check(
        world,
        &recipes().join("---\n"),
        &["-o", "json", "--date", "2026-12-01"],
    );
    let reply: Value = serde_json::from_str(&text).unwrap();
    let results = reply["results"].as_array().unwrap().iter();
    results
        .map(|result| {
            let name = result["object"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap();
            let outcome = result["outcome"].as_str().unwrap();
            (name.to_owned(), outcome.to_owned(), result.clone())
        })
        .collect()
}

#[test]
fn recipes_are_short_and_hold() {
    assert_eq!(recipes().len(), 10);
    for recipe in recipes() {
        assert!(recipe.lines().count() <= 15, "{recipe}");
    }
    let results = results(WORLD);
    assert_eq!(results.len(), 10);
    for (name, outcome, result) in results {
        assert_eq!(outcome, "PASSED", "{name}: {result:#}");
        assert_ne!(result["paths"], "0", "{name}");
    }
}

#[test]
fn each_recipe_fails_where_it_should_and_no_other() {
    for (broken, before, after) in BROKEN {
        assert_eq!(WORLD.matches(before).count(), 1, "{before}");
        let world = WORLD.replace(before, after);
        let mut failed = false;
        for (name, outcome, result) in results(&world) {
            let expected = if name == broken { "FAILED" } else { "PASSED" };
            failed |= name == broken;
            // Without the login of all, there is no list of origins either.
            let is_other = broken == "login-everywhere" && name == "staging-is-closed";
            assert!(
                outcome == expected || is_other,
                "{broken}: {name}: {result:#}"
            );
        }
        assert!(failed, "{broken}");
    }
    let named: std::collections::BTreeSet<&str> = BROKEN.iter().map(|(name, ..)| *name).collect();
    assert_eq!(named.len(), 10, "each recipe is broken once at least");
}

#[test]
fn an_exception_counts_until_its_last_day() {
    let login = recipes()[0];
    let on = |date: &str| check(WORLD, login, &["--date", date]);
    let (code, text) = on("2027-03-31");
    assert_eq!(code, 0, "{text}");
    let excepted =
        "excepted: httproute/ops/health, 1 path until 2027-03-31: probes have no account";
    assert!(text.contains(excepted), "{text}");
    let (code, text) = on("2027-04-01");
    assert_eq!(code, 1, "{text}");
    let expired = "no longer excepted: httproute/ops/health, until 2027-03-31";
    assert!(
        text.contains(expired) && text.contains("`auth` is {\"cors\""),
        "{text}"
    );
}

#[test]
fn what_is_not_known_fails_with_that_word() {
    let login = recipes()[0];
    let unprofiled = login.replace("SecurityPolicy}", "GuardPolicy.example.org}");
    let (code, text) = check(WORLD, &unprofiled, &[]);
    assert_eq!(code, 3, "{text}");
    assert!(
        text.starts_with("UNKNOWN ") && text.contains("no profile describes the kind"),
        "{text}"
    );
    // The Gateway's controller is not known, so neither is whether the policy acts.
    let class = "controllerName: gateway.envoyproxy.io/gatewayclass-controller";
    let world = WORLD.replace("gatewayClassName: eg", "gatewayClassName: other");
    assert!(WORLD.contains(class));
    let (code, text) = check(&world, login, &["--date", "2026-12-01"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.starts_with("UNKNOWN "), "{text}");
}

#[test]
fn single_assertions_are_named_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("world.yaml"), WORLD).unwrap();
    let text = recipes().join("---\n");
    std::fs::write(folder.path().join("assertions.yaml"), text).unwrap();
    let name = "clustereffectivepolicyassertion/login-everywhere";
    let short = "cepa/no-long-timeouts";
    let files = ["--manifests", "world.yaml", "assertions.yaml"];
    let orders = [
        [&["check", name, short], &files[..]].concat(),
        [&["check"], &files[..], &[name, short]].concat(),
        [&["check", name], &files[..], &[short]].concat(),
    ];
    for order in orders {
        let (code, text) = run(
            folder.path(),
            &[&order[..], &["--date", "2026-12-01"]].concat(),
        );
        assert_eq!(code, 0, "{order:?}: {text}");
        assert!(text.contains("2 assertions: 2 passed"), "{order:?}: {text}");
    }
    let missing = [&["check"], &files[..], &["missing/folder"]].concat();
    let (code, text) = run(folder.path(), &missing);
    assert_eq!(code, 3, "a file that is missing is no name: {text}");
}

#[test]
fn a_gate_without_assertions_does_not_pass() {
    let (code, text) = check(
        WORLD,
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: more}\n",
        &[],
    );
    assert_eq!(code, 1);
    assert!(text.contains("no assertions"), "{text}");
    let (code, text) = check(WORLD, recipes()[0], &["cepa/logins-everywhere"]);
    assert_eq!(code, 1);
    assert!(text.contains("not found"), "{text}");
}

/// Specs of assertions, and what is said of each.
const MALFORMED: [(&str, &str); 20] = [
    ("{}", "missing field `policies`"),
    (
        "{policies: {}, expect: {cel: 'true'}}",
        "name at least one policy kind",
    ),
    (
        "{policies: {p: SecurtyPolicy}, expect: {cel: 'true'}}",
        "did you mean `securitypolicy`?",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {cel: 'q.x'}}",
        "`q` is neither a variable",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {cel: 'p.'}}",
        "does not parse",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {}}",
        "use either `cel` or `match`",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {match: {q: {}}}}",
        "`q` is not a variable",
    ),
    (
        "{policies: {route: SecurityPolicy}, expect: {cel: 'true'}}",
        "the name of an object",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {cel: 'gateway.name == p.x'}}",
        "does not read Gateways",
    ),
    (
        "{policies: {p: SecurityPolicy}, paths: {level: Rules}, expect: {cel: 'true'}}",
        "`Rules` is not one of",
    ),
    (
        "{policies: {p: SecurityPolicy}, paths: {level: Rule}, expect: {cel: 'backend == p'}}",
        "have no `backend`",
    ),
    (
        "{policies: {p: SecurityPolicy}, path: {}, expect: {cel: 'true'}}",
        "unknown field `path`",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {cel: 'true'}, except: [{object: x, reason: r}]}",
        "not an object",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {cel: 'true'}, except: [{object: a/b/c, reason: r, expires: soon}]}",
        "not a date",
    ),
    (
        "{policies: {p: SecurityPolicy}, paths: {level: Route}, expect: {cel: 'has(p.jwt)'}}",
        "`p` takes effect at `RouteRule`",
    ),
    (
        "{policies: {p: SecurityPolicy, t: BackendTLSPolicy}, expect: {cel: 'has(p.jwt) && has(t.validation)'}}",
        "write an assertion for each",
    ),
    (
        "{policies: {p: SecurityPolicy}, paths: {kinds: [GrpcRoute]}, expect: {cel: 'has(p.jwt)'}}",
        "`GrpcRoute` is not a kind of Route",
    ),
    (
        "{policies: {p: SecurityPolicy}, paths: {hostnames: ['https://x.y']}, expect: {cel: 'has(p.jwt)'}}",
        "is not a hostname",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {match: {p: {}}}}",
        "an empty pattern is a part of everything",
    ),
    (
        "{policies: {p: SecurityPolicy}, expect: {match: {}}}",
        "an empty pattern is a part of everything",
    ),
];

#[test]
fn malformed_assertions_are_invalid_and_say_why() {
    let of = |spec: &str| {
        format!(
            "apiVersion: entail.dev/v1alpha1\nkind: EffectivePolicyAssertion\n\
             metadata: {{name: a, namespace: shop}}\nspec: {spec}\n"
        )
    };
    for (spec, expected) in MALFORMED {
        let (code, text) = check(WORLD, &of(spec), &[]);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code, 1, "{spec}: {text}");
        assert!(
            text.starts_with("INVALID EffectivePolicyAssertion/shop/a") && text.contains(expected),
            "{spec}: {text}"
        );
    }
}

#[test]
fn results_are_findings_of_lint_and_of_ci_systems() {
    let world = WORLD.replace("numRetries: 1", "numRetries: 9");
    let retries = recipes()[5];
    let (code, text) = check(&world, retries, &["-o", "github"]);
    assert_eq!(code, 1);
    assert!(
        text.starts_with("::error file=assertions.yaml,line=1,title=E090 AssertionFailed::"),
        "{text}"
    );
    let (_, text) = check(&world, retries, &["-o", "junit"]);
    assert!(text.contains("failures=\"1\""), "{text}");
    let (_, text) = check(&world, retries, &["-o", "sarif"]);
    let log: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "E090");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("world.yaml"),
        format!("{world}---\n{retries}"),
    )
    .unwrap();
    let (code, text) = run(folder.path(), &["lint", "--manifests", "world.yaml"]);
    assert_eq!(code, 1);
    assert!(
        text.contains("E090 error:") && text.contains("not as expected"),
        "{text}"
    );
}

/// Before, a misspelt assertion was left out, and the command passed.
#[test]
fn a_malformed_document_does_not_pass() {
    let retries = recipes()[5];
    let misspelt = retries.replacen("PolicyAssertion", "PolicyAsertion", 1);
    let both = format!("{retries}---\n{misspelt}");
    assert_eq!(check(WORLD, retries, &[]).0, 0);
    let (code, text) = check(WORLD, &both, &[]);
    assert_eq!(code, 3, "{text}");
    assert_eq!(check(WORLD, &both, &["--allow-partial"]).0, 0);
    let (code, text) = check(WORLD, &both, &["-o", "junit"]);
    assert_eq!(code, 3);
    assert!(
        text.contains("tests=\"2\" failures=\"0\" errors=\"1\"") && text.contains("E002 Malformed"),
        "{text}"
    );
    assert!(
        text.contains("ClusterEffectivePolicyAssertion.entail.dev/few-retries\"/>"),
        "{text}"
    );
}
