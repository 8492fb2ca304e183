//! Explains effective policies: for each value, the policy that set it, the policies that it
//! overrides, and the reason.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use prost::Message;

use super::lookup::{incomplete_kinds, is_requested, requested_kinds};
use super::paths::{no_path_failure, page, token};
use super::status::scope_levels;
use super::subject::SubjectNodes;
use super::visible::Visible;
use super::{Failure, QuerySubject, Visibility, parameters};
use crate::api::{block, effective_policy, origin, policy_ref, timestamp, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::{AttachmentChain, NodeAttachments, PolicyKind, World};
use entail_core::engine::{ChainId, ChainKey, ChainTable, PathEngine, StateId};
use entail_core::model::{
    BlockName, InternalError, Level, OrInternal, OverriddenPolicy, PathName, PolicyRef, Strategy,
    UnitExplanation,
};
use entail_core::topology::{ListedPath, PathVisitor, TrieNodeId, WalkControl};

/// Maximum number of paths in one response.
const MAX_PATHS: usize = 10_000;

/// Attachment chains with the names of their paths, by index of the kind and number of the chain.
type PathGroups = BTreeMap<(usize, usize), (AttachmentChain, Vec<String>)>;

/// Explains a path, or every path through an object at the effective level of each kind. Paths with
/// the same explanation form one entry of the response.
///
/// # Errors
/// The name is malformed or on no path, the request names too many kinds, or the page token is
/// invalid or belongs to another snapshot.
pub fn explain(
    snapshot: &Snapshot,
    request: &v1::ExplainRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ExplainResponse, Failure> {
    let world = snapshot.world();
    let subject = QuerySubject::read(&request.name, world, visibility)?;
    let requested = requested_kinds(&request.kinds)?;
    let kinds = world.kinds().iter().enumerate();
    let kinds: Vec<(usize, &PolicyKind)> = kinds
        .map(|(number, kind)| (number, &**kind))
        .filter(|(_, kind)| is_requested(&requested, &kind.profile().policy))
        .filter(|(_, kind)| visibility.includes_kind(&kind.profile().policy))
        .collect();
    let (groups, truncated) = match &subject {
        QuerySubject::Path(name) => (explain_path(snapshot, &kinds, name, visibility)?, false),
        QuerySubject::All | QuerySubject::Object(..) => {
            explain_object(snapshot, &kinds, (&subject, &request.name), visibility)?
        }
    };
    let page = page(snapshot, request.page_size, &request.page_token)?;
    let count = groups.len();
    let explained = groups
        .into_iter()
        .enumerate()
        .skip(page.first)
        .take_while(|_| visibility.budget().step())
        .filter_map(|(number, ((kind, _), (chain, paths)))| {
            let (_, kind) = kinds.get(kind)?;
            let explained = explanation(world, kind, &chain);
            let silent = explained.units.is_empty() && explained.nodes.is_empty();
            let policy = explained.policy.as_ref();
            let has_more = policy.is_some_and(|p| !p.rejected.is_empty() || p.unknown.is_some());
            let kinds = vec![explained];
            (!silent || has_more).then_some((number, v1::PathExplanation { paths, kinds }))
        });
    let (mut room, mut next) = (page.room(), count);
    let mut paths: Vec<v1::PathExplanation> = Vec::new();
    for (number, explained) in explained {
        if !room.take(explained.encoded_len()) {
            next = number;
            break;
        }
        paths.push(explained);
    }
    visibility.budget().check()?;
    let version = snapshot.version();
    let states = incomplete_kinds(snapshot, &requested, visibility);
    let names = paths.iter().flat_map(|path| &path.paths);
    let unread_parameters = parameters::of_paths(snapshot, names, visibility);
    Ok(v1::ExplainResponse {
        next_page_token: token(snapshot, next, count),
        paths,
        unread_parameters,
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: states,
        truncated: truncated || visibility.is_truncated(),
    })
}

/// Finds the chains of all kinds on one path.
fn explain_path(
    snapshot: &Snapshot,
    kinds: &[(usize, &PolicyKind)],
    name: &str,
    visibility: &dyn Visibility,
) -> Result<PathGroups, Failure> {
    let engine = snapshot.engine();
    let path = PathName::parse(name).map_err(|error| Failure::syntax(name, &error))?;
    if !visibility.includes_path(name) {
        return Err(Failure::hidden(name, &path));
    }
    let mut groups = PathGroups::new();
    let end = match engine.locate(&path) {
        Ok(Some(end)) => end,
        Ok(None) => {
            let reason = snapshot.path_reason(&path);
            return Err(Failure::not_found(snapshot, name, reason, visibility));
        }
        Err(error) => {
            engine.fail(error);
            return Ok(groups);
        }
    };
    for (index, (number, kind)) in kinds.iter().enumerate() {
        match engine.chain(*number, end.state) {
            Ok(Some(chain)) => {
                groups.insert((index, 0), (chain, vec![name.to_owned()]));
            }
            Ok(None) => {}
            Err(error) => kind.fail(error),
        }
    }
    Ok(groups)
}

/// Finds the chains on every path through an object, at the effective level of each kind.
fn explain_object(
    snapshot: &Snapshot,
    kinds: &[(usize, &PolicyKind)],
    (subject, name): (&QuerySubject, &str),
    visibility: &dyn Visibility,
) -> Result<(PathGroups, bool), Failure> {
    let engine = snapshot.engine();
    let subject_nodes = subject.nodes(engine);
    let scopes = kinds.iter().map(|&(number, kind)| Scopes {
        levels: scope_levels(kind.profile()),
        chains: ChainTable::new(engine, number, kind),
    });
    let mut gatherer = Gatherer {
        engine,
        leads: leads_to(engine, &subject_nodes),
        subject_nodes,
        scopes: scopes.collect(),
        visible: Visible::new(engine, visibility),
        group_numbers: HashMap::new(),
        has_explanation: HashMap::new(),
        groups: PathGroups::new(),
        is_through: false,
        path_count: 0,
        truncated: false,
        failed: None,
    };
    let begin = Walked {
        state: 0,
        through: false,
    };
    let trie = engine.trie();
    let includes: Vec<bool> = trie
        .ids()
        .map(|id| gatherer.subject_nodes.includes(engine, id))
        .collect();
    let step = |walked: Walked, id: TrieNodeId| {
        let included = includes.get(id.index()).copied();
        Ok(Walked {
            state: engine.after(walked.state, id)?,
            through: walked.through || included.or_internal("a trie node")?,
        })
    };
    let walked = engine.visit(None, begin, step, &mut gatherer);
    visibility.budget().check()?;
    if let Some(error) = gatherer.failed.or(walked.err()) {
        engine.fail(error);
    } else if !gatherer.is_through {
        return Err(no_path_failure(snapshot, name, visibility));
    }
    Ok((gatherer.groups, gatherer.truncated))
}

/// Returns for each trie node whether the subject of the query is at the node or below it.
fn leads_to(engine: &PathEngine, subject_nodes: &SubjectNodes) -> Vec<bool> {
    let trie = engine.trie();
    let mut leads: Vec<bool> = Vec::with_capacity(trie.len());
    for (id, node) in trie.ids().zip(trie.nodes()) {
        let is_below = |child: TrieNodeId| leads.get(child.index()).copied().unwrap_or_default();
        leads.push(subject_nodes.includes(engine, id) || trie.below(node).any(is_below));
    }
    leads
}

/// The state of a walk at a trie node.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Walked {
    state: StateId,
    /// Whether the path goes through the subject of the query.
    through: bool,
}

/// The effective levels of a kind, and its chains.
struct Scopes<'e> {
    levels: Vec<Level>,
    chains: ChainTable<'e>,
}

