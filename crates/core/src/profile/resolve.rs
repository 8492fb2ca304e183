//! From a document to a resolved profile: defaults are filled, contradictions refused.

use super::document::{ClassDoc, KindDoc, ProfileDocument, ProfileError, RulesDoc, ScopeDoc, Spec};
use super::label::PolicyLabel;
use super::{PolicyClass, Profile, ProfileOrigin, TargetKinds};
use crate::model::{GroupKind, Strategy};

use super::settings as set;

type SettingResult<T> = Result<T, String>;

impl Profile {
    /// Resolves a document: presets and defaults are filled, contradictions refused. The label of
    /// the CRD gives the class where the document does not.
    ///
    /// # Errors
    /// The place and the contradiction.
    pub fn resolve(
        document: &ProfileDocument,
        origin: ProfileOrigin,
        label: Option<PolicyLabel>,
        place: &str,
    ) -> Result<Self, ProfileError> {
        resolve(document, origin, label)
            .map_err(|reason| ProfileError::new(place.to_owned(), reason))
    }

    /// The profile of a kind that is known by the label of its CRD alone: preset `gep713` with
    /// both blocks allowed, or preset `direct` (specification 2.1).
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
        // GatewayClass only for cluster-scoped kinds (specification 3.1).
        profile.targets = TargetKinds::Any {
            gateway_class: cluster_scoped,
        };
        Ok(profile)
    }
}

fn resolve(
    document: &ProfileDocument,
    origin: ProfileOrigin,
    label: Option<PolicyLabel>,
) -> SettingResult<Profile> {
    from_spec(document.spec.clone(), document.name(), origin, label)
}

fn from_spec(
    spec: Spec,
    name: &str,
    origin: ProfileOrigin,
    label: Option<PolicyLabel>,
) -> SettingResult<Profile> {
    let spec = super::preset::expand(spec)?;
    let class = class(&spec, label);
    let strategies = strategies(&spec, class)?;
    let profile = Profile {
        name: name.into(),
        origin,
        policy: set::kind(&spec.policy),
        cluster_scoped: spec.scope == Some(ScopeDoc::Cluster),
        controllers: set::texts(spec.controllers.as_deref()),
        mesh: spec.mesh.unwrap_or(true),
        class,
        targets: set::targets(spec.targets.as_deref()),
        effective: set::effective(spec.effective_target, class),
        namespace_reaches: set::reaches(spec.namespace_reaches.as_deref()),
        virtual_targets: set::kinds(spec.virtual_targets.as_deref()),
        attach: set::forms(spec.attach.as_deref()),
        root_namespace: spec.root_namespace.as_deref().map(Into::into),
        workload_selector: set::field_path(spec.workload_selector.as_deref(), "workloadSelector")?,
        unnamed_rules: set::unnamed_rules(spec.unnamed_rules.as_deref())?,
        cross_namespace: set::cross(spec.cross_namespace),
        max_targets: spec.max_targets.unwrap_or(16),
        rules: set::layout(spec.rules.unwrap_or_default(), class)?,
        strategy_choice: set::strategy_choice(spec.strategy.unwrap_or_default(), &strategies)?,
        strategies,
        rule_maps: set::dotted_list(spec.rule_maps.as_deref(), "ruleMaps")?,
        list_keys: set::list_keys(spec.list_keys.into_iter().flatten())?,
        atomic_paths: set::dotted_list(spec.atomic_paths.as_deref(), "atomicPaths")?,
        reducers: set::each(spec.reducers.as_deref(), set::reducer)?,
        fold: set::fold(spec.fold),
        span: set::span(spec.span),
        same_target: set::same_target(spec.same_target, class),
        order: set::each(spec.order.as_deref(), set::order)?,
        empty: set::empty(spec.empty),
        empty_unless: set::dotted_list(spec.empty_unless.as_deref(), "emptyUnless")?,
        own_fields: set::each(spec.own_fields.as_deref(), set::own_field)?,
        trust_status: spec.trust_status.unwrap_or(false),
        status: set::status(spec.status.as_ref()),
    };
    super::validate::validate(&profile)?;
    Ok(profile)
}

/// The document's class, else the CRD's label, else Inherited; `None` as the only strategy means
/// Direct.
fn class(spec: &Spec, label: Option<PolicyLabel>) -> PolicyClass {
    match (spec.class, label) {
        (Some(ClassDoc::Direct), _) => PolicyClass::Direct,
        (Some(ClassDoc::Inherited), _) => PolicyClass::Inherited,
        (Some(ClassDoc::Listed), _) => PolicyClass::Listed,
        (None, Some(PolicyLabel::Direct)) if spec.strategies.is_none() => PolicyClass::Direct,
        (None, _) if only_none(spec) => PolicyClass::Direct,
        (None, _) => PolicyClass::Inherited,
    }
}

fn only_none(spec: &Spec) -> bool {
    spec.strategies.as_ref().is_some_and(|list| {
        !list.is_empty()
            && list
                .iter()
                .all(|s| Strategy::parse(s) == Some(Strategy::None))
    })
}

fn strategies(spec: &Spec, class: PolicyClass) -> SettingResult<Vec<Strategy>> {
    let given = match (&spec.strategies, class) {
        (Some(list), _) => list.clone(),
        (None, PolicyClass::Direct) => vec!["None".to_owned()],
        (None, PolicyClass::Listed) => Vec::new(),
        (None, PolicyClass::Inherited) => [
            "AtomicDefaults",
            "PatchDefaults",
            "AtomicOverrides",
            "PatchOverrides",
        ]
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
