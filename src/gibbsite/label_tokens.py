"""The tokens of a PDS3 label, found by one regular expression.

pvl goes through a label character by character and makes a token of every beginning of a word; that is most of the time
it takes. A label of ordinary words, numbers, texts, units and comments is cut at once; for any other, pvl's own lexer
does it. What tokens mean is pvl's business either way.
"""

import re
import warnings
from collections.abc import Generator, Iterator
from typing import Any

__all__ = ["label_lexer", "pvl"]

with warnings.catch_warnings():
    # pvl warns, when imported, of an optional package and of its own old names; neither concerns our users.
    warnings.simplefilter("ignore")
    import pvl
    import pvl.decoder
    import pvl.parser
    from pvl.exceptions import LexerError
    from pvl.lexer import lexer as pvl_lexer
    from pvl.token import Token

_ORDINARY = re.compile(
    r"""[ \t\r\n\f\v]*(
          /\*(?!/)(?:(?!/\*|\*/).)*\*/(?=\s|$) | "[^"]*" | '[^']*' | <[^<>]*>(?=[\s,)(}{=]|$) | [={}(),]
        | (?:[2-9]|1[0-6])\#[0-9A-Fa-f]+\#(?=[\s,)}=]|$)
        | [+-]?\d+\.?\d*[eE][+-]?\d+(?=[\s,)}<=]|$)
        | (?:[^\s&<>'{},\[\]=!\#()%+";~|*/] | /(?![*]))+(?=[\s,)(}{=<"']|/\*|$)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)


class _Token(Token):
    """pvl's, which takes a word apart before it says that it is no comment: half of the time a label takes."""

    def is_WSC(self) -> bool:
        # Only what begins like white space or a comment can be made of them.
        return (self[:1].isspace() or self[:1] in "/#") and bool(super().is_WSC())


_MOST_RETURNS = 1000
"""A token that comes back so often will come back for ever: pvl's parser can run in circles in a broken label."""


def label_lexer(text: str, g: Any, d: Any) -> Generator[Any, Any, None]:
    """The tokens of a label, as pvl's parser takes them from a lexer: one that it sends back comes again."""
    found = list(_cut(text))
    is_ordinary = bool(found) and found[-1][1] == "END"
    for place, word in found if is_ordinary else ((token.pos, str(token)) for token in pvl_lexer(text, g=g, d=d)):
        try:
            again, n_returns = (yield _Token(word, grammar=g, decoder=d, pos=place)), 0
            while again is not None:
                n_returns += 1
                if n_returns > _MOST_RETURNS:
                    raise ValueError("a statement here has no end")
                yield None
                again = yield again
        except ValueError as error:
            raise LexerError(error, text, place + len(word) - 1, word) from None


def _cut(text: str) -> Iterator[tuple[int, str]]:
    """Place and text of each token up to END, or to what is not ordinary."""
    at = 0
    while (match := _ORDINARY.match(text, at)) is not None:
        yield match.start(1), match[1]
        if match[1] == "END":
            return
        at = match.end()
