/** HTML and SVG from values: everything from outside is escaped here, and nowhere else. */

/** Markup that needs no escaping. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Content = Markup | string | number | null | readonly Content[]

/**
 * A template: values are escaped unless they are Markup; lists are concatenated, null is empty. Line breaks
 * next to a tag are removed, others become a space.
 */
export function markup(parts: TemplateStringsArray, ...values: readonly Content[]): Markup {
  const tight = tightOf(parts)
  let text = tight[0] as string
  for (const [i, value] of values.entries()) text += textOf(value) + (tight[i + 1] as string)
  return new Markup(text)
}

/** As in the page. */
export function textOf(content: Content): string {
  if (content === null) return ''
  if (content instanceof Markup) return content.text
  if (typeof content === 'object') return content.map(textOf).join('')
  return escaped(String(content))
}

const TIGHT = new WeakMap<TemplateStringsArray, readonly string[]>()

/** A template exists once and is filled thousands of times. */
function tightOf(parts: TemplateStringsArray): readonly string[] {
  const known = TIGHT.get(parts)
  if (known !== undefined) return known
  const tight = parts.map((part) =>
    part.replace(/(>|^)\s*\n\s*(?=<|$)|(>)\s*\n\s*|\s*\n\s*(?=<)/g, '$1$2').replace(/\s*\n\s*/g, ' '),
  )
  TIGHT.set(parts, tight)
  return tight
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string)
}

/** Values for a script of the page; nothing in them can end the block. */
export function dataBlock(value: unknown): Markup {
  return new Markup(
    `<script type="application/json">${JSON.stringify(value).replaceAll('<', '\\u003c')}</script>`,
  )
}
