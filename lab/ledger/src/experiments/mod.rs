//! The experiments, a file each, by the order of the ledger. The stem of the file is the name of the claim.

macro_rules! experiments {
    ($($stem:ident),+ $(,)?) => {
        $(mod $stem;)+

        /// All experiments.
        pub static EXPERIMENTS: &[&crate::experiment::Experiment] = &[$(&$stem::EXPERIMENT),+];

        #[test]
        fn the_stem_of_a_file_is_the_name_of_its_claim() {
            let stems = [$(stringify!($stem)),+];
            let ids: Vec<String> = EXPERIMENTS.iter().map(|experiment| experiment.claim.id.replace('-', "_")).collect();
            assert_eq!(ids, stems);
        }
    };
}

experiments! {
    femu_scalability,
    femu_delay,
    femu_iops,
    femu_grid,
    femu_registers,
    femu_models,
    femu_gc_schemes,
    femu_white_gc,
    femu_cluster,
    femu_unsafe_delay,
    mitt_cost,
    mitt_accuracy,
    mitt_micro,
    mitt_vs_others,
    mitt_noop_cfq,
    teafa_tpcc,
    teafa_all,
    teafa_extra_load,
    teafa_vs,
    teafa_window_formulas,
    teafa_dynamic_window,
    teafa_waf,
    teafa_filebench,
    teafa_2d_window,
    teafa_ocssd,
    ttflash_tail,
    ttflash_filebench,
    ttflash_arithmetic,
    ttflash_wear,
    gc_tail_motivation,
    leapio_virt,
    hiops_iops,
    hiops_handler,
    hiops_poll,
    kv_tail,
    kv_load,
    kv_memcached,
    kv_percentiles,
    pre_prediction,
    pre_buffer_hit,
    pre_window,
    pre_multidepth,
    ox_mq,
    ox_fabric,
    ox_sizes,
    ox_gc,
    ox_checkpoint,
    ox_recovery,
    eleos_cache,
    eleos_scale,
    oc_media,
    oc_parallel_fpga,
    oc_parallel_cnex,
    oc_fpga_rest,
    oc_isolation,
}
