//! What the engine refuses, in which words, and that nothing has changed then.

use calmix_core::mixup::Row;
use calmix_core::plan::StepPlan;
use calmix_core::pseudo::Base;
use calmix_engine::engine::{Settings, Weights};
use calmix_engine::error::EngineError;
use calmix_engine::micro_batch_plan::LocalPlan;
use calmix_recipe::step_kind::StepKind;

use crate::methods::{calibratemix, plain, released, softmatch};
use crate::run::{Pass, Rows, Run, Views, learn, settings};

const ROWS: Rows = Rows { labelled: 4, unlabelled: 4 };

/// A run in the middle of things: mixtures have begun, nothing is zero any more.
fn running(step: StepKind) -> Run {
    calmix_engine::device::set_threads(1);
    let mut run = Run::new(Settings { step, ..settings(4) }, calibratemix(softmatch()), ROWS);
    run.steps(3);
    run
}

/// What the engine says, after which it is what it was.
fn refused<T>(run: &mut Run, ask: impl FnOnce(&mut Run) -> Result<T, EngineError>) -> String {
    let before = run.engine.snapshot().expect("a snapshot");
    let error = ask(run).err().expect("refused");
    assert!(run.engine.snapshot().expect("a snapshot") == before, "something changed: {error}");
    error.to_string()
}

const ADVICE: &str = "so the weights were not updated; try a lower learning rate, gradient clipping or f32";

#[test]
fn non_finite_step_is_named_and_changes_nothing() {
    for step in [StepKind::Concat, StepKind::Joint, StepKind::Lean] {
        let mut run = running(step);
        let said = refused(&mut run, |run| run.step_with(|_, plan| plan.pseudo.weights[1] = f32::NAN));
        assert_eq!(said, format!("step 3: the unlabelled loss is not finite, {ADVICE}"));
        let said = refused(&mut run, |run| run.step_with(|_, plan| plan.mixes[0].weight = f32::INFINITY));
        assert_eq!(said, format!("step 3: the mixup loss is not finite, {ADVICE}"));
        // In a lean step the mixtures are normalised together with all else.
        let loss = if step == StepKind::Joint { "mixup" } else { "labelled" };
        let said = refused(&mut run, |run| run.step_with(|_, plan| plan.mixes[0].lambda = f32::NAN));
        assert_eq!(said, format!("step 3: the {loss} loss is not finite, {ADVICE}"));
        // The loss is still a number; its gradient is not.
        let said = refused(&mut run, |run| run.step_with(|_, plan| plan.pseudo.weights.fill(3e38)));
        assert_eq!(said, format!("step 3: the gradient is not finite, {ADVICE}"));
        // And it goes on.
        run.step().expect("a step");
    }
}

#[test]
fn a_learning_rate_that_is_too_high_is_found_at_the_next_step() {
    let mut run = running(StepKind::Joint);
    let views = Views::at(3, ROWS, run.engine.settings());
    let planned = |run: &mut Run, rate| {
        let method = plain(Base::Supervised);
        learn(&mut run.engine, &method, &views.batch(), &nothing(), rate)
    };
    planned(&mut run, 1e38).expect("a step, a long one");
    let said = refused(&mut run, |run| planned(run, 0.03));
    assert_eq!(said, format!("step 3: the output of the network is not finite, {ADVICE}"));
    for rate in [f64::NAN, f64::INFINITY] {
        let mut run = running(StepKind::Joint);
        let said = refused(&mut run, |run| planned(run, rate));
        assert_eq!(said, format!("the learning rate {rate} is not a finite number"));
    }
}

/// A plan that is trained on the labelled rows alone.
fn nothing() -> LocalPlan {
    let mut plan = StepPlan::default();
    (plan.pseudo.labels, plan.pseudo.weights) = (vec![0; ROWS.unlabelled], vec![0.0; ROWS.unlabelled]);
    plan.into()
}

#[test]
fn plans_that_do_not_fit() {
    type Tamper = fn(&mut StepPlan);
    let mistakes: [(&str, Tamper); 7] = [
        ("4 labels and 3 weights for 4 rows", |plan| plan.pseudo.weights.truncate(3)),
        ("5 labels and 4 weights for 4 rows", |plan| plan.pseudo.labels.push(0)),
        ("label 4, but there are 4 classes", |plan| plan.pseudo.labels[2] = 4),
        ("a mixture of Labelled(4) and Weak(0)", |plan| {
            (plan.mixes[0].a, plan.mixes[0].b) = (Row::Labelled(4), Row::Unlabelled(0));
        }),
        ("a mixture of Labelled(0) and Weak(4)", |plan| {
            (plan.mixes[0].a, plan.mixes[0].b) = (Row::Labelled(0), Row::Unlabelled(4));
        }),
        ("15 targets for 4 mixtures", |plan| plan.targets.truncate(15)),
        ("16 targets for 3 mixtures", |plan| plan.mixes.truncate(3)),
    ];
    for step in [StepKind::Concat, StepKind::Joint, StepKind::Lean] {
        let mut run = running(step);
        for (sentence, tamper) in mistakes {
            let said = refused(&mut run, |run| run.step_with(|_, plan| tamper(plan)));
            assert_eq!(said, format!("the plan does not fit its batch: {sentence}"));
        }
    }
}

#[test]
fn second_plan_of_released_code_is_checked() {
    let mut run = Run::new(settings(4), released(), ROWS);
    run.steps(3);
    let said = refused(&mut run, |run| {
        run.step_with(|pass, plan| {
            if pass == Pass::Second {
                plan.pseudo.labels[0] = 9;
            }
        })
    });
    assert_eq!(said, "the plan does not fit its batch: label 9, but there are 4 classes");
    for step in [StepKind::Lean, StepKind::Concat] {
        let mut run = Run::new(Settings { step, ..settings(4) }, released(), ROWS);
        let said = refused(&mut run, Run::step);
        assert_eq!(
            said,
            "the released code computes its base loss in two whole passes: use joint steps for it"
        );
    }
}

#[test]
fn batches_that_contradict_themselves() {
    type Tamper = fn(&mut Views);
    let mistakes: [(&str, Tamper); 6] = [
        ("the labelled batch has 4 rows, but 3 labels", |views| views.labels.truncate(3)),
        ("the labelled batch has 4 rows, but 191 bytes of pixels", |views| views.x.truncate(191)),
        ("the unlabelled batch has 4 rows, but 144 bytes of weak views", |views| views.weak.truncate(144)),
        ("the unlabelled batch has 4 rows, but 0 bytes of strong views", |views| views.strong.clear()),
        ("the labelled batch is empty", |views| {
            (views.ids, views.labels, views.x) = (Vec::new(), Vec::new(), Vec::new());
        }),
        ("row 1 of the labelled batch has label 4, but there are 4 classes", |views| views.labels[1] = 4),
    ];
    for step in [StepKind::Concat, StepKind::Joint, StepKind::Lean] {
        let mut run = running(step);
        for (sentence, tamper) in mistakes {
            let mut views = Views::at(3, ROWS, run.engine.settings());
            tamper(&mut views);
            let said = refused(&mut run, |run| {
                learn(&mut run.engine, &plain(Base::Supervised), &views.batch(), &nothing(), 0.03)
            });
            assert_eq!(said, sentence);
        }
        let said = refused(&mut run, |run| run.engine.predict(&[0; 49], Weights::Ema));
        assert_eq!(said, "the evaluation batch has 1 rows, but 49 bytes");
    }
}
