//! Contract: the catalogue that this crate's own build script compiled is what this version of the crate would write, and
//! each of its kernels runs.
#![cfg(all(feature = "catalog", feature = "ptx"))]

use cutemplate::artifact::{Artifact, Code};
use cutemplate::catalog;
use cutemplate::digest::Digest;
use cutemplate::exec::Kernel;
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::recipe::{ElementwiseAdd, Recipe};
use cutemplate::view::{View, ViewMut};

/// Opens the named kernels of the catalogue, each as its own recipe; their number.
macro_rules! opened {
    ($($kernel:ident)*) => {
        [$(opens::<catalog::$kernel::Recipe>(&catalog::$kernel::ARTIFACT)),*].len()
    };
}

#[test]
fn every_artifact_opens_and_holds_a_fatbin() {
    let add = opened!(elementwise_add_f32 elementwise_add_f16 elementwise_add_bf16);
    let apply = opened!(
        elementwise_apply_f16_naive
        elementwise_apply_f16_vectorized
        elementwise_apply_f16_tv
        elementwise_apply_f16_remapped
        elementwise_apply_bf16
        elementwise_apply_f32
        elementwise_apply_f16
    );
    let sgemm = opened!(
        sgemm_naive_tt
        sgemm_coalesced_tt
        sgemm_smem_tiled_tt
        sgemm_block_1d_tt
        sgemm_block_2d_tt
        sgemm_vectorized_tt
        sgemm_warp_tiled_tt
        sgemm_pipelined_tt
        sgemm_pipelined_nn_64x64x16_split4_batched
        sgemm_pipelined_tt_128x128x16
        sgemm_pipelined_tt_64x64x32_wave528_batched
    );
    let entries: usize = cutemplate::recipe::FAMILIES.iter().map(|f| f.catalogue.len()).sum();
    let gemm = opened!(gemm_f16 gemm_f16_f32_64x256x32_cluster1x2_split2 gemm_bf16_f32_192x64x16_stages2_cluster1x1_stream_k gemm_bf16_ntn_256x96x64_stages3_cluster2x2 gemm_f16_ntt_batched_128x128x64 gemm_f16_128x192x64_pingpong gemm_tf32_nnt_128x192x32_pingpong gemm_e4m3_bf16 gemm_i8_bf16 gemm_e5m2_e4m3_promote128_e4m3_nnt_128x128x64_cluster1x2);
    let sum = opened!(sum_f32_warp sum_f16_block sum_bf16_warp);
    let rows = opened!(rows_bf16_1000 rows_bf16_2048 rows_bf16_4096 rows_f16_200 rows_f32_1024);
    let top_k = opened!(top_k_bf16_64);
    let attention = opened!(
        attention_f16_128
        attention_bf16_64_causal_lse
        attention_bf16_32_causal_varlen_lse
        attention_f16_72x40_window_lse
        attention_f16_64_scored_sinks
        attention_bf16_64_lse_scored
        attention_bf16_64_causal_paged_lse
        attention_bf16_64x48_window_varlen_e4m3_paged_lse
    );
    let append = opened!(append_bf16_128x64_rotary96_queries append_bf16_e4m3_64_rotary32_varlen_queries);
    let w4a16 = opened!(w4a16_bf16_group128_16x64x64 w4a16_f16_f32_group32_zeros_64x128x64_slices2_stages3);
    assert_eq!(
        add + apply + sgemm + gemm + sum + rows + top_k + attention + append + w4a16,
        entries,
        "this test names every kernel of the catalogue"
    );
}

fn opens<R: Recipe>(artifact: &'static Artifact<'static>) {
    let plan = artifact.plan::<R>().expect("the same version");
    assert_eq!(plan.name(), artifact.name());
    assert_eq!(plan.texts().len(), artifact.texts().len());
    for (part, text) in plan.texts().iter().zip(artifact.texts()) {
        let name = part.name();
        let Code::Fatbin { bytes, sha256, .. } = text.code else { panic!("{name} is a stub") };
        assert!(bytes.len() > 1000, "{name}: {} bytes", bytes.len());
        assert_eq!(Digest::of(bytes).to_string(), sha256, "{name}");
    }
}

#[test]
fn a_kernel_of_the_catalogue_runs() {
    let kernel = Kernel::<ElementwiseAdd>::load(&catalog::elementwise_add_f32::ARTIFACT);
    let (a, b, mut c) = ([1.0_f32, 2.0, 3.0], [0.5_f32; 3], [0.0_f32; 3]);
    let args = ElementwiseAddArgs {
        a: View::host(&a, [1, 3], 3),
        b: View::host(&b, [1, 3], 3),
        c: ViewMut::host(&mut c, [1, 3], 3),
    };
    kernel.expect("it has PTX").launch(args).expect("it runs");
    assert_eq!(c, [1.5, 2.5, 3.5]);
}
