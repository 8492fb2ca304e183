use serde_json::json;

use entail_core::model::ObjectKey;

use super::*;

/// A CRD of the kind `P.g` with these versions.
fn crd(spec: Value) -> Arc<Object> {
    let mut body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ps.g"},
        "spec": {"group": "g", "names": {"kind": "P", "plural": "ps"}},
    });
    for (name, value) in spec.as_object().unwrap() {
        body["spec"][name] = value.clone();
    }
    Arc::new(Object::new(
        ObjectKey::new(GroupKind::crd(), "", "ps.g"),
        body,
    ))
}

fn version(name: &str, storage: bool, schema: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    })
}

fn policy(version: &str, spec: Value) -> Arc<Object> {
    let key = ObjectKey::new(GroupKind::new("g", "P"), "ns", "p");
    let body = json!({
        "apiVersion": format!("g/{version}"), "kind": "P",
        "metadata": {"name": "p", "namespace": "ns"}, "spec": spec,
    });
    Arc::new(Object::new(key, body))
}

fn with_defaults(schemas: &CrdSchemas, object: &Arc<Object>) -> Arc<Object> {
    let completed = schemas.with_defaults(object, &mut { usize::MAX });
    completed.unwrap().object
}

fn spec_with_defaults(crd: &Arc<Object>, version: &str, spec: Value) -> Value {
    let schemas = CrdSchemas::of([crd]);
    with_defaults(&schemas, &policy(version, spec)).body.value()["spec"].clone()
}

#[track_caller]
fn assert_defaulted(schema: Value, spec: Value, expected: Value) {
    let crd = crd(json!({"versions": [version("v1", true, &schema)]}));
    assert_eq!(spec_with_defaults(&crd, "v1", spec), expected);
}

#[test]
fn only_missing_fields_get_defaults() {
    let schema = json!({"properties": {"a": {"default": 1}, "b": {"default": {"c": 2}}}});
    assert_defaulted(schema.clone(), json!({}), json!({"a": 1, "b": {"c": 2}}));
    assert_defaulted(
        schema.clone(),
        json!({"a": 0, "b": {}}),
        json!({"a": 0, "b": {}}),
    );
    assert_defaulted(
        schema,
        json!({"a": "", "x": 1}),
        json!({"a": "", "b": {"c": 2}, "x": 1}),
    );
}

#[test]
fn defaults_below_missing_objects_need_a_default_of_the_object() {
    let inner = json!({"properties": {"b": {"default": 1}}});
    let with = json!({"default": {}, "properties": {"b": {"default": 1}}});
    assert_defaulted(json!({"properties": {"a": inner}}), json!({}), json!({}));
    assert_defaulted(
        json!({"properties": {"a": with}}),
        json!({}),
        json!({"a": {"b": 1}}),
    );
}

#[test]
fn defaults_apply_inside_lists_and_maps() {
    let rule = json!({"properties": {"weight": {"default": 1}}});
    let schema = json!({"properties": {
        "list": {"items": rule},
        "map": {"additionalProperties": rule},
        "numbers": {"additionalProperties": {"default": 7}},
    }});
    assert_defaulted(
        schema,
        json!({"list": [{}, {"weight": 0}, 5], "map": {"x": {}, "y": {"weight": 2}}, "numbers": {"n": null}}),
        json!({
            "list": [{"weight": 1}, {"weight": 0}, 5],
            "map": {"x": {"weight": 1}, "y": {"weight": 2}},
            "numbers": {"n": 7},
        }),
    );
}

#[test]
fn nulls_are_handled_as_an_api_server_does() {
    let schema = json!({"properties": {
        "replaced": {"default": 1},
        "kept": {"default": 1, "nullable": true},
        "dropped": {"type": "integer"},
        "tombstone": {"nullable": true},
        "list": {"items": {"type": "integer"}},
        "filled": {"items": {"default": 3}},
    }});
    let nulls = json!({
        "replaced": null, "kept": null, "dropped": null, "tombstone": null, "other": null,
        "list": [null], "filled": [null],
    });
    let expected = json!({
        "replaced": 1, "kept": null, "tombstone": null, "other": null, "list": [null], "filled": [3],
    });
    assert_defaulted(schema, nulls, expected);
}

#[test]
fn the_version_of_the_object_and_then_the_storage_version_apply() {
    let one = json!({"properties": {"a": {"default": 1}}});
    let two = json!({"properties": {"a": {"default": 2}, "b": {"default": 2}}});
    let versions = json!([version("v1", false, &one), version("v2", true, &two)]);
    let plain = crd(json!({"versions": versions}));
    assert_eq!(
        spec_with_defaults(&plain, "v1", json!({})),
        json!({"a": 1, "b": 2})
    );
    assert_eq!(
        spec_with_defaults(&plain, "v2", json!({})),
        json!({"a": 2, "b": 2})
    );
    assert_eq!(
        spec_with_defaults(&plain, "v0", json!({})),
        json!({"a": 2, "b": 2})
    );
    let webhook = crd(json!({"versions": versions, "conversion": {"strategy": "Webhook"}}));
    assert_eq!(
        spec_with_defaults(&webhook, "v1", json!({})),
        json!({"a": 1})
    );
    let loose = crd(json!({"versions": versions, "preserveUnknownFields": true}));
    assert_eq!(spec_with_defaults(&loose, "v1", json!({})), json!({}));
}

