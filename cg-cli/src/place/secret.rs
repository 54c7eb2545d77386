//! Passwords in addresses, which no message repeats.

use std::borrow::Cow;
use std::ffi::OsString;

use super::SCHEMES;

/// A text in which no address of the arguments has its password.
pub(crate) fn without_passwords(args: impl Iterator<Item = OsString>, text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for arg in args {
        let arg = arg.to_string_lossy();
        let address = SCHEMES.iter().filter_map(|scheme| Some((*scheme, arg.split_once(scheme)?.1)));
        for (scheme, rest) in address {
            let (account, place) = rest.rsplit_once('@').unwrap_or((rest, ""));
            let Some((user, _)) = account.split_once(':').filter(|(_, password)| !password.is_empty()) else {
                continue;
            };
            let whole = format!("{scheme}{rest}");
            text = Cow::Owned(text.replace(&whole, &format!("{scheme}{user}@{place}")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_left() {
        let of = |arg: &str| {
            let text = format!("error: unexpected argument '{arg}' found");
            without_passwords([OsString::from(arg)].into_iter(), &text).into_owned()
        };
        let said = |place: &str| format!("error: unexpected argument '{place}' found");
        assert_eq!(of("postgres://u:secret@h/db?world=w"), said("postgres://u@h/db?world=w"));
        assert_eq!(of("postgresql://u:se@cret@h:1/db"), said("postgresql://u@h:1/db"));
        assert_eq!(of("--form=postgres://u:secret@h/db"), said("--form=postgres://u@h/db"));
        assert_eq!(of("postgres://u:secret"), said("postgres://u@"));
        for plain in ["postgres://u@h/db", "postgres://u@h:1/db", "w", "postgres://"] {
            assert_eq!(of(plain), said(plain));
        }
    }
}
