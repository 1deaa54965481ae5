"""Durations, ages, tokens and money as people write them. No markup."""

from __future__ import annotations

from claude_kernel.render.cut import count_of


def seconds_text(seconds: float) -> str:
    """Under ten seconds with a tenth; steps a second at a time after that, so that nothing dances."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def tokens_text(count: int) -> str:
    if count < 1000:
        return str(count)
    if count < 99_950:
        return f"{count / 1000:.1f}k"
    return f"{round(count / 1000)}k" if count < 999_500 else f"{count / 1_000_000:.1f}M"


def dollars_text(amount: float) -> str:
    if amount >= 0.0995:
        return f"${amount:,.2f}"
    return f"${amount:.3f}" if amount >= 0.0005 else "under $0.001" if amount > 0 else "$0"


_AGES = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


def age_text(seconds: float) -> str:
    for length, unit in _AGES:
        if seconds >= length:
            return f"{count_of(int(seconds // length), unit)} ago"
    return "just now"
