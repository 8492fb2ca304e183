//! Mirrors against the server that they follow, over a real connection.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use entail::api::v1;
use entail::insight::{AccessScope, get};
use entail::server::Limits;
use entail::snapshot::{Snapshot, Version};
use entail_client::{LookupError, Mirror, MirrorSettings};
use entail_core::model::{Level, PathName, PathPrefix, Root, RuleStep};
use prost::Message;

use super::follow::WorldHistory;
use super::rng::Rng;
use super::served::{TestServer, serve};
use super::worlds::World;

/// How many changes follow each other.
const STEPS: usize = 12;
const PATIENCE: Duration = Duration::from_secs(20);

/// A server, and a mirror that follows it through all worlds.
pub struct MirroredServer {
    served: TestServer,
    all: Mirror,
    generation: u64,
}

/// What a mirror follows.
#[derive(Clone, Debug, Default)]
struct Part {
    prefixes: Vec<String>,
    levels: Vec<String>,
    kinds: Vec<String>,
}

impl MirroredServer {
    pub fn new() -> Self {
        let served = serve(Limits {
            // What changes nothing is told by heartbeats alone.
            watch_heartbeat: Duration::from_millis(5),
            watch_interval: Duration::ZERO,
            ..Limits::default()
        });
        Self {
            all: follow(&served, &Part::default()),
            served,
            generation: 0,
        }
    }

    /// Mirrors answer what the server answers, after every change of a world.
    pub fn check(&mut self, world: &World) -> Vec<String> {
        let mut way = WorldHistory::start(world);
        let epoch = format!("world-{}", world.seed);
        let mut snapshot = self.publish(&mut way, &epoch);
        let part = Part::random(&mut way.rng, &snapshot);
        let mirrors = [
            (Part::default(), self.all.clone()),
            (part.clone(), follow(&self.served, &part)),
        ];
        let mut known = BTreeSet::new();
        for step in 0..STEPS {
            let (told, upserts, deletes) = way.change();
            // Some changes come while others are still being told.
            way.follow(&upserts, &deletes);
            snapshot = self.publish(&mut way, &epoch);
            if way.rng.percent(30) {
                continue;
            }
            asked_about(&mut way.rng, &snapshot, &mut known);
            for (part, mirror) in &mirrors {
                let wrong = self.differences(&snapshot, part, mirror, &known);
                if let Some(first) = wrong.first() {
                    let seed = world.seed;
                    return vec![format!(
                        "seed {seed}, step {step}, {told}, {part:?}: {first}"
                    )];
                }
            }
        }
        Vec::new()
    }

    fn publish(&mut self, way: &mut WorldHistory, epoch: &str) -> Arc<Snapshot> {
        self.generation += 1;
        let version = Version {
            epoch: epoch.into(),
            generation: self.generation,
            synced_at: Default::default(),
        };
        let snapshot = Arc::new(way.snapshot_builder.snapshot(version));
        self.served.subscriptions.publish(Arc::clone(&snapshot));
        snapshot
    }

    fn differences(
        &self,
        snapshot: &Snapshot,
        part: &Part,
        mirror: &Mirror,
        asked: &BTreeSet<String>,
    ) -> Vec<String> {
        let version = Some(snapshot.version().message());
        let fresh = mirror.wait_for(|now| now.version == version);
        let fresh = self
            .served
            .runtime
            .block_on(async { tokio::time::timeout(PATIENCE, fresh).await });
        if fresh.is_err() {
            return vec![format!("never as fresh as {version:?}: {mirror:?}")];
        }
        let differs = |path: &String| {
            let said = mirror.get(path);
            let expected = part.expected(snapshot, path);
            let same = match (&said, &expected) {
                (Ok(said), Ok(expected)) => {
                    (&said.etag, &said.policies) == (&expected.etag, &expected.policies)
                }
                (Err(said), Err(expected)) => said == expected,
                _ => false,
            };
            (!same).then(|| format!("{path}: {said:?} for {expected:?}"))
        };
        let mut wrong: Vec<String> = asked.iter().filter_map(differs).collect();
        let many = asked.iter().filter(|path| mirror.get(path).is_ok()).count();
        if part.prefixes.is_empty() && part.levels.is_empty() && (many == 0 || mirror.len() > many)
        {
            wrong.push(format!(
                "{} paths in the mirror, {many} found",
                mirror.len()
            ));
        }
        wrong
    }
}

