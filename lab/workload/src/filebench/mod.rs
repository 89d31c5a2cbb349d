//! filebench's personalities as loads on a drive: threads in closed loop on a small [file system](crate::filesystem).
//!
//! | file | what |
//! |---|---|
//! | `fileserver`, `webserver`, `varmail`, `webproxy`, `videoserver`, `oltp`, `networkfs` | one personality each |
//! | `personality` | their names and figures |
//! | `plan` | figures fitted to a drive |
//! | `set` | a set of files, and their assignment to threads |
//! | `thread` | the file operations of a thread |
//! | `tables`, `pace` | sizes from tables; rates |
//! | `keys` | the table `[[filebench]]` of a workload file |
//!
//! Numbers of files, mean sizes, threads and the flow of operations are those of the workload files that filebench
//! publishes (version 3.0 of the personalities). Left out: processor time (filebench's `hog`), stat calls, and
//! everything that the file system leaves out.

mod fileserver;
mod keys;
mod networkfs;
mod oltp;
mod pace;
mod personality;
mod plan;
mod set;
mod tables;
mod thread;
mod varmail;
mod videoserver;
mod webproxy;
mod webserver;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use nandscape_sim::units::Bytes;
use nandscape_sim::{Seed, Span};

pub(crate) use keys::Keys;
pub use personality::Personality;

use self::pace::Pace;
use self::plan::Plan;
use self::set::{FileSet, FileSizes, SetSpec};
use self::thread::Thread;
use crate::client::{Client, Over};
use crate::filesystem::{FileSystem, Options};
use crate::run::Runner;
use crate::words::Share;

/// A personality with its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Filebench {
    /// Which.
    pub personality: Personality,
    /// The number of threads (readers, users).
    pub threads: u32,
    /// The number of files, existing or not; by default the personality's, or as many as fit.
    pub files: Option<u64>,
    /// Mean bytes of a file; by default the personality's, or the largest that fits.
    pub mean_size: Option<u64>,
    /// Bytes of a call that reads or writes a whole file.
    pub io_size: u64,
    /// Sizes of appends are uniform from 0 to this number of bytes.
    pub append_size: u64,
    /// Mean number of names in a directory.
    pub dir_width: u64,
    /// The part of the file system's data space that the files may take.
    pub size: Share,
    /// Bytes of the host's page cache.
    pub cache: u64,
    /// Whether the file system has a journal.
    pub journal: bool,
    /// Maximum age of changed metadata before its commit.
    pub commit_interval: Span,
    /// Whether the files are written before the run; if not, they count as written.
    pub fill: bool,
    /// Pause of a thread after each round.
    pub think: Span,
    /// Rounds a second of all threads together; `None` is no limit.
    pub rounds_per_s: Option<f64>,
    /// Bytes a second of all readers of the video server together; `None` is no limit.
    pub rate: Option<u64>,
}

impl Filebench {
    /// Checks that the load fits a drive.
    pub(crate) fn check_on(&self, capacity: u64, lba_bytes: u32) -> Result<(), String> {
        Plan::new(self, capacity, lba_bytes).map(drop)
    }

    /// Its description: the personality and its parameters.
    pub(crate) fn describe(&self) -> String {
        let figures = self.personality.figures();
        let (files, mean) = (self.files.unwrap_or(figures.files), self.mean_size.unwrap_or(figures.mean_size));
        let Filebench { threads, io_size, append_size, dir_width, size, cache, journal, fill, think, .. } = self;
        format!(
            "personality={} threads={threads} files={files} mean_size={} io_size={} append_size={} dir_width={dir_width} \
             size={size} cache={} journal={journal} commit_interval={} fill={fill} think={think} rounds_per_s={} rate={}",
            self.personality.name(),
            Bytes(mean),
            Bytes(*io_size),
            Bytes(*append_size),
            Bytes(*cache),
            self.commit_interval,
            self.rounds_per_s.unwrap_or(0.0),
            Bytes(self.rate.unwrap_or(0))
        )
    }

    /// An upper bound on the time to issue this number of requests, as far as pauses and rates determine it.
    pub(crate) fn longest_s(&self, requests: u64) -> f64 {
        // In the worst case, one thread issues one request a round.
        let each_s = self.think.as_s()
            + self.rounds_per_s.map_or(0.0, |rate| 1.0 / rate)
            + self.rate.map_or(0.0, |rate| videoserver::READ_SIZE as f64 / rate as f64);
        (requests + 1) as f64 * each_s
    }

