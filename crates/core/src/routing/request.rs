//! Normalized requests. Requests that are ambiguous or malformed are refused.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::Str;

/// Maximum length of a host in bytes (RFC 1035 §2.3.4).
const MAX_HOST: usize = 253;
/// Maximum length of a path in bytes.
const MAX_PATH: usize = 8 * 1024;

/// A normalized request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Protocol.
    pub protocol: Protocol,
    /// Host in lower case, without port and trailing dot; empty if the request has none.
    pub host: String,
    /// Path without query; for gRPC `/service/method`.
    pub path: String,
    /// Method of HTTP.
    pub method: String,
    /// Headers by name in lower case. Values of a repeated header are join_headers with commas.
    headers: BTreeMap<String, String>,
    /// Query parameters by name. The first value of a repeated parameter counts.
    query: BTreeMap<String, String>,
}

/// The protocol of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP.
    #[default]
    Http,
    /// gRPC.
    Grpc,
    /// TLS, routed by its server name.
    Tls,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Where a request enters the topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryPoint {
    /// At a Gateway, or at all Gateways.
    Gateway {
        /// Namespace and name of the Gateway; `None` for all.
        gateway: Option<(Str, Str)>,
        /// Namespace and name of a ListenerSet of the Gateway.
        set: Option<(Str, Str)>,
        /// Name of a listener: of the ListenerSet if `set` is given, else of the Gateway.
        listener: Option<Str>,
        /// The port of the listener.
        port: Option<u16>,
    },
    /// At a Service in the mesh.
    Service {
        /// Namespace and name of the Service.
        service: (Str, Str),
        /// Port of the Service.
        port: Option<u16>,
        /// Namespace of the client.
        client: Str,
    },
}

/// Why a request is refused regardless of the routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRequest {
    /// The host is malformed.
    Host(String),
    /// The path is malformed.
    Path(String),
    /// Different proxies interpret the path differently.
    AmbiguousPath(String),
}

/// The parts of a request, as the client sent them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts<'a> {
    /// Protocol.
    pub protocol: Protocol,
    /// `Host`, or `:authority`; for TLS the server name.
    pub host: &'a str,
    /// HTTP method; empty means GET, or POST for gRPC.
    pub method: &'a str,
    /// Path with query; empty means `/`.
    pub path: &'a str,
    /// Headers in the order of the request.
    pub headers: &'a [(String, String)],
    /// Whether to compare query parameters without decoding them.
    pub raw_query: bool,
}

impl Request {
    /// Normalizes the parts of a request.
    ///
    /// # Errors
    /// The host or path is malformed, or the path is ambiguous.
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
            headers: join_headers(parts.headers),
            query: parameters(query, parts.raw_query),
        })
    }

    /// Returns a gRPC call as a plain HTTP request, with the same method.
    #[must_use]
    pub fn as_http(&self) -> Self {
        Self {
            protocol: Protocol::Http,
            ..self.clone()
        }
    }

    /// Returns the value of a header. `name` must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// Returns the service and the method of a gRPC call.
    pub fn call(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix('/')?.split_once('/')
    }
}

/// Normalizes a host (RFC 9110 §4.2.3, RFC 3986 §3.2.2): lower case, without port and trailing dot.
fn host(text: &str) -> Result<String, BadRequest> {
    let error = || BadRequest::Host(shortened(text));
    if text.len() > MAX_HOST + ":65535.".len() {
        return Err(error());
    }
    let name = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or_else(error)?;
            if !port.is_empty() && !is_port(port.strip_prefix(':').ok_or_else(error)?) {
                return Err(error());
            }
            address
        }
        None => match text.split_once(':') {
            Some((name, port)) if is_port(port) => name,
            Some(_) => return Err(error()),
            None => text,
        },
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_invalid = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':'));
    if name.contains(is_invalid) || (!name.is_empty() && name.split('.').any(str::is_empty)) {
        return Err(error());
    }
    Ok(name.to_ascii_lowercase())
}

fn is_port(text: &str) -> bool {
    text.is_empty() || (text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok())
}

/// Refuses malformed paths, and paths that proxies interpret differently: with `..`, `.` or empty
/// segments, or with encoded slashes or dots.
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
    let is_dot_segment = |segment: &str| matches!(segment, "." | "..");
    if encoded.iter().any(|text| lower.contains(text)) || path.split('/').any(is_dot_segment) {
        return Err(BadRequest::AmbiguousPath(shortened(path)));
    }
    Ok(())
}

/// Shortens user input for use in a message.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Joins the values of repeated headers in their order (RFC 9110 §5.3).
fn join_headers(headers: &[(String, String)]) -> BTreeMap<String, String> {
    let mut result: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        result
            .entry(name.to_ascii_lowercase())
            .and_modify(|joined| {
                joined.push(',');
                joined.push_str(value);
            })
            .or_insert_with(|| value.clone());
    }
    result
}

fn parameters(query: &str, is_raw: bool) -> BTreeMap<String, String> {
    let read = |text: &str| match is_raw {
        true => text.to_owned(),
        false => decoded(text),
    };
    let mut result = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        result.entry(read(name)).or_insert_with(|| read(value));
    }
    result
}

/// Decodes a query parameter; `+` is a space. Returns malformed text unchanged.
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
            Self::Host(host) => write!(f, "`{host}` is not a valid host"),
            Self::Path(path) => write!(
                f,
                "`{path}` is not a valid path: a path begins with `/` and has at most {MAX_PATH} bytes"
            ),
            Self::AmbiguousPath(path) => write!(
                f,
                "`{path}` is ambiguous, because proxies interpret it differently: normalize encoded \
                slashes and dots, `.` and `..` segments and double slashes first"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_normalized() {
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
    fn ambiguous_paths_are_refused() {
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
            let result = check_path(path);
            assert!(
                matches!(result, Err(BadRequest::AmbiguousPath(_))),
                "{path}"
            );
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
    fn repeated_headers_are_joined_and_first_parameters_count() {
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
