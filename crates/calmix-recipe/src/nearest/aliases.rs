//! Aliases: the names of our keys in USB, TorchSSL, FixMatch's ports and timm.

/// Each alias with its key.
const ALIASES: &[(&str, &str)] = &[
    ("amp", "train.precision"),
    ("arch", "network.name"),
    ("batch_size", "train.batch"),
    ("bs", "train.batch"),
    ("clip_grad", "optimiser.clip"),
    ("clip_thresh", "method.freematch.clip"),
    ("crop_ratio", "augment.weak.shift"),
    ("data_dir", "dataset.path"),
    ("dist_uniform", "method.softmatch.target"),
    ("ema_m", "ema.decay"),
    ("ema_p", "method.softmatch.momentum"),
    ("ent_loss_ratio", "method.freematch.fairness"),
    ("epoch", "train.steps"),
    ("epochs", "train.steps"),
    ("eval_batch_size", "evaluate.batch"),
    ("expand_labels", "labels.include_labelled"),
    ("img_size", "augment.size"),
    ("include_lb_to_ulb", "labels.include_labelled"),
    ("lambda_e", "method.freematch.fairness"),
    ("lambda_u", "method.unlabelled_weight"),
    ("learning_rate", "optimiser.lr"),
    ("margin_hyperparam", "method.logit_penalty.margin"),
    ("mu", "train.ratio"),
    ("net", "network.name"),
    ("num_eval_iter", "evaluate.every"),
    ("num_labeled", "labels.count"),
    ("num_labels", "labels.count"),
    ("num_log_iter", "log.every"),
    ("num_train_iter", "train.steps"),
    ("num_workers", "loader.workers"),
    ("p_cutoff", "method.fixmatch.threshold"),
    ("p_margin", "method.logit_penalty.weight"),
    ("per_class", "labels.count"),
    ("thresh_warmup", "method.flexmatch.warmup"),
    ("total_steps", "train.steps"),
    ("ulb_loss_ratio", "method.unlabelled_weight"),
    ("uratio", "train.ratio"),
    ("wd", "optimiser.weight_decay"),
];

/// Returns the key of an alias.
pub(crate) fn key_of_alias(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recipe;
    use crate::field::leaves;

    #[test]
    fn aliases_lead_to_keys_and_are_not_keys() {
        let keys = leaves(Recipe::fields());
        for (theirs, ours) in ALIASES {
            assert!(keys.iter().any(|(path, _)| path == ours), "{ours}");
            assert!(!keys.iter().any(|(_, field)| field.name == *theirs), "{theirs}");
        }
    }
}
