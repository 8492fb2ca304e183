//! Worlds in memory, and what is asked of them.

use std::sync::Arc;

use entail::api::v1;
use entail::api::v1::get_effective_policies_request::Target;
use entail::snapshot::{Snapshot, SnapshotBuilder, Version};
use entail::source::manifests::read_objects;
use entail_core::effective::World as Entail;
use entail_core::model::{Change, Object, ObjectKey, PathName};
use entail_core::profile::parse_documents;
use entail_core::store::{ChangeSet, ProfileSources, Store};
use prost::Message;
use serde_json::Value;

use crate::world::{Join, Rng, Shape, World};

/// A world's objects.
pub struct BenchWorld {
    pub name: &'static str,
    pub profiles: ProfileSources,
    pub store: Store,
}

/// The world of a shape.
pub fn made(name: &'static str) -> BenchWorld {
    let world = World::generate(&shape(name)).unwrap();
    let files = world.manifests();
    BenchWorld::of(
        name,
        files.iter().flat_map(|file| read(&file.text, &file.name)),
    )
}

/// The objects of a manifest, in which nothing is wrong.
pub fn read(text: &str, name: &str) -> Vec<Object> {
    let parsed = read_objects(text, name);
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    parsed.objects.into_iter().map(|read| read.object).collect()
}

/// The shapes of the promises.
pub fn shape(name: &str) -> Shape {
    let even = |routes: usize, policies: usize| Shape {
        gateways: routes.div_ceil(100),
        namespaces: routes.div_ceil(50),
        services: routes.div_ceil(2),
        routes,
        policies,
        ..Shape::default()
    };
    match name {
        "1k" => even(100, 300),
        // A third are policies; and two thirds.
        "start" => even(440, 320),
        "start-dense" => even(230, 650),
        "10k" => even(1_000, 3_000),
        // One more policy on the namespace of all Gateways is more to do for every path. Without
        // any, ten times as much of everything is ten times the same.
        "even-1k" => Shape {
            shares: [0, 2, 5, 43, 25, 15, 10],
            ..even(100, 300)
        },
        "even-10k" => Shape {
            shares: [0, 2, 5, 43, 25, 15, 10],
            ..even(1_000, 3_000)
        },
        "10k-small" => Shape {
            spec_bytes: (512, 512),
            ..even(1_000, 3_000)
        },
        // Few policies and large ones: at most 5 000 different answers.
        "100k" => Shape {
            policies: 900,
            spec_bytes: (1_800, 2_200),
            shares: [4, 10, 20, 40, 20, 4, 2],
            ..even(10_000, 900)
        },
        "1m" => Shape {
            policies: 900,
            shares: [4, 10, 20, 40, 20, 4, 2],
            ..even(100_000, 900)
        },
        // Many routes and few policies, for tests.
        "many" => Shape {
            policies: 300,
            spec_bytes: (512, 512),
            ..even(10_000, 300)
        },
        "100k-dense" => even(10_000, 30_000),
        // One Gateway, and policies on little else: what is above changes everything below.
        "wide" => Shape {
            gateways: 1,
            listeners: 4,
            join: Join::One,
            policies: 600,
            shares: [4, 2, 2, 72, 20, 0, 0],
            ..even(10_000, 600)
        },
        "fanout" => Shape {
            policies: 160,
            ports: 1,
            services: 400,
            ..Shape::preset("fanout").unwrap()
        },
        other => panic!("no shape {other}"),
    }
}

pub fn version() -> Version {
    Version {
        epoch: "bench".into(),
        generation: 1,
        synced_at: Default::default(),
    }
}

impl BenchWorld {
    /// Objects of a shape that were read already.
    pub fn of(name: &'static str, objects: impl IntoIterator<Item = Object>) -> Self {
        Self::with(name, &shape(name).profiles().text, objects)
    }