#[test]
fn common_fields_of_objects_get_no_defaults() {
    let schema = json!({"default": {"x": 1}});
    let mut with_metadata = version("v1", true, &schema);
    let properties = &mut with_metadata["schema"]["openAPIV3Schema"]["properties"];
    properties["metadata"] = json!({"properties": {"labels": {"default": {"a": "b"}}}});
    properties["kind"] = json!({"default": "Q"});
    let crd = crd(json!({"versions": [with_metadata]}));
    let mut object = Object::clone(&policy("v1", json!({})));
    object.body.edit(|body| {
        body.as_object_mut().unwrap().remove("spec");
    });
    let body = with_defaults(&CrdSchemas::of([&crd]), &Arc::new(object))
        .body
        .value();
    assert_eq!(
        body,
        json!({
            "apiVersion": "g/v1", "kind": "P", "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"x": 1},
        })
    );
}

#[test]
fn objects_that_do_not_change_are_shared() {
    let schema = json!({"properties": {"a": {"default": 1}}});
    let crd = crd(json!({"versions": [version("v1", true, &schema)]}));
    let schemas = CrdSchemas::of([&crd]);
    let full = policy("v1", json!({"a": 2}));
    assert!(Arc::ptr_eq(&with_defaults(&schemas, &full), &full));
    let first = DefaultedObject::update(None, &policy("v1", json!({})), &schemas).unwrap();
    let (object, written) = (first.result.clone().unwrap(), Arc::clone(&first.written));
    let second = DefaultedObject::update(Some(first), &written, &schemas).unwrap();
    assert!(Arc::ptr_eq(&second.result.unwrap().object, &object.object));
}

#[test]
fn defaults_have_a_limit() {
    let schema = json!({"properties": {"list": {"items": {"properties": {
        "text": {"default": "x".repeat(1000)},
    }}}}});
    let crd = crd(json!({"versions": [version("v1", true, &schema)]}));
    let schemas = CrdSchemas::of([&crd]);
    let items = |count: usize| json!({"list": vec![json!({}); count]});
    let (small, large) = (policy("v1", items(10)), policy("v1", items(2000)));
    let mut left = usize::MAX;
    assert_eq!(
        schemas.with_defaults(&large, &mut left).err(),
        Some(TooManyDefaults)
    );
    let mut left = 15_000;
    assert!(schemas.with_defaults(&small, &mut left).is_ok());
    assert!(left < 6_000);
    assert_eq!(
        schemas.with_defaults(&small, &mut left).err(),
        Some(TooManyDefaults)
    );
}

#[test]
fn malformed_crds_have_no_defaults() {
    for versions in [
        json!(null),
        json!({}),
        json!([1, {"name": "v1"}]),
        json!([{"name": "v1", "schema": {"openAPIV3Schema": 1}}]),
    ] {
        let crd = crd(json!({"versions": versions}));
        assert_eq!(spec_with_defaults(&crd, "v1", json!({})), json!({}));
    }
}

#[test]
fn a_crd_is_decoded_once_for_all_objects_of_its_kind() {
    let schema = json!({"properties": {"a": {"default": 1}}});
    let crd = crd(json!({"versions": [version("v1", true, &schema)]}));
    let mut schemas = CrdSchemas::of([&crd]);
    let kind = GroupKind::new("g", "P");
    let is_decoded = |schemas: &CrdSchemas| {
        let definition = schemas.definition(&kind).unwrap();
        definition.spec.get().is_some()
    };
    assert!(!is_decoded(&schemas));
    let expected = json!({"a": 1});
    for _ in 0..2 {
        let object = with_defaults(&schemas, &policy("v1", json!({})));
        assert_eq!(object.body.get("spec").as_ref(), Some(&expected));
        assert!(is_decoded(&schemas));
    }
    // They are not kept in memory.
    schemas.forget_decoded();
    assert!(!is_decoded(&schemas));
    let object = with_defaults(&schemas, &policy("v1", json!({})));
    assert_eq!(object.body.get("spec"), Some(expected));
}

/// What is said of the fields of a spec that a schema does not have.
fn unknown(schema: &Value, spec: Value) -> Option<String> {
    let crd = crd(json!({"versions": [version("v1", true, schema)]}));
    let schemas = CrdSchemas::of([&crd]);
    let completed = schemas.with_defaults(&policy("v1", spec), &mut { usize::MAX });
    let unknown = completed.unwrap().unknown;
    unknown.map(|unknown| unknown.to_string())
}

#[test]
fn fields_that_the_schema_does_not_have_are_told() {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {
        "timeout": {"type": "object", "properties": {"http": text}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"name": text}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": text}}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": {"type": "object", "properties": {"b": text}}}},
        "all": {"type": "object", "additionalProperties": true},
        "object": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": text}},
        "nothing": {"type": "object"},
    }});
    let good = json!({
        "timeout": {"http": "1s"}, "list": [{"name": "a"}], "map": {"x": {"a": "1"}},
        "any": {"more": {"x": 1}, "a": {"b": "c"}}, "all": {"x": {"y": 1}},
        "object": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": "s"},
    });
    assert_eq!(unknown(&schema, good), None);
    for (odd, expected) in [
        (
            json!({"list": [{"name": "a", "nam": "b"}]}),
            "`spec.list.nam`",
        ),
        (json!({"map": {"x": {"b": "1"}}}), "`spec.map.x.b`"),
        (json!({"any": {"a": {"x": 1}}}), "`spec.any.a.x`"),
        (json!({"object": {"status": 1}}), "`spec.object.status`"),
        (json!({"nothing": {"x": 1}}), "`spec.nothing.x`"),
        (
            json!({"timeouts": {}, "x": 1}),
            "`spec.timeouts` (and 1 more)",
        ),
    ] {
        let unknown = unknown(&schema, odd).unwrap();
        let expected = format!("the CRD has no field {expected}: an API server leaves it out");
        assert!(unknown.starts_with(&expected), "{unknown}");
    }
    let misspelt = unknown(&schema, json!({"timeouts": {}}));
    assert!(misspelt.unwrap().ends_with("; did you mean `timeout`?"));
}
