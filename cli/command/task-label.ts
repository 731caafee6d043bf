/** How messages name a task. */
const BRIEF_ID = 8

/** The name and the beginning of the id, because names are not unique. A task without a name has its id. */
export function taskLabel({ id, name }: { readonly id: string; readonly name: string }): string {
  return name === id ? id : `${name} (${id.slice(0, BRIEF_ID)})`
}
