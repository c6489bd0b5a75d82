use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Keeps two checks from loading one GPU at a time, over all users of this host.
///
/// The kernel drops the lock when the process ends, however it ends.
#[derive(Debug)]
pub struct HostLock {
    _file: File,
}

/// Why the lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another check held it for the whole time.
    #[error(
        "another check ({holder}) still held the lock {name:?} after {}s; wait longer with \
         --lock-wait, or name another with --lock if the two do not share a GPU", waited.as_secs()
    )]
    Busy {
        /// The lock's name.
        name: String,
        /// What the holder wrote of itself.
        holder: String,
        /// How long was waited.
        waited: Duration,
    },
    /// Stopped by the user while waiting.
    #[error("stopped while waiting for the lock {0:?}")]
    Interrupted(String),
    /// The lock file itself is the trouble.
    #[error("failed to use the lock file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl HostLock {
    /// Takes the lock `name`, waiting at most `wait`. `waiting` is told once who holds it,
    /// `stopped` is asked while waiting.
    pub fn take(
        name: &str,
        wait: Duration,
        waiting: &mut dyn FnMut(&str),
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, LockError> {
        let path = lock_path(name);
        let failed = |source| LockError::File {
            path: path.clone(),
            source,
        };
        let mut file = open_shared(&path).map_err(failed)?;
        let begun = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            let holder = read_holder(&mut file);
            if stopped() {
                return Err(LockError::Interrupted(name.to_owned()));
            }
            if begun.elapsed() >= wait {
                return Err(LockError::Busy {
                    name: name.to_owned(),
                    holder,
                    waited: wait,
                });
            }
            if !told {
                waiting(&holder);
                told = true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        // Who holds it is a courtesy; failing to say so does no harm.
        let _ = file.set_len(0);
        let _ = file.rewind();
        let _ = write!(file, "pid {}", std::process::id());
        Ok(Self { _file: file })
    }
}

fn read_holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.rewind();
    let _ = file.take(100).read_to_string(&mut text);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    if text.is_empty() {
        "unknown".to_owned()
    } else {
        text
    }
}

/// One file a name in the system's temporary folder, shared by all users.
fn lock_path(name: &str) -> PathBuf {
    let safe: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '.' {
                c
            } else {
                '_'
            }
        })
        .take(100)
        .collect();
    std::env::temp_dir().join(format!("triton-gate-{safe}.lock"))
}

fn open_shared(path: &std::path::Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Another user's check must be able to lock it too; only the owner can say so.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_waits_then_gives_up_and_names_the_first() {
        let name = format!("test-{}", std::process::id());
        let first = HostLock::take(&name, Duration::ZERO, &mut |_| {}, &|| false).expect("free");
        let mut told = Vec::new();
        let second = HostLock::take(
            &name,
            Duration::from_millis(150),
            &mut |holder| told.push(holder.to_owned()),
            &|| false,
        );
        let error = second.expect_err("held").to_string();
        let me = format!("pid {}", std::process::id());
        assert!(error.contains(&me), "{error}");
        assert_eq!(told, [me]);
        drop(first);
        HostLock::take(&name, Duration::ZERO, &mut |_| {}, &|| false).expect("free again");
    }

    #[test]
    fn a_stop_ends_the_waiting() {
        let name = format!("test-stop-{}", std::process::id());
        let _first = HostLock::take(&name, Duration::ZERO, &mut |_| {}, &|| false).expect("free");
        let second = HostLock::take(&name, Duration::from_mins(10), &mut |_| {}, &|| true);
        assert!(matches!(second, Err(LockError::Interrupted(_))));
    }
}
