/**
 * Parts that many charts of a page share (grids, scales, marks, keys) exist once, and each chart refers to
 * them.
 */
import { markup, type Markup } from './markup.ts'

export class SharedMarks {
  /** By their text. */
  readonly #ids = new Map<string, string>()
  readonly #all: Markup[]

  /** @param always parts that are always included */
  constructor(always: Markup | null = null) {
    this.#all = always === null ? [] : [always]
  }

  /** Returns a reference that replaces `marks` in the SVG of a chart. */
  use(marks: Markup): Markup {
    const known = this.#ids.get(marks.text)
    const id = known ?? `m${this.#ids.size}`
    if (known === undefined) {
      this.#ids.set(marks.text, id)
      this.#all.push(markup`<g id="${id}">${marks}</g>`)
    }
    return markup`<use href="#${id}" />`
  }

  /** Belongs into the page, outside of the parts that a script replaces. */
  all(): Markup {
    return markup`<svg class="shared" aria-hidden="true">${this.#all}</svg>`
  }
}
