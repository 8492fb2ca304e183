//! Sends a sequence of HTTP/2 frames to a server: an input is a script of frames of all types, with any
//! flags, streams, lengths, header blocks and messages.
//!
//! Whatever a connection sends, no thread of the server panics, another connection gets the correct
//! answer, and the server holds nothing afterwards.

use std::sync::LazyLock;
use std::time::Duration;

use entail::api::v1;
use entail::insight::get_stored;
use entail::server::Limits;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedReadHalf;
use v1::get_effective_policies_request::Target;

use super::server::{FuzzServer, GET, Input, PATH, Reply, framed};

static SERVER: LazyLock<FuzzServer> = LazyLock::new(|| FuzzServer::start(limits()));

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The methods that a script calls.
const METHODS: [&str; 16] = [
    GET,
    GET,
    GET,
    "/entail.v1.EffectivePolicyService/BatchGetEffectivePolicies",
    "/entail.v1.EffectivePolicyService/WatchEffectivePolicies",
    "/entail.v1.EffectivePolicyService/WatchEffectivePolicies",
    "/entail.v1.EffectivePolicyService/ResolveRequest",
    "/entail.v1.PolicyInsightService/ListPaths",
    "/entail.v1.PolicyInsightService/ListFindings",
    "/entail.v1.PolicyInsightService/Explain",
    "/envoy.service.auth.v3.Authorization/Check",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/entail.v1.EffectivePolicyService/None",
    "*",
];
/// Lengths, settings and increments at their limits.
const NUMBERS: [u32; 16] = [
    0,
    1,
    2,
    100,
    1_000,
    16_383,
    16_384,
    16_385,
    65_535,
    65_536,
    1 << 20,
    (1 << 24) - 1,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX,
];
/// Maximum number of bytes of a script.
const MAX_BYTES: usize = 512 * 1024;
/// Time for the server to reply to the last PING. A server that cannot is only left earlier.
const PATIENCE: Duration = Duration::from_millis(20);
/// Time for the server to read all of a script: it may stop reading, and then the script ends.
const WRITING: Duration = Duration::from_secs(2);
/// What the last PING says.
const LAST: [u8; 8] = *b"the last";

// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// How a script begins and ends, and whether it reads.
#[derive(Clone, Copy, Debug)]
struct Manners(u8);

/// How a script ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// With a PING, so that everything before has been read.
    Ping,
    /// The server reads all, and finds the end of the connection.
    HalfClosed,
    /// At once: what the server has not read is lost.
    Closed,
}

/// Writes the frames of a script.
struct Script<'i> {
    input: Input<'i>,
    /// The bytes to write; each part is flushed.
    parts: Vec<Vec<u8>>,
    bytes: usize,
    /// The stream that the next request opens.
    next: u32,
    /// The last frame.
    last: Vec<u8>,
}

/// Small limits, so that a script reaches them.
fn limits() -> Limits {
    Limits {
        streams: 16,
        requests_per_connection: 8,
        watches_per_connection: 3,
        probes_per_connection: 3,
        header_bytes: 4 * 1024,
        request_bytes: 64 * 1024,
        held_bytes_per_connection: 64 * 1024,
        ..Limits::default()
    }
}

/// Checks one input.
pub fn check(input: &[u8]) {
    let mut input = Input(input);
    let manners = Manners(input.byte());
    let parts = Script::read(input, manners);
    SERVER.runtime.block_on(async {
        send(&parts, manners).await;
        // While the server still cleans up.
        let look_up = v1::GetEffectivePoliciesRequest {
            target: Some(Target::Path(PATH.to_owned())),
            ..Default::default()
        };
        let body = framed(&look_up.encode_to_vec());
        let reply = SERVER.call_anew(GET, &body).await;
        let stored = get_stored(&SERVER.snapshot, PATH).unwrap();
        let expected = Reply {
            code: 0,
            message: String::new(),
            body: framed(&stored.encode_to_vec()),
        };
        assert_eq!(reply, expected);
        SERVER.until_idle().await;
    });
    SERVER.check_panics();
}

/// Sends a script on a connection of its own, and closes it.
async fn send(parts: &[Vec<u8>], manners: Manners) {
    let (reader, mut writer) = SERVER.connect().await.into_split();
    let mut reading = tokio::spawn(read_until_last(reader, manners.reads()));
    let write = async {
        for part in parts {
            writer.write_all(part).await?;
            tokio::task::yield_now().await;
        }
        match manners.ending() {
            Ending::Ping => {
                writer.write_all(&frame(PING, 0, 0, &LAST)).await?;
                // The server need not understand it any more.
                let _last = tokio::time::timeout(PATIENCE, &mut reading).await;
            }
            Ending::HalfClosed => {
                writer.shutdown().await?;
                let _end = tokio::time::timeout(PATIENCE, &mut reading).await;
            }
            Ending::Closed => {}
        }
        std::io::Result::Ok(())
    };
    // The server may close the connection first, or stop reading.
    let _written = tokio::time::timeout(WRITING, write).await;
    reading.abort();
}

