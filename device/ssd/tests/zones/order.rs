//! Random commands for the drive and for the model, alone or several at once.
//!
//! Where the flash fails, the drive itself makes zones read-only, at a moment that the host does not see. Then statuses and states must be
//! those of the model with these changes at some moment between the commands.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use nandscape_drive::HostMem;
use nandscape_sim::rng::Rng;
use nandscape_wire_nvme::zns::send;
use nandscape_wire_nvme::{IoOpcode, Status};

use crate::model::{EXPLICIT, IMPLICIT, Model, OFFLINE, READ_ONLY};
use crate::rig::{AREA, GRANULARITY, Rig, SIZE, ZONES, send as send_of};

/// A command.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    OpenRandom(u64),
    Flush(u64),
    Copy(Vec<(u64, u64)>, u64),
    Extension(u64, u8),
    Write(u64, Vec<u64>),
    Append(u64, Vec<u64>),
    Read(u64, u64),
    Act { slba: u64, action: u8, all: bool },
}

/// The result of a command: the stamps of a read, the first block of an append.
type Ended = Result<Vec<u64>, Status>;

impl Order {
    /// Any.
    pub(crate) fn draw(rng: &mut Rng, model: &Model, stamp: &mut u64) -> Order {
        let among = if rng.chance(0.7) { 5 } else { ZONES };
        let zone = rng.below(among) * SIZE;
        match rng.below(26) {
            20 | 21 => Order::OpenRandom(zone),
            22 | 23 => Order::Flush(flush_to(rng, model)),
            24 => {
                let (to, parts) = (target(rng, model), 1 + rng.below(3));
                Order::Copy((0..parts).map(|_| (rng.below(5 * SIZE), 1 + rng.below(5))).collect(), to)
            }
            25 => Order::Extension(zone, 1 + rng.below(255) as u8),
            0..=6 => Order::Write(target(rng, model), stamps(rng, stamp)),
            7..=10 => Order::Append(zone + u64::from(rng.chance(0.05)), stamps(rng, stamp)),
            11..=14 => Order::Read(rng.below(5 * SIZE), 1 + rng.below(16)),
            _ => {
                let actions = [send::CLOSE, send::FINISH, send::OPEN, send::RESET, send::OFFLINE];
                let action = actions[rng.below(5) as usize];
                Order::Act { slba: zone + u64::from(rng.chance(0.05)), action, all: rng.chance(0.1) }
            }
        }
    }

    /// Writes and appends that may all be under way at once: a queue's commands take their blocks in the order in which they are
    /// submitted, and zones that are open need no room.
    pub(crate) fn draw_several(rng: &mut Rng, model: &Model, stamp: &mut u64) -> Vec<Order> {
        let is_open = |zone: &u64| {
            let zone = &model.zones[*zone as usize];
            [IMPLICIT, EXPLICIT].contains(&zone.state) && !zone.is_random
        };
        let open: Vec<u64> = (0..ZONES).filter(is_open).collect();
        if open.is_empty() {
            return vec![Order::draw(rng, model, stamp)];
        }
        let (mut after, mut orders) = (model.clone(), Vec::new());
        for _ in 0..2 + rng.below(7) {
            let zone = open[rng.below(open.len() as u64) as usize];
            let stamps = stamps(rng, stamp);
            let order = match rng.chance(0.5) {
                true => Order::Append(zone * SIZE, stamps),
                false => Order::Write(zone * SIZE + after.zones[zone as usize].pointer, stamps),
            };
            let _ = order.apply(&mut after);
            orders.push(order);
        }
        orders
    }

    /// The result of the model.
    fn apply(&self, model: &mut Model) -> Ended {
        match self {
            Order::OpenRandom(slba) => model.open_random(slba / SIZE).map(|()| vec![0]),
            Order::Flush(last) => model.flush(*last).map(|()| vec![0]),
            Order::Copy(sources, to) => model.copy(sources, *to).map(|()| vec![0]),
            Order::Extension(slba, byte) => model.set_extension(slba / SIZE, *byte).map(|()| vec![0]),
            Order::Write(slba, stamps) => model.write(*slba, stamps, false).map(|_| vec![0]),
            Order::Append(slba, stamps) => model.write(*slba, stamps, true).map(|first| vec![first]),
            Order::Read(slba, blocks) => model.read(*slba, *blocks),
            Order::Act { slba, action, all } => model.send(*slba, *action, *all).map(|()| vec![0]),
        }
    }

