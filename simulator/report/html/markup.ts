/** HTML and SVG from values: everything that comes from outside is escaped here, and nowhere else. */

/** Markup that is safe as it stands. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Content = Markup | string | number | null | readonly Content[]

/**
 * A template: what is put into it is escaped unless it is Markup; lists stand one behind the other, null is
 * nothing. Where its lines are broken beside a tag nothing stands in the page, and elsewhere a space.
 */
export function markup(parts: TemplateStringsArray, ...values: readonly Content[]): Markup {
  const tight = tightOf(parts)
  let text = tight[0] as string
  for (const [i, value] of values.entries()) text += textOf(value) + (tight[i + 1] as string)
  return new Markup(text)
}

/** As it stands in the page. */
export function textOf(content: Content): string {
  if (content === null) return ''
  if (content instanceof Markup) return content.text
  if (typeof content === 'object') return content.map(textOf).join('')
  return escaped(String(content))
}

const TIGHT = new WeakMap<TemplateStringsArray, readonly string[]>()

/** A template is there once, and filled thousands of times. */
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

/** Values for a script of the page, where nothing in them can end the block. */
export function dataBlock(value: unknown): Markup {
  return new Markup(
    `<script type="application/json">${JSON.stringify(value).replaceAll('<', '\\u003c')}</script>`,
  )
}
