//! The files of the page: built from `console/`, and a part of the binary.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use tonic::body::Body;

use super::{text, value};

/// A file of the page, compressed with gzip.
pub(super) struct Asset {
    path: &'static str,
    content_type: &'static str,
    gzip: &'static [u8],
    /// Names the content.
    etag: String,
}

static ASSETS: LazyLock<[Asset; 4]> = LazyLock::new(|| {
    [
        Asset::new(
            "/",
            "text/html; charset=utf-8",
            include_bytes!("../../../console/dist/index.html.gz"),
        ),
        Asset::new(
            "/assets/app.js",
            "text/javascript; charset=utf-8",
            include_bytes!("../../../console/dist/assets/app.js.gz"),
        ),
        Asset::new(
            "/assets/app.css",
            "text/css; charset=utf-8",
            include_bytes!("../../../console/dist/assets/app.css.gz"),
        ),
        Asset::new(
            "/assets/licenses.txt",
            "text/plain; charset=utf-8",
            include_bytes!("../../../console/dist/assets/licenses.txt.gz"),
        ),
    ]
});

impl Asset {
    fn new(path: &'static str, content_type: &'static str, gzip: &'static [u8]) -> Self {
        let digest = Sha256::digest(gzip);
        let digits = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
        Self {
            path,
            content_type,
            gzip,
            etag: format!("\"{}\"", digits.collect::<String>()),
        }
    }

    /// The file at a path.
    pub fn find(path: &str) -> Option<&'static Self> {
        ASSETS.iter().find(|asset| asset.path == path)
    }

    /// The response to a request with some headers. Every browser takes gzip.
    pub fn response(&self, headers: &HeaderMap) -> Response<Body> {
        let is_known = value(headers, header::IF_NONE_MATCH) == Some(&self.etag);
        let body = match is_known {
            true => Bytes::new(),
            false => Bytes::from_static(self.gzip),
        };
        let mut response = Response::new(text(body));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            headers.insert(header::ETAG, etag);
        }
        let content_type = HeaderValue::from_static(self.content_type);
        headers.insert(header::CONTENT_TYPE, content_type);
        let gzip = HeaderValue::from_static("gzip");
        headers.insert(header::CONTENT_ENCODING, gzip);
        response
    }
}
