#![allow(missing_docs, clippy::unwrap_used)]
use calmix_core::plan::plan_step;
use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, SoftMatch};
use calmix_core::rng::{Domain, Seed};
use calmix_engine::batch::*;
use calmix_engine::engine::*;
use calmix_engine::images::*;
use calmix_engine::precision::Precision;
use calmix_engine::step::{Asked, Passes};

#[test]
fn smoke() {
    calmix_engine::device::set_threads(1);
    for passes in [Passes::Joint, Passes::Lean] {
        for precision in [Precision::F32, Precision::Bf16, Precision::F16] {
            let settings = Settings {
                architecture: "wrn-10-1".parse().unwrap(),
                first_block: Default::default(),
                classes: 10,
                size: Size { height: 32, width: 32 },
                normalisation: Normalisation { mean: [0.5; 3], deviation: [0.25; 3] },
                device: calmix_engine::device::Device::Cpu,
                precision,
                optimiser: Default::default(),
                ema_decay: 0.999,
                clip: None,
                passes,
            };
            let mut engine = Engine::new(settings, Seed(1)).unwrap();
            let mut method = paper(Base::SoftMatch(SoftMatch::default()), 100);
            method.mixup.as_mut().unwrap().start = calmix_core::schedule::MixStart::At(0);
            let ids: Vec<u64> = (0..8).collect();
            let uids: Vec<u64> = (100..132).collect();
            let mut state = method.initial_state(10, 200);
            let mut samples = method.local_state(10, &ids, 200);
            let mut r = Seed(3).stream(Domain::Weak, 0, 0);
            let mut px = |n: usize| (0..n * 3072).map(|_| r.next_u32() as u8).collect::<Vec<u8>>();
            let (x, w, s) = (px(8), px(32), px(32));
            let labels: Vec<u32> = (0..8).collect();
            for step in 0..3 {
                let batch = Batch {
                    step,
                    labelled: Labelled { ids: &ids, labels: &labels, pixels: &x },
                    unlabelled: Unlabelled { ids: &uids, weak: &w, strong: &s },
                };
                let t = std::time::Instant::now();
                let learnt = engine
                    .step(&method, &batch, 0.03, |asked, seen| {
                        assert_eq!(asked, Asked::Plan);
                        plan_step(&method, seen, &mut state, &mut samples, Seed(1), step)
                    })
                    .unwrap();
                println!("{passes:?} {precision:?} {learnt:?} {:?}", t.elapsed());
            }
            let snap = engine.snapshot().unwrap();
            engine.restore(&snap).unwrap();
            assert!(engine.snapshot().unwrap() == snap);
        }
    }
}
