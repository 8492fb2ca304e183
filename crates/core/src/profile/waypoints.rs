//! Waypoints: the Gateways that serve the mesh paths of a Service (specification 2.12).

use super::document::{LabelValuesDoc, WaypointsDoc};
use super::{Ancestor, EffectiveTarget, PolicyClass, Profile, matches_pattern};
use crate::model::{Level, Str};

/// How objects say which Gateway serves a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waypoints {
    /// The label of a Service or its Namespace that names the Gateway.
    pub label: WaypointLabel,
    /// The value of the label that means no waypoint.
    pub opt_out: Option<Str>,
    /// The Gateway that takes a part of the requests.
    pub canary: Option<CanaryLabel>,
    /// The label of a Gateway or its class with the traffic that it serves, and the values that include requests to
    /// Services. Without the label, these are included.
    pub traffic: Option<LabelValues>,
    /// The protocol and the port of the listener whose `allowedRoutes` admits the namespaces of Services.
    pub listener: Option<(Str, u16)>,
    /// The controllers whose Gateways are waypoints, with `*` for any characters; empty means those of the kind.
    pub controllers: Vec<Str>,
    /// Services that have no waypoint whatever their labels say.
    pub except: Option<LabelValues>,
}

/// A label that names a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaypointLabel {
    /// The label with the name of the Gateway.
    pub name: String,
    /// The label with its namespace; the default is that of the Service.
    pub namespace: Option<String>,
}

/// A label that names a second Gateway, for a part of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanaryLabel {
    /// The label.
    pub label: WaypointLabel,
    /// The annotation with the part in percent; without a valid one the label does not count.
    pub weight: String,
}

/// A label and some of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelValues {
    /// The label.
    pub name: String,
    /// The values.
    pub values: Vec<String>,
}

impl LabelValues {
    fn of(doc: &LabelValuesDoc) -> Self {
        Self {
            name: doc.label.clone(),
            values: doc.values.clone(),
        }
    }

    /// Whether a value is among the values.
    pub fn has(&self, value: &str) -> bool {
        self.values.iter().any(|other| other == value)
    }
}

impl Profile {
    /// Whether the Gateways of a controller can be waypoints of the kind.
    pub fn is_waypoint_controller(&self, waypoints: &Waypoints, controller: &str) -> bool {
        let list = match waypoints.controllers.is_empty() {
            true => &self.controllers,
            false => &waypoints.controllers,
        };
        list.is_empty()
            || list
                .iter()
                .any(|pattern| matches_pattern(pattern, controller))
    }
}

/// Resolves the setting `waypoints`.
///
/// # Errors
/// A part of it is contradictory.
pub(super) fn resolve(doc: Option<&WaypointsDoc>) -> Result<Option<Waypoints>, String> {
    let Some(doc) = doc else {
        return Ok(None);
    };
    let names = [&doc.label].into_iter().chain(&doc.namespace_label);
    if names.clone().any(String::is_empty) {
        return Err("waypoints: a label needs a name".to_owned());
    }
    let canary = doc.canary.as_ref().map(|canary| CanaryLabel {
        label: WaypointLabel {
            name: canary.label.clone(),
            namespace: canary.namespace_label.clone(),
        },
        weight: canary.weight.clone(),
    });
    Ok(Some(Waypoints {
        label: WaypointLabel {
            name: doc.label.clone(),
            namespace: doc.namespace_label.clone(),
        },
        opt_out: doc.opt_out.as_deref().map(Into::into),
        canary,
        traffic: doc.traffic.as_ref().map(LabelValues::of),
        listener: doc
            .listener
            .as_ref()
            .map(|listener| (listener.protocol.as_str().into(), listener.port)),
        controllers: doc.controllers.iter().map(|c| c.as_str().into()).collect(),
        except: doc.except.as_ref().map(LabelValues::of),
    }))
}

/// The reason for which waypoints contradict the other settings, if there is one.
pub(super) fn contradiction(profile: &Profile) -> Option<&'static str> {
    profile.waypoints.as_ref()?;
    if profile.class == PolicyClass::Direct {
        return Some("waypoints: a kind of class Direct has none");
    }
    if !profile.mesh {
        return Some("waypoints: the kind does not act on mesh paths (`mesh: false`)");
    }
    let above =
        matches!(profile.effective, EffectiveTarget::Level(level) if level < Level::Gateway);
    if above {
        return Some("waypoints: the effectiveTarget is above Gateways");
    }
    if profile.status.ancestor == Ancestor::Gateway {
        return Some("waypoints: status.ancestor must be Target or None");
    }
    None
}
