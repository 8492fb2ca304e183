//! The conditions of a match: everything that a rule requires of a request except the host.

use std::sync::Arc;

use serde_json::Value;

use super::dialect::{Dialect, GrpcMatches, MatchCriterion, RepeatedConditions};
use super::patterns::{Evaluation, PatternCollector, PatternNumber, RoutePatterns, Verdict};
use super::request::Request;

/// The service and the method that a regular expression of the other one alone is put together with, where GRPCRoutes
/// match paths (Envoy Gateway, internal/gatewayapi/route.go).
const ANY_SERVICE: &str = r"(?i)\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*";
const ANY_METHOD: &str = "[A-Za-z_][A-Za-z_0-9]*";

/// The conditions of one match of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchConditions {
    /// The path condition, or for gRPC the service and method.
    pub path: PathMatcher,
    /// The HTTP method.
    pub method: Option<String>,
    /// The end of path and query.
    path_end: Option<String>,
    /// Characters of the path as it is written; 0 for any path.
    path_length: usize,
    headers: Vec<FieldMatcher>,
    parameters: Vec<FieldMatcher>,
}

/// A condition on the path, or on the service and method of a gRPC call.
#[derive(Clone, Debug)]
pub(super) enum PathMatcher {
    /// The path equals this one.
    Exact(String),
    /// The path is this one (stored without a trailing slash) or below it.
    Prefix(String),
    /// The path matches this regular expression.
    Regex(RegexMatcher),
    /// The service and the method match; `None` matches any.
    Call(Option<StringMatcher>, Option<StringMatcher>),
}

/// A condition on a header or a query parameter.
#[derive(Clone, Debug)]
struct FieldMatcher {
    name: String,
    value: StringMatcher,
}

/// A condition on a string.
#[derive(Clone, Debug)]
pub(super) enum StringMatcher {
    /// The string equals this one.
    Exact(String),
    /// The string matches this regular expression.
    Regex(RegexMatcher),
}

/// A regular expression that matches whole strings, as one of those of its Route.
#[derive(Clone, Debug)]
pub(super) struct RegexMatcher {
    /// Length of its text in bytes.
    length: usize,
    number: PatternNumber,
}

/// A request against conditions: what it takes to evaluate them.
pub(super) struct Subject<'s> {
    pub request: &'s Request,
    pub evaluation: &'s Evaluation<'s>,
    /// The regular expressions of the Route that the conditions are of.
    pub patterns: &'s Arc<RoutePatterns>,
}

impl Default for PathMatcher {
    fn default() -> Self {
        Self::Prefix(String::new())
    }
}

impl MatchConditions {
    /// Reads a match of an HTTPRoute.
    pub fn http(value: &Value, dialect: &Dialect, patterns: &mut PatternCollector) -> Self {
        let path = value.get("path").unwrap_or(&Value::Null);
        let text = path.get("value").and_then(Value::as_str).unwrap_or("/");
        let path = match non_empty_str(path, "type") {
            Some("Exact") => PathMatcher::Exact(text.to_owned()),
            Some("RegularExpression") => PathMatcher::Regex(RegexMatcher::new(text, patterns)),
            _ => PathMatcher::Prefix(text.trim_end_matches('/').to_owned()),
        };
        let is_any = matches!(&path, PathMatcher::Prefix(prefix) if prefix.is_empty());
        let (headers, parameters) = (
            field_matchers(value, "headers", dialect, patterns),
            field_matchers(value, "queryParams", dialect, patterns),
        );
        Self {
            path_length: if is_any { 0 } else { text.len() },
            path,
            method: non_empty_str(value, "method").map(str::to_owned),
            path_end: None,
            headers,
            parameters,
        }
    }

    /// Reads a match of a GRPCRoute.
    pub fn grpc(value: &Value, dialect: &Dialect, patterns: &mut PatternCollector) -> Self {
        let call = value.get("method").unwrap_or(&Value::Null);
        let kind = non_empty_str(call, "type");
        let headers = field_matchers(value, "headers", dialect, patterns);
        if dialect.grpc_matches == GrpcMatches::Paths {
            let (service, method) = (
                non_empty_str(call, "service"),
                non_empty_str(call, "method"),
            );
            return Self {
                headers,
                ..Self::call_as_path(kind, service, method, patterns)
            };
        }
        let mut part = |name: &str| {
            non_empty_str(call, name).map(|text| StringMatcher::new(kind, text, patterns))
        };
        Self {
            path: PathMatcher::Call(part("service"), part("method")),
            headers,
            ..Self::default()
        }
    }

