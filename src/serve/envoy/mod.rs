//! Envoy's external authorization: which policies hold for a request, as metadata and headers, and
//! whether a rule over them denies it.

mod findings;
mod identity;
mod request;
mod settings;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;

use prost_types::Struct;
use serde_json::Value as Json;
use tokio::sync::Semaphore;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

use super::Answers;
use super::peer::peer_of;
use crate::api::envoy;
use crate::api::envoy::authorization_server::Authorization;
use crate::api::envoy::{
    AttributeContext, CheckRequest, CheckResponse, DeniedHttpResponse, HttpStatus, OkHttpResponse,
    check_response::HttpResponse,
};
use crate::insight::{RuleRef, Scope, rule_paths, rules_of_request};
use crate::snapshot::Snapshot;
use entail_core::model::PathName;
use findings::{Chosen, Findings};
use identity::{Said, said};
use request::{asked, request_value};
use settings::{Deny, Trouble};
pub use settings::{EnvoyDialect, EnvoyDocument, EnvoySettings};
use told::{Made, list, object, text};

/// Threads that wait at once for an index to be made.
const SLOW: usize = 4;

/// Envoy asks it about every request.
#[derive(Clone, Debug)]
pub(super) struct Envoy {
    answers: Answers,
    settings: Arc<EnvoySettings>,
    made: Arc<Made>,
    /// One permit a request that waits for an index to be made.
    slow: Arc<Semaphore>,
}

impl Envoy {
    pub fn new(answers: Answers, settings: Arc<EnvoySettings>) -> Self {
        Self {
            answers,
            settings,
            made: Arc::default(),
            slow: Arc::new(Semaphore::new(SLOW)),
        }
    }

    fn find(
        &self,
        snapshot: &Snapshot,
        attributes: &AttributeContext,
        metadata: &MetadataMap,
        (scope, in_haste): (&Scope, bool),
    ) -> Option<Findings> {
        let mut findings = Findings::default();
        let Chosen { path, is_only } =
            match self.path(snapshot, attributes, metadata, (scope, in_haste)) {
                Ok(chosen) => chosen?,
                Err(trouble) => {
                    findings.troubles.push(trouble);
                    return Some(findings);
                }
            };
        let parsed = PathName::parse(&path).ok();
        let seen = parsed.filter(|_| scope.has_path(&path));
        let Some(body) = seen.and_then(|path| snapshot.look_up(&path)) else {
            let message = format!("`{path}` is no path");
            findings.troubles.push((Trouble::NotFound, message));
            return Some(findings);
        };
        let wanted = scope.narrow(&self.settings.kinds);
        let told = self.made.of(body, &wanted, &self.settings);
        if told.is_too_large {
            let message = "the policies are larger than metadata and headers may be";
            findings
                .troubles
                .push((Trouble::TooLarge, message.to_owned()));
        }
        findings.take_kinds(snapshot, &self.settings.kinds, scope);
        let (kinds, rules) = (&self.settings.kinds, &self.settings.deny);
        if !rules.is_empty() && kinds.is_empty() && !scope.has_all_kinds() {
            let message = "rules may be about kinds that the caller may not see: choose `kinds`";
            let trouble = (Trouble::Incomplete, message.to_owned());
            findings.troubles.push(trouble);
        }
        findings.path = Some(path);
        findings.is_only = is_only;
        findings.told = Some(told);
        Some(findings)
    }

    /// The path of the rule that a request takes; none if it is not known and there is haste.
    fn path(
        &self,
        snapshot: &Snapshot,
        attributes: &AttributeContext,
        metadata: &MetadataMap,
        (scope, in_haste): (&Scope, bool),
    ) -> Result<Option<Chosen>, (Trouble, String)> {
        let unidentified = |message: String| (Trouble::Unidentified, message);
        match said(&self.settings, attributes, metadata) {
            Err(contradiction) => Err(unidentified(contradiction.0)),
            Ok(Said::Path(path)) => Ok(Some(Chosen::only(path))),
            Ok(Said::Rule(rule)) => self.one_path(snapshot, &rule, scope),
            Ok(Said::Nothing { gateway, listener }) if self.settings.matches => {
                self.matched(snapshot, attributes, (gateway, listener), (scope, in_haste))
            }
            Ok(Said::Nothing { .. }) => Err(unidentified(
                "nothing tells which rule the request takes".to_owned(),
            )),
        }
    }

