//! The routing table. A controller would configure it; this example reads it from flags.

use std::str::FromStr;
use std::sync::Arc;

use entail_client::path::{Level, PathName};
use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};

use crate::limit::Bucket;

/// The value of a `--rule` flag.
#[derive(Clone, Debug)]
pub struct RuleFlag {
    prefix: String,
    /// `HTTPRoute/NAMESPACE/NAME/rules/RULE`: the part of a path name after `routes/`.
    rule: String,
    backend: Authority,
}

/// A rule of a route.
#[derive(Debug)]
pub struct Rule {
    prefix: String,
    /// Path name of the rule, for look-ups in the mirror.
    pub path: String,
    backend: Authority,
    /// Token bucket of the rate limit. All prefixes of a rule share it.
    pub bucket: Arc<Bucket>,
}

/// The rules, sorted by decreasing length of the prefix.
#[derive(Debug)]
pub struct Table(Vec<Rule>);

impl RuleFlag {
    pub const FORM: &str = "PREFIX=HTTPRoute/NAMESPACE/NAME/rules/RULE@URL";
}

impl FromStr for RuleFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = |problem: &str| format!("{problem}; use {}", Self::FORM);
        let (prefix, rest) = text
            .split_once('=')
            .ok_or_else(|| invalid("`=` is missing"))?;
        let (rule, url) = rest
            .split_once('@')
            .ok_or_else(|| invalid("`@` is missing"))?;
        if !prefix.starts_with('/') {
            return Err(invalid("the prefix does not begin with `/`"));
        }
        let url: Uri = url.parse().map_err(|_| invalid("malformed URL"))?;
        let backend = url
            .authority()
            .filter(|_| url.scheme() == Some(&Scheme::HTTP));
        let backend =
            backend.ok_or_else(|| invalid("the URL does not begin with `http://HOST`"))?;
        Ok(Self {
            prefix: prefix.trim_end_matches('/').to_owned(),
            rule: rule.to_owned(),
            backend: backend.clone(),
        })
    }
}

impl Table {
    /// Creates the table of a listener.
    ///
    /// # Errors
    /// Returns an error if a rule has an invalid path name.
    pub fn new(listener_path: &str, flags: Vec<RuleFlag>) -> Result<Self, String> {
        let mut rules: Vec<Rule> = Vec::with_capacity(flags.len());
        for flag in flags {
            let path = format!("{listener_path}/routes/{}", flag.rule);
            // Otherwise every request would fail.
            let name = PathName::parse(&path).map_err(|error| format!("`{path}`: {error}"))?;
            if name.level() != Level::RouteRule {
                return Err(format!("`{path}` is not the path of a route rule"));
            }
            let same = rules.iter().find(|rule| rule.path == path);
            let bucket = same.map(|rule| Arc::clone(&rule.bucket));
            rules.push(Rule {
                prefix: flag.prefix,
                path,
                backend: flag.backend,
                bucket: bucket.unwrap_or_default(),
            });
        }
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.prefix.len()));
        Ok(Self(rules))
    }

    /// Returns the rule that matches a request path.
    pub fn find(&self, path: &str) -> Option<&Rule> {
        self.0.iter().find(|rule| {
            let below = path.strip_prefix(rule.prefix.as_str());
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        })
    }
}

impl Rule {
    /// Returns the URI of a request to the backend.
    pub fn backend_uri(&self, target: &Uri) -> Result<Uri, hyper::http::Error> {
        let root = PathAndQuery::from_static("/");
        Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.backend.clone())
            .path_and_query(target.path_and_query().cloned().unwrap_or(root))
            .build()
    }
}

/// Reports whether proxy and backend interpret a path in the same way. A backend that normalizes
/// `/cart/%2e%2e/cart/pay` or `//cart/pay` to `/cart/pay` could otherwise be reached without the rate
/// limit of the rule of `/cart/pay`.
pub fn is_unambiguous(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let ambiguous = ["//", "\\", "%2f", "%5c", "%2e"];
    let is_dot_segment = |segment: &str| segment == "." || segment == "..";
    path.starts_with('/')
        && !ambiguous.iter().any(|text| lower.contains(text))
        && !path.split('/').any(is_dot_segment)
}
