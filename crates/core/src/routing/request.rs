//! Requests as a dialect reads them. Requests that are ambiguous or malformed are refused.

use std::collections::BTreeMap;
use std::fmt;

use super::dialect::{
    Authority, Dialect, GrpcMatches, QueryReading, Refusal, RepeatedHeaders, TrailingDot,
};
use crate::model::Str;

/// Maximum length of a host in bytes (RFC 1035 §2.3.4).
const MAX_HOST: usize = 253;
/// Maximum length of a path in bytes.
const MAX_PATH: usize = 8 * 1024;

/// A request as the proxies of a dialect read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Protocol.
    pub protocol: Protocol,
    /// Host in lower case, without port; empty if the request has none.
    pub host: String,
    /// Path without query; for gRPC `/service/method`.
    pub path: String,
    /// Path with query.
    pub target: String,
    /// Method of HTTP.
    pub method: String,
    /// The values to compare, by the name of their header in lower case.
    headers: BTreeMap<String, Vec<String>>,
    /// Query parameters by name. The first value of a repeated parameter counts.
    query: BTreeMap<String, String>,
    /// Why the proxy refuses the request before it looks for a rule.
    pub refusal: Option<Refusal>,
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
    /// Whether to compare query parameters without decoding them, in any dialect.
    pub raw_query: bool,
    /// Whether the proxy has accepted the request, and the path is the one that it matches.
    pub is_normalized: bool,
}

impl Request {
    /// Reads the parts of a request (specification 12.3, 12.4, 12.11, 12.12).
    ///
    /// # Errors
    /// The host or path is malformed, or the path is ambiguous.
    pub fn read(parts: &RequestParts<'_>, dialect: &Dialect) -> Result<Self, BadRequest> {
        let (path, query) = match parts.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (parts.path, None),
        };
        // An empty path is `/` (RFC 9110 §4.2.3).
        let mut path = match path {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        let speaks_http = matches!(parts.protocol, Protocol::Http | Protocol::Grpc);
        if speaks_http {
            check_path(&path, parts.is_normalized)?;
            if !parts.is_normalized {
                path = decode_unreserved(&path);
            }
        }
        let method = match (parts.method, parts.protocol) {
            ("", Protocol::Grpc) => "POST",
            ("", _) => "GET",
            (method, _) => method,
        };
        let is_raw = parts.raw_query || dialect.query == QueryReading::Raw;
        let mut target = path.clone();
        if let Some(query) = query {
            target.push('?');
            target.push_str(query);
        }
        Ok(Self {
            protocol: match (parts.protocol, dialect.grpc_matches) {
                (Protocol::Grpc, GrpcMatches::Paths) => Protocol::Http,
                (protocol, _) => protocol,
            },
            host: host(parts.host, dialect)?,
            path,
            target,
            method: method.to_owned(),
            headers: collect_headers(parts.headers, dialect.repeated_headers),
            query: parameters(query.unwrap_or_default(), is_raw),
            refusal: dialect.refusal(parts).filter(|_| speaks_http),
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

    /// Returns the values that a condition on a header is compared with. `name` must be in lower case.
    pub fn header(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.headers.get(name).into_iter().flatten();
        values.map(String::as_str)
    }

    /// Returns the value of a query parameter, if it has one.
    pub fn parameter(&self, name: &str) -> impl Iterator<Item = &str> {
        self.query.get(name).map(String::as_str).into_iter()
    }

    /// Returns the service and the method of a gRPC call.
    pub fn call(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix('/')?.split_once('/')
    }
}

/// Reads a host (RFC 9110 §4.2.3, RFC 3986 §3.2.2): in lower case and without port.
fn host(text: &str, dialect: &Dialect) -> Result<String, BadRequest> {
    if text.len() > MAX_HOST + ":65535.".len() {
        return Err(BadRequest::Host(shortened(text)));
    }
    let name = match dialect.authority {
        Authority::Strict => strict_host(text),
        Authority::Lenient => lenient_host(text),
    };
    let name = name.ok_or_else(|| BadRequest::Host(shortened(text)))?;
    let name = match dialect.trailing_dot {
        TrailingDot::Removed => name.strip_suffix('.').unwrap_or(name),
        TrailingDot::Kept => name,
    };
    Ok(name.to_ascii_lowercase())
}

/// Returns the name or address of an authority, with its trailing dot; `None` if it is malformed.
fn strict_host(text: &str) -> Option<&str> {
    let name = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            if !port.is_empty() && !is_port(port.strip_prefix(':')?) {
                return None;
            }
            address
        }
        None => match text.split_once(':') {
            Some((name, port)) if is_port(port) => name,
            Some(_) => return None,
            None => text,
        },
    };
    let without_dot = name.strip_suffix('.').unwrap_or(name);
    let is_invalid = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':'));
    let has_empty_label = !without_dot.is_empty() && without_dot.split('.').any(str::is_empty);
    (!without_dot.contains(is_invalid) && !has_empty_label).then_some(name)
}

