//! From a document to a resolved profile: defaults are filled, contradictions refused.

use super::document::{
    AttachDoc, ClassDoc, CrossDoc, Document, EffectiveDoc, EmptyDoc, FoldDoc, KindDoc, OneOrMany,
    OrderDoc, OwnDoc, OwnerDoc, ProfileError, ReachDoc, ReduceDoc, ReduceName, ReducerDoc,
    RulesDoc, SameDoc, ScopeDoc, SpanDoc, SpanLevel, SpanWord, Spec, StatusDoc, StrategyDoc,
    TargetDoc, VocabularyDoc,
};
use super::label::PolicyLabel;
use super::{
    Ancestor, Choice, Chooser, Class, CrossNamespace, EffectiveTarget, Empty, Fold, Forms,
    OrderRule, OrderSource, OwnField, Profile, ProfileOrigin, Reduce, Reducer, RulesLayout,
    SameTarget, Span, StatusStyle, StrategyField, Target, Targets, Vocabulary,
};
use crate::expr::Expression;
use crate::model::{
    FieldStep, Granularity, GroupKind, Level, Strategy, groups, parse_field_path,
};

type Checked<T> = Result<T, String>;

impl Profile {
    /// Resolves a document: presets and defaults are filled, contradictions refused. The label of
    /// the CRD gives the class where the document does not.
    ///
    /// # Errors
    /// The place and the contradiction.
    pub fn resolve(
        document: &Document,
        origin: ProfileOrigin,
        label: Option<PolicyLabel>,
        place: &str,
    ) -> Result<Self, ProfileError> {
        resolve(document, origin, label)
            .map_err(|reason| ProfileError::new(place.to_owned(), reason))
    }

    /// The profile of a kind that is known by the label of its CRD alone: preset `gep713` with
    /// both blocks allowed, or preset `direct` (SEMANTICS §2.1).
    ///
    /// # Errors
    /// None in practice; the presets are checked like any other profile.
    pub fn derive(
        kind: &GroupKind,
        crd_name: &str,
        cluster_scoped: bool,
        label: PolicyLabel,
    ) -> Result<Self, ProfileError> {
        let (preset, rules) = match label {
            PolicyLabel::Direct => ("direct", None),
            PolicyLabel::Inherited => (
                "gep713",
                Some(RulesDoc {
                    both_blocks: Some(true),
                    ..RulesDoc::default()
                }),
            ),
        };
        let spec = Spec {
            preset: Some(preset.to_owned()),
            policy: KindDoc {
                group: kind.group.to_string(),
                kind: kind.kind.to_string(),
            },
            scope: cluster_scoped.then_some(ScopeDoc::Cluster),
            rules,
            ..Spec::default()
        };
        let mut profile = from_spec(spec, crd_name, ProfileOrigin::Derived, Some(label))
            .map_err(|reason| ProfileError::new(crd_name.to_owned(), reason))?;
        // GatewayClass only for cluster-scoped kinds (SEMANTICS §3.1).
        profile.targets = Targets::Any {
            gateway_class: cluster_scoped,
        };
        Ok(profile)
    }
}

fn resolve(
    document: &Document,
    origin: ProfileOrigin,
    label: Option<PolicyLabel>,
) -> Checked<Profile> {
    from_spec(document.spec.clone(), document.name(), origin, label)
}

