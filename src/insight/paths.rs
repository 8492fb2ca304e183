//! Lists paths in pages.

use super::absent::object_failure;
use super::failure::{MAX_NAMED, shortened};
use super::lookup::incomplete_kinds;
use super::subject::SubjectNodes;
use super::visible::{Visible, prepare};
use super::{Failure, FailureCode, QuerySubject, Visibility};
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::engine::PathEngine;
use entail_core::model::{Level, PathName};
use entail_core::topology::{ListedPath, PathVisitor, TrieNodeId, WalkControl};

/// Page size of requests without one.
const DEFAULT_PAGE: usize = 1_000;
/// Maximum page size.
const MAX_PAGE: usize = 10_000;
/// Number of bytes after which a page ends: many clients accept 4 MiB. A page has at least one entry.
pub(super) const MAX_PAGE_BYTES: usize = 2 * 1024 * 1024;

/// Lists paths in the order of the trie.
///
/// # Errors
/// The name is malformed or on no path, the request names too many levels or one that does not exist, or the page token
/// belongs to another snapshot.
pub fn list_paths(
    snapshot: &Snapshot,
    request: &v1::ListPathsRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ListPathsResponse, Failure> {
    let engine = snapshot.engine();
    check_levels(&request.levels)?;
    let subject = QuerySubject::read(&request.name, snapshot.world(), visibility)?;
    let page = page(snapshot, request.page_size, &request.page_token)?;
    let first = page.first;
    let subject_nodes = subject.nodes(engine);
    let mut lister = PageLister {
        counts: Counts::of(engine, &subject_nodes, &request.levels),
        levels: &request.levels,
        visible: Visible::new(engine, visibility),
        first,
        room: page.room(),
        listed: 0,
        paths: Vec::new(),
        more: false,
    };
    if subject == QuerySubject::All && !visibility.is_unrestricted() {
        prepare(engine, visibility);
    }
    let walked = match &subject {
        QuerySubject::Path(name) => {
            let starts = engine.trie().starts(name);
            let mut starts = starts.iter();
            starts.try_for_each(|start| {
                let step = |through, _| Ok(through);
                engine.visit(Some(start), true, step, &mut lister)
            })
        }
        QuerySubject::All | QuerySubject::Object(..) => {
            let step = |through, id| Ok(through || subject_nodes.includes(engine, id));
            engine.visit(None, false, step, &mut lister)
        }
    };
    visibility.budget().check()?;
    match walked {
        Err(error) => engine.fail(error),
        Ok(()) if lister.listed == 0 && subject != QuerySubject::All => {
            // Whether it has paths of other levels.
            let any = v1::ListPathsRequest {
                name: request.name.clone(),
                page_size: 1,
                ..v1::ListPathsRequest::default()
            };
            if request.levels.is_empty() || list_paths(snapshot, &any, visibility).is_err() {
                return Err(no_path_failure(snapshot, &request.name, visibility));
            }
        }
        Ok(()) => {}
    }
    let next = first.saturating_add(lister.paths.len());
    let version = snapshot.version();
    Ok(v1::ListPathsResponse {
        next_page_token: token(snapshot, next, next.saturating_add(lister.more.into())),
        paths: lister.paths,
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], visibility),
        truncated: visibility.is_truncated(),
        object: subject.object_name().unwrap_or_default(),
    })
}

/// Number of listed paths that end at each trie node or below it.
struct Counts {
    /// If the path goes through the subject of the query above the node.
    through: Vec<u64>,
    /// If it does not.
    before: Vec<u64>,
}

impl Counts {
    fn of(engine: &PathEngine, subject_nodes: &SubjectNodes, levels: &[String]) -> Self {
        let trie = engine.trie();
        let mut counts = Self {
            through: Vec::with_capacity(trie.len()),
            before: Vec::with_capacity(trie.len()),
        };
        // Children precede their parents.
        for (id, node) in trie.ids().zip(trie.nodes()) {
            let mut through = u64::from(is_at(levels, node.level));
            let mut before = 0;
            for child in trie.below(node) {
                let (all, some) = counts.get(child);
                through += all;
                before += some;
            }
            if subject_nodes.includes(engine, id) {
                before = through;
            }
            counts.through.push(through);
            counts.before.push(before);
        }
        counts
    }

    fn get(&self, id: TrieNodeId) -> (u64, u64) {
        let count = |counts: &[u64]| counts.get(id.index()).copied().unwrap_or_default();
        (count(&self.through), count(&self.before))
    }
}

fn check_levels(levels: &[String]) -> Result<(), Failure> {
    Failure::check_count("levels", levels.len(), MAX_NAMED)?;
    levels
        .iter()
        .try_for_each(|level| parse_level(level).map(|_| ()))
}

/// The level of a path with a name.
///
/// # Errors
/// There is no such level.
pub fn parse_level(text: &str) -> Result<Level, Failure> {
    let level = Level::parse(text).filter(|level| *level != Level::Root);
    level.ok_or_else(|| {
        let levels = Level::ALL.iter().skip(1).map(|level| level.as_str());
        let levels: Vec<_> = levels.collect();
        let message = format!(
            "`{}` is not a level: use one of {}",
            shortened(text),
            levels.join(", ")
        );
        Failure::invalid("NotALevel", message)
    })
}

/// Whether paths that end at a level are listed.
fn is_at(levels: &[String], level: Level) -> bool {
    levels.is_empty() || levels.iter().any(|selected| selected == level.as_str())
}

