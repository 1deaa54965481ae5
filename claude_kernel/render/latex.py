r"""Which formulas may reach MathJax. It knows TeX's spelling only.

JupyterLab 4.6 gives MathJax all packages and `\require` (jlab_core, `ensureMathDocument`): `\href`, `\style`,
`\mmlToken[…]`, `\def` bombs and `\rule{999em}{999em}` are all within its reach. Forbidding names is a race, so
commands are allowed by name, and a formula with any other command is shown as it was written.
"""

from __future__ import annotations

import re

_LONGEST = 4_000
_DEEPEST = 40

_COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{([A-Za-z]+\*?)\}")
_ROW_SPACING = re.compile(r"\\\\\s*\[(?!\d{1,2}(?:\.\d)?(?:pt|em|ex|mm)\])")

_ENVIRONMENT_NAMES = (
    "align align* aligned alignat alignat* alignedat array bmatrix Bmatrix cases dcases equation equation* gather "
    "gather* gathered matrix multline multline* pmatrix rcases smallmatrix split subarray vmatrix Vmatrix"
)
_ENVIRONMENTS = frozenset(_ENVIRONMENT_NAMES.split())

_SYMBOLS = frozenset("\\,:;!{}|_^$%&#>()[] \n")

_COMMAND_NAMES = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu nu xi omicron pi
    varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega digamma Gamma Delta Theta Lambda Xi Pi Sigma
    Upsilon Phi Psi Omega aleph beth gimel hbar hslash ell wp Re Im partial nabla infty emptyset varnothing angle
    measuredangle triangle square Box Diamond star bigstar dagger ddagger complement imath jmath prime backprime degree
    forall exists nexists neg lnot top bot flat natural sharp clubsuit diamondsuit heartsuit spadesuit checkmark
    frac dfrac tfrac cfrac binom dbinom tbinom sqrt root of over choose atop
    sum prod coprod int iint iiint iiiint oint bigcap bigcup bigsqcup bigvee bigwedge bigodot bigotimes bigoplus
    biguplus limits nolimits displaystyle textstyle scriptstyle scriptscriptstyle
    left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm lvert rvert lVert rVert
    vert Vert langle rangle lfloor rfloor lceil rceil lbrace rbrace lbrack rbrack lgroup rgroup ulcorner urcorner
    llcorner lrcorner backslash
    pm mp times div ast cdot cdots ldots dots dotsc dotsb dotsm dotsi vdots ddots circ bullet cap cup uplus sqcap sqcup
    vee wedge lor land setminus smallsetminus wr diamond bigtriangleup bigtriangledown triangleleft triangleright oplus
    ominus otimes oslash odot amalg ltimes rtimes boxplus boxminus boxtimes barwedge veebar intercal
    le leq leqslant ge geq geqslant lt gt ll gg lll ggg ne neq equiv sim simeq approx approxeq cong doteq propto asymp
    prec succ preceq succeq subset supset subseteq supseteq subsetneq supsetneq sqsubset sqsupset sqsubseteq sqsupseteq
    in ni notin owns vdash dashv models perp mid nmid parallel nparallel bowtie smile frown coloneqq eqqcolon triangleq
    because therefore lesssim gtrsim trianglelefteq trianglerighteq not
    to gets leftarrow rightarrow uparrow downarrow leftrightarrow updownarrow Leftarrow Rightarrow Uparrow Downarrow
    Leftrightarrow Updownarrow longleftarrow longrightarrow longleftrightarrow Longleftarrow Longrightarrow
    Longleftrightarrow mapsto longmapsto hookleftarrow hookrightarrow leftharpoonup rightharpoonup leftharpoondown
    rightharpoondown rightleftharpoons nearrow searrow swarrow nwarrow iff implies impliedby leadsto rightsquigarrow
    xleftarrow xrightarrow twoheadrightarrow twoheadleftarrow circlearrowleft circlearrowright
    arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf injlim ker lg lim liminf limsup ln log
    max min Pr projlim sec sin sinh sup tan tanh operatorname mod bmod pmod pod
    hat widehat tilde widetilde bar overline underline vec overrightarrow overleftarrow dot ddot dddot acute grave check
    breve mathring overbrace underbrace overset underset stackrel substack sideset boxed cancel bcancel xcancel
    mathrm mathbf mathit mathsf mathtt mathcal mathscr mathfrak mathbb mathnormal boldsymbol bm pmb
    text textrm textbf textit textsf texttt mbox rm bf it sf tt cal
    quad qquad enspace thinspace hfill phantom hphantom vphantom smash
    begin end hline cr tag notag nonumber
    bra ket braket Bra Ket Braket
"""
_NAMES = frozenset(_COMMAND_NAMES.split())


def may_typeset(formula: str) -> bool:
    """MathJax reads a command as a backslash and the longest run of letters, or one other character; so does this."""
    if len(formula) > _LONGEST or "$" in formula.replace("\\$", "") or _ROW_SPACING.search(formula):
        return False
    if not all(name in _NAMES or name in _SYMBOLS for name in _COMMAND.findall(formula)):
        return False
    environments = _ENVIRONMENT.findall(formula)
    if len(environments) != len(re.findall(r"\\(?:begin|end)(?![A-Za-z])", formula)):
        return False
    return all(name in _ENVIRONMENTS for name in environments) and _depth(formula) <= _DEEPEST


def _depth(formula: str) -> int:
    deepest = depth = 0
    for opening in re.findall(r"\\begin\b|\\left\b|\\end\b|\\right\b|\\.|[{}]", formula):
        depth += 1 if opening in ("{", "\\begin", "\\left") else -1 if opening in ("}", "\\end", "\\right") else 0
        deepest = max(deepest, depth)
    return deepest
