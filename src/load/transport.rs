use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, TE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};
use http_body::{Body as _, Frame};
use tonic::body::Body;
use tonic::transport::Channel;
use tower_service::Service as _;

use super::LoadError;
use super::clock::Clock;
use super::skim::Skimmer;
use super::status::{Failure, from_http, from_trailers};
use crate::data::ServerSpec;

const METHOD: &str = "/inference.GRPCInferenceService/ModelInfer";

/// Sends one prebuilt message and reads the answer to its end.
///
/// A clone is one more handle on the same connection. Dropping the future cancels the request.
pub(crate) trait Transport: Clone + 'static {
    fn infer(
        &mut self,
        frame: Bytes,
        skimmer: &mut Skimmer,
        marks: &mut Marks,
    ) -> impl Future<Output = Result<(), Failure>>;
}

/// Moments within a request, taken for a sample of requests only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    clock: Clock,
    /// Whether to take them.
    pub(crate) wanted: bool,
    /// When the transport had taken the request.
    pub(crate) handed_ns: u64,
    /// When the head of the answer was there.
    pub(crate) answered_ns: u64,
}

impl Marks {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            wanted: false,
            handed_ns: 0,
            answered_ns: 0,
        }
    }

    fn handed(&mut self) {
        if self.wanted {
            self.handed_ns = self.clock.now();
        }
    }

    fn answered(&mut self) {
        if self.wanted {
            self.answered_ns = self.clock.now();
        }
    }
}

/// A request body of one frame.
///
/// It does not tell its exact size: hyper would make that a `content-length` header, which gRPC
/// clients do not send.
struct OneFrame(Option<Bytes>);

impl http_body::Body for OneFrame {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

/// What is the same for every request.
#[derive(Debug)]
struct Template {
    uri: Uri,
    headers: HeaderMap,
}

/// `ModelInfer` over tonic's channel, without tonic's codec: that would copy every payload.
#[derive(Debug, Clone)]
pub(crate) struct ChannelTransport {
    channel: Channel,
    template: Rc<Template>,
}

impl ChannelTransport {
    pub(crate) fn new(channel: Channel, server: &ServerSpec) -> Result<Self, LoadError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        for (key, value) in &server.metadata {
            // The value may be a secret and is never part of the message.
            let bad = |what: &str| LoadError::Invalid {
                what: format!("{what} of the metadata \"{key}\" cannot be sent as a header"),
                next: "use lower-case ASCII letters, digits, - and _ in names, printable ASCII in values",
            };
            let name = HeaderName::from_bytes(key.to_ascii_lowercase().as_bytes())
                .map_err(|_| bad("the name"))?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad("the value"))?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(Self {
            channel,
            template: Rc::new(Template {
                uri: Uri::from(PathAndQuery::from_static(METHOD)),
                headers,
            }),
        })
    }

    fn request(&self, frame: Bytes) -> Request<Body> {
        let mut request = Request::new(Body::new(OneFrame(Some(frame))));
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = self.template.uri.clone();
        *request.headers_mut() = self.template.headers.clone();
        request
    }
}

impl Transport for ChannelTransport {
    async fn infer(
        &mut self,
        frame: Bytes,
        skimmer: &mut Skimmer,
        marks: &mut Marks,
    ) -> Result<(), Failure> {
        let request = self.request(frame);
        poll_fn(|context| self.channel.poll_ready(context))
            .await
            .map_err(|error| Failure::connection(&error))?;
        let answer = self.channel.call(request);
        marks.handed();
        let answer = answer.await.map_err(|error| Failure::connection(&error))?;
        marks.answered();
        read_answer(answer, skimmer).await
    }
}

/// Reads an answer to its end and tells whether it is a good one.
async fn read_answer(answer: http::Response<Body>, skimmer: &mut Skimmer) -> Result<(), Failure> {
    let (head, body) = answer.into_parts();
    // An error without a body comes with its status in the headers.
    match from_trailers(&head.headers) {
        Some(Err(failure)) => return Err(failure),
        None if head.status != StatusCode::OK => return Err(from_http(head.status)),
        status @ (Some(Ok(())) | None) => {
            skimmer.reset();
            let mut status = status;
            let mut body = pin!(body);
            while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
                let frame = frame.map_err(|error| Failure::connection(&error))?;
                if let Some(data) = frame.data_ref() {
                    skimmer
                        .feed(data)
                        .map_err(|error| Failure::protocol(error.to_string()))?;
                } else if let Some(trailers) = frame.trailers_ref() {
                    status = from_trailers(trailers);
                }
            }
            status.unwrap_or_else(|| {
                Err(Failure::protocol("the answer ended without a gRPC status"))
            })?;
        }
    }
    skimmer
        .finish()
        .map_err(|error| Failure::protocol(error.to_string()))
}
