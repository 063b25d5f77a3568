"""What LaTeX commands and words mean: operators, functions, letters, styles."""

from __future__ import annotations


def words_of(text: str) -> list[str]:
    """The words of a table written as one string."""
    return text.split()


FUNCTIONS = frozenset(
    words_of(
        "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc asin acos atan sinh cosh tanh "
        "coth sech csch "
        "asinh acosh atanh arcsinh arccosh arctanh ln log lg exp sqrt cbrt abs max min gcd lcm det arg Re Im "
        "sgn sign floor ceil "
        "factorial binomial binom gamma"
    )
)
ALIASES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan",
           "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
           "tg": "tan", "ctg": "cot", "cosec": "csc", "sign": "sgn", "binom": "binomial"}  # fmt: skip
GREEK = frozenset(
    words_of(
        "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho "
        "varrho sigma tau "
        "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar nabla "
        "partial aleph"
    )
)
OPERATORS = {
    "cdot": "*", "times": "*", "ast": "*", "bullet": "*", "star": "*", "div": "/", "pm": "pm", "mp": "mp",
    "le": "<=", "leq": "<=", "leqslant": "<=",
    "leqq": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=", "lt": "<", "gt": ">", "ne": "!=",
    "neq": "!=",
    "approx": "~=", "simeq": "~=", "cong": "~=", "sim": "~=", "doteq": "~=", "equiv": "==", "in": "in",
    "notin": "notin",
    "cup": "cup", "cap": "cap", "setminus": "setminus", "backslash": "setminus", "bmod": "mod", "mod": "mod",
    "to": "to",
    "rightarrow": "to", "longrightarrow": "to", "Rightarrow": "implies", "implies": "implies", "iff": "implies",
    "Leftrightarrow": "implies", "mid": "|", "vert": "|", "lvert": "|", "rvert": "|", "Vert": "||",
    "lVert": "||", "rVert": "||",
    "|": "||", "colon": ":", "lbrace": "\\{", "rbrace": "\\}", "{": "\\{", "}": "\\}", "lfloor": "lfloor",
    "rfloor": "rfloor",
    "lceil": "lceil", "rceil": "rceil", "langle": "langle", "rangle": "rangle", "ldots": "dots",
    "cdots": "dots", "dots": "dots",
    "dotsc": "dots", "dotsb": "dots", "dotsm": "dots", "vdots": "dots", "ddots": "dots", "prime": "'", "circ": "circ",
    "degree": "circ", "frac": "frac", "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "sqrt": "sqrt",
    "binom": "binom",
    "dbinom": "binom", "tbinom": "binom", "choose": "choose", "over": "over", "begin": "begin", "end": "end",
    "sum": "sum",
    "prod": "prod", "int": "int", "iint": "int", "lim": "lim", "overline": "overline", "bar": "overline",
    "land": "and",
    "wedge": "and", "lor": "or", "vee": "or", "quad": ",,", "qquad": ",,", "%": "%", "[": "", "]": "", "(": "",
    ")": "",
    "lbrack": "[", "rbrack": "]", "lparen": "(", "rparen": ")", "parallel": "parallel", "perp": "perp",
    "stackrel": "stackrel",
    "forall": "forall", "exists": "exists", "dot": "overline", "underline": "style", "pmod": "pmod",
    "subset": "subset", "subseteq": "subset",
    "&": "&",
}  # fmt: skip
SKIPPED = frozenset(
    words_of(
        "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr displaystyle textstyle limits nolimits "
        ", ; : ! > ~ middle "
        "hline rm bf it tt sf scriptstyle nonumber angle triangle square therefore because hfill noindent "
        "hspace vspace mathop hbox "
        "mathbin mathrel mathord"
    )
) | {" ", "\n", "\t"}
STYLES = frozenset(
    words_of(
        "mathrm mathbf mathit mathsf mathcal mathbb mathfrak boldsymbol bm operatorname vec overrightarrow "
        "overleftarrow hat "
        "widehat tilde widetilde emph pmb boxed fbox underbrace overbrace cancel mathnormal color textcolor "
        "phantom tag"
    )
)
TEXTS = frozenset(words_of("text textbf textit textrm textsf texttt textnormal mbox textup mathtt"))
CURRENCY = {"$": "dollar", "€": "euro", "£": "£", "¥": "yen", "₹": "rupee", "₩": "won", "₽": "ruble", "¢": "cent"}