/// Lists a page of paths.
struct PageLister<'s> {
    counts: Counts,
    levels: &'s [String],
    visible: Visible<'s>,
    /// Number of paths before the page.
    first: usize,
    room: PageRoom,
    /// Number of listed paths so far, on this page or before it.
    listed: usize,
    paths: Vec<String>,
    /// Whether there are paths after the page.
    more: bool,
}

impl PathVisitor<bool> for PageLister<'_> {
    fn passes_over(&mut self, node: TrieNodeId, through: bool, depth: usize) -> bool {
        let (all, some) = self.counts.get(node);
        let count = usize::try_from(if through { all } else { some }).unwrap_or(usize::MAX);
        if count == 0 {
            return true;
        }
        // A subtree is skipped only if all of it is visible: otherwise its count is not known.
        let after = self.listed.saturating_add(count);
        let before_page = self.visible.is_covered(depth) && after <= self.first;
        if before_page {
            self.listed = after;
        }
        before_page
    }

    fn visit(&mut self, path: &ListedPath<'_, bool>) -> WalkControl {
        if self.visible.is_over() {
            return WalkControl::Stop;
        }
        let depth = path.resolved.len().saturating_sub(1);
        let (visible, below) = self.visible.look(path.name, depth);
        if visible && path.state && is_at(self.levels, path.node.level) {
            if self.listed >= self.first {
                if !self.room.take(path.name.len()) {
                    self.more = true;
                    return WalkControl::Stop;
                }
                self.paths.push(path.name.to_owned());
            }
            self.listed += 1;
        }
        match below {
            true => WalkControl::Descend,
            false => WalkControl::SkipChildren,
        }
    }
}

/// The range of a page.
pub(super) struct Page {
    pub first: usize,
    pub size: usize,
}

/// The room that is left on a page.
pub(super) struct PageRoom {
    entries: usize,
    bytes: usize,
    is_empty: bool,
}

impl Page {
    /// Returns the room of the whole page.
    pub fn room(&self) -> PageRoom {
        PageRoom {
            entries: self.size,
            bytes: MAX_PAGE_BYTES,
            is_empty: true,
        }
    }
}

impl PageRoom {
    /// Reserves room for an entry of so many bytes; returns `false` if the page is full. The first entry always fits.
    pub fn take(&mut self, bytes: usize) -> bool {
        let fits = self.is_empty || (self.entries > 0 && bytes <= self.bytes);
        if fits {
            self.entries = self.entries.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(bytes);
            self.is_empty = false;
        }
        fits
    }
}

/// Reads the page of a request.
pub(super) fn page(snapshot: &Snapshot, size: i32, token: &str) -> Result<Page, Failure> {
    let first = match position(snapshot, token)? {
        None => 0,
        Some(text) => text.parse().map_err(|_| Failure::page_token())?,
    };
    let size = page_size(size)?;
    Ok(Page { first, size })
}

/// Reads the size of a page.
pub(super) fn page_size(size: i32) -> Result<usize, Failure> {
    match usize::try_from(size) {
        Ok(0) => Ok(DEFAULT_PAGE),
        Ok(size) => Ok(size.min(MAX_PAGE)),
        Err(_) => Err(Failure::invalid("PageSize", "page_size is negative")),
    }
}

/// Returns the token of the next page, by the index of its first entry; empty after the last.
pub(super) fn token(snapshot: &Snapshot, next: usize, all: usize) -> String {
    match next < all {
        true => token_at(snapshot, &next.to_string()),
        false => String::new(),
    }
}

/// Returns the token of a page that starts at a position.
pub(super) fn token_at(snapshot: &Snapshot, position: &str) -> String {
    let version = snapshot.version();
    format!("{}:{}:{position}", version.epoch, version.generation)
}

/// Reads the position where a page starts from its token; `None` for the first page.
pub(super) fn position<'t>(
    snapshot: &Snapshot,
    token: &'t str,
) -> Result<Option<&'t str>, Failure> {
    if token.is_empty() {
        return Ok(None);
    }
    if let Some(position) = token.strip_prefix(&token_at(snapshot, "")) {
        return Ok(Some(position));
    }
    let mut parts = token.splitn(3, ':');
    let generation = parts
        .nth(1)
        .and_then(|generation| generation.parse::<u64>().ok());
    if generation.is_none() || parts.next().is_none() {
        return Err(Failure::page_token());
    }
    Err(Failure {
        code: FailureCode::Aborted,
        reason: "SnapshotChanged".to_owned(),
        message: "the snapshot changed since the last page: restart the listing".to_owned(),
        nearest: String::new(),
    })
}

/// Returns the error of a name without paths.
pub(super) fn no_path_failure(
    snapshot: &Snapshot,
    name: &str,
    visibility: &dyn Visibility,
) -> Failure {
    let engine = snapshot.engine();
    if let Ok(QuerySubject::Object(key, section)) =
        QuerySubject::read(name, engine.world(), visibility)
    {
        return object_failure(snapshot, name, (&key, section.as_deref()), visibility);
    }
    let located = PathName::parse(name).map(|path| (path, engine.locate(&path)));
    match located {
        Ok((path, _)) if !visibility.includes_path(name) => Failure::hidden(name, &path),
        Ok((path, Ok(None))) => {
            Failure::not_found(snapshot, name, snapshot.path_reason(&path), visibility)
        }
        _ => Failure::no_such_object(format!("no path is below `{}`", shortened(name))),
    }
}
