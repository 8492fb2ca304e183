//! Reads manifest files as a source, and computes what changed since the previous scan.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use entail_core::model::{Change, ObjectKey};

use super::content::{self, FileContent, FileState, ReadError};
use super::files::{
    self, EntryFilter, EventPath, FileEntry, FileListing, ReadMode, STDIN, name_of,
};
use super::limits::Limits;
use super::merge::{ChangedFile, Item, Published};
use super::read::{MAX_REPORTED_PROBLEMS, ParsedManifest, on_parser_threads, read_bytes};
use super::scopes::KindScopes;
use super::{Problem, ProblemKind, Scan};

/// Files and directories of manifests, with the content that was read last.
pub struct Manifests {
    roots: Vec<PathBuf>,
    scopes: KindScopes,
    limits: Limits,
    stdin: Option<Box<dyn Read + Send>>,
    files: BTreeMap<PathBuf, ManifestFile>,
    /// The files in their order; objects of later files take precedence.
    order: Vec<PathBuf>,
    published: Published,
    /// The problems of the last merge of all files.
    merge_problems: Vec<Problem>,
    folders: BTreeMap<PathBuf, EntryFilter>,
    /// Whether a file can be read again without listing all: all roots are directories, none of their entries is a link,
    /// and listing reported no problem.
    is_plain: bool,
    /// The files that were read after they were published last.
    unpublished: BTreeSet<PathBuf>,
}

/// The state of a file.
#[derive(Default)]
struct ManifestFile {
    /// The state when the file was read last; `None` if it must be read again.
    state: Option<FileState>,
    /// Whether the objects stand for all documents that the file has: none was unreadable from the start.
    is_covered: bool,
    /// The objects, with those of the last good version that stand for what cannot be read now.
    items: Vec<Item>,
    /// The current problems.
    problems: Vec<Problem>,
}

/// What reading a file gave.
type FileRead = Result<ParsedContent, ReadError>;

/// A file that was read and parsed.
struct ParsedContent {
    state: FileState,
    /// The objects, or why the text is broken; `None` if the content is the same as before.
    content: Option<Result<ParsedManifest, String>>,
}

impl Manifests {
    /// Creates a source of files and directories, which include all directories below them; `-` is
    /// standard input. Nothing is read yet.
    pub fn new(paths: Vec<PathBuf>, scopes: KindScopes) -> Self {
        Self {
            roots: paths,
            scopes,
            limits: Limits::default(),
            stdin: None,
            files: BTreeMap::new(),
            order: Vec::new(),
            published: Published::default(),
            merge_problems: Vec::new(),
            folders: BTreeMap::new(),
            is_plain: false,
            unpublished: BTreeSet::new(),
        }
    }

    /// Replaces the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Replaces standard input by another stream.
    #[must_use]
    pub fn with_stdin(mut self, stdin: Box<dyn Read + Send>) -> Self {
        self.stdin = Some(stdin);
        self
    }

    /// Reads files that events name, by their paths in the directories of [`Manifests::folders`]. Returns `None` if all
    /// files must be listed to know what changed. This blocks like [`Manifests::scan`].
    pub(super) fn scan_paths(&mut self, paths: &BTreeSet<PathBuf>) -> Option<Scan> {
        if !self.is_plain {
            return None;
        }
        let mut files = Vec::new();
        for path in paths {
            match files::at_event(path, self.files.contains_key(path))? {
                EventPath::File(file) => files.push(file),
                EventPath::Irrelevant => {}
            }
        }
        let count = files.len();
        if self.load_all(files).len() < count {
            return None;
        }
        let change = self.publish_files(&[]);
        Some(self.scanned(change, Vec::new()))
    }

