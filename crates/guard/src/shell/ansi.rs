//! `$'…'`: escapes of C in a quoted text.

use super::ast::Part;
use super::cursor::{Cursor, Read};
use super::word::Parts;

impl Cursor<'_> {
    /// After `$'`.
    pub fn ansi_quoted(&mut self, parts: &mut Parts) -> Read<()> {
        let open = self.at - 2;
        let mut bytes = Vec::new();
        loop {
            self.step()?;
            let Some(c) = self.text[self.at..].chars().next() else {
                self.at = open;
                return Err(self.trouble("this quote is never closed"));
            };
            self.at += c.len_utf8();
            match c {
                '\'' => break,
                '\\' => self.ansi_escape(&mut bytes),
                c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        match String::from_utf8(bytes) {
            // The shell's strings end at a NUL.
            Ok(text) => parts.literal(text.split('\0').next().unwrap_or_default()),
            Err(_) => parts.0.push(Part::Unreadable),
        }
        Ok(())
    }

    /// After a backslash in `$'…'`.
    fn ansi_escape(&mut self, into: &mut Vec<u8>) {
        let Some(c) = self.text[self.at..].chars().next() else {
            into.push(b'\\');
            return;
        };
        self.at += c.len_utf8();
        let simple = match c {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => c as u8,
            'x' => return self.digits(16, 2, into, Unit::Byte),
            'u' => return self.digits(16, 4, into, Unit::Character),
            'U' => return self.digits(16, 8, into, Unit::Character),
            '0'..='7' => {
                self.at -= 1;
                return self.digits(8, 3, into, Unit::Byte);
            }
            'c' => match self.peek() {
                Some(byte) if byte.is_ascii() => {
                    self.at += 1;
                    byte & 0x1f
                }
                _ => b'c',
            },
            c => {
                into.push(b'\\');
                into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return;
            }
        };
        into.push(simple);
    }

    fn digits(&mut self, radix: u32, most: usize, into: &mut Vec<u8>, unit: Unit) {
        let digit = |byte: &u8| char::from(*byte).is_digit(radix);
        let count = self.rest().iter().take(most).take_while(|byte| digit(byte)).count();
        let value = u32::from_str_radix(&self.text[self.at..self.at + count], radix);
        self.at += count;
        match (value, unit) {
            (Ok(value), Unit::Byte) => into.push((value & 0xff) as u8),
            (Ok(value), Unit::Character) => {
                let c = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
                into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            (Err(_), _) => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Byte,
    Character,
}
