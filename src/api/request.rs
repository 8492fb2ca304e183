//! The gRPC frames of `GetEffectivePolicies`, for the fast path of the server.

use bytes::{BufMut, Bytes, BytesMut};

use super::EncodedGetEffectivePoliciesResponse;

/// Bytes before a message in its frame: the compression flag and the length (gRPC over HTTP/2).
const PREFIX: usize = 5;
/// Key of field `path` of `GetEffectivePoliciesRequest`: number 1, length-delimited.
const PATH: u8 = 0x0a;

/// Returns the path of a `GetEffectivePoliciesRequest` that sets no other field, borrowed from the
/// request's frame. Returns `None` for every other request, well formed or not. Allocates nothing.
pub fn path_only_request(frame: &[u8]) -> Option<&str> {
    let (prefix, message) = frame.split_at_checked(PREFIX)?;
    let [compressed, length @ ..] = prefix.first_chunk::<PREFIX>()?;
    if *compressed != 0 || u32::from_be_bytes(*length) as usize != message.len() {
        return None;
    }
    let mut rest = message.strip_prefix(&[PATH])?;
    let length = prost::encoding::decode_varint(&mut rest).ok()?;
    if usize::try_from(length).ok()? != rest.len() {
        return None;
    }
    std::str::from_utf8(rest).ok()
}

impl EncodedGetEffectivePoliciesResponse {
    /// Encodes the reply as an uncompressed frame. Returns `None` if its message has more than
    /// `max_bytes` bytes.
    pub fn to_frame(&self, max_bytes: usize) -> Option<Bytes> {
        let length = self.result.len() + self.tail.len();
        let prefix = u32::try_from(length).ok().filter(|_| length <= max_bytes)?;
        let mut frame = BytesMut::with_capacity(PREFIX + length);
        frame.put_u8(0);
        frame.put_u32(prefix);
        frame.put_slice(&self.result);
        frame.put_slice(&self.tail);
        Some(frame.freeze())
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::api::v1;
    use crate::api::v1::get_effective_policies_request::Target;

    fn framed(message: &[u8]) -> Vec<u8> {
        [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
    }

    fn request(path: &str) -> v1::GetEffectivePoliciesRequest {
        v1::GetEffectivePoliciesRequest {
            target: Some(Target::Path(path.to_owned())),
            ..Default::default()
        }
    }

    #[test]
    fn a_request_with_only_a_path_returns_the_path() {
        for path in ["", "gateways/ns/gw", &"x".repeat(300)] {
            let frame = framed(&request(path).encode_to_vec());
            assert_eq!(path_only_request(&frame), Some(path));
        }
    }

    #[test]
    fn every_other_request_returns_none() {
        let other = |change: fn(&mut v1::GetEffectivePoliciesRequest)| {
            let mut message = request("gateways/ns/gw");
            change(&mut message);
            framed(&message.encode_to_vec())
        };
        let path = framed(&request("gateways/ns/gw").encode_to_vec());
        let mut compressed = path.clone();
        compressed[0] = 1;
        let frames = [
            other(|m| m.kinds.push("P.example.com".to_owned())),
            other(|m| m.if_none_match.push('x')),
            other(|m| m.target = None),
            other(|m| m.target = Some(Target::Ref(v1::PathRef::default()))),
            // The last of two `path` fields counts, so this is not a path alone.
            framed(&[&path[5..], &path[5..]].concat()),
            framed(&[PATH, 2, 0xff, 0xfe]),
            framed(&[
                PATH, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
            ]),
            [&path[..], &path[..]].concat(),
            compressed,
        ];
        for frame in frames {
            assert_eq!(path_only_request(&frame), None, "{frame:?}");
        }
        for cut in 0..path.len() {
            assert_eq!(path_only_request(&path[..cut]), None);
        }
    }

    #[test]
    fn a_reply_is_framed_unless_it_is_too_large() {
        let reply = EncodedGetEffectivePoliciesResponse {
            result: Bytes::from_static(b"abc"),
            tail: Bytes::from_static(b"de"),
        };
        assert_eq!(reply.to_frame(5).as_deref(), Some(&framed(b"abcde")[..]));
        assert_eq!(reply.to_frame(4), None);
    }
}
