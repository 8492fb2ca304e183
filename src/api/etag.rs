//! Entity tags. Equal bytes have equal etags on every replica.

use sha2::{Digest, Sha256};

/// The length of an etag in bytes.
pub const ETAG_LENGTH: usize = 32;

/// Returns the first 128 bits of the SHA-256 of bytes, as 32 hexadecimal digits. The hash is
/// cryptographic because tenants write the policies and a collision would hide a change.
pub fn etag(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let mut text = String::with_capacity(ETAG_LENGTH);
    for byte in digest.iter().take(16) {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    text
}

/// Returns the etag of several entries together: the hash of their concatenated etags. The entries
/// themselves are not hashed again.
pub fn combined_etag<'e>(etags: impl Iterator<Item = &'e str>) -> String {
    etag(etags.collect::<String>().as_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_etag_is_the_start_of_the_sha256_digest() {
        assert_eq!(super::etag(b""), "e3b0c44298fc1c149afbf4c8996fb924");
    }
}
