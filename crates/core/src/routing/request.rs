//! A request, as matches see it: read once, and refused where it could be read in two ways.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::Str;

/// Most bytes of a host (RFC 1035 §2.3.4) and of a path.
const MAX_HOST: usize = 253;
const MAX_PATH: usize = 8 * 1024;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// What it speaks.
    pub protocol: Protocol,
    /// Host: lower case, without port and trailing dot; empty if it names none.
    pub host: String,
    /// Path, without query; for gRPC `/service/method`.
    pub path: String,
    /// Method of HTTP.
    pub method: String,
    /// Headers: names in lower case; values of one name in one, separated by commas.
    headers: BTreeMap<String, String>,
    /// Query parameters, decoded; of one name the first.
    query: BTreeMap<String, String>,
}

/// What a request speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP.
    #[default]
    Http,
    /// gRPC.
    Grpc,
    /// TLS that is passed on by its server name.
    Tls,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Where a request comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryPoint {
    /// A Gateway, by namespace and name; all if none is named.
    Gateway {
        /// The Gateway.
        gateway: Option<(Str, Str)>,
        /// A ListenerSet of it, by namespace and name.
        set: Option<(Str, Str)>,
        /// A listener, of the ListenerSet if one is named.
        listener: Option<Str>,
        /// The port of the listener.
        port: Option<u16>,
    },
    /// A Service in the mesh.
    Service {
        /// Its namespace and name.
        service: (Str, Str),
        /// Its port.
        port: Option<u16>,
        /// The namespace of the client.
        client: Str,
    },
}

/// Why a request matches nothing whatever routes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRequest {
    /// The host is none.
    Host(String),
    /// The path is none.
    Path(String),
    /// Proxies do not agree on what the path is.
    AmbiguousPath(String),
}

/// The parts of a request, as they were sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts<'a> {
    /// What it speaks.
    pub protocol: Protocol,
    /// `Host`, or `:authority`; for TLS the server name.
    pub host: &'a str,
    /// Method of HTTP; GET if empty.
    pub method: &'a str,
    /// Path with its query; `/` if empty.
    pub path: &'a str,
    /// Headers in their order.
    pub headers: &'a [(String, String)],
    /// Whether query parameters are compared as they are written, and not decoded.
    pub raw_query: bool,
}

impl Request {
    /// Reads the parts of a request.
    ///
    /// # Errors
    /// The request is malformed, or its path could be read in two ways.
    pub fn read(parts: &RequestParts<'_>) -> Result<Self, BadRequest> {
        let (path, query) = match parts.path.split_once('?') {
            Some((path, query)) => (path, query),
            None => (parts.path, ""),
        };
        // An empty path is `/` (RFC 9110 §4.2.3).
        let path = if path.is_empty() { "/" } else { path };
        let speaks_http = matches!(parts.protocol, Protocol::Http | Protocol::Grpc);
        if speaks_http {
            check_path(path)?;
        }
        let method = match (parts.method, parts.protocol) {
            ("", Protocol::Grpc) => "POST",
            ("", _) => "GET",
            (method, _) => method,
        };
        Ok(Self {
            protocol: parts.protocol,
            host: host(parts.host)?,
            path: path.to_owned(),
            method: method.to_owned(),
            headers: joined(parts.headers),
            query: parameters(query, parts.raw_query),
        })
    }

    /// A gRPC call as the HTTP request that it is, with the method that it was sent with.
    #[must_use]
    pub fn as_http(&self) -> Self {
        Self {
            protocol: Protocol::Http,
            ..self.clone()
        }
    }

    /// The value of a header, its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// The service and the method of a gRPC call.
    pub fn call(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix('/')?.split_once('/')
    }
}

/// A host in the form that hostnames are compared in (RFC 9110 §4.2.3, RFC 3986 §3.2.2): without
/// its port, in lower case, without the dot of the root.
fn host(text: &str) -> Result<String, BadRequest> {
    let wrong = || BadRequest::Host(shortened(text));
    if text.len() > MAX_HOST + ":65535.".len() {
        return Err(wrong());
    }
    let name = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or_else(wrong)?;
            if !port.is_empty() && !is_port(port.strip_prefix(':').ok_or_else(wrong)?) {
                return Err(wrong());
            }
            address
        }
        None => match text.split_once(':') {
            Some((name, port)) if is_port(port) => name,
            Some(_) => return Err(wrong()),
            None => text,
        },
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':'));
    if name.contains(is_odd) || (!name.is_empty() && name.split('.').any(str::is_empty)) {
        return Err(wrong());
    }
    Ok(name.to_ascii_lowercase())
}

fn is_port(text: &str) -> bool {
    text.is_empty() || (text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok())
}

