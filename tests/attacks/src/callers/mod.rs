//! Attacks by callers: what one of them may hold or cost.

mod connections;
mod console;
mod followed;
mod frames;
mod http1;
mod slow;
mod unread;
mod variants;
mod watches;
mod webhook;

use crate::run::Attack;

/// All attacks of callers.
pub const ATTACKS: &[&[Attack]] = &[
    unread::ATTACKS,
    watches::ATTACKS,
    slow::ATTACKS,
    connections::ATTACKS,
    followed::ATTACKS,
    variants::ATTACKS,
    frames::ATTACKS,
    webhook::ATTACKS,
    console::ATTACKS,
];