    /// Reads a condition on a call as one on path and query.
    fn call_as_path(
        kind: Option<&str>,
        service: Option<&str>,
        method: Option<&str>,
        patterns: &mut PatternCollector,
    ) -> Self {
        let is_regex = kind == Some("RegularExpression");
        let (path, path_end) = match (service, method) {
            (None, None) => (PathMatcher::default(), None),
            _ if is_regex => {
                let service = service.unwrap_or(ANY_SERVICE);
                let text = format!("/{service}/{}", method.unwrap_or(ANY_METHOD));
                (PathMatcher::Regex(RegexMatcher::new(&text, patterns)), None)
            }
            (Some(service), Some(method)) => {
                (PathMatcher::Exact(format!("/{service}/{method}")), None)
            }
            (Some(service), None) => (PathMatcher::Prefix(format!("/{service}")), None),
            (None, Some(method)) => (PathMatcher::default(), Some(format!("/{method}"))),
        };
        let path_length = match &path {
            PathMatcher::Exact(text) | PathMatcher::Prefix(text) => text.len(),
            PathMatcher::Regex(_) | PathMatcher::Call(..) => path.length(),
        };
        Self {
            path,
            path_end,
            path_length,
            ..Self::default()
        }
    }

    /// Returns the number that a criterion compares.
    pub fn count(&self, criterion: MatchCriterion) -> usize {
        let exact = |fields: &[FieldMatcher]| fields.iter().filter(|f| f.value.is_exact()).count();
        let method = usize::from(self.method.is_some());
        match criterion {
            MatchCriterion::PathLength => self.path_length,
            MatchCriterion::Method => method,
            MatchCriterion::Headers => self.headers.len(),
            MatchCriterion::HeadersAndMethod => {
                self.headers.len() + method + usize::from(self.path_end.is_some())
            }
            MatchCriterion::ExactHeadersAndMethod => exact(&self.headers) + method,
            MatchCriterion::QueryParameters => self.parameters.len(),
            MatchCriterion::ExactQueryParameters => exact(&self.parameters),
        }
    }

    /// Whether a request meets all conditions. One that it does not meet decides, whatever is not known of others.
    pub fn verdict(&self, subject: &Subject<'_>) -> Verdict {
        let request = subject.request;
        let method = self.method.as_ref();
        let end = self.path_end.as_ref();
        if method.is_some_and(|method| *method != request.method)
            || end.is_some_and(|end| !request.target.ends_with(&**end))
        {
            return Verdict::Unmet;
        }
        let headers = self.headers.iter();
        let headers = headers.map(|h| h.verdict(request.header(&h.name), subject));
        let parameters = self.parameters.iter();
        let parameters = parameters.map(|p| p.verdict(request.parameter(&p.name), subject));
        let path = std::iter::once_with(|| self.path.verdict(subject));
        all(path.chain(headers).chain(parameters))
    }

    /// Whether a request meets the path condition, and the descriptions of all conditions that it does not meet, that of
    /// the path first, and of those that are not known.
    pub fn missing(&self, subject: &Subject<'_>) -> (bool, Vec<String>) {
        let mut missing = self.unmet(subject);
        let path_matches = self.path.verdict(subject) == Verdict::Met;
        if !path_matches {
            missing.insert(0, self.path.describe(subject.patterns));
        }
        (path_matches, missing)
    }

    /// Describes the conditions that a request does not meet, except the path condition, and those that are not
    /// known.
    fn unmet(&self, subject: &Subject<'_>) -> Vec<String> {
        let request = subject.request;
        let mut parts = Vec::new();
        let method = self.method.as_ref();
        let method = method.filter(|method| **method != request.method);
        parts.extend(method.map(|method| format!("method {method}")));
        let end = self.path_end.as_ref();
        let end = end.filter(|end| !request.target.ends_with(&***end));
        parts.extend(end.map(|end| describe_end(end)));
        for field in &self.headers {
            if field.verdict(request.header(&field.name), subject) != Verdict::Met {
                parts.push(format!("header {}", field.describe(subject.patterns)));
            }
        }
        for field in &self.parameters {
            if field.verdict(request.parameter(&field.name), subject) != Verdict::Met {
                parts.push(format!(
                    "query parameter {}",
                    field.describe(subject.patterns)
                ));
            }
        }
        parts
    }

    /// Describes all conditions.
    pub fn describe(&self, patterns: &RoutePatterns) -> String {
        let mut parts = vec![self.path.describe(patterns)];
        parts.extend(
            self.method
                .as_ref()
                .map(|method| format!("method {method}")),
        );
        parts.extend(self.path_end.as_deref().map(describe_end));
        let headers = self.headers.iter();
        parts.extend(headers.map(|h| format!("header {}", h.describe(patterns))));
        let parameters = self.parameters.iter();
        parts.extend(parameters.map(|p| format!("query parameter {}", p.describe(patterns))));
        parts.join(", ")
    }
}

