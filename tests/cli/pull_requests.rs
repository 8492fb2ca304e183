//! A repository with pull requests: what `deploy/ci/review` says of each, which `docs/ci.md` shows.
//!
//! With `UPDATE_DOCS=1` the comments in the document are rewritten.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const AUTH: &str = "bakery/policies/auth.yaml";
const ROUTES: &str = "bakery/routes.yaml";

/// A pull request: its name in the document, what it changes, and the exit code of the review.
struct PullRequest {
    name: &'static str,
    change: fn(&Path),
    code: i32,
}

const PULL_REQUESTS: [PullRequest; 10] = [
    PullRequest {
        name: "A typo in a target",
        change: |at| {
            replace(
                at,
                AUTH,
                "kind: HTTPRoute, name: shop}",
                "kind: HTTPRoute, name: shopp}",
            )
        },
        code: 1,
    },
    PullRequest {
        name: "A second policy on the same route",
        change: |at| {
            add(
                at,
                "bakery/policies/winter-sale.yaml",
                "apiVersion: policies.bakery.example/v1\nkind: CachePolicy\nmetadata: {name: winter-sale, namespace: \
                 shop}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: \
                 HTTPRoute, name: shop}]\n  ttl: 1h\n",
            );
        },
        code: 0,
    },
    PullRequest {
        name: "A route moves to another listener",
        change: |at| {
            replace(
                at,
                ROUTES,
                "- {name: storefront, namespace: platform, sectionName: https}\n  hostnames: [bread.bakery.example]",
                "- {name: backdoor, namespace: platform, sectionName: http}\n  hostnames: [bread.bakery.internal]",
            );
        },
        code: 1,
    },
    PullRequest {
        name: "A ListenerSet without the policy of the listeners",
        change: |at| {
            replace(
                at,
                "bakery/gateways.yaml",
                "  gatewayClassName: bakery\n  listeners:\n  - name: http\n    port: 80\n",
                "  gatewayClassName: bakery\n  allowedListeners: {namespaces: {from: All}}\n  listeners:\n  - name: http\n    port: 80\n",
            );
            add(
                at,
                "bakery/wholesale.yaml",
                "apiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: wholesale, namespace: baker}\n\
                 spec:\n  parentRef: {name: storefront, namespace: platform}\n  listeners:\n  - {name: bulk, port: 8443, \
                 protocol: HTTP}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: bulk, \
                 namespace: baker}\nspec:\n  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: \
                 wholesale}]\n  rules:\n  - name: order\n    backendRefs: [{name: loaves, port: 8080}]\n",
            );
        },
        code: 1,
    },
    PullRequest {
        name: "A limit that is overridden from above",
        change: |at| {
            add(
                at,
                "bakery/policies/patience.yaml",
                "apiVersion: policies.bakery.example/v1\nkind: TimeoutPolicy\nmetadata: {name: patience, namespace: baker}\n\
                 spec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: bread}]\n  defaults: {client: \
                 {request: 60s}}\n",
            );
        },
        code: 0,
    },
    PullRequest {
        name: "A policy is deleted",
        change: |at| fs::remove_file(at.join("bakery/policies/retries.yaml")).unwrap(),
        code: 1,
    },
    PullRequest {
        name: "A ReferenceGrant is deleted",
        change: |at| {
            replace(
                at,
                ROUTES,
                "kind: Service, name: loaves}",
                "kind: Service, name: loafs}",
            )
        },
        code: 1,
    },
    PullRequest {
        name: "A value changes",
        change: |at| {
            replace(
                at,
                "bakery/policies/timeouts.yaml",
                "request: 10s",
                "request: 5s",
            )
        },
        code: 0,
    },
    PullRequest {
        name: "A refactoring",
        change: |at| {
            let text = fs::read_to_string(at.join(ROUTES)).unwrap();
            fs::remove_file(at.join(ROUTES)).unwrap();
            for (number, document) in text.split("\n---\n").enumerate() {
                add(
                    at,
                    &format!("bakery/routes/{number}.yaml"),
                    &document.replace(
                        "{type: PathPrefix, value: /}",
                        "{value: /, type: PathPrefix}",
                    ),
                );
            }
        },
        code: 0,
    },
    PullRequest {
        name: "A manifest that cannot be read",
        change: |at| {
            replace(
                at,
                AUTH,
                "  targetRefs:\n  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}",
                "  targetRefs:\n  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop",
            )
        },
        code: 3,
    },
];

