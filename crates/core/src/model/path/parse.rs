//! The parser of path names.

use std::fmt;

use super::{
    BackendStep, ListenerSetStep, PathName, PathSyntaxError, Root, RouteStep, RuleStep, TrafficPath,
};

/// Maximum length of a path name in bytes. Valid Kubernetes names cannot form a longer path.
const MAX_LENGTH: usize = 8_192;
/// The largest number of rules on a path that delegate to a child Route (specification 1.8).
pub const MAX_DELEGATIONS: usize = 8;

/// The rules on a path that delegate, as the text of their steps:
/// `routes/{Kind}/{ns}/{name}/rules/{rule}`, at most eight times (specification 1.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DelegatingRules<'a>(&'a str);

/// Iterates over [`DelegatingRules`].
#[derive(Clone)]
struct DelegatingRulesIter<'a>(Option<PathParser<'a>>);

/// A cursor over the parts between slashes.
#[derive(Clone)]
struct PathParser<'a> {
    text: &'a str,
    at: usize,
    /// The part that begins at `at`; `None` past the end.
    next: Option<&'a str>,
}

impl<'a> DelegatingRules<'a> {
    /// Whether no rule on the path delegates.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each rule with its route, from the root down.
    pub fn iter(&self) -> impl Iterator<Item = (RouteStep<'a>, RuleStep<'a>)> + Clone + use<'a> {
        DelegatingRulesIter((!self.is_empty()).then(|| PathParser::new(self.0)))
    }
}

impl<'a> Iterator for DelegatingRulesIter<'a> {
    type Item = (RouteStep<'a>, RuleStep<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let parser = self.0.as_mut().filter(|parser| !parser.done())?;
        // The text is a part of a name that was parsed.
        parser.skip();
        let route = parser.route().ok()?;
        parser.skip();
        Some((route, parser.rule().ok()?))
    }
}

impl fmt::Display for DelegatingRules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_empty() {
            true => Ok(()),
            false => write!(f, "/{}", self.0),
        }
    }
}

impl<'a> PathName<'a> {
    /// Parses a path name without copying it.
    ///
    /// # Errors
    /// Returns the byte offset of the first part that is not expected there.
    pub fn parse(text: &'a str) -> Result<Self, PathSyntaxError> {
        if text.len() > MAX_LENGTH {
            return Err(PathSyntaxError {
                offset: MAX_LENGTH,
                message: "path name is longer than 8192 bytes",
            });
        }
        let mut parser = PathParser::new(text);
        let name = match parser.peek() {
            Some("gatewayclasses") => {
                parser.skip();
                PathName::GatewayClass(parser.name()?)
            }
            Some("namespaces") => {
                parser.skip();
                PathName::Namespace(parser.name()?)
            }
            Some("gateways") => PathName::Traffic(parser.gateway()?),
            Some("mesh") => PathName::Traffic(parser.mesh()?),
            _ => {
                return Err(
                    parser.error("expected `gateways`, `mesh`, `gatewayclasses` or `namespaces`")
                );
            }
        };
        if parser.done() {
            Ok(name)
        } else {
            Err(parser.error("unexpected part; levels cannot be skipped or repeated"))
        }
    }
}

impl<'a> PathParser<'a> {
    fn new(text: &'a str) -> Self {
        let mut parser = Self {
            text,
            at: 0,
            next: None,
        };
        parser.advance();
        parser
    }

    /// Finds the next part.
    fn advance(&mut self) {
        self.next = self.text.get(self.at..).and_then(|rest| {
            let slash = slash_in(rest.as_bytes());
            rest.get(..slash.unwrap_or(rest.len()))
        });
    }

    fn done(&self) -> bool {
        self.at > self.text.len()
    }

    fn error(&self, message: &'static str) -> PathSyntaxError {
        PathSyntaxError {
            offset: self.at.min(self.text.len()),
            message,
        }
    }

