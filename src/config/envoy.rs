//! The file of `--envoy-config`.

use std::path::Path;

use super::document;
use crate::server::{EnvoyDialect, EnvoyDocument, EnvoySettings};

/// How data planes name rules, where they need no definition.
const DIALECTS: &str = include_str!("dialects.yaml");

/// Reads what Envoy is told.
///
/// # Errors
/// The file cannot be read, or what is wrong in it: one sentence each.
pub fn read_envoy(path: &Path) -> Result<EnvoySettings, Vec<String>> {
    document::read(path, parse)
}

fn parse(text: &str) -> Result<EnvoySettings, Vec<String>> {
    let known: Vec<EnvoyDialect> = document::parse(DIALECTS)?;
    // A file of comments alone says nothing, and that is fine.
    let settings: Option<EnvoyDocument> = document::parse(text)?;
    settings.unwrap_or_default().check(&known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        for text in [
            "",
            "# nothing",
            "match: true",
            "kinds: [A.x]\ndialects: [istio, envoy-gateway]\nfailOpen: [Incomplete, NotFound]",
            "headers: [{name: x-a, kind: A.x, value: retry.attempts}]",
            "deny: [{name: closed, when: 'policies[\"A.x\"].closed', status: 503, body: later}]",
            "dialects: [{name: own, routeName: '(?<namespace>[^:]+):(?<name>[^:]+)'}]",
            "gateway: shop/web\nlistener: http\nmetadata: {key: policies, maxBytes: 1024}",
        ] {
            assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, told) in [
            ("kind: [A.x]", "kind"),
            (
                "headers: [{name: Host, kind: A.x, value: a}]",
                "cannot be set",
            ),
            (
                "headers: [{name: 'x y', kind: A.x, value: a}]",
                "cannot be set",
            ),
            ("headers: [{name: x-a, kind: A.x, value: '.a'}]", "no field"),
            (
                "deny: [{name: a, when: 'x ==', status: 403}]",
                "does not parse",
            ),
            (
                "deny: [{name: a, when: 'true', status: 200}]",
                "no status of a denial",
            ),
            ("dialects: [linkerd]", "none of envoy-gateway, istio"),
            ("dialects: [{name: own, routeName: '('}]", "own"),
            ("dialects: [{name: own, routeName: 'a'}]", "needs groups"),
            ("dialects: [{name: own}]", "needs `metadata` or `routeName`"),
            ("gateway: web", "namespace/name"),
            ("listener: http", "set `gateway`"),
            ("metadata: {key: ext_authz_duration}", "cannot be used"),
            ("failOpen: [Whatever]", "Whatever"),
            ("grpcMetadata: {route: 'a b'}", "no name of gRPC metadata"),
        ] {
            let wrong = parse(text).map(drop).unwrap_err().join("\n");
            assert!(wrong.contains(told), "{text}: {wrong}");
        }
    }
}