    /// The path of a rule, if it is clear which one is meant: where it serves at several listeners,
    /// the same has to hold at all of them.
    fn one_path(
        &self,
        snapshot: &Snapshot,
        rule: &RuleRef,
        scope: &Scope,
    ) -> Result<Option<Chosen>, (Trouble, String)> {
        let unidentified = |message: String| (Trouble::Unidentified, message);
        let RuleRef {
            namespace, name, ..
        } = rule;
        let paths = rule_paths(snapshot, rule).ok_or_else(|| {
            unidentified(format!(
                "nothing tells the Gateway at which the route {namespace}/{name} serves the request"
            ))
        })?;
        let paths: Vec<String> = paths
            .into_iter()
            .filter(|path| scope.has_path(path))
            .collect();
        let wanted = scope.narrow(&self.settings.kinds);
        let etag = |path: &String| {
            let path = PathName::parse(path).ok()?;
            Some(snapshot.look_up(&path)?.etag_of(&wanted))
        };
        let Some(first) = paths.first() else {
            let message = format!("the route {namespace}/{name} has no such rule where it serves");
            return Err((Trouble::NotFound, message));
        };
        if paths.iter().any(|path| etag(path) != etag(first)) {
            return Err(unidentified(format!(
                "the route {namespace}/{name} serves at several listeners, where different \
                 policies hold"
            )));
        }
        Ok(Some(Chosen {
            path: first.clone(),
            is_only: paths.len() == 1,
        }))
    }

    /// The path of the rule that the request itself matches.
    fn matched(
        &self,
        snapshot: &Snapshot,
        attributes: &AttributeContext,
        (gateway, listener): (Option<(String, String)>, Option<String>),
        (scope, in_haste): (&Scope, bool),
    ) -> Result<Option<Chosen>, (Trouble, String)> {
        let unidentified = |message: String| (Trouble::Unidentified, message);
        let request = asked(attributes, gateway, listener);
        let request = request.map_err(unidentified)?;
        let paths = rules_of_request(snapshot, &request, in_haste);
        let Some(mut paths) = paths.map_err(|failure| unidentified(failure.message))? else {
            return Ok(None);
        };
        paths.retain(|path| scope.has_path(path));
        match paths.as_slice() {
            [one] => Ok(Some(Chosen::only(one.clone()))),
            [] => Err((Trouble::NotFound, "no rule takes the request".to_owned())),
            _ => Err(unidentified(
                "several listeners take the request".to_owned(),
            )),
        }
    }

    /// The rule that denies a request, if one does.
    fn denied(&self, findings: &mut Findings, attributes: &AttributeContext) -> Option<&Deny> {
        let told = Arc::clone(findings.told.as_ref()?);
        if self.settings.deny.is_empty() {
            return None;
        }
        let request = request_value(attributes);
        let path = findings.path.clone().filter(|_| findings.is_only);
        let path = path.map(Json::from);
        let mut variables = vec![("policies", &told.specs), ("request", &request)];
        // A rule about a path that may be another one is in error: there is no such variable then.
        variables.extend(path.as_ref().map(|path| ("path", path)));
        for rule in &self.settings.deny {
            match rule.when.evaluate(&variables) {
                Ok(Json::Bool(true)) => return Some(rule),
                Ok(Json::Bool(false)) => {}
                Ok(_) => {
                    let message = format!("rule `{}` is neither true nor false", rule.name);
                    findings.troubles.push((Trouble::RuleError, message));
                }
                Err(error) => {
                    let message = format!("rule `{}`: {error}", rule.name);
                    findings.troubles.push((Trouble::RuleError, message));
                }
            }
        }
        None
    }

