use std::sync::Arc;

use entail_core::model::Body;

use super::*;

const GOOD: &str = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {v: 1}}";
const MALFORMED: &str =
    "{apiVersion: v1, kind: Service, metadata: {name: a, labels: {x: 1}}, spec: {v: 2}}";

fn taken(loaded: &mut ManifestFile, text: &str) -> Vec<(ProblemKind, bool)> {
    let limits = Limits::default();
    let content = content::read_stream(text.as_bytes(), limits).ok().unwrap();
    let parsed = content.parse(Some(&*loaded), "a.yaml", limits);
    loaded.take(parsed, "a.yaml");
    let problems = loaded.problems.iter();
    problems
        .map(|problem| (problem.kind, problem.kept_last_good))
        .collect()
}

#[test]
fn a_malformed_object_with_a_key_keeps_its_last_good_version() {
    let mut loaded = ManifestFile::default();
    assert_eq!(
        taken(&mut loaded, MALFORMED),
        [(ProblemKind::Malformed, false)]
    );
    assert_eq!(taken(&mut loaded, GOOD), []);
    for more in ["kind: X", "kind: Y"] {
        let problems = taken(&mut loaded, &format!("{MALFORMED}\n---\n{more}"));
        assert_eq!(
            problems,
            [
                (ProblemKind::Malformed, true),
                // New, and nothing stands for it.
                (ProblemKind::Malformed, false)
            ]
        );
        assert_eq!(loaded.items.len(), 1);
        assert_eq!(loaded.items[0].object.body.value()["spec"]["v"], 1);
    }
    // The file has a valid version of the same object, which is used.
    assert_eq!(
        taken(&mut loaded, &format!("{GOOD}\n---\n{MALFORMED}")),
        [(ProblemKind::Malformed, false)]
    );
}

#[test]
fn documents_that_stay_are_not_read_again() {
    let document = |name: &str, v: u32| {
        format!("apiVersion: v1\nkind: X\nmetadata: {{name: {name}}}\nv: {v}\n")
    };
    let text = |b: &str| [document("a", 1), b.to_owned(), document("c", 1)].join("---\n");
    let mut loaded = ManifestFile::default();
    taken(&mut loaded, &text(&document("b", 1)));
    let before = loaded.items.clone();
    let is_shared = |loaded: &ManifestFile, at: usize| {
        Arc::ptr_eq(&before[at].object, &loaded.items[at].object)
    };
    taken(&mut loaded, &text(&document("b", 2)));
    assert_eq!(
        [0, 1, 2].map(|at| is_shared(&loaded, at)),
        [true, false, true]
    );
    assert_eq!(loaded.items[1].object.body.value()["v"], 2);
    // Its lines are those of now.
    taken(&mut loaded, &text(&format!("# new\n{}", document("b", 2))));
    assert!(is_shared(&loaded, 0) && !is_shared(&loaded, 2));
    let lines = loaded.items.iter().map(|item| item.line);
    assert_eq!(lines.collect::<Vec<_>>(), [1, 7, 12]);
    let location = loaded.items[2].object.location.as_ref();
    assert_eq!(location.map(|location| location.line), Some(12));
}

#[test]
fn a_text_that_was_edited_has_what_it_has_when_it_is_read_anew() {
    let documents = [
        GOOD.to_owned(),
        MALFORMED.to_owned(),
        GOOD.replace("name: a", "name: b"),
        "# only a comment".to_owned(),
        "[".to_owned(),
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: X, metadata: {name: l}}\n\
         - {apiVersion: v1, kind: X, metadata: {name: m, namespace: n}}"
            .to_owned(),
        "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: b}}".to_owned(),
        "apiVersion: kustomize.config.k8s.io/v1\nkind: Kustomization".to_owned(),
        "\n\napiVersion: v1\nkind: X\nmetadata:\n  name: d\nspec: {labels: 7}".to_owned(),
    ];
    let mut state = 7_u64;
    let mut below = |most: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % most
    };
    let (mut loaded, mut text) = (ManifestFile::default(), vec![0]);
    for _ in 0..2_000 {
        let at = below(text.len() + 1);
        match below(4) {
            0 if text.len() > 1 => {
                text.remove(at.min(text.len() - 1));
            }
            1 | 2 if text.len() < 12 => text.insert(at, below(documents.len())),
            _ => {
                let last = text.len() - 1;
                text[at.min(last)] = below(documents.len());
            }
        }
        let all: Vec<&str> = text.iter().map(|&at| &*documents[at]).collect();
        let all = all.join("\n---\n");
        taken(&mut loaded, &all);
        let mut anew = ManifestFile::default();
        taken(&mut anew, &all);
        let said = |file: &ManifestFile| {
            let items = file.items.iter().filter(|item| !item.is_kept);
            let items = items.map(|item| ((*item.object).clone(), item.written.clone(), item.line));
            let problems = file.problems.iter();
            let problems = problems.map(|problem| (problem.line, problem.message.clone()));
            (items.collect::<Vec<_>>(), problems.collect::<Vec<_>>())
        };
        assert_eq!(said(&loaded), said(&anew), "{all}");
        assert_eq!(loaded.documents, anew.documents, "{all}");
    }
}

