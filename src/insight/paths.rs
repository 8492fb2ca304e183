//! Paths of the topology, page by page.

use super::lookup::incomplete_kinds;
use super::{Failure, FailureCode, QuerySubject, Visibility};
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::model::PathName;

const DEFAULT_PAGE: usize = 1_000;
const MAX_PAGE: usize = 10_000;

/// Lists paths in the order in which they are walked.
///
/// # Errors
/// A wrong name, or a token of another snapshot.
pub fn list_paths(
    snapshot: &Snapshot,
    request: &v1::ListPathsRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ListPathsResponse, Failure> {
    let world = snapshot.world();
    let subject = QuerySubject::read(&request.name, world)?;
    let Page { first, size } = page(snapshot, request.page_size, &request.page_token)?;
    let mut found = 0;
    let mut paths = Vec::new();
    world.topology().visit(&mut |name, resolved| {
        let level = resolved.end().as_str();
        let wanted = request.levels.is_empty() || request.levels.iter().any(|l| l == level);
        if !wanted || !subject.includes(world, name, resolved) || !visibility.includes_path(name) {
            return;
        }
        if found >= first && paths.len() < size {
            paths.push(name.to_owned());
        }
        found += 1;
    });
    if found == 0 && subject != QuerySubject::All {
        return Err(no_path_failure(snapshot, &request.name, visibility));
    }
    let next = first + paths.len();
    let version = snapshot.version();
    Ok(v1::ListPathsResponse {
        next_page_token: token(snapshot, next, found),
        paths,
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], visibility),
    })
}

/// Where a page begins, and how long it is.
pub(super) struct Page {
    pub first: usize,
    pub size: usize,
}

/// The page that a request asks for.
pub(super) fn page(snapshot: &Snapshot, size: i32, token: &str) -> Result<Page, Failure> {
    let size = match usize::try_from(size) {
        Ok(0) => DEFAULT_PAGE,
        Ok(size) => size.min(MAX_PAGE),
        Err(_) => return Err(Failure::invalid("PageSize", "page_size is negative")),
    };
    let first = first(snapshot, token)?;
    Ok(Page { first, size })
}

/// The token of the next page; empty after the last.
pub(super) fn token(snapshot: &Snapshot, next: usize, all: usize) -> String {
    let version = snapshot.version();
    if next < all {
        format!("{}:{}:{next}", version.epoch, version.generation)
    } else {
        String::new()
    }
}

/// Where a page begins.
fn first(snapshot: &Snapshot, token: &str) -> Result<usize, Failure> {
    if token.is_empty() {
        return Ok(0);
    }
    let version = snapshot.version();
    let (of, at) = token
        .rsplit_once(':')
        .and_then(|(of, at)| Some((of, at.parse().ok()?)))
        .ok_or_else(|| Failure::invalid("PageToken", "page_token is none of ours"))?;
    if of == format!("{}:{}", version.epoch, version.generation) {
        return Ok(at);
    }
    Err(Failure {
        code: FailureCode::Aborted,
        reason: "SnapshotChanged".to_owned(),
        message: "the snapshot has changed since the last page: begin again".to_owned(),
        nearest: String::new(),
    })
}

/// Why a name finds no path.
pub(super) fn no_path_failure(
    snapshot: &Snapshot,
    name: &str,
    visibility: &dyn Visibility,
) -> Failure {
    let world = snapshot.world();
    let located = PathName::parse(name).map(|path| (path, world.locate(&path)));
    match located {
        Ok((path, _)) if !visibility.includes_path(name) => Failure::hidden(name, &path),
        Ok((_, Err(reason))) => Failure::not_found(snapshot, name, reason, visibility),
        _ => Failure {
            code: FailureCode::NotFound,
            reason: "NotOnAPath".to_owned(),
            message: format!(
                "`{name}` is on no path: there is no such object, or nothing joins it"
            ),
            nearest: String::new(),
        },
    }
}
