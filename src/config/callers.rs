//! The file of `--callers`.

use std::path::Path;

use super::document;
use crate::server::{AccessRule, AccessRulesDocument};

/// Reads who may ask what.
///
/// # Errors
/// The file cannot be read, or what is wrong in it: one sentence each.
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
    fn rows_are_read() {
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
    fn what_is_wrong_is_said() {
        for (row, told) in [
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
            ("names: [a b], services: [envoy]", "no name of a caller"),
            ("names: [a], services: [health]", "health"),
            (
                "names: [a], services: [envoy], prefixes: [gateways/a]",
                "no path name",
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
        ] {
            let text = format!("callers: [{{{row}}}]");
            let wrong = parse(&text).map(drop).unwrap_err().join("\n");
            assert!(wrong.contains(told), "{text}: {wrong}");
        }
        let nobody = parse("callers: []").map(drop).unwrap_err().join("\n");
        assert!(nobody.contains("nobody could ask"), "{nobody}");
        assert!(parse("").is_err());
    }
}
