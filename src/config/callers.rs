//! The file of `--callers`.

use std::path::Path;

use super::document;
use crate::server::{AccessRule, AccessRulesDocument};

/// Reads the access rules.
///
/// # Errors
/// Returns all errors in the file, one message each.
pub fn read_callers(path: &Path) -> Result<Vec<AccessRule>, Vec<String>> {
    document::read(path, parse)
}

fn parse(text: &str) -> Result<Vec<AccessRule>, Vec<String>> {
    document::parse::<AccessRulesDocument>(text)?.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_rules_are_parsed() {
        let text = "
callers:
- names: [spiffe://cluster.local/ns/shop/sa/*, proxy.shop.svc]
  services: [policies, envoy]
  prefixes: [gateways/shop/web, mesh/*/services/shop/cart]
  kinds: [A.x]
  maxConcurrency: 100
- names: ['*.ops.example']
  services: [insight]
";
        assert_eq!(parse(text).unwrap().len(), 2);
    }

    #[test]
    fn invalid_rules_are_reported() {
        for (rule, expected) in [
            (
                "names: [a], services: [envoy], prefixes: []",
                "`prefixes` is empty",
            ),
            (
                "names: [a], services: [envoy], kinds: []",
                "`kinds` is empty",
            ),
            (
                "names: [], services: [envoy]",
                "`callers[0]`: `names` is empty",
            ),
            ("names: [a], services: []", "`services` is empty"),
            (
                "names: [a b], services: [envoy]",
                "not the name of a caller",
            ),
            ("names: [a], services: [health]", "health"),
            (
                "names: [a], services: [envoy], prefixes: [gateways/a]",
                "not a path name",
            ),
            (
                "names: [a], services: [envoy], kinds: ['']",
                "a kind is empty",
            ),
            (
                "names: [a], services: [envoy], maxConcurrency: 0",
                "`maxConcurrency` is 0",
            ),
            ("names: [a], services: [envoy], kind: [A.x]", "kind"),
            // Before, what was commented out below a name meant everything.
            ("names: [a], services: [envoy], prefixes: ", "has no value"),
            ("names: [a], services: [envoy], kinds: null", "has no value"),
            (
                "names: [a], services: [envoy], maxConcurrency: ~",
                "has no value",
            ),
        ] {
            let text = format!("callers: [{{{rule}}}]");
            let errors = parse(&text).map(drop).unwrap_err().join("\n");
            assert!(errors.contains(expected), "{text}: {errors}");
        }
        let nobody = parse("callers: []").map(drop).unwrap_err().join("\n");
        assert!(nobody.contains("no caller would be permitted"), "{nobody}");
        assert!(parse("").is_err());
    }
}
