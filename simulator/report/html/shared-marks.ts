/**
 * What many charts of a page have alike (grids, scales, marks, keys) stands there once, and each chart refers
 * to it.
 */
import { markup, type Markup } from './markup.ts'

export class SharedMarks {
  /** By their text. */
  readonly #ids = new Map<string, string>()
  readonly #all: Markup[]

  /** @param always what else stands with them */
  constructor(always: Markup | null = null) {
    this.#all = always === null ? [] : [always]
  }

  /** What stands in the SVG of a chart in the place of `marks`. */
  use(marks: Markup): Markup {
    const known = this.#ids.get(marks.text)
    const id = known ?? `m${this.#ids.size}`
    if (known === undefined) {
      this.#ids.set(marks.text, id)
      this.#all.push(markup`<g id="${id}">${marks}</g>`)
    }
    return markup`<use href="#${id}" />`
  }

  /** To be put into the page, outside of what a script replaces. */
  all(): Markup {
    return markup`<svg class="shared" aria-hidden="true">${this.#all}</svg>`
  }
}