    /// Lists all files and reads those that changed. This blocks: call it from a blocking thread in
    /// asynchronous code.
    pub fn scan(&mut self) -> Scan {
        let known = |path: &Path| {
            let from_here = self.files.range(path.to_owned()..);
            let below = from_here.take_while(|(file, _)| file.starts_with(path));
            below.map(|(file, _)| file.clone()).collect()
        };
        let FileListing {
            files,
            problems,
            folders,
            is_plain,
        } = files::list(&self.roots, &known);
        self.folders = folders;
        self.is_plain = is_plain && problems.is_empty();
        let order = self.load_all(files);
        let listed: BTreeSet<&PathBuf> = order.iter().collect();
        let removed = self.order.iter().filter(|path| !listed.contains(path));
        let removed: Vec<PathBuf> = removed.cloned().collect();
        self.files.retain(|path, _| listed.contains(path));
        let is_same_order = order == self.order;
        self.order = order;
        let is_reordered = !is_same_order && removed.is_empty() && self.unpublished.is_empty();
        let change = match is_reordered {
            // Files that come first have other objects in use.
            true => self.publish(),
            false => self.publish_files(&removed),
        };
        self.scanned(change, problems)
    }

    fn scanned(&self, change: Change, problems: Vec<Problem>) -> Scan {
        Scan {
            change,
            problems: self.problems(problems),
            files: self.order.len(),
        }
    }

    /// Returns the directories to watch, as of the last scan.
    pub(super) fn folders(&self) -> &BTreeMap<PathBuf, EntryFilter> {
        &self.folders
    }

    /// Reads the files that may have changed. Returns those that still exist.
    fn load_all(&mut self, files: Vec<FileEntry>) -> Vec<PathBuf> {
        let mut read = self.read_changed(&files);
        let mut existing = Vec::with_capacity(files.len());
        for file in files {
            let read = read.remove(&file.path);
            let Some(is_changed) = self.load(&file, read) else {
                continue;
            };
            if is_changed {
                self.unpublished.insert(file.path.clone());
            }
            existing.push(file.path);
        }
        existing
    }

    /// Reads and parses the regular files that may have changed, on several threads.
    fn read_changed(&self, files: &[FileEntry]) -> BTreeMap<PathBuf, FileRead> {
        let files = files.iter().filter_map(|file| {
            let ReadMode::File(fingerprint) = &file.mode else {
                return None;
            };
            let loaded = self.files.get(&file.path);
            let state = loaded.and_then(|loaded| loaded.state.as_ref());
            let is_known =
                |state: &FileState| state.stable && state.fingerprint.as_ref() == Some(fingerprint);
            let hash = state.map(|state| state.hash);
            (!state.is_some_and(is_known)).then_some((&file.path, hash))
        });
        let files: Vec<(&PathBuf, Option<u64>)> = files.collect();
        let limits = self.limits;
        let read = on_parser_threads(&files, |(path, hash)| {
            let content = content::read_file(path, limits)?;
            Ok(content.parse(*hash, &name_of(path), limits))
        });
        let read = read.into_iter().map(|read| {
            read.unwrap_or_else(|| {
                Err(ReadError::Unreadable(
                    "the file cannot be parsed".to_owned(),
                ))
            })
        });
        let paths = files.iter().map(|(path, _)| (*path).clone());
        paths.zip(read).collect()
    }

    /// Takes what was read of a file. Returns whether its objects may have changed; `None` if the file does not
    /// exist any more.
    fn load(&mut self, file: &FileEntry, read: Option<FileRead>) -> Option<bool> {
        let path = &file.path;
        let loaded = self.files.get(path);
        let state = loaded.and_then(|loaded| loaded.state.as_ref());
        let read = match (&file.mode, read) {
            (ReadMode::Stream, _) => {
                if state.is_some_and(|state| state.fingerprint.is_none()) {
                    return Some(false);
                }
                let hash = state.map(|state| state.hash);
                let content = self.read_stream(path);
                content.map(|content| content.parse(hash, &name_of(path), self.limits))
            }
            (_, Some(read)) => read,
            (ReadMode::KeepLast, None) => {
                let file = self.files.get_mut(path);
                return Some(file.is_some_and(ManifestFile::keep));
            }
            (_, None) => return Some(false),
        };
        let loaded = self.files.entry(path.clone()).or_default();
        match read {
            Ok(parsed) => Some(loaded.take(parsed, &name_of(path))),
            Err(ReadError::Gone) => None,
            Err(ReadError::Unreadable(message)) => {
                loaded.state = None;
                Some(loaded.fail(&name_of(path), message, ProblemKind::Unreadable))
            }
        }
    }