fn from_spec(
    spec: Spec,
    name: &str,
    origin: ProfileOrigin,
    label: Option<PolicyLabel>,
) -> Checked<Profile> {
    let spec = super::preset::expand(spec)?;
    let class = class(&spec, label);
    let strategies = strategies(&spec, class)?;
    let profile = Profile {
        name: name.into(),
        origin,
        policy: kind(&spec.policy),
        cluster_scoped: spec.scope == Some(ScopeDoc::Cluster),
        controllers: spec.controllers.iter().flatten().map(|c| c.as_str().into()).collect(),
        mesh: spec.mesh.unwrap_or(true),
        class,
        targets: targets(spec.targets.as_deref()),
        effective: effective(spec.effective_target, class),
        namespace_reaches: reaches(spec.namespace_reaches.as_deref()),
        virtual_targets: spec.virtual_targets.iter().flatten().map(kind).collect(),
        attach: forms(spec.attach.as_deref()),
        root_namespace: spec.root_namespace.as_deref().map(Into::into),
        workload_selector: field_path(spec.workload_selector.as_deref(), "workloadSelector")?,
        unnamed_rules: unnamed_rules(spec.unnamed_rules.as_deref())?,
        cross_namespace: cross(spec.cross_namespace),
        max_targets: spec.max_targets.unwrap_or(16),
        rules: layout(spec.rules.unwrap_or_default(), class)?,
        chooser: chooser(spec.strategy.unwrap_or_default(), &strategies)?,
        strategies,
        rule_maps: dotted_list(spec.rule_maps.as_deref(), "ruleMaps")?,
        list_keys: list_keys(spec.list_keys.into_iter().flatten())?,
        atomic_paths: dotted_list(spec.atomic_paths.as_deref(), "atomicPaths")?,
        reducers: spec.reducers.iter().flatten().map(reducer).collect::<Checked<_>>()?,
        fold: match spec.fold {
            Some(FoldDoc::TopDown) => Fold::TopDown,
            _ => Fold::BottomUp,
        },
        span: span(spec.span),
        same_target: same_target(spec.same_target, class),
        order: spec.order.iter().flatten().map(order).collect::<Checked<_>>()?,
        empty: match spec.empty {
            Some(EmptyDoc::Blocking) => Empty::Blocking,
            _ => Empty::Transparent,
        },
        empty_unless: dotted_list(spec.empty_unless.as_deref(), "emptyUnless")?,
        own_fields: spec.own_fields.iter().flatten().map(own_field).collect::<Checked<_>>()?,
        trust_status: spec.trust_status.unwrap_or(false),
        status: status(spec.status.as_ref()),
    };
    super::refuse::contradictions(&profile)?;
    Ok(profile)
}

/// The document's class, else the CRD's label, else Inherited; `None` as the only strategy means
/// Direct.
fn class(spec: &Spec, label: Option<PolicyLabel>) -> Class {
    match (spec.class, label) {
        (Some(ClassDoc::Direct), _) => Class::Direct,
        (Some(ClassDoc::Inherited), _) => Class::Inherited,
        (Some(ClassDoc::Listed), _) => Class::Listed,
        (None, Some(PolicyLabel::Direct)) if spec.strategies.is_none() => Class::Direct,
        (None, _) if only_none(spec) => Class::Direct,
        (None, _) => Class::Inherited,
    }
}

fn only_none(spec: &Spec) -> bool {
    spec.strategies.as_ref().is_some_and(|list| {
        !list.is_empty() && list.iter().all(|s| Strategy::parse(s) == Some(Strategy::None))
    })
}

fn strategies(spec: &Spec, class: Class) -> Checked<Vec<Strategy>> {
    let given = match (&spec.strategies, class) {
        (Some(list), _) => list.clone(),
        (None, Class::Direct) => vec!["None".to_owned()],
        (None, Class::Listed) => Vec::new(),
        (None, Class::Inherited) => ["AtomicDefaults", "PatchDefaults", "AtomicOverrides", "PatchOverrides"]
            .map(str::to_owned)
            .to_vec(),
    };
    given
        .iter()
        .map(|text| {
            Strategy::parse(text).ok_or_else(|| {
                format!(
                    "unknown strategy `{text}`; there are None and Atomic, Rule, Field, Patch, \
                     Structural, Custom, each with Defaults or Overrides"
                )
            })
        })
        .collect()
}

/// XListenerSet counts as ListenerSet (SEMANTICS §1.1); `core` is the empty group (§3.1).
fn kind(doc: &KindDoc) -> GroupKind {
    super::read::normal_kind(&doc.group, &doc.kind)
}

fn targets(given: Option<&[TargetDoc]>) -> Targets {
    let Some(given) = given else {
        return Targets::Any {
            gateway_class: false,
        };
    };
    let mut list: Vec<Target> = Vec::new();
    for doc in given {
        let target = Target {
            kind: super::read::normal_kind(&doc.group, &doc.kind),
            sections: doc.sections.unwrap_or(true),
        };
        if !list.iter().any(|t| t.kind == target.kind) {
            list.push(target);
        }
    }
    Targets::Listed(list)
}

