//! Envoy's external authorization service: returns the effective policies of a request as metadata
//! and headers, and denies the request if a rule over them matches.

mod answer;
mod check_state;
mod identity;
mod request;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use prost_types::Struct;
use serde_json::Value as Json;
use tokio::sync::Semaphore;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

use crate::api::envoy;
use crate::api::envoy::authorization_server::Authorization;
use crate::api::envoy::{
    AttributeContext, CheckRequest, CheckResponse, DeniedHttpResponse, HttpStatus, OkHttpResponse,
    check_response::HttpResponse,
};
use crate::background;
use crate::insight::{AccessScope, RuleRef, matching_rule_paths, rule_paths};
use crate::server::ServiceContext;
use crate::server::access::peer::peer_of;
use crate::snapshot::Snapshot;
pub use answer::EnvoyCounters;
use answer::{AnswerCache, list, object, text};
use check_state::{CheckState, PathChoice};
use entail_core::expr::Variable;
use entail_core::model::PathName;
use identity::{RuleIdentity, identify_rule};
use request::{request_value, resolve_request_message};
use settings::{CheckFailure, DenyRule};
pub use settings::{EnvoyDialect, EnvoyDocument, EnvoySettings};

/// Maximum number of threads that concurrently build or wait for a route index.
const MAX_INDEX_WAITERS: usize = 4;

/// Implementation of `envoy.service.auth.v3.Authorization`. Envoy calls it for every request.
#[derive(Clone, Debug)]
pub(in crate::server) struct AuthorizationHandler {
    answers: ServiceContext,
    settings: Arc<EnvoySettings>,
    answer_cache: Arc<AnswerCache>,
    /// One permit per request that builds or waits for a route index.
    index_permits: Arc<Semaphore>,
}

impl AuthorizationHandler {
    /// Creates the service.
    pub fn new(
        answers: ServiceContext,
        settings: Arc<EnvoySettings>,
        counters: Arc<EnvoyCounters>,
    ) -> Self {
        Self {
            answers,
            settings,
            answer_cache: Arc::new(AnswerCache::new(counters)),
            index_permits: Arc::new(Semaphore::new(MAX_INDEX_WAITERS)),
        }
    }

    /// Evaluates a request. Returns `None` if `fast_only` is set and a route index or the conversion
    /// of a large answer is missing.
    fn evaluate(
        &self,
        snapshot: &Snapshot,
        attributes: &AttributeContext,
        metadata: &MetadataMap,
        (scope, fast_only): (&AccessScope, bool),
    ) -> Option<CheckState> {
        let mut check_state = CheckState::default();
        let PathChoice { path, is_only } =
            match self.path(snapshot, attributes, metadata, (scope, fast_only)) {
                Ok(choice) => choice?,
                Err(failure) => {
                    check_state.failures.push(failure);
                    return Some(check_state);
                }
            };
        let parsed = PathName::parse(&path).ok();
        let visible = parsed.filter(|_| scope.has_path(&path));
        let Some(body) = visible.and_then(|path| snapshot.look_up(&path)) else {
            let message = format!("the path `{path}` does not exist");
            check_state.failures.push((CheckFailure::NotFound, message));
            return Some(check_state);
        };
        let kinds = scope.narrow(&self.settings.kinds);
        let settings = (&*self.settings, fast_only);
        let answer = self.answer_cache.of(body, &kinds, settings)?;
        if let Some(message) = &answer.too_large {
            self.answer_cache.count_too_large();
            let failure = (CheckFailure::TooLarge, message.clone());
            check_state.failures.push(failure);
        }
        check_state.check_kinds(snapshot, &self.settings.kinds, scope);
        check_state.check_path(body, &kinds);
        let (kinds, rules) = (&self.settings.kinds, &self.settings.deny);
        if !rules.is_empty() && kinds.is_empty() && !scope.has_all_kinds() {
            let message = "deny rules may use kinds that the caller may not see: set `kinds`";
            let failure = (CheckFailure::Incomplete, message.to_owned());
            check_state.failures.push(failure);
        }
        check_state.path = Some(path);
        check_state.is_only = is_only;
        check_state.answer = Some(answer);
        Some(check_state)
    }

    /// Selects the path of the rule that a request takes. Returns `None` if `fast_only` is set and
    /// a route index is missing.
    fn path(
        &self,
        snapshot: &Snapshot,
        attributes: &AttributeContext,
        metadata: &MetadataMap,
        (scope, fast_only): (&AccessScope, bool),
    ) -> Result<Option<PathChoice>, (CheckFailure, String)> {
        let unidentified = |message: String| (CheckFailure::Unidentified, message);
        match identify_rule(&self.settings, attributes, metadata) {
            Err(contradiction) => Err(unidentified(contradiction.0)),
            Ok(RuleIdentity::Path(path)) => Ok(Some(PathChoice::only(path))),
            Ok(RuleIdentity::Rule(rule)) => self.one_path(snapshot, &rule, scope),
            Ok(RuleIdentity::Unknown { gateway, listener }) if self.settings.matches => self
                .matched(
                    snapshot,
                    attributes,
                    (gateway, listener),
                    (scope, fast_only),
                ),
            Ok(RuleIdentity::Unknown { .. }) => Err(unidentified(
                "the rule of the request cannot be identified".to_owned(),
            )),
        }
    }

