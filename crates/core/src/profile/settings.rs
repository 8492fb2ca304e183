//! Single settings of a document: what each word means, and what is filled in.

use super::document::{
    AttachDoc, CrossNamespaceDoc, EffectiveTargetDoc, EmptyDoc, FoldDoc, KindDoc,
    NamespaceReachDoc, OneOrMany, OrderDoc, OwnFieldDoc, OwnerDoc, ReduceDoc, ReduceName,
    ReducerDoc, RulesDoc, SameTargetDoc, SpanDoc, SpanLevel, SpanName, StatusDoc, StrategyDoc,
    TargetDoc, VocabularyDoc,
};
use super::{
    Ancestor, AttachmentForms, CrossNamespace, EffectiveTarget, EmptyBehavior, FoldOrder, FoldSpan,
    OrderRule, OrderSource, OwnField, PolicyClass, ReduceFunction, Reducer, RulesLayout,
    SameTarget, StatusStyle, StrategyChoice, StrategyField, StrategyValue, TargetKind, TargetKinds,
    Vocabulary,
};
use crate::expr::Expression;
use crate::model::{
    FieldStep, Granularity, GroupKind, Level, Str, Strategy, groups, parse_field_path,
};

type SettingResult<T> = Result<T, String>;

/// XListenerSet counts as ListenerSet (specification 1.1); `core` is the empty group (specification 3.1).
pub(super) fn kind(doc: &KindDoc) -> GroupKind {
    super::read::normalize_kind(&doc.group, &doc.kind)
}

pub(super) fn targets(given: Option<&[TargetDoc]>) -> TargetKinds {
    let Some(given) = given else {
        return TargetKinds::Any {
            gateway_class: false,
        };
    };
    let mut list: Vec<TargetKind> = Vec::new();
    for doc in given {
        let target = TargetKind {
            kind: super::read::normalize_kind(&doc.group, &doc.kind),
            sections: doc.sections.unwrap_or(true),
        };
        if !list.iter().any(|t| t.kind == target.kind) {
            list.push(target);
        }
    }
    TargetKinds::Listed(list)
}

pub(super) fn effective(given: Option<EffectiveTargetDoc>, class: PolicyClass) -> EffectiveTarget {
    let level = match given {
        None if class == PolicyClass::Direct => return EffectiveTarget::Target,
        None | Some(EffectiveTargetDoc::Every) => return EffectiveTarget::Every,
        Some(EffectiveTargetDoc::GatewayClass) => Level::GatewayClass,
        Some(EffectiveTargetDoc::Gateway) => Level::Gateway,
        Some(EffectiveTargetDoc::Listener) => Level::Listener,
        Some(EffectiveTargetDoc::Route) => Level::Route,
        Some(EffectiveTargetDoc::RouteRule) => Level::RouteRule,
        Some(EffectiveTargetDoc::Backend) => Level::Backend,
        Some(EffectiveTargetDoc::BackendPort) => Level::BackendPort,
    };
    EffectiveTarget::Level(level)
}

pub(super) fn reaches(given: Option<&[NamespaceReachDoc]>) -> Vec<Level> {
    let all = [
        NamespaceReachDoc::Gateway,
        NamespaceReachDoc::ListenerSet,
        NamespaceReachDoc::Route,
        NamespaceReachDoc::Backend,
    ];
    given
        .unwrap_or(&all)
        .iter()
        .map(|reach| match reach {
            NamespaceReachDoc::Gateway => Level::Gateway,
            NamespaceReachDoc::ListenerSet => Level::ListenerSet,
            NamespaceReachDoc::Route => Level::Route,
            NamespaceReachDoc::Backend => Level::Backend,
        })
        .collect()
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

/// Each entry of a list, checked.
pub(super) fn each<D, T>(
    given: Option<&[D]>,
    check: impl Fn(&D) -> SettingResult<T>,
) -> SettingResult<Vec<T>> {
    given.unwrap_or_default().iter().map(check).collect()
}

pub(super) fn fold(given: Option<FoldDoc>) -> FoldOrder {
    match given {
        Some(FoldDoc::TopDown) => FoldOrder::TopDown,
        Some(FoldDoc::BottomUp) | None => FoldOrder::BottomUp,
    }
}

pub(super) fn empty(given: Option<EmptyDoc>) -> EmptyBehavior {
    match given {
        Some(EmptyDoc::Blocking) => EmptyBehavior::Blocking,
        Some(EmptyDoc::Transparent) | None => EmptyBehavior::Transparent,
    }
}

pub(super) fn forms(given: Option<&[AttachDoc]>) -> AttachmentForms {
    let given = given.unwrap_or(&[AttachDoc::Refs]);
    AttachmentForms {
        refs: given.contains(&AttachDoc::Refs),
        filter: given.contains(&AttachDoc::Filter),
        namespace: given.contains(&AttachDoc::Namespace),
    }
}

pub(super) fn field_path(
    text: Option<&str>,
    setting: &str,
) -> SettingResult<Option<Vec<FieldStep>>> {
    text.map(|text| {
        parse_field_path(text).ok_or_else(|| format!("{setting}: `{text}` is no field path"))
    })
    .transpose()
}

pub(super) fn unnamed_rules(text: Option<&str>) -> SettingResult<Option<(String, String)>> {
    text.map(|text| {
        text.split_once("{n}")
            .map(|(before, after)| (before.to_owned(), after.to_owned()))
            .ok_or_else(|| format!("unnamedRules: `{text}` lacks `{{n}}`"))
    })
    .transpose()
}

pub(super) fn cross(given: Option<CrossNamespaceDoc>) -> CrossNamespace {
    match given {
        None | Some(CrossNamespaceDoc::Never) => CrossNamespace::Never,
        Some(CrossNamespaceDoc::ReferenceGrant) => CrossNamespace::ReferenceGrant,
        Some(CrossNamespaceDoc::Any) => CrossNamespace::Any,
        Some(CrossNamespaceDoc::Clients) => CrossNamespace::Clients,
    }
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
            .ok_or_else(|| format!("rules.path: `{path}` is no field path"))?,
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
        // With one fixed strategy there is no strategy field (specification 11.6).
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
                .ok_or_else(|| format!("strategy.field: `{name}` is no field path"))
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
        lower: doc.owner == Some(OwnerDoc::Lower),
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
        ReduceDoc::Name(ReduceName::Min) => ReduceFunction::Min,
        ReduceDoc::Name(ReduceName::Max) => ReduceFunction::Max,
        ReduceDoc::Name(ReduceName::And) => ReduceFunction::And,
        ReduceDoc::Name(ReduceName::Or) => ReduceFunction::Or,
        ReduceDoc::Name(ReduceName::Union) => ReduceFunction::Union,
        ReduceDoc::Name(ReduceName::Intersection) => ReduceFunction::Intersection,
        ReduceDoc::Name(ReduceName::Append) => ReduceFunction::Append,
        ReduceDoc::Name(ReduceName::Prepend) => ReduceFunction::Prepend,
        ReduceDoc::Cel { cel: source } => ReduceFunction::Cel(
            Expression::compile(source).map_err(|e| format!("reducers: `{source}` {e}"))?,
        ),
    };
    Ok(Reducer {
        path: dotted(&doc.path, "reducers.path")?,
        reduce,
    })
}

