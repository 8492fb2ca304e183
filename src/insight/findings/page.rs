//! Pages of findings. Findings are made in any order; a page joins those about one fact, and keeps only what belongs
//! to it.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;

use crate::api::v1;
use crate::insight::paths::{MAX_PAGE_BYTES, page_size, position, token_at};
use crate::insight::{Code, Failure, Visibility};
use crate::snapshot::Snapshot;
use entail_core::model::ObjectKey;
use v1::finding::Severity;

/// Number of places of a finding, unless the request has another.
const DEFAULT_PLACES: usize = 3;

/// Maximum number of places of a finding.
pub const MAX_PLACES: i32 = 1_000;

/// The size from which on no more places of a finding are kept: a page holds several findings.
const MAX_PLACE_BYTES: usize = 256 * 1024;

/// A finding at one place, with the object whose visibility decides who sees it.
pub(super) struct ScopedFinding {
    /// The object that the finding is about; `None` if it summarizes several.
    pub visible_with: Option<ObjectKey>,
    pub code: Code,
    pub severity: Severity,
    pub reason: String,
    pub location: String,
    pub object: String,
    pub message: String,
}

impl ScopedFinding {
    /// Creates a finding that summarizes several objects, with the severity of its code.
    pub fn new(code: Code, message: String) -> Self {
        Self {
            visible_with: None,
            code,
            severity: code.severity(),
            reason: code.reason().to_owned(),
            location: String::new(),
            object: String::new(),
            message,
        }
    }
}

/// Collects one page of the findings that a caller sees. Holds at most one page.
pub(super) struct FindingPage<'v> {
    visibility: &'v dyn Visibility,
    start: Option<Fact>,
    /// The first fact that is not on the page, if there are more than fit.
    end: Option<Fact>,
    size: usize,
    max_places: usize,
    found: BTreeMap<Fact, Places>,
    bytes: usize,
}

/// What a finding is about, in the order of a reply. A reply has one finding for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fact {
    severity: i32,
    location: String,
    object: String,
    code: Code,
    reason: String,
}

/// The places where a fact holds.
#[derive(Default)]
struct Places {
    count: u64,
    /// The first messages.
    messages: BTreeSet<String>,
}

impl<'v> FindingPage<'v> {
    /// Reads the page of a request.
    ///
    /// # Errors
    /// The page size, the number of places or the token is malformed, or the token belongs to another snapshot.
    pub fn of(
        snapshot: &Snapshot,
        request: &v1::ListFindingsRequest,
        visibility: &'v dyn Visibility,
    ) -> Result<Self, Failure> {
        let start = match position(snapshot, &request.page_token)? {
            None => None,
            Some(text) => Some(Fact::read(text).ok_or_else(Failure::page_token)?),
        };
        let max_places = match usize::try_from(request.max_places.min(MAX_PLACES)) {
            Ok(0) => DEFAULT_PLACES,
            Ok(most) => most,
            Err(_) => return Err(Failure::invalid("MaxPlaces", "max_places is negative")),
        };
        Ok(Self {
            visibility,
            start,
            end: None,
            size: page_size(request.page_size)?,
            max_places,
            found: BTreeMap::new(),
            bytes: 0,
        })
    }

    /// Whether the caller sees findings about an object.
    pub fn sees(&self, object: &ObjectKey) -> bool {
        self.visibility.includes_object(object)
    }

    /// What the caller sees.
    pub fn visibility(&self) -> &'v dyn Visibility {
        self.visibility
    }

    /// Adds a finding if the caller sees it and it belongs to the page.
    pub fn push(&mut self, scoped: ScopedFinding) {
        // Findings without an object summarize all objects.
        let is_visible = match &scoped.visible_with {
            Some(key) => self.sees(key),
            None => self.visibility.is_unrestricted(),
        };
        let fact = Fact {
            severity: scoped.severity.into(),
            location: scoped.location,
            object: scoped.object,
            code: scoped.code,
            reason: scoped.reason,
        };
        let is_before = self.start.as_ref().is_some_and(|start| fact <= *start);
        let is_after = self.end.as_ref().is_some_and(|end| fact >= *end);
        if !is_visible || is_before || is_after {
            return;
        }
        let own = fact.size();
        let places = self.found.entry(fact).or_insert_with(|| {
            self.bytes += own;
            Places::default()
        });
        let before = places.size();
        places.add(scoped.message, self.max_places);
        self.bytes = (self.bytes + places.size()).saturating_sub(before);
        while self.found.len() > self.size
            || (self.found.len() > 1 && self.bytes > 2 * MAX_PAGE_BYTES)
        {
            let Some((last, places)) = self.found.pop_last() else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(last.size() + places.size());
            // What is said of this fact from here on must not come back without what was said before.
            self.end = Some(last);
        }
    }

    /// Returns the findings of the page and the token of the next one; empty after the last.
    pub fn finish(self, snapshot: &Snapshot) -> (Vec<v1::Finding>, String) {
        let mut has_more = self.end.is_some();
        let mut findings: Vec<v1::Finding> = Vec::new();
        let mut last = None;
        let mut bytes = 0;
        for (fact, places) in self.found {
            let finding = fact.finding(places);
            bytes += finding.encoded_len();
            if !findings.is_empty() && bytes > MAX_PAGE_BYTES {
                has_more = true;
                break;
            }
            findings.push(finding);
            last = Some(fact);
        }
        let token = match last {
            Some(last) if has_more => token_at(snapshot, &last.text()),
            _ => String::new(),
        };
        (findings, token)
    }
}

