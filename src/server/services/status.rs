//! Conversion of failures to gRPC statuses.

use prost::Message;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::insight::{Failure, FailureCode};

/// The domain of the reasons in google.rpc.ErrorInfo.
const DOMAIN: &str = "entail.dev";

/// Converts a failure to a status. ErrorInfo has the reason, and its metadata the nearest path.
pub(in crate::server) fn status_of(failure: Failure) -> Status {
    let code = match failure.code {
        FailureCode::InvalidArgument => Code::InvalidArgument,
        FailureCode::NotFound => Code::NotFound,
        FailureCode::Aborted => Code::Aborted,
        FailureCode::Cancelled => Code::Cancelled,
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

/// Returns the reply, or RESOURCE_EXHAUSTED if its message has more than `max_bytes` bytes.
pub(in crate::server) fn within<M: Message>(reply: M, max_bytes: usize) -> Result<M, Status> {
    let length = reply.encoded_len();
    if length > max_bytes {
        return Err(Status::resource_exhausted(format!(
            "the reply has {length} bytes, more than the limit of {max_bytes}: narrow the request"
        )));
    }
    Ok(reply)
}
