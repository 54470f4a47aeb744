"""What the regular expressions of a bucket may cost. Pure.

Every write to a bucket is matched against all of its rules inside the metabase's one writer: an expression
that is slow for one customer's key is slow for all customers. RE2 takes no longer than the length of the key
times the size of the compiled program, so the sizes are bounded, for one expression and for a bucket.
"""

from collections.abc import Iterable

from bucketwire.event.rule import TOO_COSTLY, Part, Rule, compiled
from bucketwire.metainfo.refusals import invalid_argument

REGEX = "regex"
# Measured with random keys of 1024 bytes, in CPU time of a 2.8 GHz core that had other work too: 12 families
# of expressions that make RE2 slow, as many in a bucket as the limit lets in. The slowest bucket took 3.6 to
# 4.5 ms a key in three runs. Everyday expressions take about 4 us each; `.*[.]jpg` costs 36, so 17 fit.
# Without limits, 100 times `.*a.{700}(x|7)|.*b.{200}q` took up to 600 ms.
MAX_REGEX_COST = 320
MAX_BUCKET_COST = 640
_FIXED_COST = 20
"""What a match costs beside the program, in its instructions: small programs are not free."""


def check_regex(pattern: str) -> None:
    """Raises `InvalidRequest` unless this is an expression, and cheap enough by itself."""
    if _cost(pattern) > MAX_REGEX_COST:
        raise invalid_argument(TOO_COSTLY, "FilterRule.Value", pattern)


def check_regexes(rules: Iterable[Rule]) -> None:
    """Raises `InvalidRequest` unless the expressions of a bucket's rules are cheap enough together."""
    patterns = [
        each.value for rule in rules for each in rule.filters if each.part is Part.KEY and each.name == REGEX
    ]
    if sum(map(_cost, patterns)) > MAX_BUCKET_COST:
        raise invalid_argument(
            "The regular expressions of the bucket are too costly together: use fewer or simpler ones, or"
            " filter by prefix and suffix",
            "FilterRule.Name",
            REGEX,
        )


def _cost(pattern: str) -> int:
    return int(compiled(pattern).programsize) + _FIXED_COST
