use std::sync::Arc;
use entail::lab::{case::Case, check::check};
use entail::{insight::{Local, Notes}, model::*, resolve::World, snapshot::*, source::manifests::*, store::*};
fn main() {
    let profiles = Profiles::shipped();
    let only = std::env::args().nth(1).unwrap_or_default();
    let (mut ok, mut bad) = (0, 0);
    let mut files: Vec<_> = std::fs::read_dir("tests/conformance/cases").unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let mut failed = vec![];
    for f in files {
        let text = std::fs::read_to_string(&f).unwrap();
        for (line, v) in read_values(&text, &f.display().to_string()).unwrap() {
            let case = match Case::read(&v) { Ok(c) => c, Err(e) => { println!("{}:{line}: {e}", f.display()); bad+=1; continue } };
            if !case.name.contains(&only) { continue }
            let yaml: String = case.inputs().iter().map(|v| format!("---\n{v}\n")).collect();
            let parsed = read_objects(&yaml, &case.name).unwrap();
            for p in &parsed.problems { println!("{p}"); }
            let mut scopes = Scopes::default();
            scopes.learn(parsed.objects.iter().map(|o| &o.object));
            let mut store = Store::default();
            let cluster: std::collections::BTreeSet<GroupKind> = { let mut s0 = Store::default(); s0.apply(Change{ upserts: parsed.objects.iter().map(|o| Arc::new(o.object.clone())).collect(), ..Default::default()}); profiles.resolve(&s0).profiles.values().filter(|p| p.cluster_scoped).map(|p| p.policy.clone()).collect() };
            let mut scopes = { let mut s = Scopes::new(cluster); s.learn(parsed.objects.iter().map(|o| &o.object)); let _ = scopes; s };
            let ups = parsed.objects.into_iter().map(|mut o| { scopes.place(&mut o.object); Arc::new(o.object) }).collect();
            let _ = &mut scopes;
            store.apply(Change { upserts: ups, ..Default::default() });
            let world = Arc::new(World::full(store, &profiles));
            if !only.is_empty() { for p in world.problems() { println!("{p}"); } }
            let snap = Arc::new(Snapshot::build(world, Version { epoch: "e".into(), generation: 1, synced_at: Default::default() }));
            let mut local = Local { snapshot: snap, notes: Notes::default() };
            let m = check(&case, &mut local);
            let real: Vec<_> = m.iter().filter(|m| !m.found.contains("not computed by this version") && !m.found.contains("does not compute")).collect();
            if m.is_empty() { ok += 1 } else { bad += 1; failed.push((case.name.clone(), real.is_empty()));
              if !real.is_empty() { println!("--- {}", case.name); for x in real { println!("  {}\n    expected {}\n    found    {}", x.about, x.expected.replace('\n'," "), x.found.replace('\n'," ")); } } }
        }
    }
    println!("{ok} ok, {bad} bad of which {} only pending", failed.iter().filter(|f| f.1).count());
}
