//! Which keys have no effect, given what others say.

use super::augment::{CutoutRule, Frame, Geometry};
use super::data::{Keep, Source};
use super::field::leaves;
use super::loader::OnCorrupt;
use super::method::{Averaging, Base, Dissimilarity, Lambda, Pairing, Smoothing, Split, StartRule};
use super::train::NonFinite;
use super::{Method, Recipe};

/// Every key without effect, each with the reason.
pub(super) fn idle(recipe: &Recipe) -> Vec<(String, String)> {
    let mut idle = Idle::default();
    let Recipe { dataset, labels, network, train, augment, loader, .. } = recipe;
    let keeps = |keep: &[Keep]| keep.contains(&labels.keep);

    let because = format!("dataset.source is {}", dataset.source);
    let lists = matches!(dataset.source, Source::LabelsCsv | Source::Webdataset);
    idle.unless(lists, &["dataset.unlabelled"], &because);

    let because = format!("labels.keep is {}", labels.keep);
    idle.unless(keeps(&[Keep::PerClass, Keep::Total]), &["labels.count"], &because);
    idle.unless(keeps(&[Keep::Share]), &["labels.share"], &because);
    idle.unless(keeps(&[Keep::Given]), &["labels.file"], &because);
    let drawn = !keeps(&[Keep::All, Keep::Given]) || labels.validation > 0.0;
    idle.unless(drawn, &["labels.seed"], &because);
    let (some, asked) = (recipe.unlabelled() > 0, train.ratio > 0);
    let why = if asked { "method.base is supervised and nothing is mixed" } else { "train.ratio is 0" };
    let without = format!("{why}, so there are no unlabelled batches");
    idle.unless(some, &["labels.unlabelled_from", "labels.include_labelled"], &without);
    idle.unless(some || !asked, &["train.ratio"], &without);

    let because = format!("network.name is {}", network.name);
    idle.unless(network.name.to_string().starts_with("wrn-"), &["network.block"], &because);
    idle.unless(train.shards != 1, &["train.batch_norm"], "train.shards is 1");
    let because = format!("train.non_finite is {}", train.non_finite);
    idle.unless(train.non_finite == NonFinite::Skip, &["train.non_finite_skips"], &because);
    let because = format!("loader.on_corrupt is {}", loader.on_corrupt);
    idle.unless(loader.on_corrupt == OnCorrupt::Skip, &["loader.corrupt_share"], &because);

    idle.method(&recipe.method);
    idle.geometry("augment.weak", &augment.weak);
    idle.geometry("augment.strong", &augment.strong);
    let rule = augment.cutout.rule;
    let because = format!("augment.cutout.rule is {rule}");
    idle.unless(rule == CutoutRule::Random, &["augment.cutout.share"], &because);
    idle.unless(rule == CutoutRule::Fixed, &["augment.cutout.side"], &because);
    idle.unless(rule != CutoutRule::None, &["augment.cutout.fill"], &because);
    idle.keys
}

#[derive(Default)]
struct Idle {
    keys: Vec<(String, String)>,
}

impl Idle {
    /// Keys have no effect unless something holds. A section stands for every key in it; the first reason counts.
    fn unless(&mut self, holds: bool, paths: &[&str], because: &str) {
        if holds {
            return;
        }
        for (leaf, _) in leaves(Recipe::fields()) {
            let meant = |path: &&str| {
                leaf.strip_prefix(*path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if paths.iter().any(meant) && !self.keys.iter().any(|(key, _)| *key == leaf) {
                self.keys.push((leaf, because.to_owned()));
            }
        }
    }

    fn method(&mut self, method: &Method) {
        let because = format!("method.base is {}", method.base);
        for base in [Base::FixMatch, Base::FlexMatch, Base::SoftMatch] {
            self.unless(method.base == base, &[&format!("method.{base}")], &because);
        }
        self.unless(method.base != Base::Supervised, &["method.unlabelled_weight"], &because);
        self.unless(method.smoothing != Smoothing::None, &["method.epsilon"], "method.smoothing is none");

        let mixup = &method.mixup;
        let because = format!("method.mixup.pairing is {}", mixup.pairing);
        if mixup.pairing == Pairing::None {
            for (path, _) in leaves(Recipe::fields()) {
                let within = path.starts_with("method.mixup.") && path != "method.mixup.pairing";
                self.unless(!within, &[&path], &because);
            }
        }
        self.unless(mixup.pairing != Pairing::None, &["method.base_loss"], &because);
        self.unless(mixup.pairing != Pairing::Random, &["method.mixup.guidance"], &because);

        let because = format!("method.mixup.lambda is {}", mixup.lambda);
        self.unless(mixup.lambda != Lambda::Fixed, &["method.mixup.alpha"], &because);
        self.unless(mixup.lambda == Lambda::Fixed, &["method.mixup.gamma"], &because);

        let rule = mixup.start.rule;
        let because = format!("method.mixup.start.rule is {rule}");
        let by_share = matches!(rule, StartRule::Share | StartRule::Ramp);
        self.unless(by_share, &["method.mixup.start.share"], &because);
        self.unless(rule == StartRule::Ramp, &["method.mixup.start.full"], &because);
        self.unless(rule == StartRule::Step, &["method.mixup.start.step"], &because);
        let of_use = ["level", "momentum", "not_before"].map(|key| format!("method.mixup.start.{key}"));
        self.unless(rule == StartRule::Utilisation, &of_use.each_ref().map(String::as_str), &because);

        let guidance = &mixup.guidance;
        let because = format!("method.mixup.guidance.averaging is {}", guidance.averaging);
        let cumulative = guidance.averaging == Averaging::Cumulative;
        self.unless(cumulative, &["method.mixup.guidance.delta"], &because);
        self.unless(!cumulative, &["method.mixup.guidance.rho"], &because);
        let because = format!("method.mixup.guidance.split is {}", guidance.split);
        let running = ["method.mixup.guidance.quantile", "method.mixup.guidance.momentum"];
        self.unless(guidance.split == Split::Running, &running, &because);
        let because = format!("method.mixup.guidance.dissimilar is {}", guidance.dissimilar);
        let (fraction, count) = (Dissimilarity::Fraction, Dissimilarity::Count);
        self.unless(guidance.dissimilar == fraction, &["method.mixup.guidance.fraction"], &because);
        self.unless(guidance.dissimilar == count, &["method.mixup.guidance.count"], &because);
        let any = guidance.dissimilar == Dissimilarity::Any;
        self.unless(!any, &["method.mixup.guidance.space"], &because);
    }

    fn geometry(&mut self, section: &str, geometry: &Geometry) {
        let because = format!("{section}.frame is {}", geometry.frame);
        let mut unless = |holds, keys: &[&str]| {
            let paths: Vec<_> = keys.iter().map(|key| format!("{section}.{key}")).collect();
            let paths: Vec<_> = paths.iter().map(String::as_str).collect();
            self.unless(holds, &paths, &because);
        };
        unless(geometry.frame == Frame::Shift, &["shift", "first"]);
        unless(geometry.frame == Frame::Crop, &["resize"]);
        unless(geometry.frame == Frame::ResizedCrop, &["area", "ratio"]);
        self.unless(geometry.flip, &[&format!("{section}.first")], &format!("{section}.flip is false"));
    }
}
