//! One thread that runs all connections, and threads that wait for its answers.

use std::io;
use std::pin::Pin;
use std::sync::mpsc;
use std::thread;

use tokio::sync::mpsc as channel;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A thread that runs tasks. It ends when the last copy of this handle is dropped.
///
/// The thread alone builds, enters and drops the runtime of tokio. So a caller may itself be a task of another one.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    tasks: channel::UnboundedSender<Task>,
}

/// The thread ended before the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended;

impl Runtime {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system gives no thread, or no poll.
    pub(crate) fn start() -> io::Result<Self> {
        let (tasks, mut received) = channel::unbounded_channel::<Task>();
        let (started, is_started) = mpsc::sync_channel(1);
        thread::Builder::new().name("cg-postgres".into()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = started.send(Err(error));
                    return;
                }
            };
            let _ = started.send(Ok(()));
            runtime.block_on(async {
                while let Some(task) = received.recv().await {
                    tokio::spawn(task);
                }
            });
        })?;
        is_started.recv().map_err(io::Error::other)??;
        Ok(Self { tasks })
    }

    /// Runs a future on the thread, and waits for its value.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Ended> {
        let (sender, answer) = mpsc::sync_channel(1);
        let task = async move {
            let _ = sender.send(future.await);
        };
        self.tasks.send(Box::pin(task)).map_err(|_| Ended)?;
        answer.recv().map_err(|_| Ended)
    }
}
