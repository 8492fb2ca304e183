//! Resolution of single settings of a document: parses values and fills defaults.

use super::document::{
    AttachmentForm, FieldDefaultDoc, InstanceDoc, KindDoc, ListenerSetsDoc, OneOrMany, OrderDoc,
    OwnFieldDoc, ReduceDoc, ReducerDoc, ReferenceDoc, RulesDoc, SpanDoc, SpanName, StatusDoc,
    StrategyDoc, StrategyOwner, TargetDoc,
};
use super::{
    AttachmentForms, EffectiveTarget, FieldDefault, FieldReference, FoldSpan, InstanceField,
    ListenerSetReach, OrderRule, OrderSource, OwnField, PolicyClass, ReduceFunction, Reducer,
    RulesLayout, SameTarget, StatusStyle, StrategyChoice, StrategyField, StrategyValue, TargetKind,
    TargetKinds,
};
use crate::expr::Expression;
use crate::model::{
    FieldStep, Granularity, GroupKind, Level, Str, Strategy, groups, parse_field_path,
};

type SettingResult<T> = Result<T, String>;

/// Normalizes a kind: XListenerSet means ListenerSet (specification 1.1), and `core` the empty group
/// (specification 3.1).
pub(super) fn kind(doc: &KindDoc) -> GroupKind {
    super::read::normalize_kind(&doc.group, &doc.kind)
}

/// Virtual targets are targets, without sections unless they are listed with them (specification 3.2).
pub(super) fn targets(
    given: Option<&[TargetDoc]>,
    virtual_targets: &[GroupKind],
) -> SettingResult<TargetKinds> {
    let Some(given) = given else {
        return Ok(TargetKinds::Any {
            gateway_class: false,
        });
    };
    let mut list: Vec<TargetKind> = Vec::new();
    for doc in given {
        let target = super::forbidden::target(doc)?;
        if !list.iter().any(|t| t.kind == target.kind) {
            list.push(target);
        }
    }
    for kind in virtual_targets {
        if !list.iter().any(|target| target.kind == *kind) {
            list.push(TargetKind::without_sections(kind.clone()));
        }
    }
    Ok(TargetKinds::Listed(list))
}

/// By default, a policy on a whole Gateway applies to the listeners of ListenerSets, except for Direct kinds
/// that can target ListenerSets themselves (specification 7.4, 7.5).
pub(super) fn listener_sets(
    given: Option<&ListenerSetsDoc>,
    class: PolicyClass,
    targets: &TargetKinds,
) -> ListenerSetReach {
    let kind = GroupKind::new(groups::GATEWAY, "ListenerSet");
    let is_apart = class == PolicyClass::Direct && targets.sections_of(&kind).is_some();
    ListenerSetReach {
        from_gateway: given.and_then(|g| g.from_gateway).unwrap_or(!is_apart),
        gateway_sections: given.and_then(|g| g.gateway_sections).unwrap_or(false),
    }
}

/// The default effective target is Every, and the target itself for Direct kinds.
pub(super) fn effective(given: Option<EffectiveTarget>, class: PolicyClass) -> EffectiveTarget {
    given.unwrap_or(match class {
        PolicyClass::Direct => EffectiveTarget::Target,
        _ => EffectiveTarget::Every,
    })
}

pub(super) fn reaches(given: Option<Vec<Level>>) -> Vec<Level> {
    let default = [
        Level::Gateway,
        Level::ListenerSet,
        Level::Route,
        Level::Backend,
    ];
    given.unwrap_or_else(|| default.to_vec())
}

pub(super) fn texts(given: Option<&[String]>) -> Vec<Str> {
    given
        .unwrap_or_default()
        .iter()
        .map(|t| t.as_str().into())
        .collect()
}

pub(super) fn kinds(given: Option<&[KindDoc]>) -> Vec<GroupKind> {
    given.unwrap_or_default().iter().map(kind).collect()
}

/// Resolves each entry of a list.
pub(super) fn each<D, T>(
    given: Option<&[D]>,
    resolve: impl Fn(&D) -> SettingResult<T>,
) -> SettingResult<Vec<T>> {
    given.unwrap_or_default().iter().map(resolve).collect()
}

pub(super) fn forms(given: Option<&[AttachmentForm]>) -> AttachmentForms {
    let given = given.unwrap_or(&[AttachmentForm::Refs]);
    AttachmentForms {
        refs: given.contains(&AttachmentForm::Refs),
        filter: given.contains(&AttachmentForm::Filter),
        namespace: given.contains(&AttachmentForm::Namespace),
    }
}

pub(super) fn field_path(
    text: Option<&str>,
    setting: &str,
) -> SettingResult<Option<Vec<FieldStep>>> {
    text.map(|text| {
        parse_field_path(text).ok_or_else(|| format!("{setting}: `{text}` is not a field path"))
    })
    .transpose()
}

pub(super) fn workload_selector(text: Option<&str>) -> SettingResult<Option<Vec<FieldStep>>> {
    field_path(text, "workloadSelector")
}