fn replace(at: &Path, file: &str, old: &str, new: &str) {
    let path = at.join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{file}: {old}");
    fs::write(path, text.replace(old, new)).unwrap();
}

fn add(at: &Path, file: &str, text: &str) {
    let path = at.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn git(at: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Ana",
            "-c",
            "user.email=ana@bakery.example",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(args)
        .current_dir(at)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// What the owners of the shop want to keep.
const ASSERTION: &str = "\
apiVersion: entail.dev/v1alpha1
kind: EffectivePolicyAssertion
metadata: {name: loyalty, namespace: shop}
spec:
  description: Visitors of the shop have a loyalty card.
  policies: {auth: AuthPolicy.policies.bakery.example}
  expect: {match: {auth: {rules: {loyalty: {}}}}}
";

/// A repository with the bakery on its branch `main`, where the AuthPolicy of the storefront names each listener, and with
/// an assertion.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    copy(&Path::new(ROOT).join("examples/bakery"), &at.join("bakery"));
    let target = "  - {group: gateway.networking.k8s.io, kind: Gateway, name: storefront";
    replace(
        at,
        AUTH,
        &format!("{target}}}\n"),
        &format!("{target}, sectionName: http}}\n{target}, sectionName: https}}\n"),
    );
    add(at, "bakery/assertions.yaml", ASSERTION);
    git(at, &["init", "--quiet", "--initial-branch=main"]);
    git(at, &["add", "."]);
    git(at, &["commit", "--quiet", "-m", "The bakery"]);
    folder
}

fn review(at: &Path, branch: &str) -> (Output, String) {
    let comment = at.join(".git/comment.md");
    let output = Command::new("bash")
        .arg(Path::new(ROOT).join("deploy/ci/review"))
        .args(["main", branch, comment.to_str().unwrap(), "bakery"])
        .env("ENTAIL", env!("CARGO_BIN_EXE_entail"))
        .current_dir(at)
        .output()
        .unwrap();
    (output, fs::read_to_string(comment).unwrap())
}

/// The document with the comments in it: each follows the heading of its pull request, between two rules.
fn with_comments(text: &str, comments: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let named = line.strip_prefix("## ");
        let Some((_, comment)) = comments.iter().find(|(name, _)| Some(*name) == named) else {
            continue;
        };
        for line in lines.by_ref() {
            out.push_str(line);
            out.push('\n');
            if line == "````markdown" {
                break;
            }
        }
        out.push_str(comment);
        while lines.peek().is_some_and(|line| *line != "````") {
            lines.next();
        }
    }
    out
}

#[test]
fn each_pull_request_has_the_comment_that_the_document_shows() {
    let folder = repository();
    let at = folder.path();
    let mut comments = Vec::new();
    for (number, pull_request) in PULL_REQUESTS.iter().enumerate() {
        let branch = format!("change-{number}");
        git(at, &["checkout", "--quiet", "-b", &branch, "main"]);
        (pull_request.change)(at);
        git(at, &["add", "--all", "."]);
        git(at, &["commit", "--quiet", "-m", pull_request.name]);
        git(at, &["checkout", "--quiet", "main"]);
        let (output, comment) = review(at, &branch);
        assert_eq!(
            output.status.code(),
            Some(pull_request.code),
            "{}: {comment}\n{output:?}",
            pull_request.name
        );
        assert_eq!(
            review(at, &branch).1,
            comment,
            "{}: another run says the same",
            pull_request.name
        );
        assert!(
            comment.lines().count() <= 45,
            "{}: one screen: {comment}",
            pull_request.name
        );
        comments.push((pull_request.name, comment));
    }
    let path = PathBuf::from(ROOT).join("docs/ci.md");
    let text = fs::read_to_string(&path).unwrap();
    let current = with_comments(&text, &comments);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &current).unwrap();
        return;
    }
    for (name, comment) in &comments {
        assert!(
            text.contains(&format!("## {name}\n")) && text.contains(comment),
            "docs/ci.md lacks the comment on `{name}`: {comment}"
        );
    }
    assert_eq!(
        text, current,
        "run `UPDATE_DOCS=1 cargo test --test cli pull_requests`"
    );
}