    /// Makes the file system and starts the threads. Returns notes on changes made to fit the drive.
    pub(crate) fn start(&self, runner: &Rc<Runner>, client: &Rc<Client>, seed: Seed) -> Vec<String> {
        match self.try_start(runner, client, seed) {
            Ok(notes) => notes,
            Err(problem) => {
                client.give_up(problem);
                Vec::new()
            }
        }
    }

    fn try_start(&self, runner: &Rc<Runner>, client: &Rc<Client>, seed: Seed) -> Result<Vec<String>, String> {
        let plan = Plan::new(self, client.info().bytes(), client.info().lba_bytes)?;
        let options = Options { cache: self.cache, journal: self.journal, commit_interval: self.commit_interval };
        let full =
            || format!("the files drawn for {} do not fit the drive; take a smaller size", self.personality.name());
        let fs = FileSystem::new(client, plan.inodes(), options).ok_or_else(full)?;
        let rounds = Rc::new(Pace::new(self.rounds_per_s));
        let setting = Setting { spec: self, plan: &plan, client, fs: &fs, seed, rounds, threads: RefCell::default() };
        self.personality.start(&setting).ok_or_else(full)?;
        fs.forget_changes();
        let threads = setting.threads.take();
        client.sim().spawn(fs.clone().commit_now_and_then());
        let (fill, inner) = (self.fill, runner.clone());
        runner.spawn_thread(async move {
            if fill {
                fs.fill().await;
            }
            threads.into_iter().for_each(|thread| inner.spawn_thread(thread));
            Ok(())
        });
        Ok(plan.note.into_iter().collect())
    }
}

type Boxed = Pin<Box<dyn Future<Output = Result<(), Over>>>>;

/// The context in which a personality creates its threads.
struct Setting<'a> {
    spec: &'a Filebench,
    plan: &'a Plan,
    client: &'a Rc<Client>,
    fs: &'a Rc<FileSystem>,
    seed: Seed,
    rounds: Rc<Pace>,
    /// The threads created; they start together once the files are written.
    threads: RefCell<Vec<Boxed>>,
}

impl Setting<'_> {
    /// Lays out a set of files; `None` when there is no room.
    fn set(&self, name: &str, files: u64, existing: f64) -> Option<Rc<FileSet>> {
        let (mean, figures) = (self.plan.mean_size, self.spec.personality.figures());
        let sizes = match figures.sizes {
            Some(table) => FileSizes::Table(table, mean as f64 / figures.mean_size as f64),
            None => FileSizes::Gamma(mean),
        };
        let spec = SetSpec { files, sizes, dir_width: self.spec.dir_width, existing };
        FileSet::lay_out(self.client, self.fs, &spec, &mut self.seed.child(name).rng())
    }

    /// The set of a personality that has one.
    fn main_set(&self) -> Option<Rc<FileSet>> {
        self.set("files", self.plan.files, self.spec.personality.figures().existing)
    }

    /// The `number`-th thread of a kind.
    fn thread(&self, kind: &str, number: u64) -> Thread {
        Thread {
            client: self.client.clone(),
            fs: self.fs.clone(),
            rng: self.seed.child(kind).nth(number).rng(),
            io_size: self.spec.io_size,
            append_size: self.spec.append_size,
            think: self.spec.think,
            rounds: self.rounds.clone(),
        }
    }

    fn spawn(&self, thread: impl Future<Output = Result<(), Over>> + 'static) {
        self.threads.borrow_mut().push(Box::pin(thread));
    }

    /// Creates all threads of a personality with one kind of thread; each repeats its round on one set.
    fn spawn_rounds(
        &self,
        set: &Rc<FileSet>,
        round: impl AsyncFn(&mut Thread, &FileSet) -> Result<(), Over> + Copy + 'static,
    ) {
        for number in 0..self.spec.threads {
            let (mut thread, set) = (self.thread("thread", number.into()), set.clone());
            self.spawn(async move {
                loop {
                    thread.timed(async |thread| round(thread, &set).await).await?;
                }
            });
        }
    }
}