pub(super) fn unnamed_rules(text: Option<&str>) -> SettingResult<Option<(String, String)>> {
    text.map(|text| {
        text.split_once("{n}")
            .map(|(before, after)| (before.to_owned(), after.to_owned()))
            .ok_or_else(|| format!("unnamedRules: `{text}` does not contain `{{n}}`"))
    })
    .transpose()
}

pub(super) fn layout(doc: RulesDoc, class: PolicyClass) -> SettingResult<RulesLayout> {
    let path = doc.path.unwrap_or_else(|| "spec".to_owned());
    let blocks = |given: Option<Vec<String>>, names: [&str; 2]| match given {
        Some(given) => given,
        None if class == PolicyClass::Inherited => names.map(str::to_owned).to_vec(),
        None => Vec::new(),
    };
    Ok(RulesLayout {
        path: parse_field_path(&path)
            .ok_or_else(|| format!("rules.path: `{path}` is not a field path"))?,
        exclude: doc.exclude.unwrap_or_default(),
        defaults: blocks(doc.defaults, ["defaults", "default"]),
        overrides: blocks(doc.overrides, ["overrides", "override"]),
        both_blocks: doc.both_blocks.unwrap_or(true),
        mix_with_bare: doc.mix_with_bare.unwrap_or(false),
        when: doc.when,
        unset: doc.unset,
    })
}

pub(super) fn strategy_choice(
    doc: StrategyDoc,
    strategies: &[Strategy],
) -> SettingResult<StrategyChoice> {
    let names = match doc.field {
        Some(OneOrMany::One(name)) => vec![name],
        Some(OneOrMany::Many(names)) => names,
        // A kind with a single strategy has no strategy field (specification 11.6).
        None if strategies.len() > 1 => vec!["strategy".to_owned()],
        None => Vec::new(),
    };
    let fields = names
        .into_iter()
        .map(|name| {
            if !name.contains('.') {
                return Ok(StrategyField::Name(name));
            }
            parse_field_path(&name)
                .map(StrategyField::Path)
                .ok_or_else(|| format!("strategy.field: `{name}` is not a field path"))
        })
        .collect::<SettingResult<_>>()?;
    let values = doc
        .values
        .into_iter()
        .flatten()
        .map(|(raw, meaning)| Ok((raw, choice(&meaning, "strategy.values")?)))
        .collect::<SettingResult<_>>()?;
    Ok(StrategyChoice {
        fields,
        lower: doc.owner == Some(StrategyOwner::Lower),
        annotation: doc.annotation,
        values,
        default: doc
            .default
            .map(|text| choice(&text, "strategy.default"))
            .transpose()?,
    })
}

pub(super) fn choice(text: &str, setting: &str) -> SettingResult<StrategyValue> {
    Granularity::parse(text)
        .map(StrategyValue::Granularity)
        .or_else(|| Strategy::parse(text).map(StrategyValue::Strategy))
        .ok_or_else(|| format!("{setting}: `{text}` is neither a granularity nor a strategy"))
}

pub(super) fn dotted(text: &str, setting: &str) -> SettingResult<Vec<String>> {
    let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
    if parts.iter().any(String::is_empty) {
        return Err(format!("{setting}: `{text}` has an empty part"));
    }
    Ok(parts)
}

pub(super) fn dotted_list(
    texts: Option<&[String]>,
    setting: &str,
) -> SettingResult<Vec<Vec<String>>> {
    texts
        .unwrap_or_default()
        .iter()
        .map(|text| dotted(text, setting))
        .collect()
}

pub(super) fn list_keys(
    given: impl Iterator<Item = (String, String)>,
) -> SettingResult<Vec<(Vec<String>, String)>> {
    given
        .map(|(path, key)| Ok((dotted(&path, "listKeys")?, key)))
        .collect()
}

pub(super) fn reducer(doc: &ReducerDoc) -> SettingResult<Reducer> {
    let reduce = match &doc.reduce {
        ReduceDoc::Name(function) => function.clone(),
        ReduceDoc::Cel { cel: source } => ReduceFunction::Cel(
            Expression::compile(source).map_err(|e| format!("reducers: `{source}` {e}"))?,
        ),
    };
    let custom = ["CustomDefaults", "CustomOverrides"].map(str::to_owned);
    let strategies = doc.strategies.as_deref().unwrap_or(&custom).iter();
    Ok(Reducer {
        path: dotted(&doc.path, "reducers.path")?,
        reduce,
        strategies: strategies
            .map(|text| {
                Strategy::parse(text)
                    .ok_or_else(|| format!("reducers.strategies: unknown strategy `{text}`"))
            })
            .collect::<SettingResult<_>>()?,
    })
}

pub(super) fn instance_field(doc: &InstanceDoc) -> SettingResult<InstanceField> {
    Ok(InstanceField {
        path: dotted(&doc.path, "instances.path")?,
        key: match &doc.key {
            Some(key) => dotted(key, "instances.key")?,
            None => Vec::new(),
        },
        disable: doc.disable.clone(),
    })
}

