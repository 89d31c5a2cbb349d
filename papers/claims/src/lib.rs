//! The claims of the source papers: an experiment for each result, a folder for each paper, and the ledger of all.
//!
//! | file | what |
//! |---|---|
//! | `femu` | FEMU (FEMU 2018; Li 2020, chapter 5): how exact and how fast an emulated drive is |
//! | `mittos` | MittOS (Li 2020, 3.1 and 3.5): reads with deadlines that fail fast |
//! | `teafa` | TeaFA (Li 2020, 3.2, 3.6 and 6.2): arrays whose drives collect garbage in turns |
//! | `ttflash` | ttFlash (Li 2020, 3.3 and 6.3), and what motivates it: reads that avoid collections |
//! | `leapio` | LeapIO (Li 2020, chapter 4): drives for guests |
//! | `hiops` | HIOPS (Shin 2017, chapter 3): the I/O path of a host with many drives |
//! | `engine` | The key-value engine on several drives (Shin 2017, chapter 5) |
//! | `precompletion` | Precompletion (Shin 2017, chapter 4): notices ahead of completions |
//! | `ox` | OX-Block and OX-ELEOS (OX 2019): FTLs on the controller |
//! | `fox` | FOX (OX 2019, chapter 4): patterns on open-channel drives |
//! | `costs` | the costs of the thesis' host, together and one at a time |
//! | `wall` | common code of the experiments in real time |
//! | `server_trace` | a trace of a real server, next to generated loads |
//! | `unbuilt` | entries of the ledger without an experiment |
//!
//! `durations.txt`, next to `src`, has the processor time of each experiment, and `docs/validation/verdicts.txt` the verdicts of
//! the page of claims; both are not part of the digest of the sources.
//!
//! Left out: verdicts, results and their forms, in `lab/ledger`, and all mechanism.

mod costs;
mod engine;
mod femu;
mod fox;
mod hiops;
mod leapio;
mod mittos;
mod ox;
mod precompletion;
mod server_trace;
mod teafa;
mod ttflash;
mod unbuilt;
mod wall;

use nandscape_lab_ledger::Ledger;
use nandscape_lab_ledger::experiment::Experiment;

macro_rules! experiments {
    ($($paper:ident: $($stem:ident),+;)+) => {
        /// The experiments, in the order of the papers' ledger.
        static EXPERIMENTS: &[&Experiment] = &[$($(&$paper::$stem::EXPERIMENT),+),+];

        #[test]
        fn the_stem_of_a_file_is_the_name_of_its_claim() {
            let stems = [$($(stringify!($stem)),+),+];
            let ids: Vec<String> = EXPERIMENTS.iter().map(|experiment| experiment.claim.id.replace('-', "_")).collect();
            assert_eq!(ids, stems);
        }
    };
}

experiments! {
    femu: femu_scalability, femu_delay, femu_iops, femu_grid, femu_registers, femu_models,
        femu_gc_schemes, femu_white_gc, femu_cluster, femu_unsafe_delay;
    mittos: mitt_cost, mitt_accuracy, mitt_micro, mitt_vs_others, mitt_noop_cfq;
    teafa: teafa_tpcc, teafa_all, teafa_extra_load, teafa_vs, teafa_window_formulas,
        teafa_dynamic_window, teafa_waf, teafa_filebench, teafa_2d_window, teafa_ocssd;
    ttflash: ttflash_tail, ttflash_filebench, ttflash_arithmetic, ttflash_wear,
        gc_tail_motivation;
    leapio: leapio_virt;
    hiops: hiops_iops, hiops_handler, hiops_poll, hiops_kv;
    engine: kv_tail, kv_load, kv_memcached, kv_percentiles;
    precompletion: pre_prediction, pre_buffer_hit, pre_window, pre_multidepth;
    ox: ox_mq, ox_fabric, ox_sizes, ox_gc, ox_checkpoint, ox_recovery, eleos_cache, eleos_scale;
    fox: oc_media, oc_parallel_fpga, oc_parallel_cnex, oc_fpga_rest, oc_isolation;
}

/// The ledger of the source papers.
pub static LEDGER: Ledger = Ledger {
    experiments: EXPERIMENTS,
    unbuilt: unbuilt::UNBUILT,
    costs: costs::COSTS,
    durations: include_str!("../durations.txt"),
    recorded: include_str!("../../../docs/validation/verdicts.txt"),
};
