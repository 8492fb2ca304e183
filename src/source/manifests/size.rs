//! What a text costs, so that a short one cannot come to much.

/// Values in one text.
const MAX_NODES: usize = 4_000_000;
/// Values that anchors and aliases may copy, and bytes of their text.
const MAX_COPIED_NODES: usize = 500_000;
const MAX_COPIED_BYTES: usize = 16 * 1024 * 1024;

/// The size of a value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// Itself and all values in it.
    pub nodes: usize,
    /// Of text in it.
    pub bytes: usize,
}

/// What has been spent so far.
#[derive(Debug, Default)]
pub(super) struct Spent {
    counted: Size,
    copied: Size,
}

impl Size {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_add(other.nodes),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// What is left of it without the other.
    pub fn minus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_sub(other.nodes),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl Spent {
    /// All values so far, copies by aliases included.
    pub fn counted(&self) -> Size {
        self.counted
    }

    /// Counts one value with that much text.
    ///
    /// # Errors
    /// There are too many.
    pub fn count(&mut self, length: usize) -> Result<(), String> {
        self.counted = self.counted.plus(Size {
            nodes: 1,
            bytes: length,
        });
        if self.counted.nodes > MAX_NODES {
            return Err(format!("more than {MAX_NODES} values: split the file"));
        }
        Ok(())
    }

    /// Charges a copy before it is made.
    ///
    /// # Errors
    /// Too much was copied.
    pub fn copy(&mut self, size: Size) -> Result<(), String> {
        self.copied = self.copied.plus(size);
        if self.copied.nodes > MAX_COPIED_NODES || self.copied.bytes > MAX_COPIED_BYTES {
            return Err("anchors and aliases repeat too much: write it out".to_owned());
        }
        Ok(())
    }

    /// Charges a copy that becomes part of the result.
    ///
    /// # Errors
    /// Too much was copied.
    pub fn alias(&mut self, size: Size) -> Result<(), String> {
        self.copy(size)?;
        self.counted = self.counted.plus(size);
        Ok(())
    }
}