    /// Selects the path of a rule. A rule that is attached to several listeners must have equal
    /// effective policies at all of them.
    fn one_path(
        &self,
        snapshot: &Snapshot,
        rule: &RuleRef,
        scope: &AccessScope,
    ) -> Result<Option<PathChoice>, (CheckFailure, String)> {
        let unidentified = |message: String| (CheckFailure::Unidentified, message);
        let RuleRef {
            namespace, name, ..
        } = rule;
        let paths = rule_paths(snapshot, rule).ok_or_else(|| {
            unidentified(format!(
                "the Gateway of the route {namespace}/{name} cannot be identified"
            ))
        })?;
        let paths: Vec<String> = paths
            .into_iter()
            .filter(|path| scope.has_path(path))
            .collect();
        let kinds = scope.narrow(&self.settings.kinds);
        let etag = |path: &String| {
            let path = PathName::parse(path).ok()?;
            Some(snapshot.look_up(&path)?.etag_of(&kinds))
        };
        let Some(first) = paths.first() else {
            let message = format!("the route {namespace}/{name} has no such rule at this listener");
            return Err((CheckFailure::NotFound, message));
        };
        if paths.iter().any(|path| etag(path) != etag(first)) {
            return Err(unidentified(format!(
                "the route {namespace}/{name} is attached to several listeners with different \
                 effective policies"
            )));
        }
        Ok(Some(PathChoice {
            path: first.clone(),
            is_only: paths.len() == 1,
        }))
    }

    /// Selects the path of the rule that matches the request. Returns `None` if `fast_only` is set
    /// and a route index is missing.
    fn matched(
        &self,
        snapshot: &Snapshot,
        attributes: &AttributeContext,
        (gateway, listener): (Option<(String, String)>, Option<String>),
        (scope, fast_only): (&AccessScope, bool),
    ) -> Result<Option<PathChoice>, (CheckFailure, String)> {
        let unidentified = |message: String| (CheckFailure::Unidentified, message);
        let request = resolve_request_message(attributes, gateway, listener);
        let request = request.map_err(unidentified)?;
        let paths = matching_rule_paths(snapshot, &request, fast_only);
        let Some(mut paths) = paths.map_err(|failure| unidentified(failure.message))? else {
            return Ok(None);
        };
        paths.retain(|path| scope.has_path(path));
        match paths.as_slice() {
            [one] => Ok(Some(PathChoice::only(one.clone()))),
            [] => Err((
                CheckFailure::NotFound,
                "no rule matches the request".to_owned(),
            )),
            _ => Err(unidentified(
                "rules of several listeners match the request".to_owned(),
            )),
        }
    }

    /// Returns the first deny rule that matches a request. Records rules that cannot be evaluated
    /// as failures.
    fn matching_deny_rule(
        &self,
        check_state: &mut CheckState,
        attributes: &AttributeContext,
    ) -> Option<&DenyRule> {
        let answer = Arc::clone(check_state.answer.as_ref()?);
        if self.settings.deny.is_empty() {
            return None;
        }
        let path = check_state.path.clone().filter(|_| check_state.is_only);
        let path = path.map(|path| Variable::of(&Json::from(path)));
        let request = Variable::of(&request_value(attributes));
        let policies = answer.specs.as_ref().map_err(Clone::clone);
        let variables = policies.and_then(|policies| {
            let mut variables = vec![
                ("policies", policies),
                ("request", request.as_ref().map_err(Clone::clone)?),
            ];
            // Without a unique path the variable is undefined, so that a rule that uses it fails.
            if let Some(path) = &path {
                variables.push(("path", path.as_ref().map_err(Clone::clone)?));
            }
            Ok(variables)
        });
        // Tenants write the policies and callers the request: all rules together have the bound of one expression.
        let mut spent = 0;
        for rule in &self.settings.deny {
            let variables = variables.as_ref().map_err(Clone::clone);
            let value =
                variables.and_then(|variables| rule.when.evaluate_variables(variables, &mut spent));
            match value {
                Ok(Json::Bool(true)) => return Some(rule),
                Ok(Json::Bool(false)) => {}
                Ok(_) => {
                    let message = format!("rule `{}` is not a boolean expression", rule.name);
                    check_state
                        .failures
                        .push((CheckFailure::RuleError, message));
                }
                Err(error) => {
                    let message = format!("rule `{}`: {error}", rule.name);
                    check_state
                        .failures
                        .push((CheckFailure::RuleError, message));
                }
            }
        }
        None
    }

