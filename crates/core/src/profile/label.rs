//! The label that marks CRDs as policy kinds (specification 2.1).

use crate::model::MetadataMap;

/// The value of the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyLabel {
    /// `direct`
    Direct,
    /// `inherited` or `true`
    Inherited,
}

impl PolicyLabel {
    /// The key of the label.
    pub const KEY: &'static str = "gateway.networking.k8s.io/policy";

    /// Reads the label of a CRD, ignoring case. Returns `None` for any other value.
    pub fn read(labels: &MetadataMap) -> Option<Self> {
        match labels.get(Self::KEY)?.to_ascii_lowercase().as_str() {
            "direct" => Some(Self::Direct),
            "inherited" | "true" => Some(Self::Inherited),
            _ => None,
        }
    }
}
