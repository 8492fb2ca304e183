//! The parameters of Gateways and GatewayClasses, which are not read (specification 2.9).

use super::World;
use crate::model::ObjectKey;
use crate::store::ParametersRef;

impl World {
    /// The reference of a Gateway or GatewayClass to parameters that are not read; `None` if it has no
    /// reference, or one to a kind that a profile describes.
    pub fn unread_parameters(&self, object: &ObjectKey) -> Option<ParametersRef> {
        let reference = ParametersRef::of(&self.store.get(object)?.object)?;
        self.kind(&reference.kind).is_none().then_some(reference)
    }
}
