//! The files of the world of teams, and their edits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench_world::{BenchWorld, names, read, version};
use crate::world::{Rng, Teams};

/// The documents of the world that edits change.
pub struct Editor {
    folder: PathBuf,
    /// Number of rules of a route.
    rules: usize,
    /// Number of routes from one of a namespace to the next one of the same.
    namespaces: usize,
    /// For each route its file: the route, and then its policies.
    files: Vec<Vec<String>>,
    rng: Rng,
}

/// What was edited.
#[derive(Default)]
pub struct Edited {
    pub routes: usize,
    pub policies: usize,
    /// Numbers of the files that were edited.
    pub files: BTreeSet<usize>,
}

/// A thread that edits until it is stopped.
pub struct EditThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Editor, Edited)>,
}

/// Returns up to `many` random paths that no edit removes.
pub fn kept_paths(teams: &Teams, many: usize) -> Vec<String> {
    let files = teams.manifests();
    let objects = files.iter().flat_map(|file| read(&file.text, &file.name));
    let mut snapshot = BenchWorld::with("teams", "", objects).snapshot_builder();
    let removed = format!("/rules/{}", rule_name(teams.rules - 1));
    let moved = format!("/rules/{}/", rule_name(1));
    let mut found = names(&snapshot.snapshot(version()), many);
    found.retain(|name| !name.contains(&removed) && !name.contains(&moved));
    found
}

fn rule_name(rule: usize) -> String {
    format!("step-{rule:02}")
}

impl Editor {
    /// Writes the world to a folder: a file for each route with its policies, and the other objects.
    pub fn write(teams: &Teams, folder: &Path) -> Self {
        assert!(teams.rules >= 3, "the edits need 3 rules of a route");
        let mut editor = Self {
            folder: folder.to_owned(),
            rules: teams.rules,
            namespaces: teams.namespaces,
            files: vec![Vec::new(); teams.routes],
            rng: Rng::stream(7, "edits"),
        };
        for file in teams.manifests() {
            let mut others = String::new();
            for document in file.text.lines().filter(|line| *line != "---") {
                // Routes come before policies.
                match route_of(document) {
                    Some(route) => editor.files[route].push(document.to_owned()),
                    None => others.extend(["---\n", document, "\n"]),
                }
            }
            if !others.is_empty() {
                std::fs::write(folder.join(&file.name), others).unwrap();
            }
        }
        (0..teams.routes).for_each(|route| editor.write_file(route));
        editor
    }

    /// Replaces a file.
    fn write_file(&self, route: usize) {
        let file = self.folder.join(format!("route-{route:06}.yaml"));
        let temporary = file.with_extension("new");
        std::fs::write(&temporary, self.files[route].join("\n---\n")).unwrap();
        std::fs::rename(&temporary, &file).unwrap();
    }

    /// Starts to edit routes and policies at random, evenly spread over each second.
    pub fn start(mut self, routes: usize, policies: usize) -> EditThread {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut edited, began) = (Edited::default(), Instant::now());
            let per_second = routes + policies;
            for number in 0.. {
                let at = Duration::from_secs(1) * number / per_second as u32;
                std::thread::sleep(at.saturating_sub(began.elapsed()));
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let number = number as usize;
                let is_route = (number + 1) * routes / per_second > number * routes / per_second;
                self.edit(is_route, number, &mut edited);
            }
            (self, edited)
        });
        EditThread { stop, thread }
    }

    fn edit(&mut self, is_route: bool, number: usize, edited: &mut Edited) {
        let route = self.rng.below(self.files.len());
        let document = match is_route {
            true => 0,
            false => 1 + self.rng.below(self.files[route].len() - 1),
        };
        let mut object: Value = serde_json::from_str(&self.files[route][document]).unwrap();
        if is_route {
            self.edit_route(&mut object, route, number);
            edited.routes += 1;
        } else {
            edit_policy(&mut object, number);
            edited.policies += 1;
        }
        self.files[route][document] = object.to_string();
        self.write_file(route);
        edited.files.insert(route);
    }

    /// Removes or adds the last rule, changes the match of the first one, or the backend of the second one.
    fn edit_route(&mut self, object: &mut Value, route: usize, number: usize) {
        let rules = object["spec"]["rules"].as_array_mut().unwrap();
        match self.rng.below(3) {
            0 if rules.len() == self.rules => drop(rules.pop()),
            0 => {
                let mut last = rules[1].clone();
                let name = rule_name(self.rules - 1);
                last["matches"][0]["path"]["value"] = format!("/{name}").into();
                last["name"] = name.into();
                rules.push(last);
            }
            1 => rules[0]["matches"][0]["path"]["value"] = format!("/step-00/{number}").into(),
            _ => {
                let own = json!(service_name(route));
                let next = match route + self.namespaces {
                    next if next < self.files.len() => next,
                    _ => route % self.namespaces,
                };
                let name = &mut rules[1]["backendRefs"][0]["name"];
                *name = if *name == own {
                    json!(service_name(next))
                } else {
                    own
                };
            }
        }
    }

    /// Returns the paths of random rules of routes in some files, removed rules included.
    pub fn rule_paths(&self, files: &BTreeSet<usize>, many: usize) -> Vec<String> {
        let mut rng = Rng::stream(7, "compared");
        let mut routes: Vec<usize> = files.iter().copied().collect();
        rng.shuffle(&mut routes);
        let routes = routes.into_iter().take(many);
        routes
            .map(|route| {
                let object: Value = serde_json::from_str(&self.files[route][0]).unwrap();
                let parent = &object["spec"]["parentRefs"][0];
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                format!(
                    "gateways/{}/{}/listeners/{}/routes/HTTPRoute/{}/{}/rules/{}",
                    text(&parent["namespace"]),
                    text(&parent["name"]),
                    text(&parent["sectionName"]),
                    text(&object["metadata"]["namespace"]),
                    text(&object["metadata"]["name"]),
                    rule_name(rng.below(self.rules))
                )
            })
            .collect()
    }
}

impl EditThread {
    /// Stops the thread; returns the editor and what it edited.
    pub fn end(self) -> (Editor, Edited) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Sets the limit of a policy.
fn edit_policy(object: &mut Value, number: usize) {
    let spec = &mut object["spec"];
    let rules = match spec.get("defaults").is_some() {
        true => &mut spec["defaults"],
        false => spec,
    };
    let limits = rules["limits"].as_object_mut().unwrap();
    for (_, limit) in limits {
        limit["rates"][0]["limit"] = json!(1_000 + number);
    }
}

fn service_name(route: usize) -> String {
    format!("svc-{route:05}")
}

/// Returns the number of the route that a document is, or that its policy is for.
fn route_of(document: &str) -> Option<usize> {
    let object: Value = serde_json::from_str(document).unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    let number = name.strip_prefix("route-")?;
    Some(number.trim_end_matches("-first").parse().unwrap())
}