/// Returns what is before the last colon that is not part of an address; `None` if the text has characters that no
/// authority has.
fn lenient_host(text: &str) -> Option<&str> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@[]%".contains(c);
    if !text.chars().all(is_valid) {
        return None;
    }
    match (text.rfind(':'), text.rfind(']')) {
        (Some(colon), end) if end.is_none_or(|end| end < colon) => text.get(..colon),
        _ => Some(text),
    }
}

fn is_port(text: &str) -> bool {
    text.is_empty() || (text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok())
}

/// Refuses malformed paths, and paths that proxies interpret differently: with `..`, `.` or empty segments, or with
/// encoded slashes, dots, percent signs or zeros. In a path that the proxy normalized, empty segments and encoded
/// percent signs have one meaning.
fn check_path(path: &str, is_normalized: bool) -> Result<(), BadRequest> {
    if !path.starts_with('/')
        || path.contains(|c: char| c.is_ascii_control() || c == ' ' || c == '#')
    {
        return Err(BadRequest::Path(shortened(path)));
    }
    if path.len() > MAX_PATH {
        return Err(BadRequest::Path(shortened(path)));
    }
    let lower = path.to_ascii_lowercase();
    let always = ["%2f", "%5c", "%2e", "%00", "\\"];
    let unless_normalized = ["%25", "//"];
    let unless_normalized = unless_normalized.iter().filter(|_| !is_normalized);
    let mut texts = always.iter().chain(unless_normalized);
    let is_dot_segment = |segment: &str| matches!(segment, "." | "..");
    if texts.any(|text| lower.contains(text)) || path.split('/').any(is_dot_segment) {
        return Err(BadRequest::AmbiguousPath(shortened(path)));
    }
    Ok(())
}

/// Decodes the unreserved characters of a path, as proxies do before they match it (RFC 3986 §6.2.2.2).
fn decode_unreserved(path: &str) -> String {
    let is_unreserved =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let mut out = String::with_capacity(path.len());
    let mut pieces = path.split('%');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let byte = piece
            .get(..2)
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = byte.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte.filter(|byte| is_unreserved(*byte)), piece.get(2..)) {
            (Some(byte), Some(rest)) => {
                out.push(char::from(byte));
                out.push_str(rest);
            }
            _ => {
                out.push('%');
                out.push_str(piece);
            }
        }
    }
    out
}

