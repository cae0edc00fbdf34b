//! NetworkPolicies of generated clusters. Three answers must agree on every connection: an
//! evaluator written from the Kubernetes reference alone, OVN with ovnkube's rows
//! (`ovn-trace` on northd's flows for them), and `ovnkube why`.
//!
//! `TRACE_SEEDS=100-120` selects other seeds than the default ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

mod hairpin;
mod hostile;
mod lab;
mod questions;
mod ranges;

use std::time::{Duration, Instant};

use ovnkube_policy_truth::{Random, generate};
use ovnkube_tests::nb::Release;
use serde_json::Value;

use crate::lab::Lab;
use crate::questions::{Question, all};

const POLICIES: usize = 30;
/// Sampled for each seed, out of thousands.
const QUESTIONS: usize = 1500;
/// The time limit for the rows.
const PATIENCE: Duration = Duration::from_secs(180);

fn seeds(usual: std::ops::RangeInclusive<u64>) -> std::ops::RangeInclusive<u64> {
    let Ok(text) = std::env::var("TRACE_SEEDS") else { return usual };
    let (first, last) = text.split_once('-').expect("TRACE_SEEDS=FIRST-LAST");
    first.parse().unwrap()..=last.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_allow_what_the_reference_allows() {
    let mut lab = Lab::up(Release::Lts, 1).await;
    for seed in seeds(1..=8) {
        holds(&mut lab, seed).await;
    }
    // annotations written with the other release stay in the API: addresses remain
    lab.change_release(Release::Host).await;
    for seed in seeds(9..=10) {
        holds(&mut lab, seed).await;
    }
}

/// Replaces the policies, and relabels a pod and a namespace.
async fn holds(lab: &mut Lab, seed: u64) {
    let mut random = Random::new(seed);
    lab.relabel(&mut random).await;
    let policies = generate::policies(seed, POLICIES, &lab.cluster);
    lab.replace_policies(&policies).await;
    let mut questions = all(&lab.cluster);
    while questions.len() > QUESTIONS {
        questions.swap_remove(random.below(questions.len()));
    }
    let differing = questions.iter().find(|q| q.expected(&lab.cluster) != q.why(lab.world()));
    if let Some(question) = differing {
        let answer = question.explained(lab.world());
        panic!("seed {seed}: {question} should be {}, `why` says:\n{answer}", question.expected(&lab.cluster));
    }
    let started = Instant::now();
    let mut wrong = wrong_answers(lab, &questions);
    while !wrong.is_empty() && started.elapsed() < PATIENCE {
        wrong = wrong_answers(lab, &wrong);
        if wrong.is_empty() {
            // an answer that was correct before may now be wrong
            wrong = wrong_answers(lab, &questions);
        }
    }
    let allowed = questions.iter().filter(|question| question.expected(&lab.cluster)).count();
    println!("seed {seed}: {} questions, {allowed} allowed, {:?}", questions.len(), started.elapsed());
    if let Some(question) = wrong.first() {
        explain(lab, seed, question, wrong.len(), policies).await;
    }
}

fn wrong_answers(lab: &Lab, questions: &[Question]) -> Vec<Question> {
    let mut tracer = lab.tracer();
    let is_wrong = |question: &&Question| lab.passes(&mut tracer, question) != question.expected(&lab.cluster);
    questions.iter().filter(is_wrong).cloned().collect()
}

/// Fails after reducing the policies to those that the first wrong answer needs.
async fn explain(lab: &mut Lab, seed: u64, question: &Question, count: usize, mut policies: Vec<Value>) {
    for place in (0..policies.len()).rev() {
        let mut fewer = policies.clone();
        fewer.remove(place);
        lab.replace_policies(&fewer).await;
        if !wrong_answers(lab, std::slice::from_ref(question)).is_empty() {
            policies = fewer;
        }
    }
    lab.replace_policies(&policies).await;
    let expected = if question.expected(&lab.cluster) { "pass" } else { "not pass" };
    let listed: Vec<_> = policies.iter().map(|p| format!("\n  {} {}", p["metadata"], p["spec"])).collect();
    let why = question.explained(lab.world());
    let trace = lab.trace(&mut lab.tracer(), question);
    panic!(
        "seed {seed}: {count} wrong answers; {question} should {expected}\n{}\nwith policies{}\n{why}\n{trace}",
        question.ends(&lab.cluster),
        listed.concat(),
    );
}