    fn read_stream(&mut self, path: &Path) -> Result<FileContent, ReadError> {
        if path != Path::new(STDIN) {
            return content::read_pipe(path, self.limits);
        }
        match self.stdin.take() {
            Some(stdin) => content::read_stream(stdin, self.limits),
            None => content::read_stream(std::io::stdin(), self.limits),
        }
    }

    /// Publishes the files that changed, and those that were removed.
    fn publish_files(&mut self, removed: &[PathBuf]) -> Change {
        let mut files = Vec::new();
        for path in std::mem::take(&mut self.unpublished) {
            let items = self.files.get_mut(&path);
            let items = items.map(|file| std::mem::take(&mut file.items));
            files.push(ChangedFile { path, items });
        }
        files.extend(removed.iter().map(|path| ChangedFile {
            path: path.clone(),
            items: None,
        }));
        if files.is_empty() {
            return Change::default();
        }
        let change = self.published.update_files(&self.scopes, &mut files);
        for ChangedFile { path, items } in files {
            if let (Some(file), Some(items)) = (self.files.get_mut(&path), items) {
                file.items = items;
            }
        }
        change.unwrap_or_else(|| self.publish())
    }

    fn publish(&mut self) -> Change {
        let mut by_path: BTreeMap<&PathBuf, &mut ManifestFile> = self.files.iter_mut().collect();
        let mut files: Vec<_> = self
            .order
            .iter()
            .filter_map(|path| Some((path, &mut by_path.remove(path)?.items)))
            .collect();
        let (change, problems) = self.published.update(&mut self.scopes, &mut files);
        self.merge_problems = problems;
        change
    }

    fn problems(&self, listing: Vec<Problem>) -> Vec<Problem> {
        let files = self.files.values().flat_map(|loaded| &loaded.problems);
        let mut problems = listing;
        problems.extend(files.chain(&self.merge_problems).cloned());
        problems.sort();
        problems.dedup();
        problems
    }
}

impl FileContent {
    /// Parses the content unless it has the hash of the last version.
    fn parse(self, last: Option<u64>, name: &str, limits: Limits) -> ParsedContent {
        let FileContent { text, state } = self;
        let content =
            (last != Some(state.hash)).then(|| text.map(|text| read_bytes(&text, name, limits)));
        ParsedContent { state, content }
    }
}

impl ManifestFile {
    /// Replaces the content. Returns whether the objects may have changed.
    fn take(&mut self, parsed: ParsedContent, name: &str) -> bool {
        let ParsedContent { state, content } = parsed;
        self.state = Some(state);
        match content {
            None => false,
            Some(Ok(parsed)) => {
                self.replace(parsed);
                true
            }
            Some(Err(message)) => self.fail(name, message, ProblemKind::Broken),
        }
    }

    fn replace(&mut self, parsed: ParsedManifest) {
        let before = std::mem::take(&mut self.items);
        self.items = parsed.objects.into_iter().map(Item::new).collect();
        self.problems = parsed.problems;
        // It is not known which objects these documents have.
        let is_lost = |problem: &Problem| match problem.kind {
            ProblemKind::Broken => true,
            ProblemKind::Malformed => problem.about.is_none(),
            ProblemKind::WrongType | ProblemKind::Duplicate | ProblemKind::Unreadable => false,
        };
        let lost = self
            .problems
            .iter()
            .filter(|problem| is_lost(problem))
            .count();
        for problem in &mut self.problems {
            // The last good version of a malformed object stays in use.
            let Some(key) = &problem.about else { continue };
            if !self.items.iter().any(|item| is_about(item, key))
                && let Some(item) = before.iter().rfind(|item| is_about(item, key))
            {
                problem.kept_last_good = true;
                self.items.push(item.clone().kept());
            }
        }
        if lost == 0 {
            self.is_covered = true;
            return;
        }
        // Objects of the previous version that no other document contains stay in use. Where these are fewer than the
        // documents, some document is new, and nothing stands for it.
        let readable = self.items.len();
        for item in before {
            let key = ObjectKey {
                namespace: item.written.clone(),
                ..item.object.key.clone()
            };
            if !self.items.iter().any(|item| is_about(item, &key)) {
                self.items.push(item.kept());
            }
        }
        // Of documents beyond the number of problems that are reported, the last problem says how many there are.
        let is_counted = self.problems.len() <= MAX_REPORTED_PROBLEMS;
        self.is_covered &= is_counted && self.items.len() - readable >= lost;
        for problem in self.problems.iter_mut().filter(|problem| is_lost(problem)) {
            problem.kept_last_good = self.is_covered;
        }
    }