#[test]
fn a_refactoring_is_silent_and_losses_come_first() {
    let folder = repository();
    let at = folder.path();
    git(at, &["checkout", "--quiet", "-b", "silent", "main"]);
    (PULL_REQUESTS[8].change)(at);
    git(at, &["add", "--all", "."]);
    git(at, &["commit", "--quiet", "-m", "refactoring"]);
    let (_, comment) = review(at, "silent");
    assert_eq!(
        comment,
        "<!-- entail review -->\n### Effective policies: no change\n"
    );
}

#[test]
fn the_work_tree_is_compared_and_wrong_revisions_are_refused() {
    let folder = repository();
    let at = folder.path();
    replace(
        at,
        "bakery/policies/timeouts.yaml",
        "request: 10s",
        "request: 5s",
    );
    let diff = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
        command
            .arg("diff")
            .args(args)
            .current_dir(at)
            .output()
            .unwrap()
    };
    let output = diff(&["--git", "main", "bakery"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("client.request: 10s (platform/nobody-waits) -> 5s"),
        "{text}"
    );
    for range in [
        "nothing..main",
        "main..nothing",
        "..main",
        "--upload-pack=x..main",
    ] {
        let output = diff(&["--git", range, "bakery"]);
        assert!(
            matches!(output.status.code(), Some(2 | 3)),
            "{range}: {output:?}"
        );
    }
    assert_eq!(
        diff(&["--git=main..main", "-o", "markdown"]).status.code(),
        Some(0)
    );
    assert_eq!(diff(&["bakery"]).status.code(), Some(2));
}