#[test]
fn a_broken_text_keeps_the_last_good_version() {
    let mut loaded = ManifestFile::default();
    assert_eq!(taken(&mut loaded, "["), [(ProblemKind::Broken, false)]);
    taken(&mut loaded, GOOD);
    assert_eq!(taken(&mut loaded, "["), [(ProblemKind::Broken, true)]);
    assert_eq!(loaded.items.len(), 1);
    assert_eq!(taken(&mut loaded, ""), []);
    assert!(loaded.items.is_empty());
}

#[test]
fn a_broken_document_keeps_the_previous_objects_of_the_file() {
    let mut loaded = ManifestFile::default();
    let other = GOOD.replace("name: a", "name: b");
    let names = |loaded: &ManifestFile| -> Vec<String> {
        let items = loaded.items.iter();
        items.map(|item| item.object.key.name.to_string()).collect()
    };
    let torn = format!("{GOOD}\n---\n[\n");
    assert_eq!(taken(&mut loaded, &torn), [(ProblemKind::Broken, false)]);
    assert_eq!(names(&loaded), ["a"]);
    assert_eq!(taken(&mut loaded, &format!("{GOOD}\n---\n{other}")), []);
    let changed = torn.replace("v: 1", "v: 2");
    assert_eq!(taken(&mut loaded, &changed), [(ProblemKind::Broken, true)]);
    assert_eq!(names(&loaded), ["a", "b"]);
    assert_eq!(loaded.items[0].object.body.value()["spec"]["v"], 2);
    assert_eq!(taken(&mut loaded, GOOD), []);
    assert_eq!(names(&loaded), ["a"]);
}

#[test]
fn nothing_stands_for_a_document_that_is_new_and_broken() {
    let other = GOOD.replace("name: a", "name: b");
    let whole = format!("{GOOD}\n---\n{other}");
    for broken in [
        "[\n",
        "{apiVersion: v1, kind: Service, metadata: {name: c, namespace: 7}}",
    ] {
        let mut loaded = ManifestFile::default();
        assert_eq!(taken(&mut loaded, &whole), []);
        let [(_, kept)] = taken(&mut loaded, &format!("{whole}\n---\n{broken}"))[..] else {
            panic!("one problem: {:?}", loaded.problems);
        };
        assert!(!kept, "{broken}");
        // It is not known whether the document is the one that was broken before.
        let [(_, kept)] = taken(&mut loaded, &format!("{GOOD}\n---\n{broken}"))[..] else {
            panic!("one problem: {:?}", loaded.problems);
        };
        assert!(!kept, "{broken}");
        assert_eq!(taken(&mut loaded, "["), [(ProblemKind::Broken, false)]);
        assert_eq!(loaded.items.len(), 2);
        assert_eq!(taken(&mut loaded, &whole), []);
        assert_eq!(taken(&mut loaded, "["), [(ProblemKind::Broken, true)]);
    }
    // A shell creates a file before it is written.
    let mut loaded = ManifestFile::default();
    assert_eq!(taken(&mut loaded, ""), []);
    assert_eq!(taken(&mut loaded, "["), [(ProblemKind::Broken, false)]);
}

#[test]
fn a_document_that_loses_its_name_keeps_its_last_good_version() {
    let mut loaded = ManifestFile::default();
    let other = GOOD.replace("name: a", "name: b");
    assert_eq!(taken(&mut loaded, &format!("{GOOD}\n---\n{other}")), []);
    let lost = GOOD.replace("name: a", "nme: a");
    assert_eq!(
        taken(&mut loaded, &format!("{lost}\n---\n{other}")),
        [(ProblemKind::Malformed, true)]
    );
    assert_eq!(loaded.items.len(), 2);
    assert_eq!(taken(&mut loaded, &other), []);
    assert_eq!(loaded.items.len(), 1);
}