/// Reads frames until the reply to the last PING, or until the server closes the connection.
async fn read_until_last(reader: OwnedReadHalf, reads: bool) -> std::io::Result<()> {
    if !reads {
        std::future::pending::<()>().await;
    }
    let mut reader = BufReader::new(reader);
    let mut payload = Vec::new();
    loop {
        let mut head = [0; 9];
        reader.read_exact(&mut head).await?;
        let [high, middle, low, kind, flags, ..] = head;
        payload.resize(u32::from_be_bytes([0, high, middle, low]) as usize, 0);
        reader.read_exact(&mut payload).await?;
        if (kind, flags) == (PING, ACK) && payload == LAST {
            return Ok(());
        }
    }
}

impl Manners {
    /// Whether the script reads what the server sends.
    fn reads(self) -> bool {
        self.0 & 1 == 0
    }

    fn ending(self) -> Ending {
        match self.0 >> 1 & 3 {
            0 | 1 => Ending::Ping,
            2 => Ending::HalfClosed,
            _ => Ending::Closed,
        }
    }

    /// What comes before the frames.
    fn start(self) -> Vec<u8> {
        let settings = match self.0 >> 3 & 7 {
            // No replies fit into the windows of streams.
            0 => frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]),
            1 => frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1]),
            2 => Vec::new(),
            _ => frame(SETTINGS, 0, 0, &[]),
        };
        match self.0 >> 6 {
            // The script itself begins with the preface, or with anything else.
            3 => Vec::new(),
            _ => [PREFACE, &settings].concat(),
        }
    }
}

impl<'i> Script<'i> {
    /// Reads a script to its end.
    fn read(input: Input<'i>, manners: Manners) -> Vec<Vec<u8>> {
        let mut script = Self {
            input,
            parts: vec![manners.start()],
            bytes: 0,
            next: 1,
            last: Vec::new(),
        };
        while !script.input.is_empty() && script.bytes < MAX_BYTES {
            script.step();
        }
        script.parts
    }

    fn step(&mut self) {
        let operation = self.input.byte() % 20;
        let bytes = match operation {
            0 => self.request(END_HEADERS),
            1 => self.whole_request(),
            2 => {
                let flags = self.input.byte();
                self.request(flags)
            }
            3 => self.message(),
            4 => {
                let (kind, flags, stream) =
                    (self.input.byte() % 12, self.input.byte(), self.stream());
                frame(kind, flags, stream, &self.input.some())
            }
            5 => self.wrong_length(),
            6 => self.settings(),
            7..=13 => self.control(operation),
            14 => self.input.some(),
            15 => self.last.repeat(usize::from(self.input.byte())),
            16 => self.large(),
            17 => self.request_and_reset(),
            18 => PREFACE.to_vec(),
            _ => {
                self.parts.push(Vec::new());
                return;
            }
        };
        let left = MAX_BYTES.saturating_sub(self.bytes);
        let bytes = &bytes[..bytes.len().min(left)];
        self.bytes += bytes.len();
        if operation != 15 {
            self.last = bytes.to_vec();
        }
        if let Some(part) = self.parts.last_mut() {
            part.extend_from_slice(bytes);
        }
    }

    fn number(&mut self) -> u32 {
        let byte = self.input.byte();
        match NUMBERS.get(usize::from(byte)) {
            Some(number) => *number,
            None => byte.into(),
        }
    }

    /// A frame that concerns streams or the connection.
    fn control(&mut self, operation: u8) -> Vec<u8> {
        let stream = self.stream();
        match operation {
            7 => frame(WINDOW_UPDATE, 0, stream, &self.number().to_be_bytes()),
            8 => frame(RST_STREAM, 0, stream, &self.number().to_be_bytes()),
            9 => {
                let on = self.stream().to_be_bytes();
                frame(
                    PRIORITY,
                    0,
                    stream,
                    &[&on[..], &[self.input.byte()]].concat(),
                )
            }
            10 => frame(PING, self.input.byte() & ACK, 0, b"01234567"),
            11 => {
                let (last, code) = (stream.to_be_bytes(), self.number().to_be_bytes());
                frame(GOAWAY, 0, 0, &[last, code].concat())
            }
            12 => {
                let flags = self.input.byte();
                frame(CONTINUATION, flags, stream, &self.input.some())
            }
            _ => {
                let promised = self.stream().to_be_bytes();
                let block = [&promised[..], &self.input.some()].concat();
                frame(PUSH_PROMISE, END_HEADERS, stream, &block)
            }
        }
    }

