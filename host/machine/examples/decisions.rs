//! Scheduling decisions on a loaded host, to measure the speed of the model: eight processors, 64 threads that work and sleep, and an
//! interrupt for each sleep. Prints the number of decisions; time the program to get the rate.
//!
//! The first argument is the scheduler, `cfs` or `eevdf`; the second, the simulated time in milliseconds.
#![allow(clippy::print_stdout, reason = "a program prints")]

use nandscape_host_machine::{Config, Event, Machine, Mode, ThreadSpec};
use nandscape_sim::{Executor, Seed, Span};
use std::rc::Rc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let sched = arguments.next().unwrap_or_else(|| "eevdf".to_owned());
    let ms: u64 = arguments.next().map_or(Ok(1_000), |text| text.parse())?;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let mut config = Config { cores: 8, ..Config::default() };
    config.set(&format!("host.sched={sched}"))?;
    let machine = Machine::new(&sim, config)?;
    for number in 0..64 {
        let (thread, device, sim, mut rng) =
            (machine.thread(ThreadSpec::default())?, machine.clone(), sim.clone(), Seed::new(1).nth(number).rng());
        executor.sim().spawn(async move {
            let completed = Rc::new(Event::new(&device));
            loop {
                thread.work(rng.exponential(4e3), Mode::User).await;
                // An I/O: a device that answers with an interrupt, which wakes the thread.
                let (cpu, answer, latency, device, clock) =
                    (thread.cpu(), completed.clone(), rng.exponential(20e3), device.clone(), sim.clone());
                sim.spawn(async move {
                    clock.sleep(latency).await;
                    let Ok(interrupt) = device.interrupt(cpu) else { return };
                    interrupt.work(Span::from_ns(500), Mode::Kernel).await;
                    answer.notify_from(&interrupt);
                });
                completed.wait(&thread).await;
            }
        });
    }
    executor.block_on(sim.sleep(Span::from_ms(ms)))?;
    println!("{} decisions in {ms} ms; busy {:?}", machine.decisions(), machine.total().busy());
    Ok(())
}
