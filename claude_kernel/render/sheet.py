"""The style sheet of a turn, sent once with its first output. It holds no text that came from anywhere else.

Colours are JupyterLab's variables. The fallbacks are see-through or middling, so that they are right on a light
page and on a dark one without asking which it is. `.ck.ck`: Lab's own `.jp-RenderedHTMLCommon` rules win
otherwise.
"""

from __future__ import annotations

import re
from functools import cache

_SHEET = """
.ck {
  --l: var(--jp-border-color2, #8885);
  --d: var(--jp-content-font-color2, #777);
  --s: var(--jp-layout-color2, #8882);
  --ok: var(--jp-success-color1, #2da44e);
  --no: var(--jp-error-color1, #e5484d);
  --q: var(--jp-warn-color1, #c77d00);
  line-height: 1.5; overflow-wrap: anywhere
}
.ck.ck {
  details, .trouble { border: 1px solid var(--l); border-radius: 6px; margin: 4px 0; overflow: hidden }
  > :last-child { margin-bottom: 4px }
  summary {
    display: flex; gap: 8px; align-items: baseline; padding: 4px 10px; cursor: pointer; list-style: none;
    &:before { content: "›"; color: var(--d); width: .6em }
    &:focus-visible { outline-offset: -2px }
    code { flex: 1; min-width: 0 }
  }
  [open] > summary:before { transform: rotate(90deg) }
  summary code, .live { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
  summary code, pre code { background: none; padding: 0 }
  summary b, i { flex: none; font-style: normal }
  i, .foot, .live, .rec, .n, .d, .c, summary code { color: var(--d) }
  i, .foot, .live, .rec { font-size: .86em; font-variant-numeric: tabular-nums }
  pre { font-size: .86em; line-height: 1.45; white-space: pre-wrap; padding: 8px 12px; border-radius: 6px;
    background: var(--s) }
  details pre { margin: 0; border-radius: 0; max-height: 22em }
  details pre, .tb { overflow: auto }
  details pre, .todo, .foot { border-top: 1px solid var(--l) }
  .df {
    padding: 8px 0;
    code, code > span { display: inline-block; min-width: 100%; white-space: pre }
    code > span { width: 100%; padding: 0 12px; box-sizing: border-box }
  }
  .add { background: color-mix(in srgb, var(--ok) 16%, #0000) }
  .del { background: color-mix(in srgb, var(--no) 14%, #0000) }
  .n { user-select: none }
  .sub { margin: 6px 12px 6px 22px }
  .todo { list-style: none; padding: 6px 12px; margin: 0 }
  .foot { padding-top: 6px }
  .trouble { border-left: 3px solid var(--no); padding: 10px 14px }
  td, th { text-align: left }
  [align=right] { text-align: right }
  [align=center] { text-align: center }
  .ok { color: var(--ok) }
  .no { color: var(--no) }
  .q, .u { color: var(--q) }
  .k { color: var(--jp-mirror-editor-keyword-color, #8250df) }
  .s { color: var(--jp-mirror-editor-string-color, #c4501b) }
  .f, .B { color: var(--jp-mirror-editor-def-color, #3b82f6) }
  .m, .C { color: color-mix(in srgb, #0aa 65%, currentColor) }
  .M { color: color-mix(in srgb, #c3c 65%, currentColor) }
}
"""


@cache
def style_tag() -> str:
    """The whole `<style>` element, minified."""
    sheet = re.sub(r"\s+", " ", _SHEET)
    sheet = re.sub(r" ?([{};,>]) ?", r"\1", sheet).replace(": ", ":")
    return f"<style>{sheet.strip()}</style>"
