//! The schemas of CRDs: their defaults, applied to objects of files as an API server applies them, and the fields that they
//! do not have.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use entail_core::model::{GroupKind, Object, did_you_mean};

/// The largest size, in bytes, that defaults may add to one object: the largest request that etcd
/// accepts.
const MAX_ADDED: usize = 1536 * 1024;

type Fields = Map<String, Value>;

/// The CRDs by the kinds that they define.
#[derive(Clone, Debug, Default)]
pub struct CrdSchemas {
    by_kind: BTreeMap<GroupKind, Definition>,
}

/// A CRD. Its spec is decoded for the first object of the kind, and kept for the others: it is large.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    crd: Arc<Object>,
    spec: OnceLock<Option<Value>>,
}

/// An object with the defaults of its CRD, and what it was computed from.
#[derive(Clone, Debug)]
pub(super) struct DefaultedObject {
    written: Arc<Object>,
    definition: Arc<Object>,
    /// The object with defaults.
    pub result: Result<Completed, TooManyDefaults>,
}

/// An object with the defaults of its CRD.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The object.
    pub object: Arc<Object>,
    /// The fields that the CRD does not have, if there are some.
    pub unknown: Option<UnknownFields>,
}

/// The fields of an object that the schema of its CRD does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFields {
    /// The path of the first one.
    first: String,
    /// Asks for the field that may be meant.
    hint: String,
    count: usize,
}

/// The defaults of an object are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyDefaults;

/// Applies one schema to an object.
struct Defaulter {
    /// How many bytes defaults may still add.
    left: usize,
    has_changed: bool,
}

impl CrdSchemas {
    /// Collects the CRDs among objects. Of two CRDs of one kind, the later one applies.
    pub fn of<'o>(objects: impl IntoIterator<Item = &'o Arc<Object>>) -> Self {
        let defined = |object: &'o Arc<Object>| {
            let definition = Definition {
                crd: Arc::clone(object),
                spec: OnceLock::new(),
            };
            Some((object.defined_kind()?, definition))
        };
        Self {
            by_kind: objects.into_iter().filter_map(defined).collect(),
        }
    }

    /// Returns the CRD of a kind.
    pub(super) fn definition(&self, kind: &GroupKind) -> Option<&Definition> {
        self.by_kind.get(kind)
    }

    /// Drops the decoded specs. The next object of a kind decodes its own again.
    pub(super) fn forget_decoded(&mut self) {
        for definition in self.by_kind.values_mut() {
            definition.spec = OnceLock::new();
        }
    }

    /// Returns an object with the defaults of its CRD: the same object if nothing differs. `left` is how
    /// many bytes defaults may add to this object and later ones.
    ///
    /// # Errors
    /// The defaults are larger than `left`, or larger than an API server could store.
    pub fn with_defaults(
        &self,
        object: &Arc<Object>,
        left: &mut usize,
    ) -> Result<Completed, TooManyDefaults> {
        match self.definition(&object.key.kind) {
            Some(definition) => apply(definition, object, left),
            None => Ok(Completed::unchanged(object)),
        }
    }
}

impl Definition {
    fn spec(&self) -> Option<&Value> {
        let decoded = self.spec.get_or_init(|| self.crd.body.get("spec"));
        decoded.as_ref()
    }
}

impl Completed {
    fn unchanged(object: &Arc<Object>) -> Self {
        Self {
            object: Arc::clone(object),
            unknown: None,
        }
    }
}

impl fmt::Display for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, hint, count } = self;
        write!(f, "the CRD has no field `{first}`")?;
        if *count > 1 {
            write!(f, " (and {} more)", count - 1)?;
        }
        write!(
            f,
            ": an API server leaves it out, or refuses the object{hint}"
        )
    }
}

impl fmt::Display for TooManyDefaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the defaults of its CRD are not applied, because they are too large: shorten its lists, \
             or the defaults"
        )
    }
}

impl DefaultedObject {
    /// Computes the defaults of an object, or returns the previous result if its inputs are the same.
    /// Returns `None` if the kind has no CRD.
    pub(super) fn update(
        previous: Option<Self>,
        written: &Arc<Object>,
        schemas: &CrdSchemas,
    ) -> Option<Self> {
        let definition = schemas.definition(&written.key.kind)?;
        let is_current = |known: &Self| {
            Arc::ptr_eq(&known.written, written) && Arc::ptr_eq(&known.definition, &definition.crd)
        };
        Some(previous.filter(is_current).unwrap_or_else(|| Self {
            result: apply(definition, written, &mut { usize::MAX }),
            written: Arc::clone(written),
            definition: Arc::clone(&definition.crd),
        }))
    }
}