impl Part {
    fn random(rng: &mut Rng, snapshot: &Snapshot) -> Self {
        let mut paths = Vec::new();
        let mut kinds = BTreeSet::new();
        snapshot
            .world()
            .topology()
            .visit(&mut |name, _| paths.push(name.to_owned()));
        for kind in snapshot.world().kinds() {
            kinds.insert(kind.profile().policy.to_string());
        }
        let kinds: Vec<String> = kinds.into_iter().collect();
        let levels = Level::ALL
            .iter()
            .skip(1)
            .map(|level| level.as_str().to_owned());
        let levels: Vec<String> = levels.collect();
        let prefixes = (0..rng.below(3)).map(|_| rng.choose(&paths)).collect();
        let mut some = |words: &[String]| match rng.percent(50) {
            true => Vec::new(),
            false => rng.some(words, 50),
        };
        Self {
            prefixes,
            levels: some(&levels),
            kinds: some(&kinds),
        }
    }

    /// What the server answers, or why the mirror does not know.
    fn expected(&self, snapshot: &Snapshot, path: &str) -> Result<v1::PathPolicies, LookupError> {
        let prefixes = self.prefixes.iter().map(|p| PathPrefix::parse(p).unwrap());
        let prefixes: Vec<_> = prefixes.collect();
        let named = |path: &str| prefixes.is_empty() || prefixes.iter().any(|p| p.covers(path));
        let covered = named(path) || as_any_client(snapshot, path).is_some_and(|p| named(&p));
        let level = PathName::parse(path).unwrap().level();
        let at_level = self.levels.is_empty() || self.levels.iter().any(|l| l == level.as_str());
        let request = v1::GetEffectivePoliciesRequest {
            target: Some(v1::get_effective_policies_request::Target::Path(
                path.to_owned(),
            )),
            kinds: self.kinds.clone(),
            if_none_match: String::new(),
        };
        if !covered || !at_level {
            return Err(LookupError::NotSubscribed);
        }
        let reply =
            get(snapshot, &request, &AccessScope::default()).map_err(|_| LookupError::NotFound)?;
        let reply = v1::GetEffectivePoliciesResponse::decode(&*reply.encode_to_vec()).unwrap();
        Ok(reply.result.unwrap())
    }
}

fn follow(served: &TestServer, part: &Part) -> Mirror {
    let _inside = served.runtime.enter();
    let mirror = Mirror::follow(MirrorSettings {
        server: served.address.clone(),
        prefixes: part.prefixes.clone(),
        levels: part.levels.clone(),
        kinds: part.kinds.clone(),
        max_backoff: Duration::from_millis(500),
        ..MirrorSettings::default()
    });
    mirror.unwrap()
}

/// The paths of a snapshot under all names, some that never were, and those of before.
fn asked_about(rng: &mut Rng, snapshot: &Snapshot, known: &mut BTreeSet<String>) {
    snapshot.world().topology().visit(&mut |name, _| {
        known.insert(name.to_owned());
        let Ok(PathName::Traffic(mut walk)) = PathName::parse(name) else {
            return;
        };
        if walk.rule.is_some() {
            let index = u32::try_from(rng.below(3)).unwrap();
            walk.rule = Some(RuleStep::Index(index));
            known.insert(walk.to_string());
        }
        if !walk.delegating.is_empty() {
            // Some of the rules by an index, which may be theirs.
            let mut rules = name.split("/rules/");
            let mut other = rules.next().unwrap_or_default().to_owned();
            for rule in rules {
                let (rule, rest) = rule.split_at(rule.find('/').unwrap_or(rule.len()));
                let index = format!("#{}", rng.below(2));
                let rule = if rng.percent(60) { &index } else { rule };
                other += &format!("/rules/{rule}{rest}");
            }
            known.insert(other);
        }
        if let Root::Mesh { client, .. } = &mut walk.root {
            *client = rng.pick(&["a", "a-b", "shop", "nobody"]);
            known.insert(walk.to_string());
        }
    });
    known.insert("gateways/none/none".to_owned());
}

/// A mesh path as that of any client, if nothing sets its client apart.
fn as_any_client(snapshot: &Snapshot, path: &str) -> Option<String> {
    let Ok(PathName::Traffic(mut walk)) = PathName::parse(path) else {
        return None;
    };
    let Root::Mesh {
        client,
        namespace,
        name,
        ..
    } = &mut walk.root
    else {
        return None;
    };
    let root = format!("mesh/{client}/services/{namespace}/{name}");
    *client = "*";
    let mut apart = false;
    let topology = Arc::clone(snapshot.world().topology());
    topology.visit(&mut |name, _| apart |= name == root);
    (!apart).then(|| walk.to_string())
}