    /// Records that the file is not usable at present; its objects stay in use. Returns whether this changes how they
    /// count beside those of other files.
    fn fail(&mut self, name: &str, message: String, kind: ProblemKind) -> bool {
        self.is_covered &= !self.items.is_empty();
        self.problems = vec![Problem {
            path: name.to_owned(),
            line: None,
            message,
            kind,
            kept_last_good: self.is_covered,
            about: None,
        }];
        self.keep_items()
    }

    /// Records that the file cannot be accessed at present. As [`ManifestFile::fail`], without a problem of its own.
    fn keep(&mut self) -> bool {
        // It is read again when it is back, so that its objects are those of now.
        self.state = None;
        self.keep_items()
    }

    /// Makes the objects earlier versions. Returns whether they were not.
    fn keep_items(&mut self) -> bool {
        let was_read = self.items.iter().any(|item| !item.is_kept);
        self.items.iter_mut().for_each(|item| item.is_kept = true);
        was_read
    }
}

/// Returns whether the item has a key whose namespace is that in the text.
fn is_about(item: &Item, key: &ObjectKey) -> bool {
    let own = &item.object.key;
    own.kind == key.kind && own.name == key.name && item.written == key.namespace
}

#[cfg(test)]
mod tests {
    use entail_core::model::Body;

    use super::*;

    const GOOD: &str = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {v: 1}}";
    const MALFORMED: &str =
        "{apiVersion: v1, kind: Service, metadata: {name: a, labels: {x: 1}}, spec: {v: 2}}";

    fn taken(loaded: &mut ManifestFile, text: &str) -> Vec<(ProblemKind, bool)> {
        let limits = Limits::default();
        let content = content::read_stream(text.as_bytes(), limits).ok().unwrap();
        let last = loaded.state.as_ref().map(|state| state.hash);
        loaded.take(content.parse(last, "a.yaml", limits), "a.yaml");
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
        let version = |followed: &Followed| {
            let object = followed.objects.values().next();
            object.map(|body| body.value()["spec"]["v"].clone())
        };
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
            assert_eq!(version(&followed), Some(1.into()), "{text}");
            write("a.yaml", DOCUMENTS[1]);
            followed.take(source.scan());
            assert_eq!(version(&followed), Some(2.into()), "{text}");
            assert_eq!(kinds(&followed).len(), 1, "{:?}", followed.problems);
            std::fs::remove_file(folder.path().join("a.yaml")).unwrap();
            followed.take(source.scan());
            assert_eq!(version(&followed), Some(1.into()), "{text}");
        }
        write("z.yaml", DOCUMENTS[0]);
        write("a.yaml", DOCUMENTS[1]);
        followed.take(source.scan());
        assert_eq!(version(&followed), Some(1.into()));
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
        let versions = |followed: &Followed| -> Vec<_> {
            let bodies = followed.objects.values();
            bodies
                .map(|body| body.value()["spec"]["v"].clone())
                .collect()
        };
        let moved = folder.path().join("moved");
        std::fs::rename(&last, &moved).unwrap();
        followed.take(source.scan());
        assert_eq!(versions(&followed), [1]);
        std::fs::write(first.join("x.yaml"), DOCUMENTS[1]).unwrap();
        followed.take(source.scan());
        assert_eq!(versions(&followed), [2]);
        std::fs::rename(&moved, &last).unwrap();
        followed.take(source.scan());
        assert_eq!(versions(&followed), [1]);
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
        let defaults = |followed: &Followed| -> Vec<_> {
            let foos = followed.objects.iter();
            let foos = foos.filter(|(key, _)| &*key.kind.kind == "Foo");
            foos.map(|(_, body)| body.value()["spec"]["w"].clone())
                .collect()
        };
        followed.take(source.scan());
        assert_eq!(defaults(&followed), [7]);
        write("z.yaml", "[");
        write("a.yaml", &DOCUMENTS[6].replace("default: 7", "default: 8"));
        followed.take(source.scan());
        assert_eq!(defaults(&followed), [8]);
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
}
