//! Pages of findings. Findings are made in any order; a page keeps only those that belong to it.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use prost::Message;

use crate::api::v1;
use crate::insight::paths::{MAX_PAGE_BYTES, page_size, position, token_at};
use crate::insight::{Failure, Visibility};
use crate::snapshot::Snapshot;
use entail_core::model::ObjectKey;

/// A finding with the object whose visibility decides who sees it.
pub(super) struct ScopedFinding {
    /// The object that the finding is about; `None` if it summarizes several.
    pub object: Option<ObjectKey>,
    pub finding: v1::Finding,
}

/// Collects one page of the findings that a caller sees. Holds at most one page.
pub(super) struct FindingPage<'v> {
    visibility: &'v dyn Visibility,
    start: Start,
    size: usize,
    found: BTreeSet<SortedFinding>,
    bytes: usize,
    has_more: bool,
}

/// Where a page starts: after some findings about one object. The default is the first page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Start {
    severity: i32,
    location: String,
    object: String,
    /// The number of findings about the object that earlier pages have.
    skipped: usize,
}

/// A finding in the order of a reply.
#[derive(PartialEq)]
struct SortedFinding(v1::Finding);

impl<'v> FindingPage<'v> {
    /// Reads the page of a request.
    ///
    /// # Errors
    /// The page size or the token is malformed, or the token belongs to another snapshot.
    pub fn of(
        snapshot: &Snapshot,
        request: &v1::ListFindingsRequest,
        visibility: &'v dyn Visibility,
    ) -> Result<Self, Failure> {
        let start = match position(snapshot, &request.page_token)? {
            None => Start::default(),
            Some(text) => Start::read(text).ok_or_else(Failure::page_token)?,
        };
        Ok(Self {
            visibility,
            start,
            size: page_size(request.page_size)?,
            found: BTreeSet::new(),
            bytes: 0,
            has_more: false,
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
        let is_visible = match &scoped.object {
            Some(key) => self.sees(key),
            None => self.visibility.is_unrestricted(),
        };
        if !is_visible || self.start.is_after(&scoped.finding) {
            return;
        }
        let bytes = scoped.finding.encoded_len();
        if !self.found.insert(SortedFinding(scoped.finding)) {
            return;
        }
        self.bytes += bytes;
        let least = self.start.skipped.saturating_add(1);
        let most = self.start.skipped.saturating_add(self.size);
        while self.found.len() > most
            || (self.found.len() > least && self.bytes > 2 * MAX_PAGE_BYTES)
        {
            let Some(SortedFinding(last)) = self.found.pop_last() else {
                return;
            };
            self.bytes -= last.encoded_len();
            self.has_more = true;
        }
    }

    /// Returns the findings of the page and the token of the next one; empty after the last.
    pub fn finish(self, snapshot: &Snapshot) -> (Vec<v1::Finding>, String) {
        let mut left = self.found.into_iter().map(|SortedFinding(finding)| finding);
        let mut has_more = self.has_more;
        let mut next = self.start;
        let mut findings: Vec<v1::Finding> = Vec::new();
        let mut bytes = 0;
        let mut skip = next.skipped;
        for finding in left.by_ref() {
            if skip > 0 && next.is_about(&finding) {
                skip -= 1;
                continue;
            }
            skip = 0;
            bytes += finding.encoded_len();
            if !findings.is_empty() && bytes > MAX_PAGE_BYTES {
                has_more = true;
                break;
            }
            findings.push(finding);
        }
        for finding in &findings {
            if !next.is_about(finding) {
                next = Start {
                    severity: finding.severity,
                    location: finding.location.clone(),
                    object: finding.object.clone(),
                    skipped: 0,
                };
            }
            next.skipped += 1;
        }
        let token = match has_more && !findings.is_empty() {
            true => token_at(snapshot, &next.text()),
            false => String::new(),
        };
        (findings, token)
    }
}

impl Start {
    /// Whether the findings about the object of a finding come before the start.
    fn is_after(&self, finding: &v1::Finding) -> bool {
        let start = (self.severity, &self.location, &self.object);
        (finding.severity, &finding.location, &finding.object) < start
    }

    fn is_about(&self, finding: &v1::Finding) -> bool {
        let start = (self.severity, &self.location, &self.object);
        (finding.severity, &finding.location, &finding.object) == start
    }

    fn text(&self) -> String {
        let Self {
            severity,
            location,
            object,
            skipped,
        } = self;
        format!("{severity}.{skipped}.{}.{location}{object}", location.len())
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '.');
        let severity = parts.next()?.parse().ok()?;
        let skipped = parts.next()?.parse().ok()?;
        let length: usize = parts.next()?.parse().ok()?;
        let (location, object) = parts.next()?.split_at_checked(length)?;
        Some(Self {
            severity,
            skipped,
            location: location.to_owned(),
            object: object.to_owned(),
        })
    }
}

impl Eq for SortedFinding {}

impl PartialOrd for SortedFinding {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortedFinding {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.0, &other.0);
        let key = (a.severity, &a.location, &a.object, &a.reason, &a.message);
        key.cmp(&(b.severity, &b.location, &b.object, &b.reason, &b.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_page_is_read_from_its_token() {
        let start = Start {
            severity: 2,
            location: "a.yaml:3".to_owned(),
            object: "HTTPRoute/a/r.x".to_owned(),
            skipped: 7,
        };
        assert_eq!(Start::read(&start.text()), Some(start));
        for text in ["", "1", "1.2", "1.2.3.x", "a.2.0.", "1.2.1.\u{e4}"] {
            assert_eq!(Start::read(text), None, "{text}");
        }
    }
}