    /// An open stream, the next one, or one that no client opens.
    fn stream(&mut self) -> u32 {
        match self.input.byte() {
            0 => 0,
            255 => (1 << 31) - 1,
            254 => u32::MAX,
            byte @ 240.. => u32::from(byte % 8) * 2,
            byte @ 200.. => self.next + u32::from(byte % 8) * 2,
            // Most streams are recent ones.
            byte => self.next.saturating_sub(2 * u32::from(byte % 16)).max(1),
        }
    }

    /// The headers of a request that opens a stream.
    fn request(&mut self, flags: u8) -> Vec<u8> {
        let method = METHODS[usize::from(self.input.byte()) % METHODS.len()];
        let mut block = headers(method);
        block.extend(self.input.some());
        let stream = self.next;
        self.next += 2;
        frame(HEADERS, flags, stream, &block)
    }

    /// A complete request.
    fn whole_request(&mut self) -> Vec<u8> {
        let headers = self.request(END_HEADERS);
        let stream = self.next - 2;
        let message = framed(&self.protobuf());
        [headers, frame(DATA, END_STREAM, stream, &message)].concat()
    }

    /// A request that is cancelled at once.
    fn request_and_reset(&mut self) -> Vec<u8> {
        let headers = self.request(END_HEADERS);
        let reset = frame(RST_STREAM, 0, self.next - 2, &8_u32.to_be_bytes());
        [headers, reset].concat()
    }

    /// Bytes of messages of gRPC.
    fn message(&mut self) -> Vec<u8> {
        let (stream, flags) = (self.stream(), self.input.byte());
        let mut bytes = framed(&self.protobuf());
        let [compressed, length, cut] = [(); 3].map(|()| self.input.byte());
        bytes[0] = compressed;
        bytes[4] = bytes[4].wrapping_add(length);
        bytes.truncate(bytes.len().saturating_sub(cut.into()));
        frame(DATA, flags, stream, &bytes)
    }

    /// A message of protobuf: a path, everything, or bytes of the input.
    fn protobuf(&mut self) -> Vec<u8> {
        match self.input.byte() % 4 {
            0 | 1 => [&[0x0a, PATH.len() as u8], PATH.as_bytes()].concat(),
            2 => Vec::new(),
            _ => self.input.some(),
        }
    }

    /// Zeros: the start of a large message, or padding.
    fn large(&mut self) -> Vec<u8> {
        let (stream, flags) = (self.stream(), self.input.byte());
        let declared = self.number();
        let length = usize::from(self.input.byte()) * 64;
        let mut payload = vec![0; length];
        payload.splice(
            ..length.min(5),
            [&[0][..], &declared.to_be_bytes()].concat(),
        );
        frame(DATA, flags, stream, &payload)
    }

    /// A frame whose head says another length.
    fn wrong_length(&mut self) -> Vec<u8> {
        let (kind, flags, stream) = (self.input.byte() % 12, self.input.byte(), self.stream());
        let length = self.number();
        let mut bytes = frame(kind, flags, stream, &self.input.some());
        bytes[..3].copy_from_slice(&length.to_be_bytes()[1..]);
        bytes
    }

    fn settings(&mut self) -> Vec<u8> {
        let flags = self.input.byte() & 3;
        let mut payload = Vec::new();
        for _ in 0..self.input.byte() % 8 {
            let id = u16::from(self.input.byte() % 10);
            payload.extend(id.to_be_bytes());
            payload.extend(self.number().to_be_bytes());
        }
        frame(SETTINGS, flags, 0, &payload)
    }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let head = [
        &length.to_be_bytes()[1..],
        &[kind, flags],
        &stream.to_be_bytes(),
    ];
    [&head.concat(), payload].concat()
}

/// The header block of a request, without Huffman codes and without entries of the dynamic table.
fn headers(method: &str) -> Vec<u8> {
    fn text(text: &str) -> Vec<u8> {
        let length = u8::try_from(text.len()).unwrap();
        assert!(length < 127, "a longer length takes more bytes");
        [&[length], text.as_bytes()].concat()
    }
    [
        // `:method: POST` and `:scheme: http` are in the static table; names of the others, too.
        vec![0x83, 0x86, 0x04],
        text(method),
        vec![0x01],
        text("entail"),
        vec![0x0f, 0x10],
        text("application/grpc"),
        vec![0x00],
        text("te"),
        text("trailers"),
    ]
    .concat()
}