    /// Returns the first failure that denies the request.
    fn fatal<'f>(&self, check_state: &'f CheckState) -> Option<&'f (CheckFailure, String)> {
        let open = &self.settings.fail_open;
        check_state
            .failures
            .iter()
            .find(|(failure, _)| !open.contains(failure))
    }

    /// Returns the dynamic metadata of the response.
    fn metadata(
        &self,
        snapshot: &Snapshot,
        check_state: &CheckState,
        denied: Option<&str>,
    ) -> Struct {
        let version = snapshot.version();
        let version = format!("{}:{}", version.epoch, version.generation);
        let mut fields = BTreeMap::from([("version".to_owned(), text(&version))]);
        if let Some(path) = &check_state.path {
            fields.insert("path".to_owned(), text(path));
        }
        if let Some(answer) = check_state
            .answer
            .as_ref()
            .filter(|answer| answer.too_large.is_none())
        {
            fields.insert("policies".to_owned(), answer.policies.clone());
        }
        if !check_state.incomplete.is_empty() {
            let kinds = check_state.incomplete.iter().map(|kind| text(kind));
            fields.insert("incomplete".to_owned(), list(kinds.collect()));
        }
        if !check_state.failures.is_empty() {
            let failures = check_state.failures.iter();
            let failures =
                failures.map(|(failure, why)| text(&format!("{}: {why}", failure.as_str())));
            fields.insert("failures".to_owned(), list(failures.collect()));
        }
        if let Some(rule) = denied {
            fields.insert("deniedBy".to_owned(), text(rule));
        }
        let fields = BTreeMap::from([(self.settings.key.clone(), object(fields))]);
        Struct { fields }
    }
}

#[tonic::async_trait]
impl Authorization for AuthorizationHandler {
    async fn check(
        &self,
        request: Request<CheckRequest>,
    ) -> Result<Response<CheckResponse>, Status> {
        let scope = peer_of(&request)?.scope();
        let (metadata, _, message) = request.into_parts();
        let Some(snapshot) = self.answers.subscriptions.snapshots().load() else {
            // Envoy treats this as an error and applies its `failure_mode_allow`.
            return Err(self.answers.not_ready(&*scope));
        };
        let attributes = message.attributes.unwrap_or_default();
        let evaluated = self.evaluate(&snapshot, &attributes, &metadata, (&scope, true));
        let mut check_state = match evaluated {
            Some(check_state) => check_state,
            None => {
                self.evaluate_blocking(&snapshot, &attributes, &metadata, scope)
                    .await?
            }
        };
        let rule = self.matching_deny_rule(&mut check_state, &attributes);
        let denied = rule.map(|rule| (rule.status, rule.body.clone(), rule.name.clone()));
        let denied = denied.or_else(|| {
            let (failure, message) = self.fatal(&check_state)?;
            let failure = failure.as_str();
            tracing::debug!(failure, text = message, "request denied");
            Some((503, String::new(), failure.to_owned()))
        });
        let by = denied.as_ref().map(|(_, _, by)| by.as_str());
        let dynamic_metadata = Some(self.metadata(&snapshot, &check_state, by));
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
                http_response: Some(HttpResponse::OkResponse(self.ok_response(&check_state))),
                dynamic_metadata,
            },
        }))
    }
}

impl AuthorizationHandler {
    /// Evaluates a request on a blocking thread, because the first request at a listener builds its
    /// route index, and the first one that needs a large answer converts it.
    async fn evaluate_blocking(
        &self,
        snapshot: &Arc<Snapshot>,
        attributes: &AttributeContext,
        metadata: &MetadataMap,
        scope: Arc<AccessScope>,
    ) -> Result<CheckState, Status> {
        // The number of waiting requests is bounded by the permits for look-ups, their time by
        // deadlines.
        let permit = Arc::clone(&self.index_permits).acquire_owned().await;
        let permit = permit.map_err(|_| Status::unavailable("the server is shutting down"))?;
        let (this, snapshot) = (self.clone(), Arc::clone(snapshot));
        let (attributes, metadata) = (attributes.clone(), metadata.clone());
        let thread = background::spawn_blocking(move || {
            let _permit = permit;
            this.evaluate(&snapshot, &attributes, &metadata, (&scope, false))
        });
        let check_state = thread.await.ok().flatten();
        check_state.ok_or_else(|| Status::internal("internal error: see the log of the server"))
    }

    /// Returns the headers of an allowed request. Configured headers without a value are removed,
    /// so that a client cannot set them.
    fn ok_response(&self, check_state: &CheckState) -> OkHttpResponse {
        match &check_state.answer {
            Some(answer) if answer.too_large.is_none() => OkHttpResponse {
                headers: answer.headers.clone(),
                headers_to_remove: answer.removed.clone(),
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