#[test]
fn what_was_read_by_a_link_stays_until_the_link_is_deleted() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let (root, target) = (folder.path().join("root"), folder.path().join("target"));
    for folder in [&root, &target] {
        std::fs::create_dir(folder).unwrap();
    }
    for (file, document) in [("a.yaml", 0), ("b.yaml", 2)] {
        std::fs::write(target.join(file), DOCUMENTS[document]).unwrap();
    }
    symlink("../target", root.join("all")).unwrap();
    symlink("../target/a.yaml", root.join("own.yaml")).unwrap();
    symlink("target/a.yaml", folder.path().join("alone.yaml")).unwrap();
    for roots in [&[root.clone()][..], &[folder.path().join("alone.yaml")]] {
        let mut source = Manifests::new(roots.to_vec(), KindScopes::default());
        let mut followed = Followed::default();
        followed.take(source.scan());
        let objects = followed.objects.clone();
        assert!(!objects.is_empty(), "{:?}", followed.problems);
        std::fs::rename(&target, folder.path().join("moved")).unwrap();
        followed.take(source.scan());
        assert_eq!(followed.objects, objects);
        let kept = followed.problems.iter().filter(|p| p.kept_last_good);
        assert_eq!(kept.count(), roots.len() + usize::from(roots[0] == root));
        // A new source knows nothing of it.
        let new = Manifests::new(roots.to_vec(), KindScopes::default()).scan();
        assert!(!new.problems.is_empty() && new.change.upserts.is_empty());
        std::fs::rename(folder.path().join("moved"), &target).unwrap();
        followed.take(source.scan());
        assert_eq!(followed.objects, objects);
    }
    let mut source = Manifests::new(vec![root.clone()], KindScopes::default());
    let mut followed = Followed::default();
    followed.take(source.scan());
    for link in ["all", "own.yaml"] {
        std::fs::remove_file(root.join(link)).unwrap();
    }
    followed.take(source.scan());
    assert!(followed.objects.is_empty() && followed.problems.is_empty());
}

/// Documents of which random files consist: two versions of Services, one of them in a namespace, a CRD that
/// changes a scope and has defaults, and objects of its kind.
const DOCUMENTS: [&str; 7] = [
    "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {v: 1}}",
    "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {v: 2}}",
    "{apiVersion: v1, kind: Service, metadata: {name: b, namespace: x}, spec: {v: 1}}",
    "{apiVersion: v1, kind: Service, metadata: {name: c}, spec: {v: 1}}",
    "{apiVersion: f.io/v1, kind: Foo, metadata: {name: a}, spec: {}}",
    "{apiVersion: f.io/v1, kind: Foo, metadata: {name: b}, spec: {v: 1}}",
    "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.f.io},
      spec: {group: f.io, scope: Cluster, names: {kind: Foo, plural: foos}, versions: [{name: v1, served: true,
      storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      w: {type: integer, default: 7}}}}}}}]}}",
];

/// The objects that a source has published.
#[derive(Default)]
struct Followed {
    objects: BTreeMap<ObjectKey, Body>,
    problems: Vec<Problem>,
}

impl Followed {
    /// A field of the specs of all objects of a kind.
    fn specs(&self, kind: &str, field: &str) -> Vec<serde_json::Value> {
        let objects = self.objects.iter();
        let objects = objects.filter(|(key, _)| &*key.kind.kind == kind);
        let specs = objects.map(|(_, body)| body.value()["spec"][field].clone());
        specs.collect()
    }

    fn take(&mut self, scan: Scan) {
        for object in scan.change.upserts {
            self.objects.insert(object.key.clone(), object.body.clone());
        }
        for key in scan.change.deletes {
            assert!(self.objects.remove(&key).is_some(), "{key}");
        }
        self.problems = scan.problems;
    }
}