impl PathMatcher {
    /// Whether the path of a request, or its gRPC call, meets the condition.
    pub fn verdict(&self, subject: &Subject<'_>) -> Verdict {
        let path = &*subject.request.path;
        match self {
            Self::Exact(exact) => decided(path == exact),
            Self::Prefix(prefix) => {
                let rest = path.strip_prefix(&**prefix);
                decided(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
            }
            Self::Regex(pattern) => pattern.verdict(path, subject),
            Self::Call(service, method) => {
                let (called_service, called_method) = subject.request.call().unwrap_or_default();
                let parts = [(service, called_service), (method, called_method)];
                let parts = parts.into_iter();
                all(parts.filter_map(|(part, text)| Some(part.as_ref()?.verdict(text, subject))))
            }
        }
    }

    /// Returns the length of the regular expression; 0 for other conditions.
    pub fn length(&self) -> usize {
        match self {
            Self::Regex(pattern) => pattern.length,
            Self::Exact(_) | Self::Prefix(_) | Self::Call(..) => 0,
        }
    }

    /// Describes the condition.
    pub fn describe(&self, patterns: &RoutePatterns) -> String {
        let any = |text: &Option<StringMatcher>| {
            let text = text.as_ref();
            text.map_or("any".to_owned(), |text| text.describe(patterns))
        };
        match self {
            Self::Exact(path) => format!("path `{path}`"),
            Self::Prefix(path) if path.is_empty() => "any path".to_owned(),
            Self::Prefix(path) => format!("path prefix `{path}`"),
            Self::Regex(pattern) => format!("path {}", pattern.describe(patterns)),
            Self::Call(None, None) => "any call".to_owned(),
            Self::Call(service, method) => {
                format!("service {}, method {}", any(service), any(method))
            }
        }
    }
}

impl StringMatcher {
    fn new(kind: Option<&str>, text: &str, patterns: &mut PatternCollector) -> Self {
        match kind {
            Some("RegularExpression") => Self::Regex(RegexMatcher::new(text, patterns)),
            _ => Self::Exact(text.to_owned()),
        }
    }

    fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    fn verdict(&self, text: &str, subject: &Subject<'_>) -> Verdict {
        match self {
            Self::Exact(exact) => decided(exact == text),
            Self::Regex(pattern) => pattern.verdict(text, subject),
        }
    }

    fn describe(&self, patterns: &RoutePatterns) -> String {
        match self {
            Self::Exact(text) => format!("`{text}`"),
            Self::Regex(pattern) => pattern.describe(patterns),
        }
    }
}

impl FieldMatcher {
    /// Whether one of the values meets the condition.
    fn verdict<'v>(&self, values: impl Iterator<Item = &'v str>, subject: &Subject<'_>) -> Verdict {
        let mut verdict = Verdict::Unmet;
        for value in values {
            match self.value.verdict(value, subject) {
                Verdict::Met => return Verdict::Met,
                Verdict::NotDecided => verdict = Verdict::NotDecided,
                Verdict::Unmet => {}
            }
        }
        verdict
    }

    fn describe(&self, patterns: &RoutePatterns) -> String {
        format!("`{}`: {}", self.name, self.value.describe(patterns))
    }
}

impl RegexMatcher {
    fn new(text: &str, patterns: &mut PatternCollector) -> Self {
        Self {
            length: text.len(),
            number: patterns.add(text),
        }
    }

    fn describe(&self, patterns: &RoutePatterns) -> String {
        let (text, note) = (patterns.text(self.number), patterns.note(self.number));
        format!("matching `{text}`{note}")
    }

    fn verdict(&self, text: &str, subject: &Subject<'_>) -> Verdict {
        subject
            .evaluation
            .matches(subject.patterns, self.number, text)
    }
}

fn decided(is_met: bool) -> Verdict {
    match is_met {
        true => Verdict::Met,
        false => Verdict::Unmet,
    }
}

/// Whether all conditions are met.
fn all(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut all = Verdict::Met;
    for verdict in verdicts {
        match verdict {
            Verdict::Met => {}
            Verdict::NotDecided => all = Verdict::NotDecided,
            Verdict::Unmet => return Verdict::Unmet,
        }
    }
    all
}

/// Describes a condition on the end of path and query.
fn describe_end(end: &str) -> String {
    format!("path and query ending with `{end}`")
}

/// Reads the entries of a list. Of entries with the same name, the first one or all count.
fn field_matchers(
    value: &Value,
    field: &str,
    dialect: &Dialect,
    patterns: &mut PatternCollector,
) -> Vec<FieldMatcher> {
    let is_header = field == "headers";
    let name = |name: &str| match is_header {
        true => name.to_ascii_lowercase(),
        false => name.to_owned(),
    };
    let is_first_only = dialect.repeated_conditions == RepeatedConditions::First;
    let mut matchers: Vec<FieldMatcher> = Vec::new();
    for entry in value
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(name) = non_empty_str(entry, "name").map(name) else {
            continue;
        };
        let text = entry
            .get("value")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !(is_first_only && matchers.iter().any(|other| other.name == name)) {
            let value = StringMatcher::new(non_empty_str(entry, "type"), text, patterns);
            matchers.push(FieldMatcher { name, value });
        }
    }
    matchers
}

fn non_empty_str<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    let text = value.get(field)?.as_str();
    text.filter(|text| !text.is_empty())
}
