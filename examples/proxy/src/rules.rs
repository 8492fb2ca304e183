//! The routing table. A controller would have configured it; here it stands in flags.

use std::str::FromStr;
use std::sync::Arc;

use entail_client::path::{Level, PathName};
use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};

use crate::limit::Bucket;

/// `--rule` as it is written.
#[derive(Clone, Debug)]
pub struct RuleFlag {
    prefix: String,
    /// `HTTPRoute/NAMESPACE/NAME/rules/RULE`, as a path of entail goes on below `routes/`.
    rule: String,
    backend: Authority,
}

/// A rule of a route.
#[derive(Debug)]
pub struct Rule {
    prefix: String,
    /// The name of its path, by which entail knows it. It is put together once.
    pub path: String,
    backend: Authority,
    /// What is left of its rate limit. Prefixes of one rule share it.
    pub bucket: Arc<Bucket>,
}

/// The rules, those with the longest prefixes first.
#[derive(Debug)]
pub struct Table(Vec<Rule>);

impl RuleFlag {
    pub const FORM: &str = "PREFIX=HTTPRoute/NAMESPACE/NAME/rules/RULE@URL";
}

impl FromStr for RuleFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}; write {}", Self::FORM);
        let (prefix, rest) = text
            .split_once('=')
            .ok_or_else(|| wrong("`=` is missing"))?;
        let (rule, url) = rest
            .split_once('@')
            .ok_or_else(|| wrong("`@` is missing"))?;
        if !prefix.starts_with('/') {
            return Err(wrong("the prefix does not begin with `/`"));
        }
        let url: Uri = url.parse().map_err(|_| wrong("the URL cannot be read"))?;
        let backend = url
            .authority()
            .filter(|_| url.scheme() == Some(&Scheme::HTTP));
        let backend = backend.ok_or_else(|| wrong("the URL does not begin with `http://HOST`"))?;
        Ok(Self {
            prefix: prefix.trim_end_matches('/').to_owned(),
            rule: rule.to_owned(),
            backend: backend.clone(),
        })
    }
}

impl Table {
    /// The table of a listener.
    ///
    /// # Errors
    /// A rule has a name that no path can have.
    pub fn new(listener_path: &str, flags: Vec<RuleFlag>) -> Result<Self, String> {
        let mut rules: Vec<Rule> = Vec::with_capacity(flags.len());
        for flag in flags {
            let path = format!("{listener_path}/routes/{}", flag.rule);
            // Better told now than with each request.
            let name = PathName::parse(&path).map_err(|error| format!("`{path}`: {error}"))?;
            if name.level() != Level::RouteRule {
                return Err(format!("`{path}` is the path of no rule of a route"));
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

    /// The rule that a request takes.
    pub fn find(&self, path: &str) -> Option<&Rule> {
        self.0.iter().find(|rule| {
            let below = path.strip_prefix(rule.prefix.as_str());
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        })
    }
}

impl Rule {
    /// Where a request for a target goes.
    pub fn backend_uri(&self, target: &Uri) -> Result<Uri, hyper::http::Error> {
        let any = PathAndQuery::from_static("/");
        Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.backend.clone())
            .path_and_query(target.path_and_query().cloned().unwrap_or(any))
            .build()
    }
}

/// Whether everybody reads a path alike. Where a backend takes `/cart/%2e%2e/cart/pay` or
/// `//cart/pay` for `/cart/pay`, it would be reached past the rule, and the limit, of `/cart/pay`.
pub fn is_plain(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let odd = ["//", "\\", "%2f", "%5c", "%2e"];
    let is_step = |step: &str| step == "." || step == "..";
    path.starts_with('/')
        && !odd.iter().any(|odd| lower.contains(odd))
        && !path.split('/').any(is_step)
}
