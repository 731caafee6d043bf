/**
 * A page in one file, with style and scripts: it fetches nothing, and its own policy allows only these, by
 * their hashes. Light or dark as the reader's system.
 */
import { createHash } from 'node:crypto'
import { markup, type Content, Markup, textOf } from './markup.ts'

const STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #ffffff; --line: #d0d7de;
  --good: #1a7f37; --bad: #b42318; --c0: #0b5fbf; --c1: #b35900; --c2: #7a3db8; --c3: #2f7d6d }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa4af; --paper: #0d1117;
  --line: #30363d; --good: #56d364; --bad: #ff7b72; --c0: #6cb6ff; --c1: #f0a04b; --c2: #c297ff;
  --c3: #5fd0b8 } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .25rem }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; border-top: 1px solid var(--line); padding-top: 1rem }
.advice { font-size: 1.15rem; border-left: 4px solid var(--good); padding: .25rem 1rem; margin: 1rem 0 }
.advice.none { border-color: var(--bad) }
.soft, caption { color: var(--soft); text-align: left } .good { color: var(--good) }
.bad { color: var(--bad) }
figure { margin: 2rem 0 .5rem } figcaption { font-weight: 600; margin-bottom: .25rem }
.plot > svg { width: 100%; height: auto; display: block }
.drawn > .legend { display: none } .u-legend { font-size: .8rem }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1.25rem; padding: 0; margin: .25rem 0;
  color: var(--soft); font-size: .85rem } .key { width: 24px; height: 8px; margin-right: .4rem }
.shared { position: absolute; width: 0; height: 0 } a { color: var(--c0) }
details > div { scroll-margin-top: 4rem }
details > summary { cursor: pointer; border-top: 1px solid var(--line); padding: .6rem 0; font-weight: 600 }
details[open] > summary { font-size: 1.2rem }
.grid { stroke: var(--line); stroke-width: 1; fill: none } .key { overflow: visible }
.tick, .note { fill: var(--soft); font-size: 11px } .note { fill: var(--ink) } .end { text-anchor: end }
.middle { text-anchor: middle }
.line { fill: none; stroke-width: 2 } .l0 { marker: url(#dot0); stroke: var(--c0) }
.l1 { marker: url(#dot1); stroke: var(--c1); stroke-dasharray: 7 3 }
.l2 { marker: url(#dot2); stroke: var(--c2); stroke-dasharray: 2 3 }
.l3 { marker: url(#dot3); stroke: var(--c3); stroke-dasharray: 9 3 2 3 }
.d0 { fill: var(--c0) } .d1 { fill: var(--c1) } .d2 { fill: var(--c2) } .d3 { fill: var(--c3) }
.band { opacity: .15 } .b0 { fill: var(--c0) } .b1 { fill: var(--c1) } .b2 { fill: var(--c2) }
.b3 { fill: var(--c3) }
.limit { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 4 }
.mark { stroke: var(--good); stroke-width: 1.5 } .m1 { stroke: var(--soft); stroke-dasharray: 3 3 }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: .85rem;
  font-variant-numeric: tabular-nums }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } .wide { overflow-x: auto }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
`

/** Draws charts if scripts are allowed. */
export interface ChartLibrary {
  readonly script: string
  readonly style: string
}

/** @param scripts run in this order, after the body */
export function page(
  title: string,
  body: Content,
  styles: readonly string[] = [],
  scripts: readonly string[] = [],
): string {
  const policy =
    `default-src 'none'; style-src ${[STYLE, ...styles].map(hashOf).join(' ')}; ` +
    `${scripts.length === 0 ? '' : `script-src ${scripts.map(hashOf).join(' ')}; `}base-uri 'none'; ` +
    `form-action 'none'`
  return markup`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${new Markup(policy)}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <title>${title}</title>
        ${[STYLE, ...styles].map((style) => new Markup(`<style>${style}</style>`))}
      </head>
      <body>
        ${body} ${scripts.map((script) => new Markup(`<script>${script}</script>`))}
      </body>
    </html>
`.text
}

/** The hash with which a policy names an inline style or script. */
function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

/** A table with more columns may be wider than the page, and can be scrolled by keys too. */
const MOST_COLUMNS = 9
const SCROLLS = new Markup(' tabindex="0" role="group" aria-label="Figures"')

/**
 * The first column is the heading of its row. Most of a large page are cells: their end tags, which are
 * optional in HTML, are omitted.
 */
export function table(
  caption: string | null,
  head: readonly string[],
  rows: readonly (readonly Content[])[],
): Markup {
  const heads = head.map((cell) => `<th scope=col>${textOf(cell)}`)
  const lines = rows.map(
    ([first = null, ...rest]) =>
      `<tr><th scope=row>${textOf(first)}${rest.map((cell) => `<td>${textOf(cell)}`).join('')}\n`,
  )
  const title = caption === null ? null : markup`<caption>${caption}</caption>`
  const body = new Markup(`<thead><tr>${heads.join('')}\n<tbody>${lines.join('')}`)
  return markup`<div class="wide"${head.length > MOST_COLUMNS ? SCROLLS : null}>
    <table>${title}${body}</table></div>`
}

export function facts(entries: readonly (readonly [name: string, value: Content])[]): Markup {
  return markup`<dl>
    ${entries.map(
      ([name, value]) =>
        markup`<dt>${name}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`
}
