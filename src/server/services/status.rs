//! Failures as gRPC statuses.

use prost::Message;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::insight::{Failure, FailureCode};

/// The domain of our reasons in google.rpc.ErrorInfo.
const DOMAIN: &str = "entail.dev";

/// The status of a failure: its reason stands in ErrorInfo, the nearest path in its metadata.
pub(in crate::server) fn status_of(failure: Failure) -> Status {
    let code = match failure.code {
        FailureCode::InvalidArgument => Code::InvalidArgument,
        FailureCode::NotFound => Code::NotFound,
        FailureCode::Aborted => Code::Aborted,
    };
    let mut details = ErrorDetails::new();
    if failure.nearest.is_empty() {
        details.set_error_info(failure.reason, DOMAIN, []);
    } else {
        details.set_error_info(
            failure.reason,
            DOMAIN,
            [("nearest".to_owned(), failure.nearest)],
        );
    }
    Status::with_error_details(code, failure.message, details)
}

/// A reply, unless it is larger than callers can be expected to take.
pub(in crate::server) fn within<M: Message>(reply: M, most: usize) -> Result<M, Status> {
    let length = reply.encoded_len();
    if length > most {
        return Err(Status::resource_exhausted(format!(
            "the reply has {length} bytes, more than {most}: ask for less at once"
        )));
    }
    Ok(reply)
}
