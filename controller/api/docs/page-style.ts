/** The style sheet of the page at /api/v1/docs. Light and dark, narrow and wide. */
export const PAGE_STYLE = `:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5a6572; --line: #d6dce3; --ground: #fff; --soft: #f4f6f8; --link: #0b5cad }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #a3adb8; --line: #39424d; --ground: #14181d; --soft: #1c2229; --link: #7db8f5 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground) }
a { color: var(--link) }
h1 { font-size: 1.5rem } h2 { margin-top: 2rem; text-transform: capitalize } h3 { font-size: 1rem; margin: 1rem 0 .25rem }
p { color: var(--dim) }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; list-style: none }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0; padding: .4rem .7rem }
details details { background: var(--soft) }
summary { cursor: pointer; overflow-wrap: anywhere }
summary i { font-style: normal; font-size: .8rem; border: 1px solid var(--line); border-radius: 1rem; padding: 0 .5rem; color: var(--dim) }
summary b { display: inline-block; min-width: 4.2rem }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere }
pre { background: var(--soft); padding: .6rem; white-space: pre-wrap }
.table { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid var(--line) }
`
