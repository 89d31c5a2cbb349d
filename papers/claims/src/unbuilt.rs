//! Entries of the ledger without an experiment: results that are not built yet. An entry moves to its experiment's file
//! when that file is written.

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};

/// The entries, in the order of the ledger.
pub(crate) static UNBUILT: &[Claim] = &[
    Claim {
        id: "leapio-overhead",
        source: &[(Paper::Li, "4.3.1, Fig. 4.5-4.6")],
        says: "the runtime costs 2% (read) and 5% (mixed) of throughput against pass-through up to 256 in flight, 3% \
               of latency on average over the percentiles below p99, 6-12% at p99.9; 1 or 8 guests alike",
        show: Some(
            "throughput loss against direct use of the same drive at most 2% on reads and 5% on the mix, mean \
                    of the losses from p50 to p99 at most 3%, p99.9 at most 12%; one guest with 32 threads and 8 \
                    guests with 4 alike",
        ),
        ruling: None,
        check: Check::AtMost,
        kind: Kind::Result,
    },
    Claim {
        id: "leapio-remote",
        source: &[(Paper::Li, "4.3.1(4), Fig. 4.8")],
        says: "against the kernel's NVMe-oF 6% less throughput and 8% more latency; with 32 threads the user-space \
               rival is at 14 ms p99.9 and about 2000 ms p99.99, LeapIO at 1.4 and 7 ms",
        show: Some(
            "loss against a plain NVMe/TCP target on the same drive at most 6% of throughput, 8% of latency; \
                    p99.99 at 32 in flight under 10x p50",
        ),
        ruling: Some(
            "the paper's 6% and 8% are over RDMA with RocksDB; here both rivals (a plain NVMe/TCP target, \
                      SPDK's) and both transports of ours are over TCP loopback, so the entry is read as an upper \
                      bound. At 64 threads the user-space rival was better: shown",
        ),
        check: Check::AtMost,
        kind: Kind::Result,
    },
    Claim {
        id: "leapio-services",
        source: &[(Paper::Li, "4.3.3, Fig. 4.11, Table 1.1")],
        says: "in 70 to 4400 lines each, composable: priority (the search reader as fast as alone, the background \
               keeps about 10%), snapshot-consistent reads, multi-block atomic writes, remote drive, RAID-0 and \
               RAID-1 of two machines' drives, virtual open-channel isolation, block cache, spillover, replication",
        show: Some("the six panels of Fig. 4.11"),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    Claim {
        id: "leapio-agile-raid",
        source: &[(Paper::Li, "4.3.3(d)")],
        says: "servers publish spare IOPS, space and bandwidth to a billboard every few minutes; a consumer asks down \
               the list until one agrees, then talks to it directly",
        show: Some(
            "a virtual drive made this way works at once; RAID-0 keeps its data when a producer leaves in \
                    order (it migrates), RAID-1 when one dies; RAID-0 loses its data when one dies, and says so",
        ),
        ruling: None,
        check: Check::Order,
        kind: Kind::Design,
    },
    Claim {
        id: "leapio-scale",
        source: &[(Paper::Li, "Fig. 4.9")],
        says: "one guest with 1..16 open channels runs at bare-metal speed; IOPS grow linearly with guests",
        show: Some(
            "one guest with 1, 2, 4, 8, 16 channels: at least 90% of the drive alone at each; 1 to 8 guests: \
                    IOPS within 10% of proportional until the drive is full",
        ),
        ruling: Some("the text names no counts; these are ours"),
        check: Check::Order,
        kind: Kind::Result,
    },
    Claim {
        id: "leapio-soc",
        source: &[(Paper::Li, "4.3.2, 6.4.3")],
        says: "on the offload processor local access is up to 30% slower, remote 5% in throughput and 10% at p99; 1.8 \
               of its cores for a host core in throughput, 2.3 in tail",
        show: Some("the runtime on a simulated slower processor: cores needed for parity, local worse hit than remote"),
        ruling: Some(
            "local 30% is against the same runtime on the host; 5% and 10% hold with the offload processor \
                      on the server side only (on both sides it is like local). A speed factor fitted to 1.8 or 2.3 \
                      is calibration",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    Claim {
        id: "flashshare-response",
        source: &[(Paper::FlashShare, "5.2, Fig. 11-12")],
        says: "response time against Vanilla: CacheOpt, KernelOpt, SelectISR, XLER cut the mean by 5, 11, 12, 22% and \
               p99 by 7, 16, 22, 31%",
        show: None,
        ruling: Some(
            "all 3 x 10 pairs run; the geometric mean over pairs counts, per pair the extremes are shown \
                      (CacheOpt on Apache-update 11% and 27%, SelectISR with bfs 34% at p99). Epoch, division rule, \
                      least ways and thread counts are not given: keys, `depends` where they decide",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    Claim {
        id: "flashshare-io",
        source: &[(Paper::FlashShare, "5.3, Fig. 15b")],
        says: "Apache with index: drive access 29 to 18 us with CacheOpt; block layer 39 to 21 us with KernelOpt and \
               gone with XLER; completion 5 us less with SelectISR; ISR and context switch over 6 us",
        show: None,
        ruling: Some(
            "costs handed to the host model (over 6 us, polling 6 us) are calibration; drive and block layer \
                      count",
        ),
        check: Check::Ratio(None),
        kind: Kind::Result,
    },
    Claim {
        id: "flashshare-offline",
        source: &[(Paper::FlashShare, "Fig. 14")],
        says: "offline applications: worst loss about 4%; CacheOpt +3.6% against Vanilla, SelectISR -2% against \
               KernelOpt, XLER +1.2% over SelectISR",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    Claim {
        id: "flashshare-corun",
        source: &[(Paper::FlashShare, "3.1, Fig. 3")],
        says: "co-running raises the online mean 41%, p95 24%, p99 43%; response time by 42x at the moment the batch \
               job starts (58.9 s)",
        show: None,
        ruling: Some("this is the real server of Table 1 (i7-4790), not the simulated one of Table 2"),
        check: Check::Order,
        kind: Kind::Result,
    },
    Claim {
        id: "flashshare-cache",
        source: &[(Paper::FlashShare, "5.5, Fig. 18-19")],
        says: "uniform cache with 128-page prefetch only 12% over none; partitioned with ghost-cache-chosen prefetch \
               lifts the throughput partition's hit rate by about 36% while the online reader keeps its response \
               time; the online share falls to 23% in a burst and grows back after it",
        show: Some(
            "uniform with 128-page prefetch gains less than half of what partitioning gains; partitioned with \
                    ghosts: the offline partition's hit rate at least 18% above uniform-128 and the online mean no \
                    worse; online share falls under 30% in the burst and is back after it",
        ),
        ruling: Some("the paper says 37% (1) and 36% (5.5): 5.5"),
        check: Check::Order,
        kind: Kind::Result,
    },
    Claim {
        id: "flashshare-dedcore",
        source: &[(Paper::FlashShare, "Fig. 13")],
        says: "the accelerator beats a dedicated polling core by 12% (mean) and 15% (p99)",
        show: None,
        ruling: Some(
            "Fig. 13's dedicated core computes to 0.886 of Vanilla's mean and 0.812 of its p99, no better \
                      than SelectISR (0.88, 0.78): shown as a second criterion",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    Claim {
        id: "flashshare-drain",
        source: &[(Paper::FlashShare, "3.3")],
        says: "throughput queue drained at 8 pending entries or 200 us: offline work never starves",
        show: None,
        ruling: None,
        check: Check::Exact,
        kind: Kind::Design,
    },
    Claim {
        id: "flashshare-stack",
        source: &[(Paper::FlashShare, "1, 4, 5.3-5.4, 7")],
        says: "I/O stack latency -73%, context switches -42%; polling 12% faster than interrupts at 97% CPU, costing \
               6 us a completion while block completion is 4 us less; NVMe commands +2% with KernelOpt, -0.4% with \
               XLER; without hardware about 10% worse and 57% more storage CPU",
        show: None,
        ruling: Some(
            "figures of two machines: polling 12% and 97% CPU are the real drive's; the rest is simulated. \
                      Each number has a row of its own; 79% of the polling overhead removed (7) and 36% by offload \
                      (4.1) are added",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
];