    /// Objects with a file of profiles.
    pub fn with(
        name: &'static str,
        profiles_file: &str,
        objects: impl IntoIterator<Item = Object>,
    ) -> Self {
        let mut profiles = ProfileSources::shipped();
        let documents = parse_documents(profiles_file, "profiles.yaml");
        profiles.configure(documents.into_iter().flatten());
        let mut store = Store::default();
        store.apply(Change {
            upserts: objects.into_iter().map(Arc::new).collect(),
            ..Change::default()
        });
        Self {
            name,
            profiles,
            store,
        }
    }

    /// The publisher of the world.
    pub fn snapshot_builder(&self) -> SnapshotBuilder {
        SnapshotBuilder::new(Entail::from_store(self.store.clone(), &self.profiles))
    }

    /// A policy whose first target is of a kind, with a number in its rules that was not there.
    pub fn edited(&self, target: &str, number: usize) -> (Object, ObjectKey) {
        let found = self
            .store
            .kinds()
            .filter(|kind| kind.group.contains("bench"))
            .find_map(|kind| {
                let mut policies = self.store.of_kind(kind);
                policies.find(|(_, entry)| is_on(&entry.object.body, target))
            });
        let (_, entry) = found.unwrap_or_else(|| panic!("no policy on a {target}"));
        let mut object = Object::clone(&entry.object);
        mark(&mut object.body, number);
        let key = object.key.clone();
        (object, key)
    }

    /// Applies an edit.
    pub fn apply(&mut self, object: Object) -> ChangeSet {
        self.store.apply(Change {
            upserts: vec![Arc::new(object)],
            ..Change::default()
        })
    }
}

/// Whether a policy's first target is a whole object of a kind.
pub fn is_on(policy: &Value, target: &str) -> bool {
    let first = policy.pointer("/spec/targetRefs/0");
    let first = first.or(policy.pointer("/spec/targetRef"));
    first.is_some_and(|t| t["kind"] == target && t.get("sectionName").is_none())
}

/// Puts a number into a policy's rules that was not there.
pub fn mark(policy: &mut Value, number: usize) {
    let spec = policy["spec"].as_object_mut().unwrap();
    let block = ["defaults", "overrides"]
        .into_iter()
        .find(|block| spec.contains_key(*block));
    let rules = match block {
        Some(block) => spec[block].as_object_mut().unwrap(),
        None => spec,
    };
    rules.insert("edited".to_owned(), number.into());
}

/// The request for a path.
pub fn request(path: &str) -> v1::GetEffectivePoliciesRequest {
    v1::GetEffectivePoliciesRequest {
        target: Some(Target::Path(path.to_owned())),
        ..Default::default()
    }
}

/// The same as a frame.
pub fn framed(path: &str) -> Vec<u8> {
    let message = request(path).encode_to_vec();
    let length = (message.len() as u32).to_be_bytes();
    [&[0], &length[..], &message].concat()
}

/// Names of paths, at random.
pub fn names(snapshot: &Snapshot, many: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut rng = Rng::stream(7, "names");
    let mut seen = 0;
    snapshot.world().topology().visit(&mut |name, _| {
        seen += 1;
        if all.len() < many {
            all.push(name.to_owned());
        } else {
            let at = rng.below(seen);
            if at < many {
                all[at] = name.to_owned();
            }
        }
    });
    rng.shuffle(&mut all);
    // As many of a small world: only what they find differs.
    let few = all.len();
    let more = if many == usize::MAX { 0 } else { many - few };
    all.extend(
        (0..more)
            .map(|at| all[at % few].clone())
            .collect::<Vec<_>>(),
    );
    all
}

/// Looks names up; returns how many bytes were found, so that nothing is left out.
pub fn look_up(snapshot: &Snapshot, names: &[String]) -> usize {
    let found = names.iter().filter_map(|name| {
        let path = PathName::parse(name).ok()?;
        Some(snapshot.reply(snapshot.look_up(&path)?).result.len())
    });
    found.sum()
}