    fn peek(&self) -> Option<&'a str> {
        self.next
    }

    fn skip(&mut self) {
        // An offset past the end means that no part is left, not even an empty one.
        self.at += self.next.map_or(0, str::len) + 1;
        self.advance();
    }

    /// Consumes the next part if it equals `word`.
    fn keyword(&mut self, word: &str) -> bool {
        let matches = self.peek() == Some(word);
        if matches {
            self.skip();
        }
        matches
    }

    fn name(&mut self) -> Result<&'a str, PathSyntaxError> {
        match self.peek() {
            None => Err(self.error("path name ends too early")),
            Some("") => Err(self.error("empty part")),
            Some(part) => {
                self.skip();
                Ok(part)
            }
        }
    }

    fn port(&mut self) -> Result<u16, PathSyntaxError> {
        let start = self.at;
        let text = self.name()?;
        let number = text.parse::<u16>().ok().filter(|&n| n > 0);
        // Only the canonical spelling is valid, so that a path has one name.
        number
            .filter(|_| !text.starts_with(['0', '+']))
            .ok_or(PathSyntaxError {
                offset: start,
                message: "expected a port number from 1 to 65535",
            })
    }

    fn gateway(&mut self) -> Result<TrafficPath<'a>, PathSyntaxError> {
        self.skip();
        let root = Root::Gateway {
            namespace: self.name()?,
            name: self.name()?,
        };
        let listener_set = if self.keyword("listenersets") {
            Some(ListenerSetStep {
                namespace: self.name()?,
                name: self.name()?,
            })
        } else {
            None
        };
        let listener = if self.keyword("listeners") {
            Some(self.name()?)
        } else {
            None
        };
        let mut path = TrafficPath::root(root);
        path.listener_set = listener_set;
        path.listener = listener;
        if listener.is_some() {
            self.below_root(&mut path)?;
        }
        Ok(path)
    }

    fn mesh(&mut self) -> Result<TrafficPath<'a>, PathSyntaxError> {
        self.skip();
        let client = self.name()?;
        if !self.keyword("services") {
            return Err(self.error("expected `services`"));
        }
        let (namespace, name) = (self.name()?, self.name()?);
        let port = if self.keyword("ports") {
            Some(self.port()?)
        } else {
            None
        };
        let mut path = TrafficPath::root(Root::Mesh {
            client,
            namespace,
            name,
            port,
        });
        self.below_root(&mut path)?;
        Ok(path)
    }

    fn below_root(&mut self, path: &mut TrafficPath<'a>) -> Result<(), PathSyntaxError> {
        let first = self.at;
        if !self.keyword("routes") {
            return Ok(());
        }
        path.route = Some(self.route()?);
        if !self.keyword("rules") {
            return Ok(());
        }
        path.rule = Some(self.rule()?);
        for depth in 0.. {
            let next = self.at;
            if !self.keyword("routes") {
                break;
            }
            if depth == MAX_DELEGATIONS {
                return Err(PathSyntaxError {
                    offset: next,
                    message: "more than 8 rules delegate",
                });
            }
            let above = self.text.get(first..next.saturating_sub(1));
            path.delegating = DelegatingRules(above.unwrap_or_default());
            (path.route, path.rule) = (Some(self.route()?), None);
            if !self.keyword("rules") {
                return Ok(());
            }
            path.rule = Some(self.rule()?);
        }
        if !self.keyword("backends") {
            return Ok(());
        }
        path.backend = Some(BackendStep {
            kind: self.name()?,
            namespace: self.name()?,
            name: self.name()?,
        });
        if self.keyword("ports") {
            path.port = Some(self.port()?);
        }
        Ok(())
    }

    fn route(&mut self) -> Result<RouteStep<'a>, PathSyntaxError> {
        Ok(RouteStep {
            kind: self.name()?,
            namespace: self.name()?,
            name: self.name()?,
        })
    }

    fn rule(&mut self) -> Result<RuleStep<'a>, PathSyntaxError> {
        let start = self.at;
        let text = self.name()?;
        let Some(digits) = text.strip_prefix('#') else {
            return Ok(RuleStep::Name(text));
        };
        let canonical = digits == "0" || !digits.starts_with(['0', '+']);
        digits
            .parse()
            .ok()
            .filter(|_| canonical)
            .map(RuleStep::Index)
            .ok_or(PathSyntaxError {
                offset: start,
                message: "expected a rule index such as `#0`",
            })
    }
}

