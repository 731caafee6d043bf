/** Makes one line of a text, for messages of faults. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}