#[test]
fn edits_of_files_publish_what_a_new_source_publishes() {
    let folder = tempfile::tempdir().unwrap();
    let source = || Manifests::new(vec![folder.path().to_owned()], KindScopes::default());
    let (mut listing, mut named) = (source(), source());
    let mut by_listing = Followed::default();
    let mut by_names = Followed::default();
    let mut without_listing = 0;
    // The numbers of a linear congruential generator.
    let mut state: u32 = 1;
    let mut below = |most: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % most
    };
    for step in 0..600 {
        let mut paths = BTreeSet::new();
        for _ in 0..=below(8) / 5 {
            let file = folder.path().join(format!("{}.yaml", below(4)));
            let documents: Vec<&str> = (0..below(4))
                .map(|_| DOCUMENTS[below(DOCUMENTS.len() as u32) as usize])
                .collect();
            if below(9) == 0 {
                let _ = std::fs::remove_file(&file);
            } else {
                std::fs::write(&file, documents.join("\n---\n")).unwrap();
            }
            paths.insert(file);
        }
        by_listing.take(listing.scan());
        let scan = named.scan_paths(&paths);
        without_listing += usize::from(scan.is_some());
        by_names.take(scan.unwrap_or_else(|| named.scan()));
        let mut expected = Followed::default();
        expected.take(source().scan());
        for followed in [&by_listing, &by_names] {
            assert_eq!(followed.objects, expected.objects, "step {step}");
            assert_eq!(followed.problems, expected.problems, "step {step}");
        }
    }
    assert!(without_listing > 300, "{without_listing}");
}

#[test]
fn what_can_be_read_comes_before_an_earlier_version() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        std::fs::write(folder.path().join(file), text).unwrap();
    };
    let mut source = Manifests::new(vec![folder.path().to_owned()], KindScopes::default());
    let mut followed = Followed::default();
    write("z.yaml", DOCUMENTS[0]);
    followed.take(source.scan());
    let kinds = |followed: &Followed| -> Vec<ProblemKind> {
        followed
            .problems
            .iter()
            .map(|problem| problem.kind)
            .collect()
    };
    for text in [
        "[",
        "{apiVersion: v1, kind: Service, metadata: {name: a, labels: {x: 1}}}",
    ] {
        write("z.yaml", text);
        followed.take(source.scan());
        assert_eq!(followed.specs("Service", "v"), [1], "{text}");
        write("a.yaml", DOCUMENTS[1]);
        followed.take(source.scan());
        assert_eq!(followed.specs("Service", "v"), [2], "{text}");
        assert_eq!(kinds(&followed).len(), 1, "{:?}", followed.problems);
        std::fs::remove_file(folder.path().join("a.yaml")).unwrap();
        followed.take(source.scan());
        assert_eq!(followed.specs("Service", "v"), [1], "{text}");
    }
    write("z.yaml", DOCUMENTS[0]);
    write("a.yaml", DOCUMENTS[1]);
    followed.take(source.scan());
    assert_eq!(followed.specs("Service", "v"), [1]);
    assert_eq!(kinds(&followed), [ProblemKind::Duplicate]);
}

#[test]
fn what_can_be_read_comes_before_what_a_missing_folder_had() {
    let folder = tempfile::tempdir().unwrap();
    let (first, last) = (folder.path().join("a"), folder.path().join("b"));
    for folder in [&first, &last] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(last.join("z.yaml"), DOCUMENTS[0]).unwrap();
    let mut source = Manifests::new(vec![first.clone(), last.clone()], KindScopes::default());
    let mut followed = Followed::default();
    followed.take(source.scan());
    let moved = folder.path().join("moved");
    std::fs::rename(&last, &moved).unwrap();
    followed.take(source.scan());
    assert_eq!(followed.specs("Service", "v"), [1]);
    std::fs::write(first.join("x.yaml"), DOCUMENTS[1]).unwrap();
    followed.take(source.scan());
    assert_eq!(followed.specs("Service", "v"), [2]);
    std::fs::rename(&moved, &last).unwrap();
    followed.take(source.scan());
    assert_eq!(followed.specs("Service", "v"), [1]);
    std::fs::remove_file(first.join("x.yaml")).unwrap();
    followed.take(source.scan());
    assert!(followed.problems.is_empty(), "{:?}", followed.problems);
}

#[test]
fn a_crd_that_can_be_read_comes_before_an_earlier_version() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        std::fs::write(folder.path().join(file), text).unwrap();
    };
    write("b.yaml", DOCUMENTS[4]);
    write("z.yaml", DOCUMENTS[6]);
    let mut source = Manifests::new(vec![folder.path().to_owned()], KindScopes::default());
    let mut followed = Followed::default();
    followed.take(source.scan());
    assert_eq!(followed.specs("Foo", "w"), [7]);
    write("z.yaml", "[");
    write("a.yaml", &DOCUMENTS[6].replace("default: 7", "default: 8"));
    followed.take(source.scan());
    assert_eq!(followed.specs("Foo", "w"), [8]);
}

