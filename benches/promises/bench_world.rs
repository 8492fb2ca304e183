//! Worlds in memory, with requests and edits for them.

use std::sync::Arc;

use entail::api::v1;
use entail::api::v1::get_effective_policies_request::Target;
use entail::snapshot::{Snapshot, SnapshotBuilder, Version};
use entail::source::manifests::read_objects;
use entail_core::effective::World as Entail;
use entail_core::model::{Change, GroupKind, Object, ObjectKey, PathName};
use entail_core::profile::parse_documents;
use entail_core::store::{ChangeSet, ProfileSources, Store};
use prost::Message;
use serde_json::{Value, json};

use crate::world::{Join, Rng, Shape, Teams, World};

/// The objects and profiles of a world.
pub struct BenchWorld {
    pub name: &'static str,
    pub profiles: ProfileSources,
    pub store: Store,
}

/// Generates the world of a shape.
pub fn generate(name: &'static str) -> BenchWorld {
    if let Some(teams) = teams(name) {
        let files = teams.manifests();
        let objects = files.iter().flat_map(|file| read(&file.text, &file.name));
        return BenchWorld::of(name, objects);
    }
    let world = World::generate(&shape(name)).unwrap();
    let files = world.manifests();
    BenchWorld::of(
        name,
        files.iter().flat_map(|file| read(&file.text, &file.name)),
    )
}

/// The world of teams with a name.
fn teams(name: &str) -> Option<Teams> {
    let routes = match name {
        "teams" => Teams::default().routes,
        "teams-1k" => 1_000,
        "teams-10k" => 10_000,
        _ => return None,
    };
    Some(Teams {
        routes,
        ..Teams::default()
    })
}

/// Reads the objects of a manifest; panics if it has problems.
pub fn read(text: &str, name: &str) -> Vec<Object> {
    let parsed = read_objects(text, name);
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    parsed.objects.into_iter().map(|read| read.object).collect()
}

/// Returns the shape with a name.
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
        // One third of the objects are policies; two thirds.
        "start" => even(440, 320),
        "start-dense" => even(230, 650),
        "10k" => even(1_000, 3_000),
        // Without policies on namespaces: each policy on the namespace of the Gateways adds work to
        // every path, so the work would not grow linearly with the number of objects.
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
        // Few and large policies: at most 5 000 distinct answers.
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
        // One Gateway with many policies: an edit of its policy changes most answers.
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
    /// Creates a world from objects, with the profiles of a shape.
    pub fn of(name: &'static str, objects: impl IntoIterator<Item = Object>) -> Self {
        let profiles = match teams(name) {
            // Those that are built in.
            Some(_) => String::new(),
            None => shape(name).profiles().text,
        };
        Self::with(name, &profiles, objects)
    }

    /// Creates a world from objects and a file of profiles.
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

    /// Computes all answers of the world.
    pub fn snapshot_builder(&self) -> SnapshotBuilder {
        SnapshotBuilder::new(Entail::from_store(self.store.clone(), &self.profiles))
    }

    /// Returns a copy of an object of a kind, of another one for each number.
    pub fn object(&self, kind: &GroupKind, number: usize) -> Object {
        let all = self.store.count(kind);
        let (_, entry) = self.store.of_kind(kind).nth(number * 37 % all).unwrap();
        Object::clone(&entry.object)
    }

    /// Returns a policy that targets an object of a kind, with a new number in its rules.
    pub fn edited(&self, target: &str, number: usize) -> (Object, ObjectKey) {
        let found = self
            .store
            .kinds()
            .filter(|kind| kind.group.contains("bench"))
            .find_map(|kind| {
                let mut policies = self.store.of_kind(kind);
                policies.find(|(_, entry)| is_on(&entry.object.body.value(), target))
            });
        let (_, entry) = found.unwrap_or_else(|| panic!("no policy on a {target}"));
        let mut object = Object::clone(&entry.object);
        object.body.edit(|body| mark(body, number));
        let key = object.key.clone();
        (object, key)
    }

    /// Applies an edit to the store.
    pub fn apply(&mut self, object: Object) -> ChangeSet {
        self.store.apply(Change {
            upserts: vec![Arc::new(object)],
            ..Change::default()
        })
    }
}

/// Reports whether the first target of a policy is a whole object of a kind.
pub fn is_on(policy: &Value, target: &str) -> bool {
    let first = policy.pointer("/spec/targetRefs/0");
    let first = first.or(policy.pointer("/spec/targetRef"));
    first.is_some_and(|t| t["kind"] == target && t.get("sectionName").is_none())
}

/// Sets a number in the rules of a policy.
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

/// A profile of a kind without policies: all is read anew for it.
pub fn unused_profile(number: usize) -> Object {
    let kind = GroupKind::new("entail.dev", "PolicyProfile");
    let name = format!("unused-{number}");
    let policy = json!({"group": "unused.io", "kind": format!("Unused{number}")});
    let document = json!({
        "apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile", "metadata": {"name": name},
        "spec": {"preset": "direct", "policy": policy},
    });
    Object::new(ObjectKey::new(kind, "", name), document)
}

/// Gives a route another hostname, which its listener admits.
pub fn move_route(route: &mut Object) {
    route.body.edit(|body| {
        let hostname = &mut body["spec"]["hostnames"][0];
        *hostname = format!("moved-{}", hostname.as_str().unwrap()).into();
    });
}

/// Returns the request for a path.
pub fn request(path: &str) -> v1::GetEffectivePoliciesRequest {
    v1::GetEffectivePoliciesRequest {
        target: Some(Target::Path(path.to_owned())),
        ..Default::default()
    }
}

/// Returns the gRPC frame of the request for a path.
pub fn framed(path: &str) -> Vec<u8> {
    let message = request(path).encode_to_vec();
    let length = (message.len() as u32).to_be_bytes();
    [&[0], &length[..], &message].concat()
}

/// Returns `many` random path names, with repetitions if the world has fewer paths.
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
    // Worlds of different size are compared with the same number of names. These are copied, so that they lie in memory
    // in the order in which they are looked up: the name of a request has just been received.
    let few = all.len();
    let many = if many == usize::MAX { few } else { many };
    all.iter().cycle().take(many).cloned().collect()
}

/// Looks names up; returns the number of bytes, so that the compiler cannot remove the work.
pub fn look_up(snapshot: &Snapshot, names: &[String]) -> usize {
    let sizes = names.iter().filter_map(|name| {
        let path = PathName::parse(name).ok()?;
        Some(snapshot.reply(snapshot.look_up(&path)?).result.len())
    });
    sizes.sum()
}
