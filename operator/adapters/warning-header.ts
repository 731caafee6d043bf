/** Texts of `Warning: 299 - "text"` headers (RFC 7234), which Node joins by commas. */
const WARNING = /\d{3} \S+ "((?:[^"\\]|\\.)*)"/g

export function warningsOf(header: string | undefined): readonly string[] {
  return [...(header ?? '').matchAll(WARNING)].map(([, text = '']) => text.replaceAll(/\\(.)/g, '$1'))
}
