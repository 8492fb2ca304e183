//! Findings and results of assertions as report objects, one for each namespace and one for the cluster.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::render::short_path::route_of;
use crate::api::v1;
use crate::app::ReportKinds;
use crate::insight::is_of_result;
use entail_core::model::{GroupKind, ObjectKey};
use v1::assertion_result::Outcome;
use v1::finding::Severity;

/// The name of the report objects.
const NAME: &str = "entail";
/// Maximum number of results in a report: objects of a cluster have 1.5 MiB at most. The summary counts all.
const MAX_RESULTS: usize = 500;
/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 1_024;

/// A result with its outcome: `pass`, `warn`, `fail` or `error`.
type Entry = (&'static str, Value);

/// The kinds of report objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Report and ClusterReport of openreports.io.
    #[default]
    Openreports,
    /// PolicyReport and ClusterPolicyReport of wgpolicyk8s.io.
    Policyreport,
}

impl ReportFormat {
    /// The resources of the kinds.
    pub(super) fn kinds(self) -> ReportKinds {
        match self {
            Self::Openreports => ReportKinds {
                group: "openreports.io",
                version: "v1alpha1",
                namespaced: ("Report", "reports"),
                cluster: ("ClusterReport", "clusterreports"),
            },
            Self::Policyreport => ReportKinds {
                group: "wgpolicyk8s.io",
                version: "v1alpha2",
                namespaced: ("PolicyReport", "policyreports"),
                cluster: ("ClusterPolicyReport", "clusterpolicyreports"),
            },
        }
    }
}

/// Makes the reports of a state, sorted by namespace. They have no times: equal states have equal reports. Notes are left
/// out, and so are findings about assertions whose results are there.
pub(super) fn reports(
    format: ReportFormat,
    findings: &[v1::Finding],
    results: &[v1::AssertionResult],
) -> Vec<Value> {
    let mut by_namespace: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let is_other =
        |finding: &&v1::Finding| finding.severity() != Severity::Note && !is_of_result(finding);
    for finding in findings.iter().filter(is_other) {
        let object = object_of(&finding.object);
        let namespace = object.as_ref().map(|key| key.namespace.to_string());
        let own = by_namespace.entry(namespace.unwrap_or_default());
        own.or_default().push(of_finding(finding, object.as_ref()));
    }
    for result in results {
        let Some(assertion) = object_of(&result.object) else {
            continue;
        };
        let own = by_namespace.entry(assertion.namespace.to_string());
        own.or_default().push(of_assertion(result, &assertion));
    }
    let reports = by_namespace.into_iter();
    reports
        .map(|(namespace, results)| report(format.kinds(), &namespace, results))
        .collect()
}

fn report(kinds: ReportKinds, namespace: &str, mut results: Vec<Entry>) -> Value {
    let count = |outcome: &str| results.iter().filter(|(own, _)| *own == outcome).count();
    let summary = json!({
        "pass": count("pass"), "fail": count("fail"), "warn": count("warn"), "error": count("error"), "skip": 0,
    });
    // What needs attention first, if not all have room.
    results.sort_by_key(|(outcome, _)| match *outcome {
        "fail" => 0,
        "error" => 1,
        "warn" => 2,
        _ => 3,
    });
    results.truncate(MAX_RESULTS);
    let results: Vec<Value> = results.into_iter().map(|(_, result)| result).collect();
    let labels = json!({"app.kubernetes.io/managed-by": "entail"});
    let (kind, metadata) = match namespace {
        "" => (kinds.cluster.0, json!({"name": NAME, "labels": labels})),
        namespace => (
            kinds.namespaced.0,
            json!({"name": NAME, "namespace": namespace, "labels": labels}),
        ),
    };
    json!({
        "apiVersion": format!("{}/{}", kinds.group, kinds.version),
        "kind": kind,
        "metadata": metadata,
        "source": "entail",
        "summary": summary,
        "results": results,
    })
}

fn of_finding(finding: &v1::Finding, object: Option<&ObjectKey>) -> Entry {
    let (result, severity) = match finding.severity() {
        Severity::Error => ("fail", "high"),
        _ => ("warn", "medium"),
    };
    let mut message = finding.message.clone();
    for place in &finding.places {
        message.push_str("\n- ");
        message.push_str(place);
    }
    entry(
        [&finding.reason, &finding.code],
        (result, severity),
        &message,
        object.into_iter(),
    )
}

fn of_assertion(result: &v1::AssertionResult, assertion: &ObjectKey) -> Entry {
    let (outcome, severity) = match result.outcome() {
        Outcome::Passed => ("pass", "info"),
        Outcome::Failed => ("fail", "high"),
        Outcome::Unknown | Outcome::Invalid | Outcome::Unspecified => ("error", "high"),
    };
    let (failed, unknown, paths) = (result.failed, result.unknown, result.paths);
    let mut lines = vec![match result.outcome() {
        Outcome::Invalid => "the assertion is invalid".to_owned(),
        _ if failed + unknown == 0 => format!("{paths} paths are as expected"),
        _ => format!("of {paths} paths, {failed} are not as expected, {unknown} not known"),
    }];
    lines.extend(
        [&result.description, &result.message]
            .into_iter()
            .filter(|t| !t.is_empty())
            .cloned(),
    );
    let failures = result.failures.iter();
    lines.extend(failures.map(|failure| format!("{}: {}", failure.path, failure.message)));
    let mut routes: Vec<ObjectKey> = Vec::new();
    for route in result
        .failures
        .iter()
        .filter_map(|failure| route_of(&failure.path))
    {
        if !routes.contains(&route) {
            routes.push(route);
        }
    }
    let name = &*assertion.name;
    entry(
        [name, "expect"],
        (outcome, severity),
        &lines.join("\n"),
        routes.iter(),
    )
}

