//! The conditions of a match: everything that a rule requires of a request except the host.

use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::dialect::{Dialect, GrpcMatches, MatchCriterion, RepeatedConditions};
use super::request::Request;

/// Maximum size of a regular expression in bytes, as source and compiled. Tenants write them, so they
/// must be bounded.
const MAX_PATTERN: usize = 1024;
const MAX_COMPILED: usize = 256 * 1024;
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

/// A regular expression that matches whole strings. An invalid or oversized one matches nothing.
#[derive(Clone, Debug)]
pub(super) struct RegexMatcher {
    text: String,
    /// Compiled on first use, because most expressions are never evaluated.
    regex: Arc<OnceLock<Option<Regex>>>,
}

impl Default for PathMatcher {
    fn default() -> Self {
        Self::Prefix(String::new())
    }
}

impl MatchConditions {
    /// Reads a match of an HTTPRoute.
    pub fn http(value: &Value, dialect: &Dialect) -> Self {
        let path = value.get("path").unwrap_or(&Value::Null);
        let text = path.get("value").and_then(Value::as_str).unwrap_or("/");
        let path = match non_empty_str(path, "type") {
            Some("Exact") => PathMatcher::Exact(text.to_owned()),
            Some("RegularExpression") => PathMatcher::Regex(RegexMatcher::new(text)),
            _ => PathMatcher::Prefix(text.trim_end_matches('/').to_owned()),
        };
        let is_any = matches!(&path, PathMatcher::Prefix(prefix) if prefix.is_empty());
        Self {
            path_length: if is_any { 0 } else { text.len() },
            path,
            method: non_empty_str(value, "method").map(str::to_owned),
            path_end: None,
            headers: field_matchers(value, "headers", dialect, str::to_ascii_lowercase),
            parameters: field_matchers(value, "queryParams", dialect, str::to_owned),
        }
    }

