"""The style sheet of a turn, sent once with its first output. It holds no text that came from anywhere else.

Colours are JupyterLab's variables, mixed with the colour of the text: as they are, half of them are too pale to be
read on white or too dark on a dark page. The fallbacks are middling, so that they are right on a light page and on a
dark one without asking which it is. `.ck.ck`: Lab's own `.jp-RenderedHTMLCommon` rules win otherwise.
"""

from __future__ import annotations

import re
from functools import cache

_SHEET = """
.ck.ck {
  --l: var(--jp-border-color2, #8885);
  line-height: 1.5; overflow-wrap: anywhere;
  details, .trouble { border: 1px solid var(--l); border-radius: 6px; margin: 4px 0; overflow: hidden }
  summary {
    display: flex; gap: 8px; align-items: baseline; padding: 4px 10px; cursor: pointer;
    code { flex: 1; min-width: 0 }
    b { flex: none }
    &:before { content: "›"; width: .6em }
  }
  [open] > summary:before { rotate: 90deg }
  :focus-visible { outline-offset: -2px }
  summary code, .live { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
  pre { line-height: 1.45; word-break: normal; margin: 0 0 1em; padding: 8px 12px;
    border-radius: 6px; background: color-mix(in srgb, currentColor 6%, #0000) }
  pre:not([dir]), code { direction: ltr; unicode-bidi: isolate }
  summary code, pre code { background: none; padding: 0 }
  i { flex: none; font-style: normal }
  i, .foot, .live, .rec, .n, .d, .c, summary code, summary:before { color: color-mix(in srgb, currentColor 72%, #0000) }
  i, .foot, .live, .rec, pre { font-size: .86em; font-variant-numeric: tabular-nums }
  details > pre { margin: 0; border-radius: 0; max-height: 22em; overflow: auto }
  details > pre, .todo, .foot { border-top: 1px solid var(--l) }
  .df {
    padding: 8px 0;
    code > span { display: block; padding: 0 12px }
  }
  .n { user-select: none }
  .sub { margin: 6px 12px 6px 22px }
  .todo { list-style: none; padding: 6px 12px; margin: 0 }
  .foot { padding-top: 6px }
  .trouble { border-left: 3px solid var(--c); padding: 10px 14px;
    p { margin: 0 0 4px }
    details { border: 0; margin: 0 -10px }
  }
  > :last-child { margin-bottom: 4px }
  a { text-decoration: underline }
  .tb { overflow: auto; overflow-wrap: normal }
  p, td, th { text-align: start }
  [align=right] { text-align: right }
  [align=center] { text-align: center }
  blockquote:dir(rtl) { border: 0 }
  :is(ul, ol):dir(rtl) { padding: 0 2em 0 0 }
  .ok, .no, .q, .u, .k, .s, .f, .B, .m, .C, .M { color: color-mix(in srgb, var(--c) 67%, currentColor) }
  .add, .del { background: color-mix(in srgb, var(--c) 12%, #0000) }
  .ok, .add { --c: var(--jp-success-color1, #294) }
  .no, .del, .trouble { --c: var(--jp-error-color1, #e44) }
  .q, .u { --c: var(--jp-warn-color0, #b70) }
  .k { --c: var(--jp-mirror-editor-keyword-color, #85f) }
  .s { --c: var(--jp-mirror-editor-string-color, #c51) }
  .f, .B { --c: var(--jp-mirror-editor-def-color, #38f) }
  .m, .C { --c: #099 }
  .M { --c: #c4c }
}
"""


@cache
def style_tag() -> str:
    """The whole `<style>` element, minified."""
    sheet = re.sub(r"\s+", " ", _SHEET)
    sheet = re.sub(r" ?([{};,>]) ?", r"\1", sheet).replace(": ", ":")
    return f"<style>{sheet.strip()}</style>"