/// The position of the first slash. Parts are short: eight bytes at once are faster than a general search, and than one
/// after another.
fn slash_in(text: &[u8]) -> Option<usize> {
    const SLASHES: u64 = u64::from_le_bytes([b'/'; 8]);
    const LOW: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = LOW << 7;
    let (chunks, rest) = text.as_chunks();
    for (chunk, at) in chunks.iter().zip((0..).step_by(8)) {
        let zero_if_slash = u64::from_le_bytes(*chunk) ^ SLASHES;
        // The lowest bit that is set is in the first byte that is zero.
        let zeros = zero_if_slash.wrapping_sub(LOW) & !zero_if_slash & HIGH;
        if zeros != 0 {
            return Some(at + zeros.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|byte| *byte == b'/')?;
    Some(text.len() - rest.len() + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slash_is_found_wherever_it_is() {
        for before in [
            "",
            "a",
            "name",
            "0.\u{7f}\u{80}\u{10ffff}",
            "a-name-of-25-characters...",
        ] {
            for after in ["", "/", "0/", "/after-it", "after/it"] {
                let text = format!("{before}{after}");
                assert_eq!(slash_in(text.as_bytes()), text.find('/'), "{text}");
            }
        }
    }

    #[test]
    fn every_form_round_trips() {
        for text in [
            "gatewayclasses/example",
            "namespaces/ns",
            "gateways/ns/gw",
            "gateways/ns/gw/listenersets/ns/ls",
            "gateways/ns/gw/listenersets/ns/ls/listeners/x",
            "gateways/ns/gw/listeners/http/routes/HTTPRoute/ns/r/rules/#0",
            "gateways/ns/gw/listeners/http/routes/HTTPRoute/ns/r/rules/one/backends/Service/ns/s/ports/80",
            "mesh/*/services/ns/svc",
            "mesh/team/services/ns/svc/ports/80/routes/HTTPRoute/ns/r",
            "gateways/ns/gw/listeners/l/routes/HTTPRoute/ns/r/rules/#0/routes/HTTPRoute/b/c",
            "gateways/ns/gw/listeners/l/routes/HTTPRoute/ns/r/rules/#0/routes/HTTPRoute/b/c/rules/x/routes/G/b/d/rules/#1/backends/Service/ns/s",
        ] {
            assert_eq!(
                PathName::parse(text).map(|p| p.to_string()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn malformed_names_report_their_offset() {
        for (text, offset) in [
            ("", 0),
            ("/", 0),
            ("gateways", 9),
            ("gateways//gw", 9),
            ("gateways/ns/gw/", 15),
            ("gateways/ns/gw/routes/HTTPRoute/ns/r", 15),
            ("gateways/ns/gw/listeners/", 25),
            (
                "gateways/ns/gw/listeners/l/routes/HTTPRoute/ns/r/rules/#x",
                55,
            ),
            (
                "gateways/ns/gw/listeners/l/routes/HTTPRoute/ns/r/rules/#00",
                55,
            ),
            ("mesh/*/services/ns/svc/ports/080", 29),
            ("mesh/*/services/ns/svc/ports/70000", 29),
            ("namespaces/a/b", 13),
            ("pods/a", 0),
        ] {
            let parsed = PathName::parse(text).map_err(|e| e.offset.min(text.len()));
            assert_eq!(parsed, Err(offset.min(text.len())), "{text}");
        }
        assert!(PathName::parse(&"gateways/".repeat(1_200)).is_err());
    }

    #[test]
    fn rules_that_delegate_are_listed_up_to_a_depth() {
        let below = |times: usize| {
            let delegating = "/routes/HTTPRoute/a/b/rules/#0".repeat(times);
            format!("gateways/ns/gw/listeners/l{delegating}/routes/GRPCRoute/c/d")
        };
        let text = below(MAX_DELEGATIONS);
        let Ok(PathName::Traffic(path)) = PathName::parse(&text) else {
            panic!("{text}");
        };
        let rules: Vec<_> = path.delegating.iter().collect();
        assert_eq!(rules.len(), MAX_DELEGATIONS);
        assert!(
            rules
                .iter()
                .all(|(route, rule)| route.name == "b" && *rule == RuleStep::Index(0))
        );
        assert_eq!(path.route.map(|route| route.kind), Some("GRPCRoute"));
        assert_eq!(path.rule, None);
        let text = below(MAX_DELEGATIONS + 1);
        let error = PathName::parse(&text).unwrap_err();
        assert_eq!(error.message, "more than 8 rules delegate");
        assert_eq!(text.find("routes/GRPCRoute"), Some(error.offset));
    }
}
