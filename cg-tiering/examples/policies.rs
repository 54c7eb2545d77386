//! Compares policies on traces from a seed.
//!
//! `cargo run --release --package cg-tiering --example policies [SCENARIO] [MINUTES] [PLAYERS] [SETTING]`

use std::error::Error;

use cg_tiering::TierPolicy;
use cg_tiering::simulate::{Comparison, StoreModel, simulate};
use cg_tiering::synthetic::{Scenario, Synthetic};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let wanted = args.next();
    let minutes = args.next().map(|minutes| minutes.parse()).transpose()?;
    let players = args.next().map(|players| players.parse()).transpose()?;
    let setting = args.next();
    let default = TierPolicy::default();
    let settings = [
        ("default", default),
        ("promoted as soon as requested", TierPolicy { promote_after_ticks: 0, ..default }),
        ("no hysteresis", TierPolicy { hysteresis_ticks: 0, ..default }),
        ("no gathering", TierPolicy { gather_ticks: 0, ..default }),
        ("rewrite at once", TierPolicy { rewrite_after_ticks: 0, ..default }),
        ("cold after 10 min", TierPolicy { cold_after_ticks: 10 * 60 * 20, ..default }),
        ("z = 2048", TierPolicy { cold_distance_blocks: 2048, ..default }),
        ("never far", TierPolicy { cold_distance_blocks: u64::MAX, ..default }),
    ];
    for scenario in Scenario::ALL {
        if wanted.as_deref().is_some_and(|name| name != "all" && name != scenario.name()) {
            continue;
        }
        let full = Synthetic::new(scenario, 1);
        let trace = Synthetic {
            minutes: minutes.unwrap_or(full.minutes),
            players: players.unwrap_or(full.players),
            ..full
        };
        println!("{}, {} players, {} minutes", scenario.name(), trace.players, trace.minutes);
        let mut comparison = Comparison::default();
        for (name, policy) in settings {
            if setting.as_deref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            let report = simulate(trace.events(), policy, StoreModel::default())?;
            if name == "default" {
                println!("{report}");
            }
            comparison.0.push((name.to_owned(), report));
        }
        println!("{comparison}");
    }
    Ok(())
}
