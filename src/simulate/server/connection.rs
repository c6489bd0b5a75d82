use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tonic::codegen::tokio_stream::Stream;
use tonic::transport::server::Connected;

use super::super::core::Client;

/// A connection that a fault can cut.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    cut: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

impl Connection {
    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }
}

impl Client for Connection {
    fn disconnect(&self) {
        self.cut.store(true, Ordering::SeqCst);
        let reader = self
            .reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// The socket of a connection.
pub(crate) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
}

impl Connected for Socket {
    type ConnectInfo = Arc<Connection>;

    fn connect_info(&self) -> Arc<Connection> {
        Arc::clone(&self.connection)
    }
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "cut by a simulated fault")
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        {
            let mut reader = self
                .connection
                .reader
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            match &*reader {
                Some(waker) if waker.will_wake(context.waker()) => {}
                _ => *reader = Some(context.waker().clone()),
            }
        }
        // Looked at after the waker is in place, so that no cut goes unseen.
        if self.connection.is_cut() {
            // The client sees a reset rather than an orderly end.
            let _ = self.stream.set_zero_linger();
            return Poll::Ready(Err(cut_off()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.connection.is_cut() {
            return Poll::Ready(Err(cut_off()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.connection.is_cut() {
            return Poll::Ready(Err(cut_off()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.connection.is_cut() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// New connections.
pub(crate) struct Incoming(pub(crate) TcpListener);

impl Stream for Incoming {
    type Item = io::Result<Socket>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_accept(context).map(|accepted| {
            Some(accepted.map(|(stream, _)| {
                // It fails only when the client is gone already, which the first read tells.
                let _ = stream.set_nodelay(true);
                Socket {
                    stream,
                    connection: Arc::default(),
                }
            }))
        })
    }
}
