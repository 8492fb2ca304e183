//! Attacks by callers: what one of them may hold or cost.

mod connections;
mod followed;
mod frames;
mod slow;
mod unread;
mod variants;
mod watches;

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
];