/// Groups the paths through an object by their attachment chains.
struct Gatherer<'e> {
    engine: &'e PathEngine,
    subject_nodes: SubjectNodes,
    /// By trie node: whether the subject of the query is at the node or below it.
    leads: Vec<bool>,
    scopes: Vec<Scopes<'e>>,
    visible: Visible<'e>,
    /// The number of the group of each kind and chain.
    group_numbers: HashMap<(usize, ChainKey), usize>,
    /// Whether a path that ends at a trie node, or below it, has an explanation.
    has_explanation: HashMap<(TrieNodeId, Walked), bool>,
    groups: PathGroups,
    /// Whether a visible path goes through the subject of the query.
    is_through: bool,
    path_count: usize,
    truncated: bool,
    failed: Option<InternalError>,
}

impl Gatherer<'_> {
    /// Returns the chain of a kind on a path at its effective level. If that level is above the
    /// object, the path that ends at the object is used instead.
    fn chain(
        &mut self,
        kind: usize,
        node_id: TrieNodeId,
        state: StateId,
    ) -> Result<Option<ChainId>, InternalError> {
        let node = self.engine.trie().node(node_id)?;
        let scopes = self.scopes.get_mut(kind).or_internal("a kind")?;
        let level = node.level;
        let is_above = || scopes.levels.iter().all(|scope| *scope < level);
        let answers = scopes.levels.contains(&level)
            || (self.subject_nodes.ends(self.engine, node_id) && is_above());
        if !answers {
            return Ok(None);
        }
        scopes.chains.at(state)
    }

    /// Whether a path that ends at a trie node, or below it, has an explanation.
    fn has_explanation(&mut self, id: TrieNodeId, walked: Walked) -> Result<bool, InternalError> {
        if let Some(&computed) = self.has_explanation.get(&(id, walked)) {
            return Ok(computed);
        }
        let mut has_explanation = false;
        for kind in 0..self.scopes.len() {
            has_explanation |= walked.through && self.chain(kind, id, walked.state)?.is_some();
        }
        let trie = self.engine.trie();
        for child in trie.below(trie.node(id)?) {
            let lead = self.leads.get(child.index()).copied();
            if has_explanation || !(walked.through || lead.or_internal("a trie node")?) {
                continue;
            }
            let walked = Walked {
                state: self.engine.after(walked.state, child)?,
                through: walked.through || self.subject_nodes.includes(self.engine, child),
            };
            has_explanation = self.has_explanation(child, walked)?;
        }
        self.has_explanation.insert((id, walked), has_explanation);
        Ok(has_explanation)
    }

    fn gather(&mut self, path: &ListedPath<'_, Walked>) -> Result<WalkControl, InternalError> {
        let node_id = *path.resolved.last().or_internal("the end of a path")?;
        for kind in 0..self.scopes.len() {
            let Some(chain) = self.chain(kind, node_id, path.state.state)? else {
                continue;
            };
            if self.path_count >= MAX_PATHS {
                self.truncated = true;
                return Ok(WalkControl::Stop);
            }
            self.path_count += 1;
            let chains = &self.scopes.get(kind).or_internal("a kind")?.chains;
            let own = self.engine.own_node(chains.kind(), path.resolved)?;
            let next = self.group_numbers.len();
            let number = self.group_numbers.entry((kind, (chain, own)));
            let entry = self.groups.entry((kind, *number.or_insert(next)));
            let chain = chains.chain(chain)?;
            let names = &mut entry.or_insert_with(|| (chain.clone(), Vec::new())).1;
            names.push(path.name.to_owned());
        }
        Ok(WalkControl::Descend)
    }
}