fn effective(given: Option<EffectiveDoc>, class: Class) -> EffectiveTarget {
    let level = match given {
        None if class == Class::Direct => return EffectiveTarget::Target,
        None | Some(EffectiveDoc::Every) => return EffectiveTarget::Every,
        Some(EffectiveDoc::GatewayClass) => Level::GatewayClass,
        Some(EffectiveDoc::Gateway) => Level::Gateway,
        Some(EffectiveDoc::Listener) => Level::Listener,
        Some(EffectiveDoc::Route) => Level::Route,
        Some(EffectiveDoc::RouteRule) => Level::RouteRule,
        Some(EffectiveDoc::Backend) => Level::Backend,
        Some(EffectiveDoc::BackendPort) => Level::BackendPort,
    };
    EffectiveTarget::Level(level)
}

fn reaches(given: Option<&[ReachDoc]>) -> Vec<Level> {
    let all = [
        ReachDoc::Gateway,
        ReachDoc::ListenerSet,
        ReachDoc::Route,
        ReachDoc::Backend,
    ];
    given
        .unwrap_or(&all)
        .iter()
        .map(|reach| match reach {
            ReachDoc::Gateway => Level::Gateway,
            ReachDoc::ListenerSet => Level::ListenerSet,
            ReachDoc::Route => Level::Route,
            ReachDoc::Backend => Level::Backend,
        })
        .collect()
}

fn forms(given: Option<&[AttachDoc]>) -> Forms {
    let given = given.unwrap_or(&[AttachDoc::Refs]);
    Forms {
        refs: given.contains(&AttachDoc::Refs),
        filter: given.contains(&AttachDoc::Filter),
        namespace: given.contains(&AttachDoc::Namespace),
    }
}

fn field_path(text: Option<&str>, setting: &str) -> Checked<Option<Vec<FieldStep>>> {
    text.map(|text| {
        parse_field_path(text).ok_or_else(|| format!("{setting}: `{text}` is no field path"))
    })
    .transpose()
}

fn unnamed_rules(text: Option<&str>) -> Checked<Option<(String, String)>> {
    text.map(|text| {
        text.split_once("{n}")
            .map(|(before, after)| (before.to_owned(), after.to_owned()))
            .ok_or_else(|| format!("unnamedRules: `{text}` lacks `{{n}}`"))
    })
    .transpose()
}

fn cross(given: Option<CrossDoc>) -> CrossNamespace {
    match given {
        None | Some(CrossDoc::Never) => CrossNamespace::Never,
        Some(CrossDoc::ReferenceGrant) => CrossNamespace::ReferenceGrant,
        Some(CrossDoc::Any) => CrossNamespace::Any,
        Some(CrossDoc::Clients) => CrossNamespace::Clients,
    }
}

fn layout(doc: RulesDoc, class: Class) -> Checked<RulesLayout> {
    let path = doc.path.unwrap_or_else(|| "spec".to_owned());
    let blocks = |given: Option<Vec<String>>, names: [&str; 2]| match given {
        Some(given) => given,
        None if class == Class::Inherited => names.map(str::to_owned).to_vec(),
        None => Vec::new(),
    };
    Ok(RulesLayout {
        path: parse_field_path(&path).ok_or_else(|| format!("rules.path: `{path}` is no field path"))?,
        exclude: doc.exclude.unwrap_or_default(),
        defaults: blocks(doc.defaults, ["defaults", "default"]),
        overrides: blocks(doc.overrides, ["overrides", "override"]),
        both_blocks: doc.both_blocks.unwrap_or(true),
        mix_with_bare: doc.mix_with_bare.unwrap_or(false),
        when: doc.when,
        unset: doc.unset,
    })
}

