"""Text to canonical mathematical text: Unicode, invisible characters, doubled backslashes, delimiters."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["normalise", "text_key"]

_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", "0123456789+-=()ni")
_SUB = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓₙₘₖᵢⱼ", "0123456789+-=()aeoxnmkij")
_METRES = re.compile("(?<=[\\d\\s])m([²³])")
_SUPER_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ]+")
_SUB_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓₙₘₖᵢⱼ]+")
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000e-\u001f\u007f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe00-\ufe0f]"
)
_SYMBOLS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "×": r"\times ", "⋅": r"\cdot ", "·": r"\cdot ",
    "∙": r"\cdot ", "•": r"\cdot ", "÷": r"\div ", "±": r"\pm ", "∓": r"\mp ", "≤": r"\le ", "≥": r"\ge ",
    "⩽": r"\le ", "⩾": r"\ge ", "≦": r"\le ", "≧": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "≃": r"\approx ",
    "≅": r"\approx ",
    "∞": r"\infty ", "π": r"\pi ", "𝜋": r"\pi ", "√": r"\sqrt ", "∛": r"\sqrt[3]", "∜": r"\sqrt[4]", "∪": r"\cup ",
    "∩": r"\cap ", "∈": r"\in ", "∉": r"\notin ", "∅": r"\emptyset ", "Ø": r"\emptyset ", "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "⌈": r"\lceil ", "⌉": r"\rceil ", "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ", "∠": r"\angle ",
    "△": r"\triangle ",
    "→": r"\to ", "⇒": r"\implies ", "∀": r"\forall ", "∃": r"\exists ", "…": r"\ldots ", "⋯": r"\cdots ",
    "∂": r"\partial ",
    "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "ε": r"\epsilon ", "θ": r"\theta ",
    "λ": r"\lambda ",
    "μ": r"\mu ", "σ": r"\sigma ", "τ": r"\tau ", "φ": r"\varphi ", "ϕ": r"\phi ", "ω": r"\omega ", "ρ": r"\rho ",
    "η": r"\eta ", "Δ": r"\Delta ", "Ω": r"\Omega ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}",
    "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}", "′": "'", "’": "'", "‘": "'", "“": '"', "”": '"', "´": "'",
    "º": "°", "˚": "°",
    "，": ", ", "；": ";", "：": ":", "（": "(", "）": ")", "｛": "{", "｝": "}", "［": "[", "］": "]", "％": "%",
    "。": ".", "、": ", ", "＝": "=", "＜": "<", "＞": ">", "⁄": "/", "∕": "/", "∶": ":", "∧": r"\land ", "∨": r"\lor ",
    "\u00a0": " ", "\u2009": "\\,", "\u202f": "\\,", "\u2007": "\\,", "\u2008": "\\,", "\u200a": "",
    "\u2002": " ", "\u2003": " ",
    "\u2005": " ", "\u2004": " ", "\u2006": "\\,", "\u3000": " ", "²": "^{2}", "³": "^{3}", "℃": "°C",
    "℉": "°F", "″": "''",
}  # fmt: skip
_SYMBOL_TABLE = {ord(k): v for k, v in _SYMBOLS.items()}
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z])")
_SINGLE = re.compile(r"(?<!\\)(?:\\\\)*\\(?=[A-Za-z])")
_KNOWN_START = re.compile(
    r"\\\\(?=(?:d|t|c)?frac\b|left|right|sqrt|boxed|text|pi\b|le\b|ge\b|leq|geq|cdot|times|infty|begin|cup|cap|in\b|ldots)"
)
_SQUEEZE = re.compile(r"\s+")


def _unicode(text: str) -> str:
    text = _INVISIBLE.sub("", text)
    text = _METRES.sub(lambda m: rf"\text{{ m}}^{2 if m[1] == '²' else 3}", text)
    text = _SUPER_RUN.sub(lambda m: "^{" + m[0].translate(_SUPER) + "}", text)
    text = _SUB_RUN.sub(lambda m: "_{" + m[0].translate(_SUB) + "}", text)
    out = []
    for ch in text:
        if ch < "\x80" or ord(ch) in _SYMBOL_TABLE:
            out.append(ch)
            continue
        folded = unicodedata.normalize("NFKC", ch)
        if "⁄" in folded:  # a vulgar fraction
            top, _, bottom = folded.partition("⁄")
            folded = rf"\frac{{{top}}}{{{bottom}}}" if bottom else folded
        out.append(folded)
    return "".join(out).translate(_SYMBOL_TABLE)


def undouble(text: str) -> str:
    """Undo JSON-style doubling of backslashes, when every command in the text is doubled."""
    if "\\\\" in text and _KNOWN_START.search(text) and not _SINGLE.search(text.replace("\\\\", "")):
        return _DOUBLED.sub("\\\\", text)
    return text


def _strip_ends(text: str) -> str:
    """Remove what wraps an answer without being part of it: $, \\( \\), quotes, emphasis, final punctuation."""
    for _ in range(12):
        before = text
        text = text.strip().strip("`").strip()
        text = text.removesuffix("\\").rstrip() if not text.endswith("\\\\") else text[:-2].rstrip()
        if not text.endswith("..."):
            text = text.rstrip(".,;:? ")
        if text.endswith("!") and text[:-1].rstrip()[-1:].isspace():
            text = text[:-1]
        for left, right in WRAPPERS:
            if (
                text.startswith(left)
                and text.endswith(right)
                and len(text) >= len(left) + len(right)
                and left not in (inner := text[len(left) : len(text) - len(right)]).replace("\\$", "")
                and right not in inner.replace("\\$", "")
            ):
                text = inner
        if text == before:
            break
    return text


WRAPPERS = (
    ("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("__", "__"), ("'", "'"),
    ('"', '"'), ("``", "''"), ("*", "*"),
)  # fmt: skip


def normalise(text: str) -> str:
    """``text`` with Unicode mathematics written as LaTeX, and its wrapping removed; linear in its length.

    Example:
        >>> normalise("$−５x²$")
        '-5x^{2}'
    """
    if not text.isascii():
        text = _unicode(text)
    elif _INVISIBLE.search(text):
        text = _INVISIBLE.sub("", text)
    if "\\" in text:
        text = undouble(text).replace('\\"', '"')
    if "\\begin" in text:
        text = _CASES_END.sub(r"\\end{cases}", _CASES.sub(r"\\begin{cases}", text))
    text = _TIMES_X.sub(r"\\times ", _strip_ends(_SQUEEZE.sub(" ", text)))
    return _undelimit(text) if "$" in text else text


_CASES = re.compile(r"\\left\s*\\\{\s*\\begin\{(?:array|aligned|matrix)\}(?:\s*\{[^{}]{0,40}\})?")
_CASES_END = re.compile(r"\\end\{(?:array|aligned|matrix)\}\s*\\right\s*\.")
_TIMES_X = re.compile(r"(?<=\d)\s?[xX]\s?(?=10\^)")
_DOLLAR = re.compile(r"(?<!\\)\$+")


def _undelimit(text: str) -> str:
    """Inner $ that pair up are delimiters and go; the others are dollar signs."""
    marks = list(_DOLLAR.finditer(text))
    if len(marks) % 2 or not marks:
        return text
    for closing in marks[1::2]:
        before, after = text[closing.start() - 1 : closing.start()], text[closing.end() : closing.end() + 1]
        if before.isspace() and after.isdigit():
            return text
    return _DOLLAR.sub(" ", text).strip()


_WRAP_WORDS = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|textnormal|textrm|operatorname|emph|mathsf)\s*\{([^{}]*)\}"
)
_SPACING = re.compile(r"\\[,;:! ]|\\q?quad\b|~|\\left\b|\\right\b|\\displaystyle\b|\$")


def text_key(text: str, fold_case: bool = True) -> str:
    """A key for comparison as text: spacing commands, style and case removed, white space squeezed.

    Example:
        >>> text_key(r"\\text{Even } n") == text_key("even n")
        True
    """
    text = _WRAP_WORDS.sub(r" \1 ", text) if "\\" in text else text
    text = _SPACING.sub(" ", text) if "\\" in text or "$" in text or "~" in text else text
    text = _SQUEEZE.sub(" ", text).strip()
    text = text.strip(" .\"'")
    return text.casefold() if fold_case else text