/// Applies the defaults of a CRD to an object.
fn apply(
    definition: &Definition,
    object: &Arc<Object>,
    left: &mut usize,
) -> Result<Completed, TooManyDefaults> {
    let version = object.body.get("apiVersion");
    let version = version.as_ref().and_then(Value::as_str);
    let version = version.and_then(|version| version.rsplit('/').next());
    let Some(spec) = definition.spec() else {
        return Ok(Completed::unchanged(object));
    };
    let (written, stored) = schemas_of(spec, version.unwrap_or_default());
    if written.is_none() && stored.is_none() {
        return Ok(Completed::unchanged(object));
    }
    let mut body = object.body.value();
    let mut check = FieldCheck::default();
    if let (Some(schema), Value::Object(fields)) = (written, &body) {
        check.fields(fields, schema, None);
    }
    let limit = MAX_ADDED.min(*left);
    let mut defaulter = Defaulter {
        left: limit,
        has_changed: false,
    };
    let schemas = written.into_iter().chain(stored);
    let results = schemas.map(|schema| defaulter.root(&mut body, schema));
    let fits = results.collect::<Option<Vec<()>>>().is_some();
    *left = left.saturating_sub(limit.saturating_sub(defaulter.left));
    if !fits {
        return Err(TooManyDefaults);
    }
    let object = match defaulter.has_changed {
        true => Arc::new(Object {
            body: body.into(),
            ..Object::clone(object)
        }),
        false => Arc::clone(object),
    };
    Ok(Completed {
        object,
        unknown: check.unknown,
    })
}

/// The schemas of the spec of a CRD whose defaults an API server applies to an object that is written in a
/// version: that of the version, and when it reads the object from its storage, that of the storage version. With a
/// conversion webhook the object has other fields there.
fn schemas_of<'d>(spec: &'d Value, version: &str) -> (Option<&'d Value>, Option<&'d Value>) {
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        return (None, None);
    }
    let versions = spec.get("versions").and_then(Value::as_array);
    let versions = || versions.into_iter().flatten();
    let written = versions().find(|v| v.get("name").and_then(Value::as_str) == Some(version));
    let stored = versions().find(|v| v.get("storage") == Some(&Value::Bool(true)));
    let conversion = spec.pointer("/conversion/strategy").and_then(Value::as_str);
    let stored = stored.filter(|stored| {
        let is_other = written.is_none_or(|written| !std::ptr::eq(written, *stored));
        is_other && (written.is_none() || conversion != Some("Webhook"))
    });
    let schema = |version: &'d Value| version.pointer("/schema/openAPIV3Schema");
    (written.and_then(schema), stored.and_then(schema))
}

/// Finds the fields of an object that a schema does not have.
#[derive(Debug, Default)]
struct FieldCheck {
    unknown: Option<UnknownFields>,
}

/// Where a value is in an object.
#[derive(Clone, Copy)]
struct FieldLocation<'p> {
    above: Option<&'p Self>,
    name: &'p str,
}

impl fmt::Display for FieldLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            write!(f, "{above}.")?;
        }
        f.write_str(self.name)
    }
}

impl FieldCheck {
    fn value(&mut self, value: &Value, schema: &Value, location: &FieldLocation<'_>) {
        match (value, schema.get("items")) {
            (Value::Object(fields), _) => self.fields(fields, schema, Some(location)),
            (Value::Array(items), Some(schema)) => {
                for item in items {
                    self.value(item, schema, location);
                }
            }
            _ => {}
        }
    }

    /// Checks the fields of the object at a location, or of a whole object.
    fn fields(&mut self, fields: &Fields, schema: &Value, above: Option<&FieldLocation<'_>>) {
        let is_set = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let is_object = above.is_none() || is_set("x-kubernetes-embedded-resource");
        // An API server takes no schema without a type: then the CRD is shortened, and fields are missing in it.
        let takes_any = schema.get("type").and_then(Value::as_str) != Some("object")
            || is_set("x-kubernetes-preserve-unknown-fields")
            || is_set("additionalProperties");
        for (name, value) in fields {
            // Every object has these, and they have a schema of their own.
            if is_object && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            let location = FieldLocation { above, name };
            match schema_of(schema, name) {
                Some(schema) => self.value(value, schema, &location),
                None if takes_any => {}
                None => self.note(&location, schema),
            }
        }
    }

