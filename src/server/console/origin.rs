//! Which requests are of the page itself: those that the browser sent for another site are refused.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, header};

use super::value;

/// Checks that the name in `Host` is a loopback address or `localhost`: a name of somebody else that resolves to this
/// machine would make its page the same origin.
///
/// # Errors
/// It is another name. The message says what to do.
pub(super) fn check_host(headers: &HeaderMap) -> Result<(), &'static str> {
    let host = value(headers, header::HOST).unwrap_or_default();
    let is_one = headers.get_all(header::HOST).iter().count() == 1;
    match is_one && is_loopback(host) {
        true => Ok(()),
        false => Err("open the console as localhost or 127.0.0.1"),
    }
}

/// Checks that the page itself sent a request: browsers set `Origin` and `Sec-Fetch-Site`, and pages cannot.
///
/// # Errors
/// The request is of another site. The message says so.
pub(super) fn check_site(headers: &HeaderMap) -> Result<(), &'static str> {
    const OTHER: &str = "the request is of another site";
    // Of several values, each must be the own one.
    let all = |name: HeaderName, is_own: &dyn Fn(&str) -> bool| {
        let mut values = headers.get_all(name).iter();
        values.all(|value| value.to_str().is_ok_and(is_own))
    };
    let site = HeaderName::from_static("sec-fetch-site");
    let host = value(headers, header::HOST);
    let is_own = all(site, &|site| matches!(site, "same-origin" | "none"))
        && all(header::ORIGIN, &|origin| {
            origin.strip_prefix("http://") == host
        });
    match is_own {
        true => Ok(()),
        false => Err(OTHER),
    }
}

/// Whether a host with or without a port is this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let address = address.parse::<IpAddr>();
    address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn checked(headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(name, value);
        }
        let headers = all;
        check_host(&headers)
            .and_then(|()| check_site(&headers))
            .is_ok()
    }

    #[test]
    fn hosts_are_loopback() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:50052",
            "127.9.9.9",
            "[::1]:1",
        ] {
            assert!(checked(&[("host", host)]), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "10.0.0.1:80",
            "[::2]",
            "::1.evil",
        ] {
            assert!(!checked(&[("host", host)]), "{host}");
        }
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let host = ("host", "localhost:8080");
        assert!(checked(&[host, ("origin", "http://localhost:8080")]));
        assert!(checked(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(checked(&[host, ("sec-fetch-site", "none")]));
        for (name, other) in [
            ("origin", "http://localhost:9090"),
            ("origin", "https://localhost:8080"),
            ("origin", "null"),
            ("origin", "http://example.com"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("host", "localhost:8080"),
            ("host", "example.com"),
        ] {
            assert!(!checked(&[host, (name, other)]), "{name}: {other}");
        }
        let both = ["http://localhost:8080", "http://example.com"];
        let both = both.map(|origin| ("origin", origin));
        assert!(!checked(&[host, both[0], both[1]]));
        assert!(!checked(&[host, both[1], both[0]]));
    }
}
