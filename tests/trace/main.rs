//! NetworkPolicies of generated clusters. Three must say the same about every connection: an
//! evaluator written from the Kubernetes reference alone, OVN with the rows that ovnkube wrote
//! (`ovn-trace` over what northd made of them), and `ovnkube why`.
//!
//! `TRACE_SEEDS=100-120` asks for other seeds than those of every run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

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
/// Asked of each seed, of the thousands there are.
const QUESTIONS: usize = 1500;
/// How long the rows may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn seeds(usual: std::ops::RangeInclusive<u64>) -> std::ops::RangeInclusive<u64> {
    let Ok(text) = std::env::var("TRACE_SEEDS") else { return usual };
    let (first, last) = text.split_once('-').expect("TRACE_SEEDS=FIRST-LAST");
    first.parse().unwrap()..=last.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_mean_what_the_reference_says() {
    let mut lab = Lab::up(Release::Trixie, 1).await;
    for seed in seeds(1..=8) {
        holds(&mut lab, seed).await;
    }
    // what the other release wrote stays in the API: addresses are annotated
    lab.change_release(Release::Host).await;
    for seed in seeds(9..=10) {
        holds(&mut lab, seed).await;
    }
}

/// New policies in place of the old ones, other labels for a pod and a namespace.
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
            // what was right before may be right no longer
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

/// Fails with as few policies as the first wrong answer needs.
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