    fn note(&mut self, location: &FieldLocation<'_>, schema: &Value) {
        let unknown = self.unknown.get_or_insert_with(|| {
            let properties = schema.get("properties").and_then(Value::as_object);
            let known = properties.into_iter().flatten();
            let known = known.map(|(name, _)| name.clone()).collect();
            UnknownFields {
                first: location.to_string(),
                hint: did_you_mean(location.name, known),
                count: 0,
            }
        });
        unknown.count += 1;
    }
}

impl Defaulter {
    /// Applies a schema to a whole object. The fields that every object has get no defaults. Returns
    /// `None` if the limit is exceeded.
    fn root(&mut self, body: &mut Value, schema: &Value) -> Option<()> {
        let Some(fields) = body.as_object_mut() else {
            return Some(());
        };
        let names = ["apiVersion", "kind", "metadata"];
        let kept: Vec<_> = names
            .iter()
            .filter_map(|name| Some((*name, fields.remove(*name)?)))
            .collect();
        let result = self.fields(fields, schema, &names);
        for (name, value) in kept {
            fields.insert(name.to_owned(), value);
        }
        result
    }

    fn value(&mut self, value: &mut Value, schema: &Value) -> Option<()> {
        match value {
            Value::Object(fields) => self.fields(fields, schema, &[]),
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else {
                    return Some(());
                };
                for item in items {
                    // Unlike in an object, a null without a default stays.
                    if item.is_null()
                        && !is_nullable(schema)
                        && let Some(default) = default_of(schema)
                    {
                        *item = self.copy(default)?;
                    }
                    self.value(item, schema)?;
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn fields(&mut self, fields: &mut Fields, schema: &Value, except: &[&str]) -> Option<()> {
        self.drop_nulls(fields, schema);
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let is_missing = match fields.get(name) {
                None => true,
                Some(value) => value.is_null() && !is_nullable(schema),
            };
            if is_missing
                && !except.contains(&name.as_str())
                && let Some(default) = default_of(schema)
            {
                let default = self.copy(default)?;
                fields.insert(name.clone(), default);
            }
        }
        for (name, value) in fields {
            let Some(schema) = schema_of(schema, name) else {
                continue;
            };
            if value.is_null()
                && !is_nullable(schema)
                && let Some(default) = default_of(schema)
            {
                *value = self.copy(default)?;
            }
            self.value(value, schema)?;
        }
        Some(())
    }

    /// Removes the fields that are null although their schema is not nullable, unless they have a
    /// default.
    fn drop_nulls(&mut self, fields: &mut Fields, schema: &Value) {
        let before = fields.len();
        fields.retain(|name, value| {
            let schema = schema_of(schema, name).filter(|_| value.is_null());
            schema.is_none_or(|schema| is_nullable(schema) || default_of(schema).is_some())
        });
        self.has_changed |= fields.len() != before;
    }

    /// Copies a default. Returns `None` if the limit is exceeded.
    fn copy(&mut self, default: &Value) -> Option<Value> {
        self.left = self.left.checked_sub(size(default))?;
        self.has_changed = true;
        Some(default.clone())
    }
}

/// The schema of a field of an object.
fn schema_of<'s>(schema: &'s Value, field: &str) -> Option<&'s Value> {
    let own = schema.get("properties").and_then(|p| p.get(field));
    // It may be `true`, which describes nothing.
    let others = || schema.get("additionalProperties").filter(|s| s.is_object());
    own.or_else(others)
}

fn default_of(schema: &Value) -> Option<&Value> {
    schema.get("default").filter(|default| !default.is_null())
}

fn is_nullable(schema: &Value) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

/// About the length of the JSON text of a value.
fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            fields
                .iter()
                .map(|(k, v)| k.len() + 4 + size(v))
                .sum::<usize>()
                + 2
        }
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::String(text) => text.len() + 2,
        _ => 8,
    }
}

#[cfg(test)]
#[path = "defaults_tests.rs"]
mod tests;
