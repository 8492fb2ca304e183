//! The Route kinds that a project has besides those of the Gateway API (specification 1.9).

use super::document::RouteKindDoc;
use super::resolve::SettingResult;
use crate::model::{GroupKind, groups};

/// The Route kinds of the Gateway API that others can be like.
const STANDARD: [&str; 5] = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];

/// A Route kind that a profile declares (specification 1.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredRouteKind {
    /// The kind.
    pub kind: GroupKind,
    /// The kind of the Gateway API whose fields it has.
    pub like: GroupKind,
    /// Whether the controller makes a Route of the kind `like` of each Route, with its namespace and name.
    pub generates: bool,
    /// The kind of backends for which a backendRef names none.
    pub backend: GroupKind,
}

/// Reads the setting.
///
/// # Errors
/// An entry names a kind of the Gateway API, or is like no Route kind.
pub(super) fn resolve(docs: Option<Vec<RouteKindDoc>>) -> SettingResult<Vec<DeclaredRouteKind>> {
    let mut kinds: Vec<DeclaredRouteKind> = Vec::new();
    for doc in docs.unwrap_or_default() {
        let kind = GroupKind::new(&*doc.group, &*doc.kind);
        let reserved = [
            groups::CORE,
            groups::GATEWAY,
            groups::GATEWAY_X,
            groups::ENTAIL,
        ];
        if reserved.contains(&&*kind.group) || kind.kind.contains(['/', '.']) {
            return Err(format!(
                "routeKinds: `{kind}` cannot be a Route kind of its own: give the group and kind of a custom resource"
            ));
        }
        if !STANDARD.contains(&&*doc.like) {
            return Err(format!(
                "routeKinds: `like: {}` is no Route kind: give one of {}",
                doc.like,
                STANDARD.join(", ")
            ));
        }
        if kinds.iter().any(|other| other.kind == kind) {
            return Err(format!("routeKinds: `{kind}` is there twice"));
        }
        let backend = doc.backend.unwrap_or_else(|| super::document::KindDoc {
            group: groups::CORE.to_owned(),
            kind: "Service".to_owned(),
        });
        kinds.push(DeclaredRouteKind {
            kind,
            like: GroupKind::new(groups::GATEWAY, &*doc.like),
            generates: doc.generates,
            backend: super::read::normalize_kind(&backend.group, &backend.kind),
        });
    }
    Ok(kinds)
}
