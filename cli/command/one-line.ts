/** Commander prints its suggestion on a separate line. */
export function onOneLine(text: string): string {
  return `${text.trimEnd().replaceAll('\n', ' ')}\n`
}
