"""The style of a card made of widgets. It holds no text from anywhere else; colours are JupyterLab's variables.

A page that restarts its kernel no longer listens to it, so the old kernel cannot take its card back: the front end
marks the widgets as disconnected, and the style says the rest.

Widgets come with widths and margins of their own, by rules of two classes: three are needed here to win.
"""

from __future__ import annotations

import re
from functools import cache

_SHEET = """
.jupyter-widgets.ck-ask {
  --ck-l: var(--jp-border-color2, #8885);
  --ck-q: var(--jp-warn-color1, #c77d00);
  --ck-s: var(--jp-layout-color2, #8882);
  --ck-i: color-mix(in srgb, currentColor 50%, transparent);
  border: 1px solid var(--ck-l); border-left: 3px solid var(--ck-q); border-radius: 6px;
  padding: 10px 14px 12px; margin: 8px 20px 8px 0; gap: 8px; overflow: visible; box-sizing: border-box; width: auto
}
.ck-ask > .widget-html:first-child, .ck-ask .widget-html:has(> .widget-html-content:empty) { display: none }
.ck-ask.ck-ask .widget-html, .ck-ask.ck-ask .widget-html-content { height: auto; margin: 0; line-height: 1.5;
  overflow: visible; width: 100%; max-width: 100%; font-size: var(--jp-content-font-size1, 14px) }
.ck-ask.ck-ask.jupyter-widgets-disconnected > :not(:nth-child(2)) { display: none }
.ck-ask.ck-ask.jupyter-widgets-disconnected { border-left-color: var(--ck-l) }
.ck-ask.ck-ask.jupyter-widgets-disconnected::before, .ck-ask.ck-ask .jupyter-widgets-disconnected::before {
  content: none }
.ck-ask.ck-ask.jupyter-widgets-disconnected::after {
  content: "No longer asked. The kernel was restarted or has ended. Nothing was allowed.";
  color: var(--jp-content-font-color2, #777); font-size: .86em }
.ck-ask.ck-ask .ck p { margin: 0 0 4px }
.ck-ask.ck-ask .ck p:last-child { margin-bottom: 0 }
.ck-ask.ck-ask .ck :is(h1, h2, h3, h4, h5, h6) { font-size: 1em; line-height: 1.5; margin: 8px 0 4px }
.ck-ask.ck-ask .ck h1 { font-size: 1.15em }
.ck-ask.ck-ask .ck > pre { border: 1px solid var(--ck-l); border-radius: 4px; margin: 6px 0 0; max-height: 24em;
  overflow: auto; word-break: normal }
.ck-ask.ck-ask .ck details > pre { max-height: 40em }
.ck-ask.ck-ask .ck .sub { margin: 2px 0 }
.ck-ask.ck-ask .ck .sub > :last-child { margin-bottom: 0 }
.ck-ask.ck-ask .ck-rtl { direction: rtl }
.ck-ask.ck-ask .ck-row { display: flex; flex-flow: row wrap; gap: 8px; overflow: visible; width: 100%;
  align-items: center; margin: 0 }
.ck-ask.ck-ask .ck-col { gap: 6px; overflow: visible; width: 100%; margin: 0 0 8px }
.ck-ask.ck-ask .jupyter-button { width: auto; max-width: 100%; height: auto; min-height: 28px; margin: 0;
  padding: 3px 12px; line-height: 1.5; font-size: var(--jp-ui-font-size1, 13px); border-radius: 4px;
  border: 1px solid var(--ck-l); background: var(--ck-s); color: var(--jp-ui-font-color1, inherit); box-shadow: none;
  text-align: start; overflow-wrap: anywhere; white-space: normal }
.ck-ask.ck-ask .jupyter-button:hover:enabled { background: var(--jp-layout-color3, #8884); box-shadow: none }
.ck-ask.ck-ask .jupyter-button:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px }
.ck-ask.ck-ask .ck-go.jupyter-button { background: var(--jp-brand-color1, #1976d2); border-color: transparent;
  color: var(--jp-ui-inverse-font-color1, #fff) }
.ck-ask.ck-ask .ck-go.jupyter-button:hover:enabled { background: var(--jp-brand-color0, #0d47a1) }
.ck-ask.ck-ask .jupyter-button:disabled { opacity: .5 }
.ck-ask.ck-ask :is(.widget-text, .widget-textarea, .widget-dropdown) { display: flex; flex-flow: column; gap: 2px;
  align-items: stretch; flex: none; width: 100%; min-width: 0; height: auto; margin: 0 }
.ck-ask.ck-ask .ck-row > .widget-text { flex: 1 1 16em; width: auto }
.ck-ask.ck-ask .widget-label { width: auto; height: auto; margin: 0; line-height: 1.5; text-align: start;
  white-space: normal; overflow-wrap: anywhere; font-size: var(--jp-ui-font-size1, 13px);
  color: var(--jp-content-font-color1, inherit) }
.ck-ask.ck-ask .widget-text input, .ck-ask.ck-ask .widget-textarea textarea { min-height: 28px; padding: 3px 8px;
  border: 1px solid var(--ck-i); border-radius: 4px; box-sizing: border-box; width: 100%;
  background: var(--jp-layout-color0, transparent); color: var(--jp-content-font-color1, inherit);
  font: var(--jp-ui-font-size1, 13px) var(--jp-ui-font-family, inherit) }
.ck-ask.ck-ask .widget-text input:focus, .ck-ask.ck-ask .widget-textarea textarea:focus {
  border-color: var(--jp-brand-color1, #1976d2) }
.ck-ask.ck-ask .widget-text input { unicode-bidi: plaintext }
.ck-ask.ck-ask .widget-textarea textarea { font-family: var(--jp-code-font-family, monospace); line-height: 1.45;
  padding: 8px 12px; resize: vertical; field-sizing: content; min-height: 4em; max-height: 30em }
.ck-ask.ck-ask .widget-radio { width: 100%; height: auto; margin: 0 }
.ck-ask.ck-ask .widget-radio-box { width: 100%; height: auto; margin: 0; padding: 0; gap: 4px }
.ck-ask.ck-ask .widget-radio-box label { display: flex; flex-direction: row-reverse; justify-content: flex-end;
  align-items: baseline; gap: 8px; height: auto; line-height: 1.5; white-space: normal; overflow-wrap: anywhere;
  margin: 0; padding: 0;
  font-size: var(--jp-content-font-size1, 14px); color: var(--jp-content-font-color1, inherit) }
.ck-ask.ck-ask .widget-radio-box input { flex: none; float: none; margin: 0; height: auto; position: relative; top: 1px;
  line-height: normal }
.ck-ask.ck-ask .widget-checkbox { width: 100%; height: auto; margin: 0 }
.ck-ask.ck-ask .widget-checkbox label { display: flex; align-items: baseline; gap: 8px; height: auto; width: 100%;
  line-height: 1.5; white-space: normal; overflow-wrap: anywhere; font-size: var(--jp-content-font-size1, 14px);
  color: var(--jp-content-font-color1, inherit) }
.ck-ask.ck-ask .widget-checkbox label span { white-space: normal; overflow: visible; line-height: 1.5 }
.ck-ask.ck-ask .widget-checkbox input { flex: none; margin: 0; position: relative; top: 1px }
.ck-ask.ck-ask .widget-dropdown { align-items: start }
.ck-ask.ck-ask .widget-dropdown > select { flex: none; width: auto; max-width: 100%; min-width: 16em; height: 28px;
  border-radius: 4px; border: 1px solid var(--ck-i) }
"""


@cache
def card_style() -> str:
    sheet = re.sub(r"\s+", " ", _SHEET)
    sheet = re.sub(r" ?([{};]) ?", r"\1", sheet).replace(": ", ":")
    return f"<style>{sheet.strip()}</style>"