/// Refuses what proxies read in different ways: `..` and `.` steps, empty ones, and slashes or dots
/// that are encoded.
fn check_path(path: &str) -> Result<(), BadRequest> {
    if !path.starts_with('/')
        || path.contains(|c: char| c.is_ascii_control() || c == ' ' || c == '#')
    {
        return Err(BadRequest::Path(shortened(path)));
    }
    if path.len() > MAX_PATH {
        return Err(BadRequest::Path(shortened(path)));
    }
    let lower = path.to_ascii_lowercase();
    let encoded = ["%2f", "%5c", "%2e", "%00", "%25", "\\", "//"];
    let is_step = |step: &str| matches!(step, "." | "..");
    if encoded.iter().any(|text| lower.contains(text)) || path.split('/').any(is_step) {
        return Err(BadRequest::AmbiguousPath(shortened(path)));
    }
    Ok(())
}

/// What is repeated of a text from outside.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Values of one name are one, in their order (RFC 9110 §5.3).
fn joined(headers: &[(String, String)]) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let known = found.entry(name.to_ascii_lowercase());
        let known = known.and_modify(|known| {
            known.push(',');
            known.push_str(value);
        });
        known.or_insert_with(|| value.clone());
    }
    found
}

fn parameters(query: &str, is_raw: bool) -> BTreeMap<String, String> {
    let read = |text: &str| match is_raw {
        true => text.to_owned(),
        false => decoded(text),
    };
    let mut found = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let known = found.entry(read(name));
        known.or_insert_with(|| read(value));
    }
    found
}

/// Percent-decoded text; `+` is a space. What does not decode stays as it is.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|b| char::from(*b).to_digit(16));
        let (byte, skip) = match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => (u8::try_from(high << 4 | low).unwrap_or(b'?'), 2),
            (b'+', _, _) => (b' ', 0),
            (byte, _, _) => (*byte, 0),
        };
        out.push(byte);
        rest = after.get(skip..).unwrap_or_default();
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => write!(f, "`{host}` is no host"),
            Self::Path(path) => write!(
                f,
                "`{path}` is no path: one begins with `/` and has at most {MAX_PATH} bytes"
            ),
            Self::AmbiguousPath(path) => write!(
                f,
                "`{path}` is read differently by different proxies: normalize encoded slashes and \
                 dots, `.` and `..` steps and double slashes first"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_in_one_form() {
        for (text, name) in [
            ("Example.COM", "example.com"),
            ("example.com:8080", "example.com"),
            ("example.com:", "example.com"),
            ("example.com.", "example.com"),
            ("example.com.:80", "example.com"),
            ("[::1]:80", "::1"),
            ("10.0.0.1:1", "10.0.0.1"),
            ("", ""),
        ] {
            assert_eq!(host(text).as_deref(), Ok(name), "{text}");
        }
        for text in [
            "a b", "a/b", "a:b", "a:70000", "a..b", ".a", "[::1", "[::1]80", "u@a", "*.a",
        ] {
            assert!(host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_with_two_readings_are_refused() {
        for path in [
            "/a//b",
            "//",
            "/a/../b",
            "/a/.",
            "/..",
            "/a%2Fb",
            "/a%2fb",
            "/%2e%2e/b",
            "/a\\b",
            "/a%5cb",
            "/a%252fb",
            "/a%00",
        ] {
            let found = check_path(path);
            assert!(matches!(found, Err(BadRequest::AmbiguousPath(_))), "{path}");
        }
        for path in ["*", "a", "/a b", "/a#b", "/a\n"] {
            assert!(
                matches!(check_path(path), Err(BadRequest::Path(_))),
                "{path}"
            );
        }
        for path in [
            "/",
            "/a",
            "/a/",
            "/a.b/..c/.d",
            "/caf%C3%A9",
            "/a:b@c;d=e,f",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn headers_and_parameters() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [
            header("X-A", "1"),
            header("x-a", "2"),
            header(&"n".repeat(8192), "v"),
        ];
        let parts = RequestParts {
            path: "?a=1%202&a=3&b=x+y&c&%zz=%",
            headers: &headers,
            ..RequestParts::default()
        };
        let request = Request::read(&parts).unwrap();
        assert_eq!((&*request.path, &*request.method), ("/", "GET"));
        assert_eq!(request.header("x-a"), Some("1,2"));
        assert_eq!(request.header(&"n".repeat(8192)), Some("v"));
        assert_eq!(request.parameter("a"), Some("1 2"));
        assert_eq!(request.parameter("b"), Some("x y"));
        assert_eq!(request.parameter("c"), Some(""));
        assert_eq!(request.parameter("%zz"), Some("%"));
        assert_eq!(request.parameter("d"), None);
        let raw = RequestParts {
            raw_query: true,
            ..parts
        };
        assert_eq!(Request::read(&raw).unwrap().parameter("a"), Some("1%202"));
    }
}