#[test]
fn of_two_crds_of_a_kind_the_last_one_that_can_be_read_counts() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        std::fs::write(folder.path().join(file), text).unwrap();
    };
    let last = DOCUMENTS[6].replace("default: 7", "default: 8");
    let last = last.replace("name: foos.f.io", "name: more.f.io");
    write("a.yaml", DOCUMENTS[6]);
    write("b.yaml", DOCUMENTS[4]);
    write("z.yaml", &last);
    let mut source = Manifests::new(vec![folder.path().to_owned()], KindScopes::default());
    let mut followed = Followed::default();
    // Neither of them changes.
    for (text, default) in [(&*last, 8), ("[", 7), (&last, 8)] {
        write("z.yaml", text);
        followed.take(source.scan());
        assert_eq!(followed.specs("Foo", "w"), [default], "{text}");
    }
}

#[test]
fn an_object_in_a_renamed_file_has_its_new_place() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("x.yaml"), folder.path().join("y.yaml"));
    std::fs::write(&before, DOCUMENTS[0]).unwrap();
    let mut source = Manifests::new(vec![folder.path().to_owned()], KindScopes::default());
    source.scan();
    std::fs::rename(&before, &after).unwrap();
    let change = source.scan().change;
    let place = change.upserts[0].location.as_ref().unwrap();
    assert!(place.file.ends_with("y.yaml") && change.deletes.is_empty());
    assert_eq!(source.scan().change.upserts.len(), 0);
}

#[test]
fn files_behind_links_are_read_by_listing_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, DOCUMENTS[0]).unwrap();
    let mut source = Manifests::new(vec![folder.path().to_owned()], KindScopes::default());
    source.scan();
    let scan = |source: &mut Manifests, path: &Path| {
        let scan = source.scan_paths(&BTreeSet::from([path.to_owned()]));
        scan.map(|scan| scan.change.upserts.len())
    };
    assert_eq!(scan(&mut source, &file), Some(0));
    std::fs::write(&file, DOCUMENTS[1]).unwrap();
    assert_eq!(scan(&mut source, &file), Some(1));
    let written = folder.path().join(".a.yaml.tmp");
    std::fs::write(&written, DOCUMENTS[0]).unwrap();
    assert_eq!(scan(&mut source, &written), Some(0));
    let new = folder.path().join("b.yaml");
    std::fs::write(&new, DOCUMENTS[2]).unwrap();
    assert_eq!(scan(&mut source, &new), None);
    assert_eq!(source.scan().change.upserts.len(), 1);
    // Another name of a file: an edit by it tells nothing of this one.
    std::fs::hard_link(&file, folder.path().join("c.txt")).unwrap();
    assert_eq!(scan(&mut source, &file), None);
    std::os::unix::fs::symlink("b.yaml", folder.path().join("d.yaml")).unwrap();
    source.scan();
    assert_eq!(scan(&mut source, &new), None);
}

#[test]
fn an_edit_of_one_file_publishes_its_objects_alone() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        std::fs::write(folder.path().join(file), text).unwrap();
    };
    write("a.yaml", DOCUMENTS[0]);
    write("b.yaml", DOCUMENTS[2]);
    let mut source = Manifests::new(vec![folder.path().to_owned()], KindScopes::default());
    assert_eq!(source.scan().change.upserts.len(), 2);
    write("a.yaml", DOCUMENTS[1]);
    source.scan();
    let items = |source: &mut Manifests, file: &str, text: &str| {
        let mut loaded = ManifestFile::default();
        taken(&mut loaded, text);
        let path = folder.path().join(file);
        let Manifests {
            published, scopes, ..
        } = source;
        let file = ChangedFile {
            path,
            items: Some(loaded.items),
        };
        published.update_files(scopes, &mut [file])
    };
    let change = items(&mut source, "a.yaml", DOCUMENTS[3]).unwrap();
    assert_eq!((change.upserts.len(), change.deletes.len()), (1, 1));
    // An object of another file, and a CRD, concern all files.
    assert!(items(&mut source, "a.yaml", DOCUMENTS[2]).is_none());
    assert!(items(&mut source, "a.yaml", DOCUMENTS[6]).is_none());
}