impl PathVisitor<Walked> for Gatherer<'_> {
    fn passes_over(&mut self, node: TrieNodeId, walked: Walked, _: usize) -> bool {
        let leads = self.leads.get(node.index()) == Some(&true);
        if !walked.through && !leads {
            return true;
        }
        if !self.is_through {
            return false;
        }
        let has_explanation = self.has_explanation(node, walked);
        !has_explanation.unwrap_or_else(|error| {
            self.failed = Some(error);
            false
        })
    }

    fn visit(&mut self, path: &ListedPath<'_, Walked>) -> WalkControl {
        if self.visible.is_over() {
            return WalkControl::Stop;
        }
        let depth = path.resolved.len().saturating_sub(1);
        if !path.state.through {
            // Above the object, the visibility of the path does not matter.
            self.visible.leave(depth);
            return WalkControl::Descend;
        }
        let (visible, below) = self.visible.look(path.name, depth);
        if visible {
            self.is_through = true;
            match self.gather(path) {
                Ok(WalkControl::Descend) => {}
                Ok(other) => return other,
                Err(error) => {
                    self.failed = Some(error);
                    return WalkControl::Stop;
                }
            }
        }
        match below {
            true => WalkControl::Descend,
            false => WalkControl::SkipChildren,
        }
    }
}

fn explanation(world: &World, kind: &PolicyKind, chain: &AttachmentChain) -> v1::KindExplanation {
    let explained = world.explain(kind, chain);
    v1::KindExplanation {
        policy: Some(effective_policy(
            &kind.profile().policy,
            &explained.effective,
        )),
        nodes: world
            .node_attachments(kind, chain)
            .iter()
            .map(|attachments| node(world, attachments))
            .collect(),
        units: explained.units.iter().map(unit).collect(),
        lost_units: world
            .losses(kind, chain)
            .iter()
            .map(ToString::to_string)
            .collect(),
        warnings: warnings(world, kind, chain),
    }
}

fn warnings(world: &World, kind: &PolicyKind, chain: &AttachmentChain) -> Vec<String> {
    let differs = world.top_down_differs(kind, chain);
    let warning = "merging top-down, as GEP-713 draws it, would give another result: an override \
                above a weaker strategy does not apply";
    differs.then(|| warning.to_owned()).into_iter().collect()
}

fn node(world: &World, attachments: &NodeAttachments<'_>) -> v1::AttachedNode {
    v1::AttachedNode {
        node: world.topology().describe(attachments.node),
        level: attachments.level.to_string(),
        precedes_child_routes: attachments.precedes_child_routes,
        policies: attachments
            .policies
            .iter()
            .map(|attached| {
                let policy = attached.policy;
                let blocks = attached.blocks.iter();
                let text = |(name, strategy): &(BlockName, Strategy)| {
                    format!("{}: {strategy}", name.as_str())
                };
                v1::AttachedPolicy {
                    policy: Some(policy_ref(&PolicyRef::of(&policy.key))),
                    blocks: blocks.map(text).collect(),
                    created: policy.object.created.map(timestamp),
                }
            })
            .collect(),
    }
}

fn unit(outcome: &UnitExplanation) -> v1::UnitExplanation {
    let strategy = outcome.origin.as_ref().map(|o| o.strategy.to_string());
    v1::UnitExplanation {
        unit: outcome.unit.to_string(),
        value_json: outcome.value.as_ref().map(ToString::to_string),
        strategy: strategy.unwrap_or_default(),
        origin: outcome.origin.as_ref().map(origin),
        overridden: outcome.overridden.iter().map(overridden).collect(),
    }
}

fn overridden(overridden: &OverriddenPolicy) -> v1::OverriddenPolicy {
    v1::OverriddenPolicy {
        policy: Some(policy_ref(&overridden.policy)),
        block: block(overridden.block).into(),
        unit: overridden.unit.to_string(),
        value_json: overridden.value.to_string(),
        reason: overridden.reason.as_str().to_owned(),
    }
}