/// The maps of named rules; fields with instances are such maps (specification 5.11).
pub(super) fn rule_maps(
    given: Option<&[String]>,
    instances: &[InstanceField],
) -> SettingResult<Vec<Vec<String>>> {
    let mut maps = dotted_list(given, "ruleMaps")?;
    maps.extend(instances.iter().map(|field| field.path.clone()));
    Ok(maps)
}

pub(super) fn span(given: Option<SpanDoc>) -> FoldSpan {
    match given {
        None | Some(SpanDoc::Name(SpanName::AllLevels)) => FoldSpan::AllLevels,
        Some(SpanDoc::Name(SpanName::ClosestParent)) => FoldSpan::ClosestParent(Vec::new()),
        Some(SpanDoc::Levels { closest_parent }) => FoldSpan::ClosestParent(closest_parent),
    }
}

/// The default is Established, and RejectNewer for Direct kinds.
pub(super) fn same_target(given: Option<SameTarget>, class: PolicyClass) -> SameTarget {
    given.unwrap_or(match class {
        PolicyClass::Direct => SameTarget::RejectNewer,
        _ => SameTarget::Established,
    })
}

pub(super) fn order(doc: &OrderDoc) -> SettingResult<OrderRule> {
    let source = match (&doc.field, &doc.annotation) {
        (Some(field), None) => OrderSource::Field(
            parse_field_path(field)
                .ok_or_else(|| format!("order.field: `{field}` is not a field path"))?,
        ),
        (None, Some(annotation)) => OrderSource::Annotation(annotation.clone()),
        _ => return Err("order: give either `field` or `annotation`".to_owned()),
    };
    Ok(OrderRule {
        source,
        descending: doc.descending,
        values: doc.values.clone(),
    })
}

pub(super) fn field_default(doc: &FieldDefaultDoc) -> SettingResult<FieldDefault> {
    Ok(FieldDefault {
        path: dotted(&doc.path, "fieldDefaults.path")?,
        value: doc.value.clone(),
    })
}

pub(super) fn own_field(doc: &OwnFieldDoc) -> SettingResult<OwnField> {
    Ok(OwnField {
        object: parse_field_path(&doc.object)
            .ok_or_else(|| format!("ownFields.object: `{}` is not a field path", doc.object))?,
        policy: dotted(&doc.policy, "ownFields.policy")?,
        mode: doc.mode.unwrap_or_default(),
    })
}

pub(super) fn reference(doc: &ReferenceDoc) -> SettingResult<FieldReference> {
    let path = |text: &str| {
        let path = parse_field_path(text);
        let is_usable = |step: &FieldStep| matches!(step, FieldStep::Field(_) | FieldStep::Any);
        path.filter(|path| path.iter().all(is_usable))
            .ok_or_else(|| format!("references: `{text}` is not a path of fields and `[*]`"))
    };
    let reference = FieldReference {
        path: path(&doc.path)?,
        kind: super::read::normalize_kind(&doc.group, doc.kind.as_deref().unwrap_or("Service")),
        one_is_enough: doc.one_is_enough.unwrap_or(false),
        fail_open: doc.fail_open.as_deref().map(path).transpose()?,
        reason: doc.reason.as_deref().unwrap_or("Invalid").into(),
    };
    // What is left out is an object, or an item of one list.
    let holder = reference.fail_open.as_deref().map(|path| path.split_last());
    let suits = |holder: &[FieldStep]| {
        let lists = holder.iter().filter(|step| **step == FieldStep::Any);
        let at_end = holder.last() == Some(&FieldStep::Any);
        !holder.is_empty()
            && reference.path.starts_with(holder)
            && lists.count() == usize::from(at_end)
    };
    match holder {
        Some(Some((FieldStep::Field(_), holder))) if suits(holder) => Ok(reference),
        None => Ok(reference),
        _ => Err(format!(
            "references.failOpen: `{}` is not a field of an object, or of an item of one list, above `{}`",
            doc.fail_open.as_deref().unwrap_or_default(),
            doc.path
        )),
    }
}

pub(super) fn status(given: Option<&StatusDoc>) -> StatusStyle {
    StatusStyle {
        vocabulary: given.and_then(|s| s.vocabulary).unwrap_or_default(),
        ancestor: given.and_then(|s| s.ancestor).unwrap_or_default(),
    }
}

/// Returns the level of a target kind. Kinds outside the hierarchy are backends.
pub fn target_level(kind: &GroupKind) -> Level {
    match (&*kind.group, &*kind.kind) {
        (groups::CORE, "Namespace") => Level::Namespace,
        (groups::GATEWAY, "GatewayClass") => Level::GatewayClass,
        (groups::GATEWAY, "Gateway") => Level::Gateway,
        (groups::GATEWAY, "ListenerSet") => Level::ListenerSet,
        (groups::GATEWAY, kind) if kind.ends_with("Route") => Level::Route,
        _ => Level::Backend,
    }
}