    /// Reads a match of a GRPCRoute.
    pub fn grpc(value: &Value, dialect: &Dialect) -> Self {
        let call = value.get("method").unwrap_or(&Value::Null);
        let kind = non_empty_str(call, "type");
        let headers = field_matchers(value, "headers", dialect, str::to_ascii_lowercase);
        if dialect.grpc_matches == GrpcMatches::Paths {
            let (service, method) = (
                non_empty_str(call, "service"),
                non_empty_str(call, "method"),
            );
            return Self::call_as_path(kind, service, method, headers);
        }
        let part =
            |name: &str| non_empty_str(call, name).map(|text| StringMatcher::new(kind, text));
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
        headers: Vec<FieldMatcher>,
    ) -> Self {
        let is_regex = kind == Some("RegularExpression");
        let (path, path_end) = match (service, method) {
            (None, None) => (PathMatcher::default(), None),
            _ if is_regex => {
                let service = service.unwrap_or(ANY_SERVICE);
                let text = format!("/{service}/{}", method.unwrap_or(ANY_METHOD));
                (PathMatcher::Regex(RegexMatcher::new(&text)), None)
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
            headers,
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

    /// Reports whether a request meets all conditions except the path condition.
    pub fn are_met(&self, request: &Request) -> bool {
        self.unmet(request).next().is_none()
    }

    /// Describes the conditions that a request does not meet, except the path condition.
    pub fn unmet<'c>(&'c self, request: &'c Request) -> impl Iterator<Item = String> + 'c {
        let method = self
            .method
            .as_ref()
            .filter(|method| **method != request.method);
        let headers = self
            .headers
            .iter()
            .filter(|h| !h.matches(request.header(&h.name)));
        let parameters = self.parameters.iter();
        let parameters = parameters.filter(|p| !p.matches(request.parameter(&p.name)));
        let method = method.map(|method| format!("method {method}"));
        let end = self.path_end.as_ref();
        let end = end.filter(|end| !request.target.ends_with(&***end));
        let method = method.into_iter().chain(end.map(|end| describe_end(end)));
        let headers = headers.map(|h| format!("header {}", h.describe()));
        let parameters = parameters.map(|p| format!("query parameter {}", p.describe()));
        method.chain(headers).chain(parameters)
    }

    /// Describes all conditions.
    pub fn describe(&self) -> String {
        let mut parts = vec![self.path.describe()];
        parts.extend(
            self.method
                .as_ref()
                .map(|method| format!("method {method}")),
        );
        parts.extend(self.path_end.as_deref().map(describe_end));
        let headers = self.headers.iter();
        parts.extend(headers.map(|h| format!("header {}", h.describe())));
        let parameters = self.parameters.iter();
        parts.extend(parameters.map(|p| format!("query parameter {}", p.describe())));
        parts.join(", ")
    }
}

impl PathMatcher {
    /// Reports whether the path of a request, or its gRPC call, meets the condition.
    pub fn matches(&self, request: &Request) -> bool {
        let path = &*request.path;
        match self {
            Self::Exact(exact) => path == exact,
            Self::Prefix(prefix) => {
                let rest = path.strip_prefix(&**prefix);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Self::Regex(pattern) => pattern.matches(path),
            Self::Call(service, method) => {
                let (called_service, called_method) = request.call().unwrap_or_default();
                service.as_ref().is_none_or(|s| s.matches(called_service))
                    && method.as_ref().is_none_or(|m| m.matches(called_method))
            }
        }
    }

    /// Returns the length of the regular expression; 0 for other conditions.
    pub fn length(&self) -> usize {
        match self {
            Self::Regex(pattern) => pattern.text.len(),
            Self::Exact(_) | Self::Prefix(_) | Self::Call(..) => 0,
        }
    }

    /// Describes the condition.
    pub fn describe(&self) -> String {
        let any = |text: &Option<StringMatcher>| {
            text.as_ref()
                .map_or("any".to_owned(), StringMatcher::describe)
        };
        match self {
            Self::Exact(path) => format!("path `{path}`"),
            Self::Prefix(path) if path.is_empty() => "any path".to_owned(),
            Self::Prefix(path) => format!("path prefix `{path}`"),
            Self::Regex(pattern) => format!("path {}", pattern.describe()),
            Self::Call(None, None) => "any call".to_owned(),
            Self::Call(service, method) => {
                format!("service {}, method {}", any(service), any(method))
            }
        }
    }
}

impl StringMatcher {
    fn new(kind: Option<&str>, text: &str) -> Self {
        match kind {
            Some("RegularExpression") => Self::Regex(RegexMatcher::new(text)),
            _ => Self::Exact(text.to_owned()),
        }
    }

    fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Regex(pattern) => pattern.matches(text),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Exact(text) => format!("`{text}`"),
            Self::Regex(pattern) => pattern.describe(),
        }
    }
}

impl FieldMatcher {
    /// Reports whether one of the values meets the condition.
    fn matches<'v>(&self, mut values: impl Iterator<Item = &'v str>) -> bool {
        values.any(|value| self.value.matches(value))
    }

    fn describe(&self) -> String {
        format!("`{}`: {}", self.name, self.value.describe())
    }
}

impl RegexMatcher {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            regex: Arc::default(),
        }
    }

    fn regex(&self) -> Option<&Regex> {
        let compiled = self.regex.get_or_init(|| {
            if self.text.len() > MAX_PATTERN {
                return None;
            }
            RegexBuilder::new(&format!("^(?:{})$", self.text))
                .size_limit(MAX_COMPILED)
                .dfa_size_limit(MAX_COMPILED)
                .build()
                .ok()
        });
        compiled.as_ref()
    }

    fn describe(&self) -> String {
        let note = match self.regex() {
            Some(_) => "",
            None => " (an invalid or too large regular expression)",
        };
        format!("matching `{}`{note}", self.text)
    }

    /// Reports whether the whole text matches. Takes time linear in the length of the text.
    fn matches(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }
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
    name: impl Fn(&str) -> String,
) -> Vec<FieldMatcher> {
    let is_first_only = dialect.repeated_conditions == RepeatedConditions::First;
    let mut matchers: Vec<FieldMatcher> = Vec::new();
    for entry in value
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(name) = non_empty_str(entry, "name").map(&name) else {
            continue;
        };
        let text = entry
            .get("value")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !(is_first_only && matchers.iter().any(|other| other.name == name)) {
            let value = StringMatcher::new(non_empty_str(entry, "type"), text);
            matchers.push(FieldMatcher { name, value });
        }
    }
    matchers
}

fn non_empty_str<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    let text = value.get(field)?.as_str();
    text.filter(|text| !text.is_empty())
}
