//! Resolution of a document to a profile: fills defaults and refuses contradictions.

use std::sync::Arc;

use super::document::{
    PolicyDoc, ProfileDocument, ProfileError, RulesDoc, Scope, Spec, WhileDeleting,
};
use super::label::PolicyLabel;
use super::{
    AttachmentForms, CrossNamespace, EffectiveTarget, Membership, PolicyClass, PolicySection,
    Profile, ProfileOrigin, SameTarget, TargetKinds, forbidden, limits, settings,
};
use crate::model::{GroupKind, Strategy};

pub(super) type SettingResult<T> = Result<T, String>;

impl Profile {
    /// Resolves a document: fills presets and defaults and refuses contradictions. The label of the
    /// CRD determines the class if the document does not.
    ///
    /// # Errors
    /// The profile is contradictory or malformed. The error has `location` and the reason.
    pub fn resolve(
        document: &ProfileDocument,
        origin: ProfileOrigin,
        label: Option<PolicyLabel>,
        location: &str,
    ) -> Result<Self, ProfileError> {
        from_spec(document.spec.clone(), document.name(), origin, label)
            .map_err(|reason| ProfileError::new(location.to_owned(), reason))
    }

    /// Derives the profile of a kind from the label of its CRD alone: preset `gep713` with both
    /// blocks allowed, or preset `direct` (specification 2.1).
    ///
    /// # Errors
    /// None in practice: the presets are validated like any other profile.
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
            policy: PolicyDoc {
                group: kind.group.to_string(),
                kind: kind.kind.to_string(),
                section: None,
            },
            scope: cluster_scoped.then_some(Scope::Cluster),
            rules,
            ..Spec::default()
        };
        let mut profile = from_spec(spec, crd_name, ProfileOrigin::Derived, Some(label))
            .map_err(|reason| ProfileError::new(crd_name.to_owned(), reason))?;
        // Only cluster-scoped kinds can target a GatewayClass (specification 3.1).
        profile.targets = TargetKinds::Any {
            gateway_class: cluster_scoped,
        };
        Ok(profile)
    }

    /// Stands for the missing profile of a kind: its policies attach wherever they refer to, and are not
    /// interpreted (specification 2.7).
    ///
    /// If other profiles describe sections of the kind, it consists of the objects that have none of them
    /// (specification 2.14).
    ///
    /// # Errors
    /// None in practice: the preset is validated like any other profile.
    pub fn unprofiled(
        kind: &GroupKind,
        sections: Vec<PolicySection>,
    ) -> Result<Self, ProfileError> {
        let label = PolicyLabel::Direct;
        let derived = Self::derive(kind, &kind.to_string(), false, label)?;
        Ok(Self {
            class: PolicyClass::Unprofiled,
            targets: TargetKinds::Any {
                gateway_class: true,
            },
            effective: EffectiveTarget::Every,
            attach: AttachmentForms {
                refs: true,
                filter: true,
                namespace: false,
            },
            cross_namespace: CrossNamespace::Any,
            max_targets: usize::MAX,
            same_target: SameTarget::Established,
            membership: match sections.is_empty() {
                true => Membership::Whole,
                false => Membership::Outside(sections),
            },
            ..derived
        })
    }
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
    let virtual_targets = settings::kinds(spec.virtual_targets.as_deref());
    let targets = settings::targets(spec.targets.as_deref(), &virtual_targets)?;
    let instances = settings::each(spec.instances.as_deref(), settings::instance_field)?;
    let profile = Profile {
        name: name.into(),
        origin,
        resource: spec.policy.kind().resource(),
        membership: super::section::membership(spec.policy.section.as_ref())?,
        policy: spec.policy.kind(),
        cluster_scoped: spec.scope == Some(Scope::Cluster),
        controllers: settings::texts(spec.controllers.as_deref()),
        mesh: spec.mesh.unwrap_or(true),
        class,
        limits: limits::resolve(spec.limits.as_deref(), &targets, &virtual_targets)?,
        effective: settings::effective(spec.effective_target, class),
        namespace_reaches: settings::reaches(spec.namespace_reaches),
        virtual_targets,
        attach: settings::forms(spec.attach.as_deref()),
        root_namespace: spec.root_namespace.as_deref().map(Into::into),
        workload_selector: settings::workload_selector(spec.workload_selector.as_deref())?,
        unnamed_rules: settings::unnamed_rules(spec.unnamed_rules.as_deref())?,
        cross_namespace: spec.cross_namespace.unwrap_or_default(),
        max_targets: spec.max_targets.unwrap_or(16),
        listener_sets: settings::listener_sets(spec.listener_sets.as_ref(), class, &targets),
        conflicts: spec.conflicts.unwrap_or_default(),
        targets,
        rules: settings::layout(spec.rules.unwrap_or_default(), class)?,
        strategy_choice: settings::strategy_choice(spec.strategy.unwrap_or_default(), &strategies)?,
        strategies,
        rule_maps: settings::rule_maps(spec.rule_maps.as_deref(), &instances)?,
        instances,
        list_keys: settings::list_keys(spec.list_keys.into_iter().flatten())?,
        list_order: spec.list_order.unwrap_or_default(),
        delegation: super::delegation::resolve(spec.delegation, class)?,
        generators: Arc::default(),
        route_kinds: super::route_kinds::resolve(spec.route_kinds)?,
        atomic_paths: settings::dotted_list(spec.atomic_paths.as_deref(), "atomicPaths")?,
        reducers: settings::each(spec.reducers.as_deref(), settings::reducer)?,
        fold: spec.fold.unwrap_or_default(),
        span: settings::span(spec.span),
        same_target: settings::same_target(spec.same_target, class),
        order: settings::each(spec.order.as_deref(), settings::order)?,
        empty: spec.empty.unwrap_or_default(),
        empty_unless: settings::dotted_list(spec.empty_unless.as_deref(), "emptyUnless")?,
        field_defaults: settings::each(spec.field_defaults.as_deref(), settings::field_default)?,
        own_fields: settings::each(spec.own_fields.as_deref(), settings::own_field)?,
        references: settings::each(spec.references.as_deref(), settings::reference)?,
        exclusive: settings::each(spec.exclusive.as_deref(), forbidden::exclusive)?,
        trust_status: spec.trust_status.unwrap_or(false),
        waypoints: super::waypoints::resolve(spec.waypoints.as_ref())?,
        ignores_deleted: spec.while_deleting == WhileDeleting::Ignored,
        status: settings::status(spec.status.as_ref()),
        checked: spec.checked,
    };
    super::checked::validate(profile.checked.as_ref())?;
    super::validate::validate(&profile)?;
    Ok(profile)
}

/// Returns the class of the document, else the class of the CRD's label, else Inherited. `None` as the
/// only strategy means Direct.
fn class(spec: &Spec, label: Option<PolicyLabel>) -> PolicyClass {
    match (spec.class, label) {
        (Some(class), _) => class,
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
        (None, PolicyClass::Listed | PolicyClass::Unprofiled) => Vec::new(),
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
                    "unknown strategy `{text}`: the strategies are None, and Atomic, Rule, Field, \
                    Patch, Structural and Custom, each with Defaults or Overrides"
                )
            })
        })
        .collect()
}
