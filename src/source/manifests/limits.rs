//! How much one document may hold, so that a short text cannot come to much.

const DEFAULT_MIB: u32 = 64;

/// How much a manifest may hold. The nesting limit is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest file, and the text of one document with what its aliases repeat, in MiB.
    pub mib: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { mib: DEFAULT_MIB }
    }
}

impl Limits {
    /// Bytes of a file, and of the text of one document.
    pub(super) fn bytes(self) -> usize {
        usize::try_from(self.mib)
            .unwrap_or(usize::MAX)
            .saturating_mul(1024 * 1024)
    }

    /// Values of one document.
    pub(super) fn values(self) -> usize {
        self.bytes() / 16
    }

    /// Values of one document that aliases repeat.
    pub(super) fn copies(self) -> usize {
        self.bytes() / 128
    }

    /// The message about a file that is too long.
    pub(super) fn too_long(self) -> String {
        format!(
            "longer than {} MiB: split the file, or raise `--max-manifest-size`",
            self.mib
        )
    }

    /// The message about a document that holds too much.
    pub(super) fn too_much(self) -> String {
        format!(
            "more than {} MiB of text or {} values: split the document, or raise \
             `--max-manifest-size`",
            self.mib,
            self.values()
        )
    }

    /// The message about a document whose aliases repeat too much.
    pub(super) fn too_many_copies(self) -> String {
        format!(
            "anchors and aliases repeat more than {} values: write it out, or raise \
             `--max-manifest-size`",
            self.copies()
        )
    }
}