pub(super) fn span(given: Option<SpanDoc>) -> FoldSpan {
    match given {
        None | Some(SpanDoc::Word(SpanName::AllLevels)) => FoldSpan::AllLevels,
        Some(SpanDoc::Word(SpanName::ClosestParent)) => FoldSpan::ClosestParent(Vec::new()),
        Some(SpanDoc::Levels { closest_parent }) => FoldSpan::ClosestParent(
            closest_parent
                .into_iter()
                .map(|level| match level {
                    SpanLevel::GatewayClass => Level::GatewayClass,
                    SpanLevel::Namespace => Level::Namespace,
                    SpanLevel::Gateway => Level::Gateway,
                    SpanLevel::ListenerSet => Level::ListenerSet,
                    SpanLevel::Listener => Level::Listener,
                    SpanLevel::Route => Level::Route,
                    SpanLevel::RouteRule => Level::RouteRule,
                    SpanLevel::Backend => Level::Backend,
                    SpanLevel::BackendPort => Level::BackendPort,
                })
                .collect(),
        ),
    }
}

pub(super) fn same_target(given: Option<SameTargetDoc>, class: PolicyClass) -> SameTarget {
    match given {
        Some(SameTargetDoc::Established) => SameTarget::Established,
        Some(SameTargetDoc::OldestWins) => SameTarget::OldestWins,
        Some(SameTargetDoc::RejectNewer) => SameTarget::RejectNewer,
        Some(SameTargetDoc::UnionOrReject) => SameTarget::UnionOrReject,
        None if class == PolicyClass::Direct => SameTarget::RejectNewer,
        None => SameTarget::Established,
    }
}

pub(super) fn order(doc: &OrderDoc) -> SettingResult<OrderRule> {
    let source = match (&doc.field, &doc.annotation) {
        (Some(field), None) => OrderSource::Field(
            parse_field_path(field)
                .ok_or_else(|| format!("order.field: `{field}` is no field path"))?,
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

pub(super) fn own_field(doc: &OwnFieldDoc) -> SettingResult<OwnField> {
    Ok(OwnField {
        object: parse_field_path(&doc.object)
            .ok_or_else(|| format!("ownFields.object: `{}` is no field path", doc.object))?,
        policy: dotted(&doc.policy, "ownFields.policy")?,
    })
}

pub(super) fn status(given: Option<&StatusDoc>) -> StatusStyle {
    use super::document::AncestorDoc;
    let given = given
        .map(|s| (s.vocabulary, s.ancestor))
        .unwrap_or_default();
    StatusStyle {
        vocabulary: match given.0 {
            None | Some(VocabularyDoc::Programmed) => Vocabulary::Programmed,
            Some(VocabularyDoc::Enforced) => Vocabulary::Enforced,
            Some(VocabularyDoc::EnforcedWithAdditions) => Vocabulary::EnforcedWithAdditions,
        },
        ancestor: match given.1 {
            None | Some(AncestorDoc::Gateway) => Ancestor::Gateway,
            Some(AncestorDoc::Target) => Ancestor::Target,
            Some(AncestorDoc::None) => Ancestor::None,
        },
    }
}

/// The level that a target kind stands on; kinds outside the hierarchy are backends.
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
