//! The `cg` tool: import, export, inspect, verify and draw worlds.

#![forbid(unsafe_code)]

mod args;
mod choice;
mod cmd;
mod decimal;
mod failure;
mod output;
mod picture;
mod place;
mod shown;
mod snbt;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let args = match cmd::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return refused(&error),
    };
    let out = output::Output::new(args.format());
    match args.command.run(&out) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            out.print_failure(&failure);
            failure.into()
        }
    }
}

/// Says what is wrong with the arguments, in JSON if `--json` is among them; or prints the help that they ask for.
fn refused(error: &clap::Error) -> ExitCode {
    let rendered = error.render().to_string();
    let text = place::without_passwords(std::env::args_os(), &rendered);
    if !error.use_stderr() || !std::env::args_os().any(|arg| arg == "--json") {
        if text == rendered {
            error.exit();
        }
        eprint!("{text}");
        return output::Failure::usage(text.into_owned()).into();
    }
    let message = text.split("\n\n").next().unwrap_or_default();
    let failure = output::Failure::usage(message.strip_prefix("error: ").unwrap_or(message));
    output::Output::new(output::Format::Json).print_failure(&failure);
    failure.into()
}
