//! The values of units, which are decoded only where something looks into them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::tree::without_nulls;
use super::units::{encoded_at, value_at};
use crate::model::{Encoded, Segment};

/// The value of a unit.
#[derive(Clone, Debug)]
pub enum UnitValue<'v> {
    /// As a block has it.
    Encoded(Encoded<'v>),
    /// As a merge made it.
    Decoded(Value),
}

impl UnitValue<'_> {
    /// The value, which is copied if it is encoded.
    pub fn decoded(&self) -> Cow<'_, Value> {
        match self {
            Self::Encoded(value) => Cow::Owned(value.value()),
            Self::Decoded(value) => Cow::Borrowed(value),
        }
    }

    /// Decodes the value.
    pub fn into_decoded(self) -> Value {
        match self {
            Self::Encoded(value) => value.value(),
            Self::Decoded(value) => value,
        }
    }

    /// Changes the value with a function, and returns what it returns.
    pub(super) fn edit<R>(&mut self, change: impl FnOnce(&mut Value) -> R) -> R {
        let before = std::mem::replace(self, Self::Decoded(Value::Null));
        let mut value = before.into_decoded();
        let result = change(&mut value);
        *self = Self::Decoded(value);
        result
    }

    /// Reports whether the value is null.
    pub fn is_null(&self) -> bool {
        match self {
            Self::Encoded(value) => value.is_null(),
            Self::Decoded(value) => value.is_null(),
        }
    }

    /// Reports whether the value is an object.
    pub(super) fn is_object(&self) -> bool {
        match self {
            Self::Encoded(value) => value.is_object(),
            Self::Decoded(value) => value.is_object(),
        }
    }

    /// Reports whether the value is an object without fields.
    pub(super) fn is_empty_object(&self) -> bool {
        match self {
            Self::Encoded(value) => value.is_object() && value.is_empty(),
            Self::Decoded(value) => value.as_object().is_some_and(Map::is_empty),
        }
    }

    /// Reports whether the value is a list without items.
    pub(super) fn is_empty_list(&self) -> bool {
        match self {
            Self::Encoded(value) => value.is_list() && value.is_empty(),
            Self::Decoded(value) => value.as_array().is_some_and(Vec::is_empty),
        }
    }

    /// Reports whether the value at a place is true; `None` if there is none.
    pub(super) fn is_true_at(&self, place: &[Segment]) -> Option<bool> {
        match self {
            Self::Encoded(value) => encoded_at(*value, place).map(Encoded::is_true),
            Self::Decoded(value) => value_at(value, place).map(|value| *value == Value::Bool(true)),
        }
    }

    /// Returns the value without the nulls of its objects (specification 5.2).
    pub(super) fn without_nulls(&self) -> Value {
        without_nulls(&self.decoded())
    }
}
