//! The file of `--envoy-config`.

use std::path::Path;

use super::document;
use crate::server::{EnvoyDialect, EnvoyDocument, EnvoySettings};

/// The built-in dialects, which a file can use by name.
const DIALECTS: &str = include_str!("dialects.yaml");

/// Reads the settings of the Envoy external authorization service.
///
/// # Errors
/// Returns all errors in the file, one message each.
pub fn read_envoy(path: &Path) -> Result<EnvoySettings, Vec<String>> {
    document::read(path, parse)
}

fn parse(text: &str) -> Result<EnvoySettings, Vec<String>> {
    let dialects: Vec<EnvoyDialect> = document::parse(DIALECTS)?;
    // A file without content is valid.
    let settings: Option<EnvoyDocument> = document::parse(text)?;
    settings.unwrap_or_default().check(&dialects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed() {
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
    fn invalid_settings_are_reported() {
        for (text, expected) in [
            ("kind: [A.x]", "kind"),
            (
                "headers: [{name: Host, kind: A.x, value: a}]",
                "cannot be set",
            ),
            (
                "headers: [{name: 'x y', kind: A.x, value: a}]",
                "cannot be set",
            ),
            (
                "headers: [{name: x-a, kind: A.x, value: '.a'}]",
                "not a field",
            ),
            (
                "deny: [{name: a, when: 'x ==', status: 403}]",
                "does not parse",
            ),
            (
                "deny: [{name: a, when: 'true', status: 200}]",
                "not a status for a denial",
            ),
            ("dialects: [linkerd]", "not one of envoy-gateway, istio"),
            ("dialects: [{name: own, routeName: '('}]", "own"),
            ("dialects: [{name: own, routeName: 'a'}]", "needs groups"),
            ("dialects: [{name: own}]", "needs `metadata` or `routeName`"),
            ("gateway: web", "namespace/name"),
            ("listener: http", "set `gateway`"),
            ("metadata: {key: ext_authz_duration}", "cannot be used"),
            ("failOpen: [Whatever]", "Whatever"),
            (
                "grpcMetadata: {route: 'a b'}",
                "not a name of gRPC metadata",
            ),
        ] {
            let errors = parse(text).map(drop).unwrap_err().join("\n");
            assert!(errors.contains(expected), "{text}: {errors}");
        }
    }
}
