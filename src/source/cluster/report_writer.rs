//! Writes report objects, and nothing else. What is in the cluster is compared first, so that a report is written only if it
//! differs.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, Request};
use serde_json::Value;

use super::Cluster;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Selects the objects that this writer manages.
const SELECTOR: &str = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dentail";
/// Number of objects of a page of a list.
const PAGE: usize = 500;

/// The kinds of report objects: their group and version, and kind and resource of each.
#[derive(Clone, Copy, Debug)]
pub struct ReportKinds {
    /// The API group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// Kind and resource of reports in namespaces.
    pub namespaced: (&'static str, &'static str),
    /// Kind and resource of reports about the cluster.
    pub cluster: (&'static str, &'static str),
}

/// What was done to bring the reports of a cluster up to date.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WrittenReports {
    /// Number of reports that were created or changed.
    pub written: usize,
    /// Number of reports that were deleted.
    pub deleted: usize,
    /// Number of reports that were as they should be.
    pub unchanged: usize,
    /// Reports that could not be written, and why.
    pub problems: Vec<String>,
}

/// Resource, namespace and name of a report.
type ReportKey = (&'static str, String, String);

impl ReportKinds {
    /// The key of a report.
    fn key(&self, report: &Value) -> ReportKey {
        let field = |name: &str| {
            let value = report.pointer(&format!("/metadata/{name}"));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let namespace = field("namespace");
        let resource = match namespace.is_empty() {
            true => self.cluster.1,
            false => self.namespaced.1,
        };
        (resource, namespace, field("name"))
    }

    /// The URL path of a report, or of all reports without a name.
    fn path(&self, (resource, namespace, name): &ReportKey) -> String {
        let mut path = format!("/apis/{}/{}", self.group, self.version);
        if !namespace.is_empty() {
            path.push_str(&format!("/namespaces/{namespace}"));
        }
        path.push_str(&format!("/{resource}"));
        if !name.is_empty() {
            path.push_str(&format!("/{name}"));
        }
        path
    }
}

impl Cluster {
    /// Makes the reports of the cluster those that are given: writes those that differ, and deletes the others that were
    /// written before, unless `keep` is set.
    ///
    /// # Errors
    /// The reports of the cluster cannot be listed. The message says why.
    pub async fn write_reports(
        &self,
        kinds: ReportKinds,
        reports: &[Value],
        keep: bool,
    ) -> Result<WrittenReports, String> {
        let mut existing = BTreeMap::new();
        for resource in [kinds.namespaced.1, kinds.cluster.1] {
            for report in self.reports(kinds, resource).await? {
                existing.insert(kinds.key(&report), report);
            }
        }
        let mut done = WrittenReports::default();
        for report in reports {
            let key = kinds.key(report);
            let is_same = |existing: &Value| {
                let mut fields = ["source", "summary", "results"].into_iter();
                fields.all(|field| existing.get(field) == report.get(field))
            };
            if existing.remove(&key).as_ref().is_some_and(is_same) {
                done.unchanged += 1;
                continue;
            }
            let path = format!("{}?fieldManager=entail&force=true", kinds.path(&key));
            match self.send(Method::PATCH, &path, Some(report)).await {
                Ok(_) => done.written += 1,
                Err(error) => done.problems.push(format!("{path}: {error}")),
            }
        }
        for key in existing.keys().filter(|_| !keep) {
            let path = kinds.path(key);
            match self.send(Method::DELETE, &path, None).await {
                Ok(_) => done.deleted += 1,
                Err(error) => done.problems.push(format!("{path}: {error}")),
            }
        }
        Ok(done)
    }

    /// The reports of a resource that were written before, in all namespaces.
    async fn reports(
        &self,
        kinds: ReportKinds,
        resource: &'static str,
    ) -> Result<Vec<Value>, String> {
        let path = kinds.path(&(resource, String::new(), String::new()));
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let page = format!("{path}?{SELECTOR}&limit={PAGE}&continue={next}");
            let page = self.send(Method::GET, &page, None).await;
            let mut page = page.map_err(|error| format!("{path}: {error}"))?;
            if let Some(items) = page.get_mut("items").and_then(Value::as_array_mut) {
                found.append(items);
            }
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => token.clone_into(&mut next),
                _ => return Ok(found),
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            // JSON is YAML.
            .header("content-type", "application/apply-patch+yaml")
            .body(
                body.map(|body| body.to_string().into_bytes())
                    .unwrap_or_default(),
            );
        self.request(request, TIMEOUT).await
    }
}
