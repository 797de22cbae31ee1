//! Contract: every head of `attention` has tiles of its own accord, on older architectures and on sm_90a, with each mask. So it has with
//! fewer warps, with keys of 8 bits, and with functions of scores that read nothing, an element for each head, or one for each key.

use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Attention, Recipe};
use cutemplate::settings::Settings;

/// Functions of scores, and settings that leave the tile open.
const SCORES: [&str; 7] = [
    "",
    "sm80_warps=1",
    "sm80_warps=2",
    "dtype_kv=e4m3\nsm80_warps=2",
    "score=|s; cap| cap * tanh(s * (1 / cap))",
    "score=|s, b, h, q, k, slope| s + slope * (k - q)\naux=f32:(0,1,0,0)",
    STRIDED,
];

/// An element for each query and key, which lie anywhere.
const STRIDED: &str = "score=|s, b, h, q, k, bias| s + bias\naux=f32:(?,?,?,?)";

#[test]
fn every_head_is_planned_without_a_tile() {
    let mut refused = Vec::new();
    for arch in [Arch::Sm80, Arch::Sm90a] {
        let targets = Targets::new([arch]).expect("an architecture");
        for (head, mask) in (8..=256).step_by(8).flat_map(|head| ["full", "causal", "window"].map(|mask| (head, mask)))
        {
            // 16 bytes of a row of 8 bits are 16 elements.
            let fits = |text: &str| head % 16 == 0 || !text.contains("e4m3");
            // Longer rows of V leave too few registers for elements of keys.
            let holds = |text: &str| head <= 192 || text != STRIDED;
            for score in SCORES.into_iter().filter(|text| fits(text) && holds(text)) {
                let text = format!("dtype=bf16\nhead={head}\nmask={mask}\n{score}");
                let recipe = Attention::from_settings(&Settings::parse_lines(&text)).expect("settings");
                refused.extend(recipe.plan(&targets).err().map(|why| format!("{arch}: {text}\n{why}")));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