/// The exit code and the Markdown of a comparison of two commits.
fn markdown(at: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(["diff", "--git", "HEAD~1..HEAD", "-o", "markdown"]);
    let output = command.args(args).current_dir(at).output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

fn commit(at: &Path) {
    git(at, &["add", "--all", "."]);
    git(at, &["commit", "--quiet", "-m", "change"]);
}

#[test]
fn a_path_that_is_nowhere_is_an_error_and_each_form_of_a_path_is_compared() {
    let folder = repository();
    let at = folder.path();
    fs::remove_dir_all(at.join("bakery/policies")).unwrap();
    commit(at);
    let whole = at.join("bakery");
    for path in ["bakery", "./bakery/../bakery", whole.to_str().unwrap()] {
        let (code, text) = markdown(at, &[path]);
        assert!(
            code == Some(1) && text.contains("values lost"),
            "{path}: {text}"
        );
    }
    let (code, text) = markdown(&whole, &["../bakery"]);
    assert!(code == Some(1) && text.contains("values lost"), "{text}");
    for path in ["bakry", "../elsewhere", "/"] {
        assert_eq!(markdown(at, &[path]).0, Some(2), "{path}");
    }
}

#[test]
fn links_inside_of_the_repository_are_followed() {
    let folder = repository();
    let at = folder.path();
    fs::create_dir(at.join("prod")).unwrap();
    for file in [
        "00-namespaces",
        "gateways",
        "profiles",
        "routes",
        "services",
    ] {
        let file = format!("{file}.yaml");
        fs::copy(at.join("bakery").join(&file), at.join("prod").join(&file)).unwrap();
    }
    std::os::unix::fs::symlink("../bakery/policies", at.join("prod/policies")).unwrap();
    commit(at);
    fs::remove_file(at.join("bakery/policies/timeouts.yaml")).unwrap();
    commit(at);
    let (code, text) = markdown(at, &["prod"]);
    assert!(code == Some(1) && text.contains("TimeoutPolicy"), "{text}");
}

#[test]
fn values_that_are_lost_on_another_way_are_losses() {
    let folder = repository();
    let at = folder.path();
    fs::remove_file(at.join("bakery/policies/timeouts.yaml")).unwrap();
    commit(at);
    let storefront = "- {name: storefront, namespace: platform, sectionName: https}\n  hostnames: [bread.bakery.example]";
    let backdoor = "- {name: backdoor, namespace: platform, sectionName: http}\n  hostnames: [bread.bakery.internal]";
    replace(at, ROUTES, storefront, backdoor);
    commit(at);
    let (code, text) = markdown(at, &["bakery"]);
    assert!(code == Some(1) && text.contains("denyUserAgents"), "{text}");
    // From the Gateway into the mesh.
    let mesh = "- {group: \"\", kind: Service, name: loaves}\n  hostnames: [bread.bakery.internal]";
    replace(at, ROUTES, backdoor, mesh);
    commit(at);
    let (code, text) = markdown(at, &["bakery"]);
    assert!(code == Some(1) && text.contains("AuthPolicy"), "{text}");
}

#[test]
fn a_rendered_chart_is_read_from_standard_input() {
    let bakery = Path::new(ROOT).join("examples/bakery");
    let mut all = String::new();
    for file in [
        "00-namespaces",
        "gateways",
        "profiles",
        "routes",
        "services",
        "policies/auth",
        "policies/cache",
    ] {
        all.push_str(&fs::read_to_string(bakery.join(format!("{file}.yaml"))).unwrap());
        all.push_str("\n---\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rendered.yaml");
    fs::write(&file, &all).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["diff", file.to_str().unwrap(), "-", "-o", "markdown"])
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "### Effective policies: no change\n"
    );
}

#[test]
fn an_object_that_the_api_server_would_refuse_is_a_new_finding() {
    let folder = repository();
    let at = folder.path();
    let refused = "apiVersion: v1\nkind: Service\nmetadata: {name: more, namespace: shop, labels: {tier: 1}}\n";
    fs::write(at.join("bakery/more.yaml"), refused).unwrap();
    let diff = |revision: &str, format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
        command.args(["diff", "--git", revision, "bakery", "-o", format]);
        command.current_dir(at).output().unwrap()
    };
    for (format, place) in [
        ("markdown", "`bakery/more.yaml:1`"),
        ("sarif", "\"uri\": \"bakery/more.yaml\""),
    ] {
        let output = diff("main", format);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("metadata.labels") && text.contains(place),
            "{text}"
        );
    }
    // A finding that was there before is not new.
    git(at, &["add", "."]);
    git(at, &["commit", "--quiet", "-m", "More"]);
    let moved = at.join("bakery/policies/more.yaml");
    fs::rename(at.join("bakery/more.yaml"), moved).unwrap();
    let output = diff("HEAD", "markdown");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn losses_are_results_of_code_scanning() {
    let folder = repository();
    let at = folder.path();
    (PULL_REQUESTS[0].change)(at);
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["diff", "--git", "main", "bakery", "-o", "sarif"])
        .current_dir(at)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap().iter();
    let ids: Vec<&str> = results.map(|r| r["ruleId"].as_str().unwrap()).collect();
    let count = |id: &str| ids.iter().filter(|other| **other == id).count();
    assert_eq!(
        (count("E021"), count("E090"), count("E100")),
        (1, 1, 3),
        "{ids:?}"
    );
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["diff", "--git", "main..main", "bakery", "-o", "sarif"])
        .current_dir(at)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let log: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
}
