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
use super::read::{FileDocument, MAX_REPORTED_PROBLEMS, ParsedFile, on_parser_threads, parse_text};
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
    /// The documents of the text that was read last.
    documents: Vec<FileDocument>,
    /// The objects of the documents in their order, then those of the last good version that stand for what cannot be
    /// read now.
    items: Vec<Item>,
    /// The current problems.
    problems: Vec<Problem>,
    /// The fields of the objects that their CRDs do not have.
    unknown_fields: Vec<Problem>,
}

/// What reading a file gave.
type FileRead = Result<ParsedContent, ReadError>;

/// A file that was read and parsed.
struct ParsedContent {
    state: FileState,
    /// The objects, or why the text is broken; `None` if the content is the same as before.
    content: Option<Result<ParsedFile, String>>,
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
            (!state.is_some_and(is_known)).then_some((&file.path, loaded))
        });
        let files: Vec<(&PathBuf, Option<&ManifestFile>)> = files.collect();
        let limits = self.limits;
        let read = on_parser_threads(&files, |(path, loaded)| {
            let content = content::read_file(path, limits)?;
            Ok(content.parse(*loaded, &name_of(path), limits))
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
                let content = self.read_stream(path);
                let loaded = self.files.get(path);
                content.map(|content| content.parse(loaded, &name_of(path), self.limits))
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
                file.check_fields(&name_of(&path));
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
        for (path, file) in &mut self.files {
            file.check_fields(&name_of(path));
        }
        change
    }

    fn problems(&self, listing: Vec<Problem>) -> Vec<Problem> {
        let files = self.files.values();
        let files = files.flat_map(|loaded| loaded.problems.iter().chain(&loaded.unknown_fields));
        let mut problems = listing;
        problems.extend(files.chain(&self.merge_problems).cloned());
        problems.sort();
        problems.dedup();
        problems
    }
}

impl FileContent {
    /// Parses what differs from the last version.
    fn parse(self, last: Option<&ManifestFile>, name: &str, limits: Limits) -> ParsedContent {
        let FileContent { text, state } = self;
        let before = last.and_then(|last| last.state.as_ref());
        let known = last.map_or(&[][..], |last| &last.documents);
        let content = match before.is_some_and(|before| before.hash == state.hash) {
            true => None,
            false => Some(text.map(|text| parse_text(&text, name, limits, known))),
        };
        ParsedContent { state, content }
    }
}

impl ManifestFile {
    /// Notes the fields that the CRDs of the objects do not have, after an update.
    fn check_fields(&mut self, name: &str) {
        let found = self
            .items
            .iter()
            .filter_map(|item| item.unknown_fields(name));
        self.unknown_fields = found.collect();
    }

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

    /// The objects of a new version of the text: those of documents that stay are shared.
    fn items_of(&self, parsed: &mut ParsedFile) -> Vec<Item> {
        let mut starts = Vec::with_capacity(self.documents.len());
        let mut start = 0_usize;
        for document in &self.documents {
            starts.push((start, document.line));
            start = start.saturating_add(document.objects as usize);
        }
        let mut items = Vec::new();
        let mut read = std::mem::take(&mut parsed.manifest.objects).into_iter();
        for (document, known) in &parsed.documents {
            let count = document.objects as usize;
            let Some(&(start, line)) = known.and_then(|at| starts.get(at)) else {
                items.extend(read.by_ref().take(count).map(Item::new));
                continue;
            };
            let shared = self.items.iter().skip(start).take(count);
            items.extend(shared.map(|item| item.moved(line, document.line)));
        }
        items
    }

    fn replace(&mut self, mut parsed: ParsedFile) {
        let items = self.items_of(&mut parsed);
        let before = std::mem::replace(&mut self.items, items);
        let documents = parsed.documents.iter().map(|(document, _)| *document);
        self.documents = documents.collect();
        self.problems = parsed.manifest.problems;
        // It is not known which objects these documents have.
        let is_lost = |problem: &Problem| match problem.kind {
            ProblemKind::Broken => true,
            ProblemKind::Malformed => problem.about.is_none(),
            ProblemKind::WrongType
            | ProblemKind::UnknownField
            | ProblemKind::Duplicate
            | ProblemKind::Unreadable => false,
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
#[path = "scan_tests.rs"]
mod tests;