/// A result: policy, rule, outcome and severity, with the objects that it is about.
fn entry<'o>(
    [policy, rule]: [&str; 2],
    (result, severity): (&'static str, &str),
    message: &str,
    objects: impl Iterator<Item = &'o ObjectKey>,
) -> Entry {
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let objects = objects.map(|key| {
        let mut object = Map::new();
        object.insert("kind".to_owned(), json!(&*key.kind.kind));
        object.insert("name".to_owned(), json!(&*key.name));
        if !key.namespace.is_empty() {
            object.insert("namespace".to_owned(), json!(&*key.namespace));
        }
        Value::Object(object)
    });
    let objects: Vec<Value> = objects.collect();
    let fields = [
        ("source", "entail"),
        ("category", "effective policies"),
        ("policy", policy),
        ("rule", rule),
        ("result", result),
        ("severity", severity),
        ("message", &message),
    ];
    let fields = fields.into_iter();
    let mut entry: Map<String, Value> = fields
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    if !objects.is_empty() {
        entry.insert("resources".to_owned(), json!(objects));
    }
    (result, Value::Object(entry))
}

/// The object of a name as findings have it: `Kind.group/namespace/name`, or without a namespace.
fn object_of(name: &str) -> Option<ObjectKey> {
    let name = name.split('#').next()?;
    let parts: Vec<&str> = name.split('/').collect();
    let key = |kind: &str, namespace: &str, name: &str| {
        ObjectKey::new(GroupKind::parse_short(kind).resource(), namespace, name)
    };
    match parts.as_slice() {
        [kind, name] => Some(key(kind, "", name)),
        [kind, namespace, name] => Some(key(kind, namespace, name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insight::Code;

    fn finding(code: Code, object: &str) -> v1::Finding {
        v1::Finding {
            severity: code.severity().into(),
            reason: code.reason().to_owned(),
            object: object.to_owned(),
            message: "m".to_owned(),
            code: code.id().to_owned(),
            ..v1::Finding::default()
        }
    }

    #[test]
    fn reports_are_by_namespace_and_need_attention_first() {
        let findings = [
            finding(Code::NoScope, "A.x.io/shop/a"),
            finding(Code::Invalid, "A.x.io/shop/b"),
            finding(Code::Overridden, "A.x.io/shop/c"),
            finding(Code::ProfileRefused, "PolicyProfile.entail.dev/p"),
            finding(
                Code::AssertionFailed,
                "EffectivePolicyAssertion.entail.dev/shop/f",
            ),
        ];
        let path = "gateways/g/gw/listeners/l/routes/HTTPRoute/shop/r/rules/#0";
        let failure = v1::AssertionPath {
            path: path.to_owned(),
            outcome: Outcome::Failed.into(),
            message: "why".to_owned(),
        };
        let failed = v1::AssertionResult {
            object: "EffectivePolicyAssertion.entail.dev/shop/f".to_owned(),
            outcome: Outcome::Failed.into(),
            paths: 3,
            failed: 1,
            failures: vec![failure.clone(), failure],
            ..v1::AssertionResult::default()
        };
        let made = reports(ReportFormat::Openreports, &findings, &[failed]);
        let kinds: Vec<&str> = made.iter().map(|r| r["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["ClusterReport", "Report"]);
        let shop = &made[1];
        assert_eq!(shop["metadata"]["namespace"], "shop");
        assert_eq!(
            shop["summary"],
            json!({"pass": 0, "fail": 2, "warn": 1, "error": 0, "skip": 0})
        );
        let of = |index: usize| &shop["results"][index];
        assert_eq!(
            (&of(0)["policy"], &of(0)["rule"]),
            (&json!("Invalid"), &json!("E020"))
        );
        assert_eq!(
            of(0)["resources"],
            json!([{"kind": "A", "name": "b", "namespace": "shop"}])
        );
        assert_eq!(
            (&of(1)["policy"], &of(1)["result"]),
            (&json!("f"), &json!("fail"))
        );
        assert_eq!(
            of(1)["resources"],
            json!([{"kind": "HTTPRoute", "name": "r", "namespace": "shop"}])
        );
        assert_eq!(of(2)["result"], "warn");
    }

    #[test]
    fn large_reports_are_cut_and_counted_whole() {
        let findings: Vec<v1::Finding> = (0..600)
            .map(|number| finding(Code::NoScope, &format!("A.x.io/shop/a{number}")))
            .collect();
        let made = reports(ReportFormat::Policyreport, &findings, &[]);
        assert_eq!(made[0]["kind"], "PolicyReport");
        assert_eq!(made[0]["results"].as_array().unwrap().len(), MAX_RESULTS);
        assert_eq!(made[0]["summary"]["warn"], 600);
    }
}