fn chooser(doc: StrategyDoc, strategies: &[Strategy]) -> Checked<Chooser> {
    let names = match doc.field {
        Some(OneOrMany::One(name)) => vec![name],
        Some(OneOrMany::Many(names)) => names,
        // With one fixed strategy there is no strategy field (SEMANTICS §11.6).
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
        .collect::<Checked<_>>()?;
    let values = doc
        .values
        .into_iter()
        .flatten()
        .map(|(raw, meaning)| Ok((raw, choice(&meaning, "strategy.values")?)))
        .collect::<Checked<_>>()?;
    Ok(Chooser {
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

fn choice(text: &str, setting: &str) -> Checked<Choice> {
    Granularity::parse(text)
        .map(Choice::Granularity)
        .or_else(|| Strategy::parse(text).map(Choice::Strategy))
        .ok_or_else(|| format!("{setting}: `{text}` is neither a granularity nor a strategy"))
}

fn dotted(text: &str, setting: &str) -> Checked<Vec<String>> {
    let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
    if parts.iter().any(String::is_empty) {
        return Err(format!("{setting}: `{text}` has an empty part"));
    }
    Ok(parts)
}

fn dotted_list(texts: Option<&[String]>, setting: &str) -> Checked<Vec<Vec<String>>> {
    texts
        .unwrap_or_default()
        .iter()
        .map(|text| dotted(text, setting))
        .collect()
}

fn list_keys(
    given: impl Iterator<Item = (String, String)>,
) -> Checked<Vec<(Vec<String>, String)>> {
    given
        .map(|(path, key)| Ok((dotted(&path, "listKeys")?, key)))
        .collect()
}

fn reducer(doc: &ReducerDoc) -> Checked<Reducer> {
    let reduce = match &doc.reduce {
        ReduceDoc::Name(ReduceName::Min) => Reduce::Min,
        ReduceDoc::Name(ReduceName::Max) => Reduce::Max,
        ReduceDoc::Name(ReduceName::And) => Reduce::And,
        ReduceDoc::Name(ReduceName::Or) => Reduce::Or,
        ReduceDoc::Name(ReduceName::Union) => Reduce::Union,
        ReduceDoc::Name(ReduceName::Intersection) => Reduce::Intersection,
        ReduceDoc::Name(ReduceName::Append) => Reduce::Append,
        ReduceDoc::Name(ReduceName::Prepend) => Reduce::Prepend,
        ReduceDoc::Cel { cel } => Reduce::Cel(
            Expression::compile(cel).map_err(|e| format!("reducers: `{cel}` {e}"))?,
        ),
    };
    Ok(Reducer {
        path: dotted(&doc.path, "reducers.path")?,
        reduce,
    })
}

fn span(given: Option<SpanDoc>) -> Span {
    match given {
        None | Some(SpanDoc::Word(SpanWord::AllLevels)) => Span::AllLevels,
        Some(SpanDoc::Word(SpanWord::ClosestParent)) => Span::ClosestParent(Vec::new()),
        Some(SpanDoc::Levels { closest_parent }) => Span::ClosestParent(
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

fn same_target(given: Option<SameDoc>, class: Class) -> SameTarget {
    match given {
        Some(SameDoc::Established) => SameTarget::Established,
        Some(SameDoc::OldestWins) => SameTarget::OldestWins,
        Some(SameDoc::RejectNewer) => SameTarget::RejectNewer,
        Some(SameDoc::UnionOrReject) => SameTarget::UnionOrReject,
        None if class == Class::Direct => SameTarget::RejectNewer,
        None => SameTarget::Established,
    }
}

fn order(doc: &OrderDoc) -> Checked<OrderRule> {
    let source = match (&doc.field, &doc.annotation) {
        (Some(field), None) => OrderSource::Field(
            parse_field_path(field).ok_or_else(|| format!("order.field: `{field}` is no field path"))?,
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

fn own_field(doc: &OwnDoc) -> Checked<OwnField> {
    Ok(OwnField {
        object: parse_field_path(&doc.object)
            .ok_or_else(|| format!("ownFields.object: `{}` is no field path", doc.object))?,
        policy: dotted(&doc.policy, "ownFields.policy")?,
    })
}

fn status(given: Option<&StatusDoc>) -> StatusStyle {
    use super::document::AncestorDoc;
    let given = given.map(|s| (s.vocabulary, s.ancestor)).unwrap_or_default();
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
pub fn level_of(kind: &GroupKind) -> Level {
    match (&*kind.group, &*kind.kind) {
        (groups::CORE, "Namespace") => Level::Namespace,
        (groups::GATEWAY, "GatewayClass") => Level::GatewayClass,
        (groups::GATEWAY, "Gateway") => Level::Gateway,
        (groups::GATEWAY, "ListenerSet") => Level::ListenerSet,
        (groups::GATEWAY, kind) if kind.ends_with("Route") => Level::Route,
        _ => Level::Backend,
    }
}