/// Shortens user input for use in a message.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Collects the values of headers in their order, joined or each on its own (RFC 9110 §5.3).
fn collect_headers(
    headers: &[(String, String)],
    repeated: RepeatedHeaders,
) -> BTreeMap<String, Vec<String>> {
    let mut result: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let values = result.entry(name.to_ascii_lowercase()).or_default();
        match (values.last_mut(), repeated) {
            (Some(joined), RepeatedHeaders::Joined) => {
                joined.push(',');
                joined.push_str(value);
            }
            _ => values.push(value.clone()),
        }
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
                slashes and dots, `.` and `..` segments and double slashes first, as your proxy does"
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
            assert_eq!(
                host(text, Dialect::specification()).as_deref(),
                Ok(name),
                "{text}"
            );
        }
        for text in [
            "a b", "a/b", "a:b", "a:70000", "a..b", ".a", "[::1", "[::1]80", "u@a", "*.a",
        ] {
            assert!(host(text, Dialect::specification()).is_err(), "{text}");
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
            let result = check_path(path, false);
            assert!(
                matches!(result, Err(BadRequest::AmbiguousPath(_))),
                "{path}"
            );
        }
        for path in ["*", "a", "/a b", "/a#b", "/a\n"] {
            assert!(
                matches!(check_path(path, false), Err(BadRequest::Path(_))),
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
            assert_eq!(check_path(path, false), Ok(()), "{path}");
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
        let read =
            |parts: &RequestParts<'_>| Request::read(parts, Dialect::specification()).unwrap();
        let request = read(&parts);
        assert_eq!((&*request.path, &*request.method), ("/", "GET"));
        assert_eq!(request.header("x-a").next(), Some("1,2"));
        assert_eq!(request.header(&"n".repeat(8192)).next(), Some("v"));
        assert_eq!(request.parameter("a").next(), Some("1 2"));
        assert_eq!(request.parameter("b").next(), Some("x y"));
        assert_eq!(request.parameter("c").next(), Some(""));
        assert_eq!(request.parameter("%zz").next(), Some("%"));
        assert_eq!(request.parameter("d").next(), None);
        let raw = RequestParts {
            raw_query: true,
            ..parts
        };
        assert_eq!(read(&raw).parameter("a").next(), Some("1%202"));
    }
    #[test]
    fn a_lenient_host_ends_at_its_last_colon() {
        let dialect = Dialect {
            authority: Authority::Lenient,
            trailing_dot: TrailingDot::Kept,
            ..Dialect::default()
        };
        for (text, name) in [
            ("A.test:99999", "a.test"),
            ("a.test:http", "a.test"),
            ("a.test.", "a.test."),
            ("a.test,b.test", "a.test,b.test"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("a..b", "a..b"),
        ] {
            assert_eq!(host(text, &dialect).as_deref(), Ok(name), "{text}");
        }
        assert!(host("a b", &dialect).is_err());
    }

    #[test]
    fn unreserved_characters_are_decoded() {
        for (path, decoded) in [
            ("/%61", "/a"),
            ("/%7e%2D%5f%30", "/~-_0"),
            ("/caf%C3%A9%20%3f", "/caf%C3%A9%20%3f"),
            ("/%", "/%"),
            ("/%6", "/%6"),
            ("/%zz%+1", "/%zz%+1"),
            ("/%6é", "/%6é"),
        ] {
            assert_eq!(decode_unreserved(path), decoded, "{path}");
        }
    }

    #[test]
    fn a_normalized_path_is_taken_as_it_is() {
        let read = |path, is_normalized| {
            let parts = RequestParts {
                path,
                is_normalized,
                ..RequestParts::default()
            };
            Request::read(&parts, Dialect::specification()).map(|request| request.path)
        };
        for path in ["/a%25b", "/a//b"] {
            assert!(
                matches!(read(path, false), Err(BadRequest::AmbiguousPath(_))),
                "{path}"
            );
            assert_eq!(read(path, true).as_deref(), Ok(path));
        }
        assert_eq!(read("/%61", true).as_deref(), Ok("/%61"));
        for path in ["/a%2fb", "/a/../b", "/%2e"] {
            assert!(
                matches!(read(path, true), Err(BadRequest::AmbiguousPath(_))),
                "{path}"
            );
        }
    }
}
