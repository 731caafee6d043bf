/** Names of columns that are not shown, as a text of links. Pure. */

export function readHidden(text: string): readonly string[] {
  return text.split('~').filter((name) => name !== '')
}

export function hiddenText(names: readonly string[]): string {
  return names.join('~')
}

export function withHidden(names: readonly string[], name: string, isHidden: boolean): readonly string[] {
  const others = names.filter((each) => each !== name)
  return isHidden ? [...others, name] : others
}