    /// The trouble for which a request is denied.
    fn fatal<'f>(&self, findings: &'f Findings) -> Option<&'f (Trouble, String)> {
        let open = &self.settings.fail_open;
        findings
            .troubles
            .iter()
            .find(|(trouble, _)| !open.contains(trouble))
    }

    fn metadata(&self, snapshot: &Snapshot, findings: &Findings, denied: Option<&str>) -> Struct {
        let version = snapshot.version();
        let version = format!("{}:{}", version.epoch, version.generation);
        let mut fields = BTreeMap::from([("version".to_owned(), text(&version))]);
        if let Some(path) = &findings.path {
            fields.insert("path".to_owned(), text(path));
        }
        if let Some(told) = findings.told.as_ref().filter(|told| !told.is_too_large) {
            fields.insert("policies".to_owned(), told.policies.clone());
        }
        if !findings.incomplete.is_empty() {
            let kinds = findings.incomplete.iter().map(|kind| text(kind));
            fields.insert("incomplete".to_owned(), list(kinds.collect()));
        }
        if !findings.troubles.is_empty() {
            let troubles = findings.troubles.iter();
            let troubles = troubles.map(|(trouble, why)| text(&format!("{trouble:?}: {why}")));
            fields.insert("troubles".to_owned(), list(troubles.collect()));
        }
        if let Some(rule) = denied {
            fields.insert("deniedBy".to_owned(), text(rule));
        }
        let fields = BTreeMap::from([(self.settings.key.clone(), object(fields))]);
        Struct { fields }
    }
}

#[tonic::async_trait]
impl Authorization for Envoy {
    async fn check(
        &self,
        request: Request<CheckRequest>,
    ) -> Result<Response<CheckResponse>, Status> {
        let scope = peer_of(&request)?.scope();
        let (metadata, _, message) = request.into_parts();
        let Some(snapshot) = self.answers.snapshots.load() else {
            // Envoy takes this for an error and does what it is configured to do then.
            return Err(self.answers.not_ready(&*scope));
        };
        let attributes = message.attributes.unwrap_or_default();
        let mut findings = match self.find(&snapshot, &attributes, &metadata, (&scope, true)) {
            Some(findings) => findings,
            None => {
                self.find_slowly(&snapshot, &attributes, &metadata, scope)
                    .await?
            }
        };
        let rule = self.denied(&mut findings, &attributes);
        let denied = rule.map(|rule| (rule.status, rule.body.clone(), rule.name.clone()));
        let denied = denied.or_else(|| {
            let (trouble, message) = self.fatal(&findings)?;
            tracing::debug!(?trouble, message, "a request is denied");
            Some((503, String::new(), format!("{trouble:?}")))
        });
        let by = denied.as_ref().map(|(_, _, by)| by.as_str());
        let dynamic_metadata = Some(self.metadata(&snapshot, &findings, by));
        Ok(Response::new(match denied {
            Some((status, body, by)) => CheckResponse {
                status: Some(code(Code::PermissionDenied, &by)),
                http_response: Some(HttpResponse::DeniedResponse(DeniedHttpResponse {
                    status: Some(HttpStatus {
                        code: status.into(),
                    }),
                    headers: Vec::new(),
                    body,
                })),
                dynamic_metadata,
            },
            None => CheckResponse {
                status: Some(code(Code::Ok, "")),
                http_response: Some(HttpResponse::OkResponse(self.passing(&findings))),
                dynamic_metadata,
            },
        }))
    }
}

impl Envoy {
    /// Finds out what the first request at a listener has to wait for, beside the workers.
    async fn find_slowly(
        &self,
        snapshot: &Arc<Snapshot>,
        attributes: &AttributeContext,
        metadata: &MetadataMap,
        scope: Arc<Scope>,
    ) -> Result<Findings, Status> {
        // As many as wait are bounded by the streams that callers may have; each by its deadline.
        let room = Arc::clone(&self.slow).acquire_owned().await;
        let room = room.map_err(|_| Status::unavailable("the server stops"))?;
        let (this, snapshot) = (self.clone(), Arc::clone(snapshot));
        let (attributes, metadata) = (attributes.clone(), metadata.clone());
        let thread = tokio::task::spawn_blocking(move || {
            let _room = room;
            this.find(&snapshot, &attributes, &metadata, (&scope, false))
        });
        let found = thread.await.ok().flatten();
        found.ok_or_else(|| Status::internal("the request could not be looked at"))
    }

    /// The headers of a request that passes. Nobody else sets those that are configured.
    fn passing(&self, findings: &Findings) -> OkHttpResponse {
        match &findings.told {
            Some(told) if !told.is_too_large => OkHttpResponse {
                headers: told.headers.clone(),
                headers_to_remove: told.removed.clone(),
            },
            _ => OkHttpResponse {
                headers: Vec::new(),
                headers_to_remove: self
                    .settings
                    .headers
                    .iter()
                    .map(|header| header.name.to_string())
                    .collect(),
            },
        }
    }
}

fn code(code: Code, message: &str) -> envoy::Status {
    envoy::Status {
        code: code.into(),
        message: message.to_owned(),
    }
}
