"""Charts as inline SVG and plain numbers: nothing to load, legible on paper, colours from the page."""

from __future__ import annotations

from html import escape

from guerdon.report._facts import Distribution

WIDTH, HEIGHT, FLOOR, TOP = 480.0, 150.0, 126.0, 18.0


def columns_chart(d: Distribution) -> str:
    """The distribution as columns; each has a tooltip with its values and count."""
    if not d.bars:
        return '<p class="quiet">nothing known</p>'
    tallest = max(count for _, count in d.bars) or 1
    step = WIDTH / len(d.bars)
    wide = min(step - 2, 60.0)
    parts = [_column(i, label, count, d, tallest, step, wide) for i, (label, count) in enumerate(d.bars)]
    axis = f'<line class="axis" x1="0" x2="{WIDTH:g}" y1="{FLOOR:g}" y2="{FLOOR:g}"/>'
    if not d.each:
        low, high = d.quantiles[0], d.quantiles[-1]
        ends = f'<text x="0" y="{FLOOR + 16:g}">{low:.4g}</text>'
        axis += f'{ends}<text x="{WIDTH:g}" y="{FLOOR + 16:g}" text-anchor="end">{high:.4g}</text>'
    name = escape(f"distribution of {d.name}", quote=True)
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{name}">{"".join(parts)}{axis}</svg>'


def _column(i: int, label: str, count: int, d: Distribution, tallest: int, step: float, wide: float) -> str:
    height = (FLOOR - TOP) * count / tallest
    height = max(height, 1.5) if count else 0.0
    left, middle = i * step + (step - wide) / 2, (i + 0.5) * step
    text = escape(f"{label}: {count:,} ({count / max(d.known, 1):.1%})", quote=True)
    bar = f'<rect x="{left:.1f}" y="{FLOOR - height:.1f}" width="{wide:.1f}" height="{height:.1f}" rx="2"/>'
    out = f"<g><title>{text}</title>{bar}"
    if d.each:
        out += f'<text x="{middle:.1f}" y="{FLOOR + 16:g}" text-anchor="middle">{escape(label)}</text>'
        out += (
            f'<text class="count" x="{middle:.1f}" y="{FLOOR - height - 5:.1f}" text-anchor="middle">{count:,}</text>'
        )
    return out + "</g>"