impl Places {
    /// Adds a message; of more than `most`, only the first are kept.
    fn add(&mut self, message: String, most: usize) {
        if self.messages.insert(message) {
            self.count += 1;
        }
        while self.messages.len() > most
            || (self.messages.len() > 1 && self.size() > MAX_PLACE_BYTES)
        {
            self.messages.pop_last();
        }
    }

    fn size(&self) -> usize {
        self.messages.iter().map(String::len).sum()
    }
}

impl Fact {
    fn size(&self) -> usize {
        self.location.len() + self.object.len() + self.reason.len()
    }

    /// The finding about the fact at some places. The only place is the message of the finding.
    fn finding(&self, places: Places) -> v1::Finding {
        let Places { count, messages } = places;
        let mut messages: Vec<String> = messages.into_iter().collect();
        let message = match (count, messages.pop()) {
            (1, Some(message)) => message,
            (_, last) => {
                messages.extend(last);
                format!("{}, in {count} places", self.code.title())
            }
        };
        v1::Finding {
            severity: self.severity,
            reason: self.reason.clone(),
            location: self.location.clone(),
            object: self.object.clone(),
            message,
            code: self.code.id().to_owned(),
            count,
            places: messages,
        }
    }

    fn text(&self) -> String {
        let Self {
            severity,
            location,
            object,
            code,
            reason,
        } = self;
        let (id, at, of) = (code.id(), location.len(), object.len());
        format!("{severity}.{id}.{at}.{of}.{location}{object}{reason}")
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '.');
        let severity = parts.next()?.parse().ok()?;
        let id = parts.next()?;
        let at: usize = parts.next()?.parse().ok()?;
        let of: usize = parts.next()?.parse().ok()?;
        let (location, rest) = parts.next()?.split_at_checked(at)?;
        let (object, reason) = rest.split_at_checked(of)?;
        Some(Self {
            severity,
            location: location.to_owned(),
            object: object.to_owned(),
            code: Code::ALL.iter().copied().find(|code| code.id() == id)?,
            reason: reason.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact() -> Fact {
        Fact {
            severity: 2,
            location: "a.yaml:3".to_owned(),
            object: "HTTPRoute/a/r.x".to_owned(),
            code: Code::SilentLoss,
            reason: "SilentLoss".to_owned(),
        }
    }

    #[test]
    fn the_start_of_a_page_is_read_from_its_token() {
        assert_eq!(Fact::read(&fact().text()), Some(fact()));
        for text in [
            "",
            "1",
            "1.E032.2.3",
            "1.E032.9.0.x",
            "a.E032.0.0.",
            "2.E999.0.0.",
            "1.E032.1.0.\u{e4}",
        ] {
            assert_eq!(Fact::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_places_are_kept_and_all_are_counted() {
        let mut places = Places::default();
        for message in ["d", "b", "c", "b", "a"] {
            places.add(message.to_owned(), 3);
        }
        let finding = fact().finding(places);
        assert_eq!((finding.count, &*finding.code), (4, "E032"));
        assert_eq!(finding.places, ["a", "b", "c"]);
        assert!(finding.message.ends_with(", in 4 places"));
        let mut long = Places::default();
        for letter in ["a", "b", "c"] {
            long.add(letter.repeat(MAX_PLACE_BYTES / 2), 3);
        }
        assert_eq!((long.count, long.messages.len()), (3, 2));
        let mut only = Places::default();
        only.add("a".to_owned(), 3);
        let finding = fact().finding(only);
        assert_eq!((finding.count, &*finding.message), (1, "a"));
        assert_eq!(finding.places, Vec::<String>::new());
    }
}