    /// The result of the drive.
    async fn execute(&self, rig: &Rig) -> Ended {
        let one = |value| vec![value];
        match self {
            Order::OpenRandom(slba) => rig.open_random(*slba).await.map(one),
            Order::Flush(last) => rig.run(send_of(*last, send::FLUSH_RANGE.into()), HostMem::none()).await.map(one),
            Order::Copy(sources, to) => rig.copy(sources, *to).await.map(one),
            Order::Extension(slba, byte) => rig.set_extension(*slba, *byte).await.map(one),
            Order::Write(slba, stamps) => rig.put(IoOpcode::WRITE, *slba, stamps).await.map(one),
            Order::Append(slba, stamps) => rig.put(IoOpcode::ZONE_APPEND, *slba, stamps).await.map(one),
            Order::Read(slba, blocks) => rig.read(*slba, *blocks as u32).await,
            Order::Act { slba, action, all } => rig.send(*slba, *action, *all).await.map(one),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Order::OpenRandom(_) => "random",
            Order::Flush(_) => "flush",
            Order::Copy(..) => "copy",
            Order::Extension(..) => "extension",
            Order::Write(..) => "write",
            Order::Append(..) => "append",
            Order::Read(..) => "read",
            Order::Act { .. } => "action",
        }
    }
}

fn stamps(rng: &mut Rng, stamp: &mut u64) -> Vec<u64> {
    let stamps: Vec<u64> = (0..1 + rng.below(16)).map(|index| *stamp + index).collect();
    *stamp += 16;
    stamps
}

/// A block to write at: mostly at the write pointer of a zone, or in its random write area, like a host that tracks them.
fn target(rng: &mut Rng, model: &Model) -> u64 {
    let among = if rng.chance(0.7) { 5 } else { ZONES };
    let zone = rng.below(among);
    match rng.below(20) {
        0 => rng.below(ZONES * SIZE + 10),
        _ => {
            let zone_of = &model.zones[zone as usize];
            zone * SIZE + zone_of.pointer + if zone_of.is_random { rng.below(2 * AREA) } else { 0 }
        }
    }
}

/// A block to flush a random write area to: mostly of a zone that has one.
fn flush_to(rng: &mut Rng, model: &Model) -> u64 {
    let random: Vec<u64> = (0..ZONES).filter(|zone| model.zones[*zone as usize].is_random).collect();
    let zone = if random.is_empty() { rng.below(ZONES) } else { random[rng.below(random.len() as u64) as usize] };
    let blocks = if rng.chance(0.8) { GRANULARITY * (1 + rng.below(3)) } else { rng.below(20) };
    (zone * SIZE + model.zones[zone as usize].pointer + blocks).saturating_sub(1)
}

/// Submits commands at once, and compares the drive with the model. `fails` is whether the flash fails. Returns the results.
pub(crate) async fn perform(rig: &Rig, model: &mut Model, orders: &[Order], fails: bool) -> Vec<Ended> {
    let got = all(orders.iter().map(|order| order.execute(rig))).await;
    if !fails {
        let expected: Vec<Ended> = orders.iter().map(|order| order.apply(model)).collect();
        assert_eq!(got, expected, "{orders:?}");
        return got;
    }
    let (_, report) = rig.report(0, 0, 64 * (ZONES as u32 + 1)).await.expect("a report");
    let states: Vec<u8> = report.iter().map(|zone| zone.zs >> 4).collect();
    *model = explained(model, orders, &got, &states)
        .unwrap_or_else(|| panic!("{orders:?} ended with {got:?} and states {states:x?}, from {:x?}", model.states()));
    got
}

/// The model after commands with these ends: zones became read-only before one of the commands, or after the last.
fn explained(model: &Model, orders: &[Order], got: &[Ended], states: &[u8]) -> Option<Model> {
    let lost = [READ_ONLY, OFFLINE];
    let is_new = |zone: &usize| lost.contains(&states[*zone]) && !lost.contains(&model.zones[*zone].state);
    let zones: Vec<usize> = (0..states.len()).filter(is_new).collect();
    let moments = orders.len() + 1;
    (0..moments.pow(zones.len() as u32)).find_map(|mut choice| {
        let mut when = Vec::new();
        for zone in &zones {
            when.push((*zone, choice % moments));
            choice /= moments;
        }
        let mut model = model.clone();
        for moment in 0..moments {
            for (zone, _) in when.iter().filter(|(_, when)| *when == moment) {
                model.make_read_only(*zone)?;
            }
            if let Some((order, got)) = orders.get(moment).zip(got.get(moment))
                && order.apply(&mut model) != *got
            {
                return None;
            }
        }
        (model.states() == states).then_some(model)
    })
}

/// The results of futures that are polled in turn, the first first.
async fn all<T, F: Future<Output = T>>(futures: impl Iterator<Item = F>) -> Vec<T> {
    let mut parts: Vec<(Option<T>, Pin<Box<F>>)> = futures.map(|future| (None, Box::pin(future))).collect();
    std::future::poll_fn(|context| {
        for (result, future) in parts.iter_mut().filter(|(result, _)| result.is_none()) {
            if let Poll::Ready(ended) = future.as_mut().poll(context) {
                *result = Some(ended);
            }
        }
        if parts.iter().all(|(result, _)| result.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    parts.into_iter().filter_map(|(result, _)| result).collect()
}
