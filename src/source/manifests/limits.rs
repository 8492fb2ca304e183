//! Limits for manifests. They also bound what a short text can expand to by aliases.

const DEFAULT_MIB: u32 = 64;

/// Limits for the size of a manifest. The nesting limit is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size in MiB of a file, and of the text of one document with its aliases expanded.
    pub mib: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { mib: DEFAULT_MIB }
    }
}

impl Limits {
    /// Maximum number of bytes of a file, and of the text of one document.
    pub(super) fn bytes(self) -> usize {
        usize::try_from(self.mib)
            .unwrap_or(usize::MAX)
            .saturating_mul(1024 * 1024)
    }

    /// Maximum number of values in one document.
    pub(super) fn values(self) -> usize {
        self.bytes() / 16
    }

    /// Maximum number of values in one document that come from aliases.
    pub(super) fn copies(self) -> usize {
        self.bytes() / 128
    }

    /// Returns the message for a file that is too long.
    pub(super) fn too_long(self) -> String {
        format!(
            "longer than {} MiB: split the file, or raise `--max-manifest-size`",
            self.mib
        )
    }

    /// Returns the message for a document that has too much text or too many values.
    pub(super) fn too_much(self) -> String {
        format!(
            "more than {} MiB of text or {} values: split the document, or raise \
             `--max-manifest-size`",
            self.mib,
            self.values()
        )
    }

    /// Returns the message for a document whose aliases repeat too many values.
    pub(super) fn too_many_copies(self) -> String {
        format!(
            "anchors and aliases repeat more than {} values: write it out, or raise \
             `--max-manifest-size`",
            self.copies()
        )
    }
}
