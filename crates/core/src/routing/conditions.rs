//! The conditions of a match: what a rule asks of a request besides its host.

use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::request::Request;

/// Bytes of a regular expression, as it is written and as it is compiled: tenants write them.
const MAX_PATTERN: usize = 1024;
const MAX_COMPILED: usize = 256 * 1024;

/// A match of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchConditions {
    /// The path; for gRPC the call.
    pub path: PathMatcher,
    /// The method of HTTP.
    pub method: Option<String>,
    headers: Vec<FieldMatcher>,
    parameters: Vec<FieldMatcher>,
}

/// What a match asks of the path, or of the call.
#[derive(Clone, Debug)]
pub(super) enum PathMatcher {
    /// Exactly this path.
    Exact(String),
    /// This path, without a slash at its end, and all below it.
    Prefix(String),
    /// A path like this.
    Regex(RegexMatcher),
    /// This service and method, each if it is there.
    Call(Option<StringMatcher>, Option<StringMatcher>),
}

/// A header, or a query parameter.
#[derive(Clone, Debug)]
struct FieldMatcher {
    name: String,
    value: StringMatcher,
}

/// What a text has to be.
#[derive(Clone, Debug)]
pub(super) enum StringMatcher {
    /// This.
    Exact(String),
    /// Something like this.
    Regex(RegexMatcher),
}

/// A regular expression for the whole of a text; one that cannot be used matches nothing.
#[derive(Clone, Debug)]
pub(super) struct RegexMatcher {
    text: String,
    /// Compiled when a request comes so far: most never do.
    regex: Arc<OnceLock<Option<Regex>>>,
}

impl Default for PathMatcher {
    fn default() -> Self {
        Self::Prefix(String::new())
    }
}

impl MatchConditions {
    /// Reads a match of an HTTPRoute.
    pub fn http(value: &Value) -> Self {
        let path = value.get("path").unwrap_or(&Value::Null);
        let text = path.get("value").and_then(Value::as_str).unwrap_or("/");
        let path = match word(path, "type") {
            Some("Exact") => PathMatcher::Exact(text.to_owned()),
            Some("RegularExpression") => PathMatcher::Regex(RegexMatcher::new(text)),
            _ => PathMatcher::Prefix(text.trim_end_matches('/').to_owned()),
        };
        Self {
            path,
            method: word(value, "method").map(str::to_owned),
            headers: named(value, "headers", str::to_ascii_lowercase),
            parameters: named(value, "queryParams", str::to_owned),
        }
    }

    /// Reads a match of a GRPCRoute.
    pub fn grpc(value: &Value) -> Self {
        let call = value.get("method").unwrap_or(&Value::Null);
        let kind = word(call, "type");
        let part = |name: &str| word(call, name).map(|text| StringMatcher::new(kind, text));
        Self {
            path: PathMatcher::Call(part("service"), part("method")),
            method: None,
            headers: named(value, "headers", str::to_ascii_lowercase),
            parameters: Vec::new(),
        }
    }

    /// How many headers and query parameters it asks for.
    pub fn counts(&self) -> (usize, usize) {
        (self.headers.len(), self.parameters.len())
    }

    /// Whether a request is as asked, but for its path or its call.
    pub fn are_met(&self, request: &Request) -> bool {
        self.unmet(request).next().is_none()
    }

    /// What a request lacks, for people.
    pub fn unmet<'c>(&'c self, request: &'c Request) -> impl Iterator<Item = String> + 'c {
        let method = self
            .method
            .as_ref()
            .filter(|wanted| **wanted != request.method);
        let headers = self
            .headers
            .iter()
            .filter(|h| !h.is(request.header(&h.name)));
        let parameters = self.parameters.iter();
        let parameters = parameters.filter(|p| !p.is(request.parameter(&p.name)));
        let method = method.map(|wanted| format!("method {wanted}"));
        let headers = headers.map(|h| format!("header {}", h.describe()));
        let parameters = parameters.map(|p| format!("query parameter {}", p.describe()));
        method.into_iter().chain(headers).chain(parameters)
    }

    /// All that it asks, for people.
    pub fn describe(&self) -> String {
        let mut parts = vec![self.path.describe()];
        parts.extend(
            self.method
                .as_ref()
                .map(|method| format!("method {method}")),
        );
        let headers = self.headers.iter();
        parts.extend(headers.map(|h| format!("header {}", h.describe())));
        let parameters = self.parameters.iter();
        parts.extend(parameters.map(|p| format!("query parameter {}", p.describe())));
        parts.join(", ")
    }
}

impl PathMatcher {
    /// Whether a request's path, or call, is meant.
    pub fn is(&self, request: &Request) -> bool {
        let path = &*request.path;
        match self {
            Self::Exact(exact) => path == exact,
            Self::Prefix(prefix) => {
                let rest = path.strip_prefix(&**prefix);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Self::Regex(pattern) => pattern.is(path),
            Self::Call(service, method) => {
                let (called, with) = request.call().unwrap_or_default();
                service.as_ref().is_none_or(|s| s.is(called))
                    && method.as_ref().is_none_or(|m| m.is(with))
            }
        }
    }

    /// How long a regular expression is.
    pub fn length(&self) -> usize {
        match self {
            Self::Regex(pattern) => pattern.text.len(),
            Self::Exact(_) | Self::Prefix(_) | Self::Call(..) => 0,
        }
    }

    /// For people.
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

    fn is(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Regex(pattern) => pattern.is(text),
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
    fn is(&self, value: Option<&str>) -> bool {
        value.is_some_and(|value| self.value.is(value))
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
        let trouble = match self.regex() {
            Some(_) => "",
            None => " (a regular expression that cannot be used)",
        };
        format!("like `{}`{trouble}", self.text)
    }

    /// In time proportional to the text: the engine never goes back.
    fn is(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }
}

/// The entries of a list, each name once: of one that comes again the first counts.
fn named(value: &Value, field: &str, name: impl Fn(&str) -> String) -> Vec<FieldMatcher> {
    let mut found: Vec<FieldMatcher> = Vec::new();
    for entry in value
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(name) = word(entry, "name").map(&name) else {
            continue;
        };
        let text = entry
            .get("value")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !found.iter().any(|known| known.name == name) {
            let value = StringMatcher::new(word(entry, "type"), text);
            found.push(FieldMatcher { name, value });
        }
    }
    found
}

fn word<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    let text = value.get(field)?.as_str();
    text.filter(|text| !text.is_empty())
}
